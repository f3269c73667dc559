"""API keys in the table `api_keys`, and ended logins in `ended_logins`. `StoreKeys` has the contract."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from vestige.core.api_key import ApiKey
from vestige.core.errors import Conflict, NotFound
from vestige.core.models import check_label, check_name
from vestige.store.sql.database import Database, Row, Transactions
from vestige.store.sql.filters import RowCodec, listed, moment_text

CODEC = RowCodec(
    "id hash label permissions:strings scopes:strings? domains:strings? created_at:moment"
    " expires_at:moment? last_used:moment? revoked_at:moment?"
)
COLUMNS = CODEC.columns
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM api_keys"
_ORDER = " ORDER BY created_at, id"
_INSERT = f"INSERT INTO api_keys ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_USED = "UPDATE api_keys SET last_used = ? WHERE id = ? AND (last_used IS NULL OR last_used < ?)"
_ENDED = "SELECT 1 FROM ended_logins WHERE id = ?"


class KeyTable:
    """API keys; each method is a transaction."""

    _tables: Transactions

    def put_key(self, key: ApiKey, *, replacing: str | None = None) -> None:
        self._tables.written(lambda db: _put(db, key, replacing))

    def list_keys(self, ids: Sequence[str] | None = None) -> list[ApiKey]:
        asked = "" if ids is None else " WHERE id IN (SELECT value FROM json_each(?))"
        with self._tables.reading(snapshot=False) as db:
            rows = db.execute(f"{_SELECT}{asked}{_ORDER}", () if ids is None else (listed(ids),)).fetchall()
        return [from_row(row) for row in rows]

    def key_by_hash(self, hash: str) -> ApiKey | None:
        with self._tables.reading(snapshot=False) as db:
            row = db.execute(f"{_SELECT} WHERE hash = ?", (hash,)).fetchone()
        return None if row is None else from_row(row)

    def revoke_key(self, key_id: str, at: datetime) -> ApiKey:
        return self._tables.written(lambda db: _revoke(db, key_id, at))

    def label_key(self, key_id: str, label: str) -> ApiKey:
        check_label("label", label)

        def relabel(db: Database) -> ApiKey:
            db.execute("UPDATE api_keys SET label = ? WHERE id = ?", (label, key_id))
            return _of_id(db, key_id)

        return self._tables.written(relabel)

    def note_keys_used(self, used: Mapping[str, datetime]) -> None:
        # Always in the order of ids, so that two servers never wait for each other's rows.
        rows = [(moment_text(at), key_id, moment_text(at)) for key_id, at in sorted(used.items())]
        self._tables.written(lambda db: db.executemany(_USED, rows))

    def end_login(self, login_id: str, ends: datetime, *, forgetting: datetime) -> bool:
        check_name("login_id", login_id)
        return self._tables.written(lambda db: _end(db, login_id, ends, forgetting))

    def login_ended(self, login_id: str) -> bool:
        with self._tables.reading(snapshot=False) as db:
            return db.execute(_ENDED, (login_id,)).fetchone() is not None

    def key_of_login(self, key_id: str, login_id: str) -> ApiKey | None:
        with self._tables.reading(snapshot=False) as db:
            row = db.execute(
                f"{_SELECT} WHERE id = ? AND NOT EXISTS ({_ENDED})", (key_id, login_id)
            ).fetchone()
        return None if row is None else from_row(row)


def from_row(row: Row) -> ApiKey:
    return ApiKey(**CODEC.fields(row))


def _put(db: Database, key: ApiKey, replacing: str | None) -> None:
    taken = db.execute("SELECT 1 FROM api_keys WHERE id = ? OR hash = ?", (key.id, key.hash)).fetchone()
    if taken is not None:
        raise Conflict("A key with this id or hash already exists.", details={"id": key.id})
    if replacing is not None:
        if _of_id(db, replacing).revoked_at is not None:
            raise Conflict("This key was revoked already.", details={"id": replacing})
        _revoke(db, replacing, key.created_at)
    db.execute(_INSERT, CODEC.to_row(key))


def _revoke(db: Database, key_id: str, at: datetime) -> ApiKey:
    db.execute(
        "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (moment_text(at), key_id)
    )
    return _of_id(db, key_id)


def _end(db: Database, login_id: str, ends: datetime, forgetting: datetime) -> bool:
    db.execute("DELETE FROM ended_logins WHERE ends_at < ?", (moment_text(forgetting),))
    done = db.execute(
        "INSERT INTO ended_logins (id, ends_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING RETURNING id",
        (login_id, moment_text(ends)),
    )
    return done.fetchone() is not None


def _of_id(db: Database, key_id: str) -> ApiKey:
    row = db.execute(f"{_SELECT} WHERE id = ?", (key_id,)).fetchone()
    if row is None:
        raise NotFound(f"There is no key {key_id}.", details={"id": key_id})
    return from_row(row)
