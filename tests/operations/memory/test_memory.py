"""The tool `memory`, action by action, on every store."""

from datetime import datetime

import pytest

from testbed.world import World


def test_get_batch_names_what_is_missing(world: World) -> None:
    one, two = world.remember("one"), world.remember("two words apart")

    answer = world.call("memory", action="get_batch", ids=[two, "nope", one, two])

    assert [node["id"] for node in answer["results"]] == [two, one]
    assert answer["missing"] == ["nope"]


def test_list_pages_through_everything_in_order(world: World) -> None:
    ids = []
    for n in range(7):
        ids.append(world.remember(f"memory number {n}", force_create=True))
        world.clock.advance(hours=1)

    newest = world.call("memory", action="list", limit=3)
    rest = world.call("memory", action="list", limit=10, offset=3)

    assert newest["total"] == 7
    assert [n["id"] for n in newest["results"] + rest["results"]] == ids[::-1]
    oldest = world.call("memory", action="list", order="oldest", limit=2)["results"]
    assert [n["id"] for n in oldest] == ids[:2]


def test_list_knows_what_is_due_and_what_is_fading(world: World) -> None:
    fading = world.remember("Nobody asked for this in months.")
    world.clock.advance(days=200)
    fresh = world.remember("Said just now.")

    due = world.call("memory", action="list", due=True)["results"]
    weakest = world.call("memory", action="list", order="retention", max_retention=0.5)["results"]

    assert [n["id"] for n in due] == [fading]
    assert [n["id"] for n in weakest] == [fading]
    assert fresh not in {n["id"] for n in weakest}


def test_what_was_never_recalled_can_be_listed(world: World) -> None:
    """Of the ways to read, those that leave no trace do not count."""
    ids = {
        name: world.remember(text, force_create=True)
        for name, text in {
            "searched": "The lighthouse keeper is called Ingrid.",
            "reviewed": "Bread rises for nine hours.",
            "used": "The tram to the harbour is line seven.",
            "read": "The attic has a leaking window.",
            "looked for": "Violets grow under the hedge.",
        }.items()
    }

    def listed(**filters: bool) -> set[str]:
        return {one["id"] for one in world.call("memory", action="list", **filters)["results"]}

    assert listed(recalled=False) == set(ids.values())
    world.call("search", query="Who is the lighthouse keeper?", limit=1)
    world.call("search", query="Where do violets grow?", limit=1, record=False)
    world.call("mark_reviewed", id=ids["reviewed"], rating=3)
    world.call("memory", action="useful", id=ids["used"])
    world.get(ids["read"])
    world.app.settle()

    assert listed(recalled=False) == {ids["read"], ids["looked for"]}
    assert listed(recalled=True) == {ids["searched"], ids["reviewed"], ids["used"]}
    assert listed() == set(ids.values())


def test_a_memory_moves_to_another_scope_with_everything_it_has(world: World) -> None:
    here = world.remember("The pier is painted blue.", scope="/project/a", tags=["paint"])
    beside = world.remember("The crane was sold.", scope="/project/a", force_create=True)
    world.call("memory", action="link", id=here, target=beside)
    world.call("mark_reviewed", id=here, rating=3)
    before = world.get(here)

    moved = world.call("memory", action="move", id=here, to="/project/b")

    kept = ("content", "tags", "createdAt", "stability", "reps", "domains")
    assert (moved["changed"], moved["node"]["scope"]) == (True, "/project/b")
    assert [moved["node"].get(name) for name in kept] == [before.get(name) for name in kept]
    assert len(world.call("memory", action="get", id=here)["edges"]) == 1
    assert world.find("What colour is the pier?", scope="/project/b") == ["The pier is painted blue."]
    assert "The pier is painted blue." not in world.find("What colour is the pier?", scope="/project/a")
    past = world.call("memory", action="history", id=here)
    [fields] = [one["details"]["fields"] for one in past["events"] if one["kind"] == "memory.revised"]
    before_it = past["revisions"][-1]
    assert (before_it["scope"], before_it["endedBy"], fields) == ("/project/a", "move", ["scope"])
    assert not world.call("memory", action="move", id=here, to="/project/b")["changed"]
    assert world.call("memory", action="move", id=here, to="/project/a")["node"]["scope"] == "/project/a"


def test_a_secret_in_the_scope_to_move_to_is_refused_by_the_name_of_the_argument(world: World) -> None:
    moved, to = world.remember("The pier is painted blue."), f"/ghp_{'aB3dE6gH9j' * 4}"[:41]
    for refused in (
        world.refused("memory", action="move", id=moved, to=to),
        world.refused("memory", action="bulk", change="move", ids=[moved], to=to),
    ):
        assert (refused["code"], refused["details"]["argument"]) == ("secret_found", "to")
    assert world.get(moved)["scope"] == "/"


