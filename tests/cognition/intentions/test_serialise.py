"""What is kept of an intention is all of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson

from testbed.failures import each
from tests.cognition.intentions.intention_year import BEGIN, rules
from vestige.cognition.intentions.describe import in_words
from vestige.cognition.intentions.intention import Firing, Intention, IntentionStatus, look
from vestige.cognition.intentions.serialise import body_of, intention_of
from vestige.cognition.intentions.triggers import Manual, Trigger, TriggerSituation
from vestige.operations.intentions.triggers import TriggerArguments, shown, trigger_from

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def triggers() -> list[Trigger]:
    made = [
        trigger_from(TriggerArguments.model_validate(rule.trigger), BEGIN) for rule in rules(seed=3, many=60)
    ]
    return [Manual(), *made]


def intention(trigger: Trigger) -> Intention:
    return Intention(
        id="i",
        scope="/a",
        version=3,
        created_at=NOW,
        updated_at=NOW,
        armed_at=NOW,
        description="Do it.",
        trigger=trigger,
    )


def kept(one: Intention) -> Intention:
    body = orjson.loads(orjson.dumps(body_of(one)))
    return intention_of(
        body,
        id=one.id,
        scope=one.scope,
        version=one.version,
        created_at=one.created_at,
        updated_at=one.updated_at,
    )


@each("trigger", triggers(), ids=in_words)
def test_every_trigger_survives_being_kept_and_being_shown(trigger: Trigger) -> None:
    one = look(intention(trigger), TriggerSituation(now=NOW + timedelta(days=20))).after

    assert kept(one) == one
    assert trigger_from(TriggerArguments.model_validate(shown(trigger)), BEGIN) == trigger


def test_every_field_survives_being_kept() -> None:
    one = replace(
        intention(Manual()),
        said="Do it tomorrow.",
        deadline=NOW,
        snoozed_until=NOW,
        since=NOW,
        met={".0": NOW},
        firing=Firing(at=NOW, due_at=NOW, missed=2, reminders=1, reminded_at=NOW),
        announced=NOW,
        ended=IntentionStatus.CANCELLED,
        closed_at=NOW,
    )

    assert kept(one) == one
