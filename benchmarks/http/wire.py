"""An HTTP client that costs next to nothing, so that it measures the server: one connection, kept open."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


class Hung(Exception):
    """The server closed the connection in the middle of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """One connection to a server, for one request after the other."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._given = {"Host": f"{self._host}:{self._port}", **headers}
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and read the whole answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        told = {**self._given, **(headers or {}), "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        try:
            answer = await _read(reader)
        except asyncio.IncompleteReadError as exc:
            raise Hung(f"{method} {path}") from exc
        if answer.headers.get("connection", "").lower() == "close":
            await self.close()
        return answer

    async def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            await self._streams[1].wait_closed()
            self._streams = None


async def _read(reader: asyncio.StreamReader) -> Answer:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
        body = await _chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Answer(status=int(first.split()[1]), headers=headers, body=body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return bytes(body)