def test_list_and_bulk_are_limited_to_a_session(world: World) -> None:
    mine = world.remember("The pier needs paint.", session_id="tuesday")
    world.remember("The crane needs oil.", session_id="wednesday")

    listed = world.call("memory", action="list", session_id="tuesday")
    planned = world.call("memory", action="bulk", change="pin", session_id="tuesday")

    assert [one["id"] for one in listed["results"]] == [mine]
    assert (planned["matched"], planned["changed"]) == (1, 1)
    assert world.call("memory", action="list", session_id="thursday")["total"] == 0


def test_edit_makes_a_revision_and_moves_every_index(world: World) -> None:
    memory_id = world.remember("The mascot is a walrus.")
    world.clock.advance(days=1)

    answer = world.call("memory", action="edit", id=memory_id, content="The mascot is a heron.")

    assert (answer["changed"], answer["node"]["revision"]) == (True, 2)
    gone = world.call("search", query="walrus", min_confidence=0)["results"]
    assert [hit["matchType"] for hit in gone] == ["Semantic"]
    there = world.call("search", query="heron")["results"]
    assert [hit["matchType"] for hit in there] == ["Both"]
    history = world.call("memory", action="history", id=memory_id)
    assert history["revisions"][0]["content"] == "The mascot is a walrus."
    assert history["revisions"][0]["endedBy"] == "edit"
    same = world.call("memory", action="edit", id=memory_id, content="The mascot is a heron.")
    assert (same["changed"], same["node"]["revision"]) == (False, 2)


def test_tags_are_added_removed_and_renamed_everywhere(world: World) -> None:
    one = world.remember("First of the tagged.", tags=["draft", "x"])
    two = world.remember("Second of them, other words.", tags=["x", "y"])

    world.call("memory", action="tag", id=one, add=["final"], remove=["draft"])
    renamed = world.call("memory", action="rename_tag", tag="x", to="y")

    assert renamed["memories"] == 2
    assert world.get(one)["tags"] == ["y", "final"]
    assert world.get(two)["tags"] == ["y"]
    assert world.call("search", query="tagged words", tags=["x"])["total"] == 0
    error = world.refused("memory", action="rename_tag", tag="finol", to="z")
    assert (error["code"], error["hint"]) == ("not_found", "Did you mean 'final'?")


def test_a_tag_that_is_added_and_removed_at_once_is_refused(world: World) -> None:
    memory_id = world.remember("Tea is green.", tags=["a"])

    error = world.refused("memory", action="tag", id=memory_id, add=["b", "c"], remove=["b"])

    assert (error["code"], error["details"]["tags"]) == ("invalid_input", ["b"])
    assert world.get(memory_id)["tags"] == ["a"]


def test_a_pinned_memory_is_deleted_only_on_a_second_word(world: World) -> None:
    memory_id = world.remember("Keep this.")
    world.call("memory", action="pin", id=memory_id)

    assert world.refused("memory", action="delete", id=memory_id)["code"] == "conflict"
    assert world.get(memory_id)["content"] == "Keep this."

    world.call("memory", action="unpin", id=memory_id)
    assert world.call("memory", action="delete", id=memory_id)["deleted"] is True


def test_validity_is_set_and_opened_again(world: World) -> None:
    memory_id = world.remember("The office is closed.")

    world.call("memory", action="set_validity", id=memory_id, valid_until="2026-03-10")
    assert world.find("office", as_of="2026-03-10T23:00:00Z") == ["The office is closed."]
    assert world.find("office", as_of="2026-03-11") == []
    world.call("memory", action="set_validity", id=memory_id)
    assert world.find("office", as_of="2026-04-01") == ["The office is closed."]
    error = world.refused(
        "memory", action="set_validity", id=memory_id, valid_from="2026-03-10", valid_until="2026-03-01"
    )
    assert error["code"] == "invalid_input"


def test_an_end_that_is_not_named_stays_and_null_opens_it(world: World) -> None:
    memory_id = world.remember("The office is in Berlin.", valid_from="2026-01-01")
    world.call("memory", action="set_validity", id=memory_id, valid_until="2026-03-10")
    assert world.get(memory_id)["validFrom"] == "2026-01-01T00:00:00Z"
    world.call("memory", action="set_validity", id=memory_id, valid_from=None)
    assert "validFrom" not in world.get(memory_id)
    assert world.get(memory_id)["validUntil"] == "2026-03-11T00:00:00Z"


