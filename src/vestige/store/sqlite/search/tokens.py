"""Reads token bits for a search: only those that the cache lacks, and no more than the sketch holds."""

import sqlite3

import numpy as np

from vestige.cognition.ranking.bm25 import Integers
from vestige.core.candidates import LONGEST_TOKENS, Sketch, tokens_kept
from vestige.store.sql.columns import listed
from vestige.store.sql.rows.store_facts import Profile
from vestige.store.sql.search import tokens
from vestige.store.sql.search.threads import Directory
from vestige.store.sql.search.tokens import TokenCache, TokenEntry

DEATHS = "SELECT coalesce(max(position), 0) FROM dead_vectors"
LENGTHS = (
    "SELECT key, min(length(asked), ?) FROM token_bits"
    " WHERE profile = ? AND length(asked) > 0 AND key IN (SELECT value FROM json_each(?))"
)
LOAD = (
    "SELECT key, substr(bits, 1, ?), substr(asked, 1, ?) FROM token_bits"
    " WHERE profile = ? AND key IN (SELECT value FROM json_each(?))"
)


def sketch(
    db: sqlite3.Connection, cache: TokenCache, profile: Profile, directory: Directory, keys: Integers
) -> Sketch | None:
    """The tokens of these memories and of their neighbours; None without any."""
    beside = tokens.around(directory, keys)
    wanted = np.unique(beside[beside >= 0]).tolist()
    version = (profile.id, db.execute(DEATHS).fetchone()[0])
    entries = cache.held(version, wanted)
    lengths = {key: entry.length for key, entry in entries.items()}
    missing = listed(key for key in wanted if key not in entries)
    if missing:
        lengths |= db.execute(LENGTHS, (LONGEST_TOKENS, profile.id, missing))
    most = int(tokens_kept(np.array([*lengths.values()], dtype=np.int64)).max(initial=0))
    short = listed(key for key in lengths if key not in entries or not entries[key].has(most))
    if short:
        size = tokens.width(profile.signature.dimension)
        rows = db.execute(LOAD, (size * most, most, profile.id, short))
        read = {key: TokenEntry(length=lengths[key], bits=bits, asked=asked) for key, bits, asked in rows}
        entries |= read
        cache.keep(version, read, entries)
    return tokens.sketch(profile.signature.dimension, beside, entries)
