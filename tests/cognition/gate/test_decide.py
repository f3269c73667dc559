"""What the gate decides: every branch, and the laws that hold for all inputs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.failures import each
from vestige.cognition.gate.conflict import find_conflict
from vestige.cognition.gate.decide import (
    Create,
    Decision,
    GateInput,
    Merge,
    Reinforce,
    Rival,
    Supersede,
    Update,
    decide,
    rival_of,
)
from vestige.core.pair_model import RelationScores


def rival(
    content: str, similarity: float, memory_id: str = "old", *, retrieval: float = 1.0, threaded: bool = False
) -> Rival:
    return Rival(
        memory_id=memory_id, content=content, similarity=similarity, retrieval=retrieval, threaded=threaded
    )


@each(
    ("old", "new", "kind"),
    [
        ("Always squash before merging.", "Never squash before merging.", "polarity"),
        ("We use tabs here.", "We don't use tabs here.", "polarity"),
        ("The flag is enabled in prod.", "The flag is disabled in prod.", "polarity"),
        ("Ada likes coffee.", "Ada hates coffee.", "polarity"),
        ("Runs on PostgreSQL 14.", "Runs on PostgreSQL 16.", "value"),
        ("It needs Python 3.11 to build.", "It needs Python 3.12 to build.", "value"),
        ("Python 3.11 is required.", "Python 3.12 is required.", "slot"),
        ("The limit is 50% of memory.", "The limit is 75% of memory.", "value"),
        ("The queue is RabbitMQ in staging.", "The queue is Kafka in staging.", "value"),
        ("Ada lives in Paris with Tom.", "Ada lives in Lyon with Tom.", "value"),
        ("Task 12 is finished.", "Task 13 is finished.", "slot"),
        ("Deploy on 2026-03-01 went well.", "Deploy on 2026-04-01 went well.", "slot"),
    ],
)
def test_statements_that_do_not_say_the_same_are_told_apart(old: str, new: str, kind: str) -> None:
    found = find_conflict(new, old)
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ada prefers tea.", "Ada prefers tea in the mornings."),
        ("The server was restarted.", "The servers were restarted."),
        ("Python 3.11 is required.", "Python is required, version 3.11 or later."),
        ("Grace wrote the parser.", "The cafeteria serves lunch at noon."),
    ],
)
def test_statements_that_agree_or_have_nothing_to_do_with_each_other_do_not_conflict(
    old: str, new: str
) -> None:
    assert find_conflict(new, old) is None


def test_a_correction_that_says_so_supersedes_even_a_slot() -> None:
    decision = decide(
        GateInput(content="Correction: the queue is Kafka in staging."),
        [rival("The queue is RabbitMQ in staging.", 0.72)],
    )
    assert isinstance(decision, Supersede)


def test_nothing_known_is_a_new_memory() -> None:
    assert isinstance(decide(GateInput(content="x"), []), Create)
    far = decide(GateInput(content="x", nearest=0.3), [rival("y", 0.3)])
    assert isinstance(far, Create)
    assert (far.similarity, far.related) == (0.3, ())


def test_conflict_is_looked_at_before_similarity() -> None:
    decision = decide(
        GateInput(content="Never cache this response."), [rival("Always cache this response.", 0.99)]
    )
    assert isinstance(decision, Supersede)
    assert decision.conflict is not None


def test_other_words_for_the_same_reinforce() -> None:
    decision = decide(
        GateInput(content="Tea was really what Ada wanted in the morning."),
        [rival("Tea is what Ada wants in the morning.", 0.95)],
    )
    assert isinstance(decision, Reinforce)
    assert not decision.identical


def test_a_text_that_contains_the_old_one_updates_it() -> None:
    decision = decide(
        GateInput(content="Ada prefers tea, and she takes it without milk"), [rival("Ada prefers tea", 0.85)]
    )
    assert isinstance(decision, Update)


def test_a_text_that_turns_the_old_one_around_does_not_update_it() -> None:
    decision = decide(
        GateInput(content="Do not use tabs in this code"), [rival("use tabs in this code", 0.9)]
    )
    assert isinstance(decision, Supersede)


def test_a_demoted_memory_makes_way_for_a_close_one() -> None:
    known = rival("Clearing the cache helps with stale pages.", 0.8, retrieval=0.2)
    decision = decide(GateInput(content="Stale pages vanish after a hard reload of the tab."), [known])
    assert isinstance(decision, Supersede)


def test_one_other_value_of_an_attribute_with_many_is_kept_beside_the_old_one() -> None:
    beside = decide(
        GateInput(content="Ada speaks Spanish at home."), [rival("Ada speaks French at home.", 0.9)]
    )
    assert isinstance(beside, Create)
    assert beside.related == ("old",)
    assert beside.contradicts == ()


def test_one_other_value_of_an_attribute_with_one_supersedes() -> None:
    known = rival("The queue is RabbitMQ in staging.", 0.9)
    decision = decide(GateInput(content="The queue is Kafka in staging."), [known])
    assert isinstance(decision, Supersede)
    assert decision.conflict is not None
    assert (decision.conflict.kind, decision.conflict.detail) == ("value", "rabbitmq → kafka")


def test_of_several_rivals_the_one_that_is_corrected_is_superseded_not_the_nearest() -> None:
    decision = decide(
        GateInput(content="Correction: the deploy is on Thursday."),
        [rival("Deploys need an approval.", 0.8, "near"), rival("The deploy is on Wednesday.", 0.6, "meant")],
    )
    assert isinstance(decision, Supersede)
    assert decision.memory_id == "meant"


def test_what_is_said_in_a_talk_is_kept_and_changes_nothing() -> None:
    known = rival("The deploy is on Wednesday.", 0.95)
    assert isinstance(decide(GateInput(content="The deploy is on Thursday.", said=True), [known]), Create)
    spoken = replace(known, said=True)
    beside = decide(GateInput(content="The deploy is on Thursday."), [spoken])
    assert isinstance(beside, Create)
    assert beside.contradicts == ("old",)


def test_a_text_that_leaves_out_part_of_the_old_one_does_not_hide_it() -> None:
    known = rival("Ada lives in Paris. Her brother works at Acme.", 0.8)
    decision = decide(GateInput(content="Ada lives in Lyon."), [known])
    assert isinstance(decision, Create)
    assert decision.contradicts == ("old",)


def test_a_decision_names_the_memory_it_is_about() -> None:
    near = rival("The port is 3927.", 0.9)
    assert rival_of(decide(GateInput(content="The port is 4100."), [near])) == "old"
    assert rival_of(decide(GateInput(content="The port is 3927."), [near])) == "old"
    assert rival_of(decide(GateInput(content="Bread is sold on Mondays."), [])) is None


def test_several_close_memories_propose_a_merge_and_touch_none() -> None:
    decision = decide(
        GateInput(content="Nightly jobs copy the ledger to cold storage."),
        [
            rival("Ledger copies are made nightly.", 0.8, "a"),
            rival("Cold storage holds the ledger.", 0.76, "b"),
            rival("Ice is cold.", 0.71, "c"),
        ],
    )
    assert isinstance(decision, Merge)
    assert decision.memory_ids == ("a", "b")


def test_the_same_place_updates_unless_it_is_pinned() -> None:
    assert isinstance(decide(GateInput(content="new", place_id="p"), []), Update)
    assert isinstance(decide(GateInput(content="new", place_id="p", place_pinned=True), []), Create)


TEXTS = st.text(min_size=1, max_size=60)
RIVALS = st.lists(
    st.builds(
        Rival,
        memory_id=st.uuids().map(str),
        content=TEXTS,
        similarity=st.floats(-1, 1),
        retrieval=st.floats(0, 1),
        pinned=st.booleans(),
        threaded=st.booleans(),
        said=st.booleans(),
        partial=st.booleans(),
        later=st.booleans(),
    ),
    max_size=5,
).map(lambda rivals: sorted(rivals, key=lambda one: -one.similarity))


@given(TEXTS, RIVALS)
def test_a_turn_of_a_thread_is_only_ever_created(text: str, rivals: list[Rival]) -> None:
    assert isinstance(decide(GateInput(content=text, threaded=True), rivals), Create)


@given(TEXTS, RIVALS)
def test_protected_memories_are_never_touched(text: str, rivals: list[Rival]) -> None:
    decision = decide(GateInput(content=text), rivals)
    touched = getattr(decision, "memory_id", None)
    assert touched not in {one.memory_id for one in rivals if one.protected}


@given(TEXTS, RIVALS)
def test_nothing_is_reinforced_by_what_contradicts_it(text: str, rivals: list[Rival]) -> None:
    decision = decide(GateInput(content=text), rivals)
    if isinstance(decision, Reinforce):
        known = next(one for one in rivals if one.memory_id == decision.memory_id)
        assert find_conflict(text, known.content) is None


@given(TEXTS, RIVALS)
def test_the_same_question_gets_the_same_decision(text: str, rivals: list[Rival]) -> None:
    assert decide(GateInput(content=text), rivals) == decide(GateInput(content=text), rivals)


CHATTER = [
    (
        "Caroline: Hey Mel! Long time no talk. Lots has been going on!",
        "Caroline: Hey Mel, what's up? Busy week.",
    ),
    (
        "Gina: No doubt, Jon you've got this. Keep it up!",
        "Gina: Yeah Jon, you've got the right attitude! Keep going!",
    ),
    (
        "Jon: Thanks, Gina. Your help means a lot. I'll stay optimistic.",
        "Jon: Gina, your help means a lot. I'm not giving up.",
    ),
    (
        "Maria: Hey John! Long time no see! What's up?",
        "John: Hey Maria! Long time no see! Tons has gone down!",
    ),
    (
        "Jon: Dancing makes me happy.",
        "Jon: Dancing is my happy place. I used to be scared of it, and of so many other things in life.",
    ),
]


@pytest.mark.parametrize(("old", "new"), CHATTER)
def test_chatter_corrects_nothing_however_similar_it_is(old: str, new: str) -> None:
    decision = decide(GateInput(content=new), [rival(old, 0.88)])
    assert isinstance(decision, Create)
    assert decision.contradicts == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Her phone number is 555-1234.", "Her telephone number is 555-9876."),
        ("The launch is on 2026-03-01 at 10:00.", "The launch is set for 2026-04-15 at 14:30."),
        ("Set the timeout to 30 and retry 3 times.", "Set the timeout to 3 and retry 30 times."),
        ("Ada manages Bob.", "Bob manages Ada."),
        ("Redis feeds Kafka in this pipeline.", "In this pipeline Kafka feeds Redis."),
        ("The gate opens at dawn.", "The gate does not open at dawn, as a rule."),
    ],
)
def test_other_numbers_dates_roles_or_polarity_are_never_the_same_in_other_words(old: str, new: str) -> None:
    assert not isinstance(decide(GateInput(content=new), [rival(old, 0.985)]), Reinforce)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Harbour runs on PostgreSQL 14", "Harbour runs on PostgreSQL 14.2"),
        ("The limit is 3", "The limit is 3,000"),
        ("Deploy on Fridays", "Deploy on Fridays: never"),
        ("Ada uses Java", "Ada uses JavaScript"),
    ],
)
def test_a_longer_number_or_word_is_no_extension(old: str, new: str) -> None:
    assert not isinstance(decide(GateInput(content=new), [rival(old, 0.9)]), Update)


KNOWN = rival("Always cache this response.", 0.97)


@pytest.mark.parametrize(
    "known",
    [
        replace(KNOWN, pinned=True),
        replace(KNOWN, threaded=True),
        replace(KNOWN, partial=True),
        replace(KNOWN, later=True),
    ],
)
def test_a_protected_rival_is_marked_and_kept(known: Rival) -> None:
    decision = decide(GateInput(content="Never cache this response."), [known])
    assert isinstance(decision, Create)
    assert decision.contradicts == ("old",)


def test_a_protected_rival_does_not_hide_the_plain_fact_behind_it() -> None:
    turn = rival("Bob: the service runs on PostgreSQL 14.", 0.97, "turn", threaded=True)
    fact = rival("The service runs on PostgreSQL 14.", 0.95, "fact")
    decision = decide(GateInput(content="The service runs on PostgreSQL 16."), [turn, fact])
    assert isinstance(decision, Supersede)
    assert decision.memory_id == "fact"


DIFFERENT_THINGS = [
    ("Server alpha has 16 GB of RAM.", "Server beta has 32 GB of RAM."),
    ("Room 12 has 40 seats.", "Room 13 has 50 seats."),
    (
        "On 2026-10-01 the nightly backup took 12 minutes.",
        "On 2026-10-02 the nightly backup took 15 minutes.",
    ),
    ("The max upload size is 10MB.", "The min upload size is 1MB."),
    ("In sprint 14 the velocity was 30.", "In sprint 15 the velocity was 32."),
    ("Flight LH400 lands at gate 5.", "Flight LH404 lands at gate 9."),
    ("This is item number 3 about topic 7.", "This is item number 4 about topic 8."),
    ("The nightly job for cluster alpha is enabled.", "The nightly job for cluster beta is disabled."),
    ("Ada is taller than Bob.", "Bob is not taller than Ada."),
    ("Ada owes Bob 5 euros.", "Bob owes Ada 10 euros."),
    ("I am allergic to nuts.", "You are not allergic to nuts."),
    ("Take 2 tablets before breakfast.", "Take 1 tablets after breakfast."),
    ("Server 1 has 16 GB of memory.", "Server 2 has 16 GB of memory."),
    ("Node 3 is down.", "Node 4 is down."),
    ("Room 5 has 5 chairs.", "Room 6 has 6 chairs."),
    ("Team red switched to Rust.", "Team blue switched to Rust."),
    ("Ada prefers tea rather than coffee.", "Bob prefers tea rather than coffee."),
    ("Use Redis instead of Memcached for sessions.", "Use Redis instead of Memcached for queues."),
    (
        "The left lamp is controlled by the switch near the front door.",
        "The right lamp is controlled by the switch near the back door.",
    ),
    ("Ada lives in Berlin.", "The wife of Ada lives in Berlin."),
    ("Ada lives in Berlin.", "Bob thinks Ada lives in Berlin."),
    ("The meeting is at 5.", "If it rains, the meeting is at 5."),
]


@each(("old", "new"), DIFFERENT_THINGS)
def test_a_statement_about_another_thing_supersedes_nothing(old: str, new: str) -> None:
    assert isinstance(decide(GateInput(content=new), [rival(old, 0.97)]), Create)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("สมชายชอบกินข้าวผัด", "สมหญิงแพ้ถั่วลิสง"),
        ("🍎🍊", "🚀🔥"),
        ("Ada reacts to releases with 🚀", "Ada reacts to releases with 💀"),
    ],
)
def test_texts_a_model_cannot_read_are_not_the_same_however_near(old: str, new: str) -> None:
    assert isinstance(decide(GateInput(content=new), [rival(old, 1.0)]), Create)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ada likes tea.", "Ada does not like tea."),
        ("We use tabs here.", "We don't use tabs here."),
        ("The port is 3927.", "The port is 4100."),
        ("The queue is RabbitMQ in staging.", "Correction: the queue is Kafka in staging."),
    ],
)
def test_a_statement_that_takes_the_old_one_back_supersedes_it(old: str, new: str) -> None:
    assert isinstance(decide(GateInput(content=new), [rival(old, 0.93)]), Supersede)


def test_a_disagreement_with_a_pinned_memory_is_marked_even_when_another_is_judged() -> None:
    pinned = replace(rival("Always deploy on Friday evening.", 0.97, "pinned"), pinned=True)
    plain = rival("The deployment takes a while.", 0.72, "plain")
    decision = decide(GateInput(content="Never deploy on Friday evening."), [pinned, plain])
    assert isinstance(decision, Create)
    assert decision.contradicts == ("pinned",)


def test_numbers_are_compared_as_words_and_figures() -> None:
    decision = decide(
        GateInput(content="Deploys need three approvals."), [rival("Deploys need 2 approvals.", 0.93)]
    )
    assert isinstance(decision, Supersede)


# -- With the scores of the pair model


def scored(content: str, similarity: float = 0.6, *, other_context: bool = False, **scores: float) -> Rival:
    """A rival with these scores of the pair model; `other` takes the rest."""
    given = {"same": 0.0, "corrects": 0.0, "unclear": 0.0, "elaborates": 0.0, **scores}
    relation = RelationScores(**{"other": 1 - sum(given.values()), **given})
    made = rival(content, similarity)
    return replace(made, relation=relation, other_context=other_context)


LOCKED, GONE = "Dependencies are locked with Poetry.", "Poetry has left the repository; uv does it all."


def test_the_model_supersedes_what_the_rules_do_not_see() -> None:
    decision = decide(GateInput(content=GONE), [scored(LOCKED, corrects=0.7)])
    assert isinstance(decision, Supersede)
    assert "70 % sure" in decision.reason
    assert isinstance(decide(GateInput(content=GONE), [scored(LOCKED, corrects=0.5)]), Create)
    assert isinstance(decide(GateInput(content=GONE), [rival(LOCKED, 0.6)]), Create)


def test_the_model_marks_a_conflict_that_it_does_not_decide() -> None:
    hedged = decide(GateInput(content=GONE), [scored(LOCKED, unclear=0.95)])
    assert isinstance(hedged, Create)
    assert (hedged.contradicts, hedged.related) == (("old",), ())


def test_rivals_of_another_context_and_siblings_are_not_superseded_by_the_model() -> None:
    apart = scored(LOCKED, other_context=True, corrects=0.99)
    assert isinstance(decide(GateInput(content=GONE), [apart]), Create)
    room = scored("Room 2 fits four people at most.", corrects=0.99)
    assert isinstance(decide(GateInput(content="Room 5 takes six."), [room]), Create)


def test_the_model_vetoes_a_rule_if_it_is_sure_that_the_old_text_stands() -> None:
    old, new = "The service runs on PostgreSQL 14.", "The service runs on PostgreSQL 16."
    assert isinstance(decide(GateInput(content=new), [scored(old, 0.9, corrects=0.2)]), Supersede)
    assert isinstance(decide(GateInput(content=new), [scored(old, 0.9)]), Create)
    # "The service runs on PostgreSQL 16, and on 14 in Lyon" leaves the old text true as well.
    assert isinstance(decide(GateInput(content=new), [scored(old, 0.9, elaborates=0.95)]), Create)


def test_the_model_does_not_veto_a_text_that_repeats_the_old_one_and_rejects_its_value() -> None:
    old, new = "The inventory service is written in Go.", "The inventory service is written in Rust, not Go."
    assert isinstance(decide(GateInput(content=new), [scored(old, 0.76)]), Supersede)
    part = "Written in Rust, not Go: the new gateway."
    assert isinstance(decide(GateInput(content=part), [scored(old, 0.76)]), Create)


def test_two_values_that_can_both_be_true_need_a_model_that_is_almost_sure() -> None:
    old, new = "Ada speaks Finnish.", "Ada speaks Japanese."
    assert isinstance(decide(GateInput(content=new), [scored(old, 0.8, corrects=0.89)]), Create)


def test_the_model_denies_that_two_texts_say_the_same() -> None:
    old, new = "Grace leads the data team.", "The data team is led by Grace."
    assert isinstance(decide(GateInput(content=new), [scored(old, 0.95, same=0.9)]), Reinforce)
    assert isinstance(decide(GateInput(content=new), [scored(old, 0.95)]), Create)


@each(
    ("old", "new", "similarity", "corrects"),
    [
        ("We bill monthly.", "Payments run through Stripe.", 0.45, 0.89),
        ("We bill monthly.", "Payments run through Stripe.", 0.55, 0.89),
        ("Grandma's birthday is on 4 May.", "Grandpa's birthday is on 9 June.", 0.8, 0.78),
        ("A man is riding a horse.", "The horse was sold.", 0.6, 0.89),
    ],
)
def test_the_model_alone_does_not_end_what_is_about_another_thing(
    old: str, new: str, similarity: float, corrects: float
) -> None:
    assert isinstance(decide(GateInput(content=new), [scored(old, similarity, corrects=corrects)]), Create)


@each(
    ("old", "new", "similarity", "corrects"),
    [
        ("We bill monthly.", "Payments run through Stripe.", 0.45, 0.96),
        ("We bill monthly.", "Payments run through Stripe.", 0.55, 0.96),
        ("Grandma's birthday party is on 4 May.", "The birthday tea is on 9 June.", 0.8, 0.82),
        ("A man is riding a horse.", "The horse was sold.", 0.6, 0.96),
    ],
)
def test_a_model_that_is_almost_sure_ends_what_the_rules_take_for_another_thing(
    old: str, new: str, similarity: float, corrects: float
) -> None:
    assert isinstance(decide(GateInput(content=new), [scored(old, similarity, corrects=corrects)]), Supersede)


UNTESTED, TESTED = "The parser has no tests.", "Forty cases guard the parser as of today."


def test_a_distant_note_is_corrected_if_it_stands_out_and_the_model_is_sure() -> None:
    known = scored(UNTESTED, 0.31, corrects=0.95)
    assert isinstance(decide(GateInput(content=TESTED), [known]), Supersede)
    further = rival("The linter has no tests.", 0.22, "further")
    assert isinstance(decide(GateInput(content=TESTED), [known, further]), Supersede)


@each(
    "rivals",
    [
        [scored(UNTESTED, 0.31, corrects=0.85)],
        [scored(UNTESTED, 0.19, corrects=0.99)],
        [scored(UNTESTED, 0.31, corrects=0.95), rival("The linter has no tests.", 0.25, "further")],
        [scored("We check nothing.", 0.31, corrects=0.89)],
        [scored(UNTESTED, 0.31, unclear=0.95)],
        [replace(scored(UNTESTED, 0.31, corrects=0.95), pinned=True)],
        [rival(UNTESTED, 0.31)],
    ],
)
def test_otherwise_a_distant_note_is_left_alone(rivals: list[Rival]) -> None:
    decision = decide(GateInput(content=TESTED), rivals)
    assert decision == Create(reason="Nothing like it is known.")


def test_without_a_common_word_only_what_stands_out_is_corrected() -> None:
    known = scored("We bill monthly.", 0.45, corrects=0.98)
    near = rival("We pay weekly.", 0.42, "near")
    assert isinstance(decide(GateInput(content="Payments run through Stripe."), [known, near]), Create)


def test_another_time_is_no_other_subject() -> None:
    known = scored("backup 02:15", 0.9, corrects=0.96)
    assert isinstance(
        decide(GateInput(content="backup 14:15, the other half of the day"), [known]), Supersede
    )


def test_a_time_of_day_before_a_word_names_the_thing() -> None:
    known = scored("The 8 am dose is 5 mg.", 0.91, corrects=0.92)
    assert isinstance(decide(GateInput(content="The 8 pm dose is 10 mg."), [known]), Create)


SWAPPED = (
    (
        "Dr. Okafor is on call on first weekends of the month, I am on third ones.",
        "I do the first weekends from here on and the third ones belong to Dr. Okafor.",
    ),
    (
        "The orders-db server is the primary and orders-db2 the replica.",
        "After the failover orders-db2 is the primary and orders-db its replica.",
    ),
)


@each(("old", "new"), list(SWAPPED))
def test_parts_that_exchange_what_they_say_are_marked_however_sure_the_model_is_that_they_are_the_same(
    old: str, new: str
) -> None:
    for known in (rival(old, 0.98), scored(old, 0.98, same=0.97)):
        decision = decide(GateInput(content=new), [known])
        assert isinstance(decision, Create)
        assert decision.contradicts == ("old",)
        assert "no longer belong together" in decision.reason
    sure = decide(GateInput(content=new), [scored(old, 0.98, corrects=0.6)])
    assert isinstance(sure, Supersede)


@each(
    ("old", "new"),
    [
        ("Ada leads design and Bob leads the tests.", "The tests are led by Bob and design by Ada."),
        ("The box holds screws and nails.", "The box holds nails and screws."),
        ("Ada and Bob lead the team.", "Bob and Ada lead the team."),
    ],
)
def test_parts_in_another_order_exchange_nothing(old: str, new: str) -> None:
    assert find_conflict(new, old) is None


def test_what_was_before_does_not_end_what_is() -> None:
    old = "X-ray images are stored as DICOM on pacs01."
    history = "X-ray images were formerly burned to DVD, there is a box of them in the cellar."
    corrected = "X-ray images are burned to DVD now, formerly they were on a server."

    kept = decide(GateInput(content=history), [scored(old, 0.62, corrects=0.95)])

    assert isinstance(kept, Create)
    assert kept.contradicts == ()
    assert isinstance(decide(GateInput(content=corrected), [scored(old, 0.62, corrects=0.95)]), Supersede)


@each("corrects", [None, 0.1, 0.95])
def test_who_held_a_post_before_does_not_end_who_holds_it(corrects: float | None) -> None:
    old, new = "Priya owns the billing service.", "Zoë used to own the billing service."
    known = rival(old, 0.8) if corrects is None else scored(old, 0.8, corrects=corrects)

    kept = decide(GateInput(content=new), [known])

    assert isinstance(kept, Create)
    assert kept.contradicts == ()


def test_what_stands_where_something_used_to_be_ends_it() -> None:
    replaced = decide(
        GateInput(content="Klarna is where the PayPal button of the checkout used to be."),
        [scored("The checkout supports PayPal.", 0.7, corrects=0.95)],
    )

    assert isinstance(replaced, Supersede)


# -- What is read: the models take most of the time of a decision


def read_of(rivals: list[Rival]) -> tuple[Decision, list[str]]:
    """The decision on a text about approvals, and the contents of the rivals that were read for it."""
    read: list[str] = []
    known = {one.memory_id: one for one in rivals}

    def look(one: Rival) -> Rival:
        read.append(one.content)
        return known[one.memory_id]

    bare = [replace(one, relation=None) for one in rivals]
    decision = decide(GateInput(content="Deploys need three approvals."), bare, look)
    assert decision == decide(GateInput(content="Deploys need three approvals."), rivals)
    return decision, list(dict.fromkeys(read))


def test_no_rival_is_read_after_a_correction_that_none_can_outweigh() -> None:
    near = scored("Deploys need two approvals.", 0.9, corrects=0.9)
    others = [
        replace(scored(f"Deploys need {word} approvals.", 0.8, corrects=0.9), memory_id=word)
        for word in ("four", "five")
    ]
    decision, read = read_of([near, *others])
    assert rival_of(decision) == "old"
    assert read == ["Deploys need two approvals."]


def test_a_rival_whose_correction_could_weigh_more_is_read() -> None:
    near = scored("All is ready to go out once two of us agree.", 0.9, corrects=0.9)
    changed = replace(scored("Deploys need two approvals.", 0.8, corrects=0.9), memory_id="changed")
    decision, read = read_of([near, changed])
    assert rival_of(decision) == "changed"
    assert len(read) == 2


def test_the_words_are_compared_only_where_the_pair_model_leaves_it_open() -> None:
    asked: list[str] = []
    denied = replace(
        scored("Three approvals are needed for deploys.", 0.9, elaborates=0.3),
        likeness=lambda: asked.append("likeness"),
    )
    assert isinstance(decide(GateInput(content="Deploys need three approvals."), [denied]), Create)
    assert not asked