def test_a_validity_that_covers_no_moment_is_refused(world: World) -> None:
    now = "2026-03-01T09:00:00Z"
    memory_id = world.remember("Tea is green.", valid_from=now)
    before = world.get(memory_id)

    item = {"content": "Grass is blue.", "valid_from": now, "valid_until": "2026-03-01T10:00:00+01:00"}
    errors = [
        world.refused("smart_ingest", **item),
        world.refused("smart_ingest", items=[item]),
        world.refused("memory", action="set_validity", id=memory_id, valid_until=now),
        world.refused("memory", action="set_validity", id=memory_id, valid_from=now, valid_until=now),
    ]

    assert {error["message"] for error in errors} == {
        "`valid_from` and `valid_until` are equal, so the fact would never be valid."
    }
    assert world.get(memory_id) == before
    assert world.call("memory", action="list")["total"] == 1
    day = {"valid_from": "2026-03-01", "valid_until": "2026-03-01"}
    assert world.get(world.remember("Grass is blue.", **day))["validUntil"] == "2026-03-02T00:00:00Z"


def test_what_is_not_true_any_more_is_not_due(world: World) -> None:
    old = world.remember("The gateway listens on port 8080.")
    new = world.remember("Correction: the gateway listens on port 9090.")
    world.clock.advance(days=60)
    due = world.call("memory", action="list", due=True)["results"]
    assert [one["id"] for one in due] == [new]
    assert world.call("system_status")["dueForReview"] == 1
    fading = world.call("memory", action="list", order="retention", current=True)["results"]
    assert old not in [one["id"] for one in fading]


def test_promote_and_demote_move_strength_both_ways_and_are_counted(world: World) -> None:
    memory_id = world.remember("Restarting the proxy fixes the 502.")
    world.clock.advance(days=5)

    up = world.call("memory", action="promote", id=memory_id)
    down = world.call("memory", action="demote", id=memory_id)

    assert up["after"]["retention"] > up["before"]["retention"]
    assert up["after"]["stability"] > up["before"]["stability"]
    assert down["after"]["retention"] < down["before"]["retention"]
    assert down["after"]["stability"] < down["before"]["stability"]
    node = world.get(memory_id)
    assert (node["reps"], node["lapses"]) == (2, 1)
    kinds = [type(event).__name__ for event in world.heard]
    assert kinds[-2:] == ["MemoryPromoted", "MemoryDemoted"]


def test_all_four_states_are_reached_by_time_and_feedback(world: World) -> None:
    memory_id = world.remember("A passing remark.")

    def state() -> str:
        return str(world.call("memory", action="state", id=memory_id)["state"])

    assert state() == "active"
    world.clock.advance(days=20)
    assert state() == "dormant"
    world.clock.advance(days=400)
    assert state() == "silent"
    for _ in range(4):
        world.call("memory", action="demote", id=memory_id)
    assert state() == "unavailable"
    assert world.get(memory_id)["content"] == "A passing remark."


def test_reviews_schedule_the_next_one_further_away_for_better_recall(world: World) -> None:
    due = {}
    for rating in (1, 2, 3, 4):
        memory_id = world.remember(f"Card for rating {rating}.", force_create=True)
        world.clock.advance(days=3)
        answer = world.call("mark_reviewed", id=memory_id, rating=rating)
        due[rating] = answer["after"]["stability"]

    assert due[1] < due[2] < due[3] < due[4]


def test_delete_removes_a_memory_from_every_answer(world: World) -> None:
    memory_id = world.remember("The xylophone secret is under the stairs.", tags=["hidden"])
    other = world.remember("Something about a piano in the attic.")

    world.call("memory", action="delete", id=memory_id)

    everything = str(
        [
            world.call("search", query="xylophone secret", include_expired=True),
            world.call("memory", action="list", limit=200),
            world.call("memory_timeline", start="2020-01-01"),
            world.call("system_status"),
        ]
    )
    assert "stairs" not in everything
    assert other in everything
    for action in ("get", "state", "history", "promote", "pin", "delete"):
        assert world.refused("memory", action=action, id=memory_id)["code"] == "not_found"


def test_the_timeline_groups_by_day_and_filters_before_it_limits(world: World) -> None:
    for n in range(5):
        world.remember(f"note {n}", tags=["even" if n % 2 == 0 else "odd"], force_create=True)
        world.clock.advance(days=1)

    answer = world.call("memory_timeline", start="2026-03-01", tags=["even"], limit=2)

    assert answer["total"] == 3
    assert [(day["date"], day["count"]) for day in answer["days"]] == [("2026-03-05", 1), ("2026-03-03", 1)]
    assert world.refused("memory_timeline", start="2026-03-05", end="2026-03-01")["code"] == "invalid_input"


