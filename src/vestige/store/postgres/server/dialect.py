"""Translates SQLite's spelling of a statement to PostgreSQL's (ADR 0019). Pure, and done once for each
statement.

It knows only what `store.sql` uses. A statement written for PostgreSQL alone needs only the placeholders.
"""

import re
from functools import lru_cache

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), spelled)
    for pattern, spelled in (
        (r"%", "%%"),
        # A `Listed` parameter is an array.
        (r"NOT IN \(SELECT value FROM json_each\(\?\)\)", "<> ALL(%s)"),
        (r"IN \(SELECT value FROM json_each\(\?\)\)", "= ANY(%s)"),
        (r"json_each\(\?\) w\b", "unnest(%s::text[]) w(value)"),
        # A list of tuples is JSON.
        (r"json_each\(\?\) t\b", "json_array_elements(%s::json) t(value)"),
        (r"json_extract\(t\.value, '\$\[(\d)\]'\)", r"(t.value->>\1)"),
        # Fields and elements of a column that holds JSON.
        (r"json_extract\(([\w.]+), '\$\.(\w+)'\)", r"""((\1::jsonb ->> '\2') COLLATE "C")"""),
        (
            r"json_each\(([\w.]+), '\$\.(\w+)'\)",
            r"json_each(CASE json_typeof(\1::json -> '\2')"
            r" WHEN 'object' THEN \1::json -> '\2' ELSE '{}' END)",
        ),
        (r"json_each\(([a-z]\.\w+)\) (\w+)", r"json_array_elements_text(\1::json) \2(value)"),
        (r"group_concat\(([\w.]+)\)", r"string_agg(\1::text, ',')"),
        # In SQLite it also keeps the order of the tables.
        (r"CROSS JOIN (\w+ \w+) ON", r"JOIN \1 ON"),
        (r"\?", "%s"),
    )
)


@lru_cache(maxsize=1024)
def respelled(sql: str) -> str:
    """A statement for psycopg."""
    for pattern, spelled in _RULES:
        sql = pattern.sub(spelled, sql)
    return sql
