"""What merged memories become: nothing said is lost, nothing is said twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from testbed.failures import each
from vestige.cognition.evidence.merge import in_order, join, joined_text, plan_id, refusals, unchecked
from vestige.cognition.text.analyser import fingerprint
from vestige.core.models import Memory

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def memory(content: str, name: str = "a", at: datetime = NOW) -> Memory:
    return Memory(id=name, content=content, created_at=at, updated_at=at)


@each(
    ("texts", "merged"),
    [
        (["Ada drinks tea.", "ada drinks  tea"], "Ada drinks tea."),
        (
            ["Tea is hot. Milk is cold.", "Milk is cold. Bread is fresh."],
            "Tea is hot. Milk is cold.\n\nBread is fresh.",
        ),
        (["One thing", "Another thing", "another thing."], "One thing\n\nAnother thing"),
        (["Use X, e.g. Foo.", "Use Y, e.g. Foo."], "Use X, e.g. Foo.\n\nUse Y, e.g. Foo."),
        (["First.\n\nSecond.", "Second.\n\nThird."], "First.\n\nSecond.\n\nThird."),
        (["- a\n- b\n- c", "- a\n- d"], "- a\n- b\n- c\n\n- a\n- d"),
        (["x:\n```\nf()\n}\n```", "y:\n\n```\n}\n```"], "x:\n```\nf()\n}\n```\n\ny:\n\n```\n}\n```"),
        (["今日は晴れ。明日は雨。", "明日は雨。昨日は雪。"], "今日は晴れ。明日は雨。\n\n昨日は雪。"),
    ],
)
def test_what_the_first_text_does_not_have_follows_it(texts: list[str], merged: str) -> None:
    assert joined_text(texts) == (merged, ())


@each(
    ("texts", "merged", "reworded"),
    [
        (
            ["The database is backed up every night.", "Every night the database is backed up."],
            "The database is backed up every night.",
            ("Every night the database is backed up.",),
        ),
        (
            ["Bo runs the deploys. Tea is hot.", "Bo runs the deploys from Lisbon."],
            "Bo runs the deploys from Lisbon. Tea is hot.",
            ("Bo runs the deploys.",),
        ),
        (["Ada manages Bob.", "Bob manages Ada."], "Ada manages Bob.\n\nBob manages Ada.", ()),
        (
            ["Deploys run on Friday.", "Deploys run only on Friday."],
            "Deploys run on Friday.\n\nDeploys run only on Friday.",
            (),
        ),
    ],
)
def test_what_is_said_in_other_words_is_said_once(
    texts: list[str], merged: str, reworded: tuple[str, ...]
) -> None:
    assert joined_text(texts) == (merged, reworded)


SENTENCES = st.sampled_from(
    ["Tea is hot.", "Is it?", "Ada said no.", "Dr. Bo came!", "It is 3.5 kg.", "Bread."]
)


@given(st.lists(st.lists(SENTENCES, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=5))
@example(["Tea is hot.", "Ada said no. Is it? Ada said no.", "Ada said no. Dr. Bo came!"])
def test_every_sentence_is_in_the_merged_text(texts: list[str]) -> None:
    merged, _ = joined_text(texts)

    for text in texts:
        for sentence in ("Tea is hot.", "Is it?", "Ada said no.", "Dr. Bo came!", "It is 3.5 kg."):
            assert sentence not in text or sentence in merged
    assert fingerprint(joined_text([merged, *texts[1:]])[0]) == fingerprint(merged)


def test_the_longest_leads_and_the_others_follow_in_time() -> None:
    late, early = memory("Tea.", "late", NOW), memory("Tea!", "early", NOW - DAY)
    long = memory("Tea it is.", "long", NOW - 2 * DAY)

    assert [one.id for one in in_order([late, early, long])] == ["long", "early", "late"]
    assert [one.id for one in in_order([early, late])] == ["late", "early"]


def test_a_merged_memory_has_what_its_parts_have() -> None:
    one = replace(
        memory("Ada drinks tea. Always.", "a", NOW - DAY), tags=("tea",), source="wiki",
        author="Bo", phrasings=("Tea for Ada.",), domains=("food",), domain_scores={"food": 0.5},
        metadata={"x": 1, "y": 1},
    )  # fmt: skip
    other = replace(
        memory("Ada drinks tea.", "b"), tags=("ada", "tea"), source="wiki", author="Cy",
        node_type="preference", phrasings=("tea for ada",), domains=("people",), domain_scores={"food": 0.7},
        metadata={"x": 2},
    )  # fmt: skip

    merged = join([one, other], memory_id="m", now=NOW + DAY)

    assert (merged.id, merged.content, merged.created_at) == ("m", one.content, NOW + DAY)
    assert (merged.tags, merged.domains) == (("tea", "ada"), ("food", "people"))
    assert (merged.source, merged.author, merged.node_type) == ("wiki", None, "preference")
    assert merged.phrasings == ("Tea for Ada.",)
    assert merged.domain_scores == {"food": 0.7}
    assert merged.metadata == {"x": 2, "y": 1, "merged_from": ["a", "b"]}


def test_a_merged_memory_is_as_late_as_the_latest_of_its_parts() -> None:
    told, held = memory("Tea.", "a", NOW - 3 * DAY), replace(memory("Tea!", "b"), valid_from=NOW - 5 * DAY)
    planned = replace(memory("Tea?", "c", NOW - 4 * DAY), occurred_at=NOW + 9 * DAY)

    assert join([told, held, planned], memory_id="m", now=NOW).valid_from == NOW - 3 * DAY


def test_a_plan_changes_with_its_parts_and_not_with_the_hour() -> None:
    parts = [memory("Ada drinks tea.", "a"), memory("Tea for Ada.", "b")]
    first = plan_id(parts, join(parts, memory_id="m", now=NOW))

    assert plan_id(parts, join(parts, memory_id="n", now=NOW + DAY)) == first
    retagged = [replace(parts[0], source="wiki", revision=2), parts[1]]
    assert plan_id(retagged, join(retagged, memory_id="m", now=NOW)) != first
    assert plan_id(parts[:1], join(parts[:1], memory_id="m", now=NOW)) != first


def test_every_reason_against_a_merge_is_given() -> None:
    pinned, turn = replace(memory("Tea.", "a"), pinned=True), replace(memory("Tea.", "b"), thread="talk")

    assert refusals([pinned, turn, memory("Tea.", "c")], NOW) == [
        "a is pinned, which protects it",
        "b is part of a thread",
    ]
    assert refusals([memory("Tea.", "c"), memory("Tea!", "d")], NOW) == []


def test_long_texts_are_not_looked_through() -> None:
    long, longer = memory("word " * 500, "a"), memory("word " * 600, "b")

    assert unchecked([long, longer])
    assert not unchecked([long, memory("word " * 500, "c")])
    assert not unchecked([memory("Tea."), memory("Milk.", "b")])