def test_status_counts_what_there_is(world: World) -> None:
    world.remember("One.", pinned=True)
    world.remember("The switch is enabled in the panel.", scope="/a")
    world.remember("The switch is disabled in the panel.", scope="/a")

    status = world.call("system_status")

    assert (status["totalMemories"], status["pinned"], status["superseded"]) == (3, 1, 1)
    assert status["byScope"] == {"/": 1, "/a": 2}
    assert (status["withEmbeddings"], status["embeddingCoverage"]) == (3, 1.0)
    assert status["status"] == "healthy"


@pytest.mark.parametrize("spelling", ["detail_level", "detailLevel"])
def test_both_spellings_of_an_argument_are_taken(world: World, spelling: str) -> None:
    world.remember("Spelling matters little.")

    answer = world.call("search", query="spelling", **{spelling: "brief"})

    assert answer["detailLevel"] == "brief"


@pytest.mark.parametrize(
    ("old", "arguments"),
    [
        ("get_knowledge", {}),
        ("get_memory_state", {}),
        ("promote_memory", {}),
        ("demote_memory", {}),
        ("delete_knowledge", {}),
    ],
)
def test_old_tool_names_go_on_working(world: World, old: str, arguments: dict[str, str]) -> None:
    memory_id = world.remember("Old names are remembered too.")

    answer = world.call(old, id=memory_id, **arguments)

    assert answer.get("id", answer.get("node", {}).get("id")) == memory_id


def test_deleting_a_wrong_correction_brings_the_right_fact_back(world: World) -> None:
    right = world.remember("Harbour runs on PostgreSQL 14 today.")
    world.clock.advance(days=1)
    wrong = world.remember("Harbour runs on PostgreSQL 16 today.")
    assert world.find("Harbour PostgreSQL") == ["Harbour runs on PostgreSQL 16 today."]

    answer = world.call("memory", action="delete", id=wrong)

    assert answer["revived"] == [right]
    assert world.find("Harbour PostgreSQL") == ["Harbour runs on PostgreSQL 14 today."]
    assert "supersededBy" not in world.get(right)


def test_history_shows_the_latest_events_of_a_busy_memory(world: World) -> None:
    memory_id = world.remember("Looked at every day.")
    for _ in range(30):
        world.clock.advance(days=1)
        world.find("looked at every day")
        world.app.settle()
    world.call("memory", action="pin", id=memory_id)

    history = world.call("memory", action="history", id=memory_id, limit=5)

    assert history["totalEvents"] == 32
    assert len(history["events"]) == 5
    assert history["events"][-1]["details"]["reason"] == "pin"


def test_tags_are_looked_for_as_they_are_kept(world: World) -> None:
    world.remember("Spaces around a tag mean nothing.", tags=["  spaced "])

    assert world.call("search", query="tag", tags=[" spaced  "])["total"] == 1
    assert world.get(world.call("memory", action="list")["results"][0]["id"])["tags"] == ["spaced"]


def test_deleting_the_middle_of_a_chain_revives_nothing_that_was_corrected_since(world: World) -> None:
    facts = []
    for floors in (3, 4, 5):
        facts.append(world.remember(f"The head office has {floors} floors today."))
        world.clock.advance(days=1)
    first, middle, last = facts
    assert world.find("head office") == ["The head office has 5 floors today."]

    answer = world.call("memory", action="delete", id=middle)

    assert answer["revived"] == []
    assert world.get(first)["supersededBy"] == last
    assert world.find("head office") == ["The head office has 5 floors today."]


def test_the_curve_of_a_state_is_the_one_that_the_memory_fades_on(world: World) -> None:
    memory = world.remember("The curve of forgetting is a power law.")
    world.clock.advance(days=10)
    state = world.call("memory", action="state", id=memory, curve=True)
    points = {one["at"]: one for one in state["curve"]}
    assert state["curve"][0]["retrieval"] == 1.0
    assert [one["retrieval"] for one in state["curve"]] == sorted(
        (one["retrieval"] for one in state["curve"]), reverse=True
    )
    last = max(points)
    world.clock.now = datetime.fromisoformat(last)
    later = world.call("memory", action="state", id=memory)["components"]
    assert points[last]["retrieval"] == later["retrieval"]
    assert points[last]["retention"] == later["retention"]
    assert "curve" not in world.call("memory", action="state", id=memory)
