"""How SQLite's statements are spelled for PostgreSQL."""

from testbed.failures import each
from vestige.store.postgres.server.dialect import respelled


@each(
    ("written", "spelled"),
    [
        ("SELECT 1 FROM m WHERE id = ? AND x = ?", "SELECT 1 FROM m WHERE id = %s AND x = %s"),
        ("x LIKE 'a%'", "x LIKE 'a%%'"),
        ("key IN (SELECT value FROM json_each(?))", "key = ANY(%s)"),
        ("key NOT IN (SELECT value FROM json_each(?))", "key <> ALL(%s)"),
        ("FROM json_each(?) w", "FROM unnest(%s::text[]) w(value)"),
        (
            "SELECT json_extract(t.value, '$[1]') FROM json_each(?) t",
            "SELECT (t.value->>1) FROM json_array_elements(%s::json) t(value)",
        ),
        ("json_extract(e.payload, '$.kind')", "((e.payload::jsonb ->> 'kind') COLLATE \"C\")"),
        ("json_each(m.domains) d", "json_array_elements_text(m.domains::json) d(value)"),
        ("group_concat(m.key)", "string_agg(m.key::text, ',')"),
        ("CROSS JOIN memories m ON m.key = w.key", "JOIN memories m ON m.key = w.key"),
        ("a CROSS JOIN b", "a CROSS JOIN b"),
    ],
)
def test_what_the_two_spell_differently(written: str, spelled: str) -> None:
    assert respelled(written) == spelled


def test_what_they_spell_alike_stays() -> None:
    alike = "SELECT count(*) FROM memories m JOIN strengths s ON s.key = m.key WHERE m.pinned = 1"
    assert respelled(alike) == alike
