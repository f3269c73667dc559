"""Facts about the store itself: the signature of its vectors, claims, and the head that every commit
reads."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime

import orjson

from vestige.core.errors import IdempotencyConflict
from vestige.core.lazy_dataclass import dataclass
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import ProfileState, other_model
from vestige.store.contract.changes import Claim, check_claim
from vestige.store.sql.database import Database, Rows
from vestige.store.sql.filters import json_text, moment_text
from vestige.store.sql.rows.strengths import CURVE

# -- Profiles: the signatures of embedding models


HAS_VECTORS = (
    "EXISTS (SELECT 1 FROM vectors v WHERE v.key = m.key"
    " AND +v.profile = (SELECT p.id FROM profiles p WHERE p.active = 1))"
)
"""Whether a memory `m` has vectors of the profile in use."""


STATES = {1: ProfileState.IN_USE, 0: ProfileState.COMING, 2: ProfileState.FORMER}
"""The meaning of the column `active`. A profile with 0 that is not the newest was abandoned; -1 is gone."""
KEPT = (
    "(SELECT id FROM profiles WHERE active IN (1, 2) OR active = 0 AND id = (SELECT max(id) FROM profiles))"
)
"""The ids of the profiles whose vectors are kept; those of others wait for their removal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A signature under the id its vectors are stored with."""

    id: int
    signature: Signature


def profile(db: Database) -> Profile | None:
    """The profile in use; None before the first vector."""
    row = db.execute("SELECT id, signature FROM profiles WHERE active = 1").fetchone()
    return None if row is None else _profile(*row)


def from_row(number: int | None, text: str | None) -> Profile | None:
    """The profile of two columns, None where they are NULL."""
    return None if number is None or text is None else _profile(number, text)


def kept(db: Database) -> dict[ProfileState, Profile]:
    """The profiles whose vectors are kept, by purpose."""
    rows = db.execute(f"SELECT active, id, signature FROM profiles WHERE id IN {KEPT}").fetchall()
    return {STATES[active]: _profile(number, text) for active, number, text in rows}


def unused_profile(db: Database) -> Profile | None:
    """A profile that is not kept and still has vectors."""
    row = db.execute(
        f"SELECT p.id, p.signature FROM profiles p WHERE p.id NOT IN {KEPT}"
        " AND EXISTS (SELECT 1 FROM vectors v WHERE v.profile = p.id) LIMIT 1"
    ).fetchone()
    return None if row is None else _profile(*row)


def of_signature(db: Database, signature: Signature) -> Profile | None:
    return next((one for one in kept(db).values() if one.signature == signature), None)


def enlist(db: Database, signature: Signature) -> Profile:
    """Create a profile, which is the coming one from now on."""
    row = db.execute(
        "INSERT INTO profiles (profile, signature, active) VALUES (?, ?, 0) RETURNING id",
        (signature.profile, json_text(asdict(signature))),
    ).fetchone()
    return Profile(id=row[0], signature=signature)


def activate(db: Database, chosen: Profile) -> None:
    """Put a profile in use. The previous one becomes the former, in place of any other."""
    db.execute("UPDATE profiles SET active = -1 WHERE active = 2")
    db.execute("UPDATE profiles SET active = 2 WHERE active = 1")
    db.execute("UPDATE profiles SET active = 1 WHERE id = ?", (chosen.id,))


def give_up_coming(db: Database) -> None:
    db.execute("UPDATE profiles SET active = -1 WHERE active = 0")


def give_up(db: Database, left: Profile) -> None:
    """Stop keeping a profile."""
    db.execute("UPDATE profiles SET active = -1 WHERE id = ?", (left.id,))


def _profile(number: int, text: str) -> Profile:
    return Profile(id=number, signature=Signature(**orjson.loads(text)))


def require(held: Profile | None, signature: Signature) -> None:
    """Refuse a signature other than the one in use."""
    if held is not None and held.signature != signature:
        raise other_model(held.signature, signature)


# -- Idempotency claims


def claimed(db: Database, key: str) -> Claim | None:
    row = db.execute("SELECT key, digest, answer, at FROM claims WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    return Claim(key=row[0], digest=row[1], answer=row[2], at=datetime.fromisoformat(row[3]))


def claim(db: Database, made: Claim) -> None:
    """Write a claim; IdempotencyConflict when its key is taken."""
    check_claim(made)
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


# -- The head of the store: what every commit reads before it writes, in one statement

HEAD = (
    f"SELECT c.reading, {CURVE}, (SELECT coalesce(max(position), 0) FROM events), i.node,"
    " (SELECT coalesce(max(seq), 0) FROM events WHERE node = i.node), p.id, p.signature"
    " FROM clock c CROSS JOIN installation i LEFT JOIN profiles p ON p.active = 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHead:
    """The head of a store: the last reading of the clock, the curve of forgetting, the last position of the
    log, the node that this store is, its last number in the log, and the profile in use. Another process may
    have given the store a new node."""

    clock: int
    curve: float
    position: int
    node: str
    seq: int
    profile: Profile | None


def head_in(rows: Rows) -> StoreHead:
    """The head in the answer to `HEAD`."""
    clock, curve, position, node, seq, *profile = rows.fetchone()
    return StoreHead(
        clock=clock, curve=curve, position=position, node=node, seq=seq, profile=from_row(*profile)
    )


def node(db: Database) -> str:
    """The node id under which this store logs its events."""
    return str(db.execute("SELECT node FROM installation").fetchone()[0])
