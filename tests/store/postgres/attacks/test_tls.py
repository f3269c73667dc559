"""TLS between a store and its server: the server is verified, and one that is not the server is refused."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from testbed.patience import PATIENCE_SECONDS
from tests.store.support.generators import a_memory, add, held
from tests.store.support.postgres_proxy import Proxy, proxy
from tests.store.support.postgres_stores import open_at
from vestige.core.errors import StoreUnavailable

pytestmark = pytest.mark.slow  # starts a server

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
FAR_AHEAD = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Authority:
    """One that signs certificates, and the folder of its files."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def file(self) -> Path:
        return self.folder / "authority.pem"

    def context(self, host: str, until: datetime = FAR_AHEAD) -> ssl.SSLContext:
        """What a server of this name shows."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        signed = _certificate(host, self.certificate.subject, key, self.key, names, until)
        file = self.folder / f"{host}-{until.year}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(file)
        return made


def _certificate(
    name: str,
    issuer: x509.Name | None,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
    until: datetime = FAR_AHEAD,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(LONG_AGO)
        .not_valid_after(until)
        .add_extension(extension, critical=False)
        .sign(signer, hashes.SHA256())
    )


def authority(folder: Path) -> Authority:
    folder.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    basic = x509.BasicConstraints(ca=True, path_length=None)
    made = Authority(folder=folder, key=key, certificate=_certificate("authority", None, key, key, basic))
    made.file.write_bytes(made.certificate.public_bytes(serialization.Encoding.PEM))
    return made


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return authority(tmp_path / "ours")


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An address that must be refused, and the words that say why."""

    proxy: Proxy
    options: str
    words: str
    host: str = "localhost"


@pytest.fixture
def refused(postgres_url: str, ours: Authority, tmp_path: Path) -> Iterator[list[Attempt]]:
    """Servers that are not to be trusted, each for another reason."""
    theirs = authority(tmp_path / "theirs")
    verified = f"sslmode=verify-full&sslrootcert={ours.file}"
    with ExitStack() as stack:

        def server(tls: ssl.SSLContext | None) -> Proxy:
            return stack.enter_context(proxy(postgres_url, tls))

        yield [
            Attempt(proxy=server(theirs.context("localhost")), options=verified, words="SSL error"),
            Attempt(proxy=server(ours.context("db.example")), options=verified, words="does not match"),
            Attempt(
                proxy=server(ours.context("localhost", LONG_AGO + timedelta(days=1))),
                options=verified,
                words="SSL error",
            ),
            Attempt(proxy=server(None), options=verified, words="does not support SSL"),
            Attempt(
                proxy=server(ours.context("localhost")),
                options=f"sslmode=verify-full&sslrootcert={tmp_path / 'missing.pem'}",
                words="does not exist",
            ),
        ]


def test_a_store_is_used_through_tls_with_a_verified_server(postgres_url: str, ours: Authority) -> None:
    with proxy(postgres_url, ours.context("localhost")) as server:
        url = server.url(host="localhost", options=f"sslmode=verify-full&sslrootcert={ours.file}")
        with closing(open_at(url)) as store, store.listening() as wait:
            with store._connections.reading() as db:
                assert db.connection.pgconn.ssl_in_use
            wait(PATIENCE_SECONDS)
            add(store, *(a_memory(f"m{number}", "zinc " * 5_000) for number in range(20)))
            assert held(store, "m7").memory.content.startswith("zinc")
            store.notify("other", ["{}"])
            assert wait(PATIENCE_SECONDS)


def test_a_server_that_cannot_be_trusted_is_refused_at_once_with_the_reason(refused: list[Attempt]) -> None:
    for attempt in refused:
        url = attempt.proxy.url(host=attempt.host, options=attempt.options)
        with pytest.raises(StoreUnavailable, match=attempt.words) as caught:
            open_at(url, busy_seconds=PATIENCE_SECONDS)
        assert "sslmode" in (caught.value.hint or ""), attempt.words
        assert "sslrootcert" in (caught.value.hint or "")
