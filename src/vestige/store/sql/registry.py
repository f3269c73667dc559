"""What a store knows about itself: its node, the signature of its vectors, the claims made on it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime

import orjson

from vestige.embed.protocol import Signature
from vestige.errors import IdempotencyConflict
from vestige.store.answers import other_model
from vestige.store.changes import Claim
from vestige.store.sql.columns import json_text, moment_text
from vestige.store.sql.database import Database

# -- the signature ---------------------------------------------------------------------------------


HAS_VECTORS = (
    "EXISTS (SELECT 1 FROM vectors v WHERE v.key = m.key"
    " AND +v.profile = (SELECT p.id FROM profiles p WHERE p.active = 1))"
)
"""Whether a memory `m` has vectors of the profile in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A signature under the id its vectors are stored with."""

    id: int
    signature: Signature


def profile(db: Database) -> Profile | None:
    """The profile in use; None before the first vector."""
    row = db.execute("SELECT id, signature FROM profiles WHERE active = 1").fetchone()
    return None if row is None else Profile(id=row[0], signature=Signature(**orjson.loads(row[1])))


def coming(db: Database) -> Profile | None:
    """The profile whose vectors are made beside those in use: the newest, if it is not in use itself. Vectors
    of all others are only waiting to be removed."""
    row = db.execute("SELECT id, signature, active FROM profiles ORDER BY id DESC LIMIT 1").fetchone()
    if row is None or row[2]:
        return None
    return Profile(id=row[0], signature=Signature(**orjson.loads(row[1])))


def of_signature(db: Database, signature: Signature) -> Profile | None:
    """The profile of a signature that is in use or coming."""
    known = (profile(db), coming(db))
    return next((one for one in known if one is not None and one.signature == signature), None)


def enlist(db: Database, signature: Signature) -> Profile:
    """A new profile, which is the coming one now."""
    row = db.execute(
        "INSERT INTO profiles (profile, signature, active) VALUES (?, ?, 0) RETURNING id",
        (signature.profile, json_text(asdict(signature))),
    ).fetchone()
    return Profile(id=row[0], signature=signature)


def activate(db: Database, chosen: Profile) -> None:
    """Put a profile in use, in place of any other."""
    db.execute("UPDATE profiles SET active = 0 WHERE active = 1")
    db.execute("UPDATE profiles SET active = 1 WHERE id = ?", (chosen.id,))


def require(held: Profile | None, signature: Signature) -> None:
    """Refuse a signature other than the one in use."""
    if held is not None and held.signature != signature:
        raise other_model(held.signature, signature)


# -- claims ----------------------------------------------------------------------------------------


def claimed(db: Database, key: str) -> Claim | None:
    """The claim made under a key."""
    row = db.execute("SELECT key, digest, answer, at FROM claims WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    return Claim(key=row[0], digest=row[1], answer=row[2], at=datetime.fromisoformat(row[3]))


def claim(db: Database, made: Claim) -> None:
    """Write a claim; IdempotencyConflict when its key is taken."""
    if claimed(db, made.key) is not None:
        raise IdempotencyConflict(details={"key": made.key})
    db.execute(
        "INSERT INTO claims (key, digest, answer, at) VALUES (?, ?, ?, ?)",
        (made.key, made.digest, made.answer, moment_text(made.at)),
    )


def attach(db: Database, claim_key: str, keys: Iterable[int]) -> None:
    """Note which memories a claimed request touched."""
    db.executemany(
        "INSERT INTO claim_memories (key, claim) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(key, claim_key) for key in keys],
    )


def drop_quoting(db: Database, key: int, texts: Iterable[str]) -> None:
    """Delete the claims on a memory whose answer quotes it: deleted text must not survive there."""
    quotes = [quote for text in texts for quote in (text, json_text(text)[1:-1])]
    rows = db.execute(
        "SELECT c.key, c.answer FROM claim_memories l JOIN claims c ON c.key = l.claim WHERE l.key = ?",
        (key,),
    )
    quoting = [(name,) for name, answer in rows.fetchall() if any(quote in answer for quote in quotes)]
    db.executemany("DELETE FROM claims WHERE key = ?", quoting)
