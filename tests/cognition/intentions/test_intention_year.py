"""Five hundred rules in a virtual year come up exactly when they should, as an independent oracle says."""

from dataclasses import replace

import pytest

from tests.cognition.intentions.intention_year import BEGIN, Moment, Rule, Watch, looks, rules
from vestige.cognition.intentions.intention import Intention, completed, look
from vestige.cognition.intentions.serialise import body_of, intention_of
from vestige.cognition.intentions.triggers import TriggerSituation, stated_words
from vestige.operations.intentions.triggers import TriggerArguments, trigger_from


def intention(rule: Rule) -> Intention:
    trigger = trigger_from(TriggerArguments.model_validate(rule.trigger), BEGIN)
    return Intention(
        id="i",
        scope="/",
        created_at=BEGIN,
        updated_at=BEGIN,
        armed_at=BEGIN,
        description="Do it.",
        trigger=trigger,
    )


def situation(moment: Moment) -> TriggerSituation:
    return TriggerSituation(
        now=moment.at,
        codebase=moment.codebase,
        file=moment.file,
        topics=stated_words(moment.topics),
        events=stated_words(moment.events),
    )


def kept(one: Intention) -> Intention:
    """As after a restart."""
    return intention_of(
        body_of(one),
        id=one.id,
        scope=one.scope,
        version=one.version,
        created_at=one.created_at,
        updated_at=one.updated_at,
    )


@pytest.mark.parametrize("part", range(10))
def test_a_rule_comes_up_when_it_should_and_at_no_other_time(part: int) -> None:
    fired = 0
    for number, rule in enumerate(rules(seed=part, many=50)):
        one, watch = intention(rule), Watch(rule=rule)
        beside = [*rule.moments, *(at for inner in rule.parts for at in inner.moments)]
        for moment in looks(seed=number, many=30, beside=beside[:: len(beside) // 25 + 1]):
            expected = watch.look(moment)
            looked = look(one, situation(moment))
            found = looked.after.firing if looked.fresh else None
            assert expected == (found and (found.due_at, found.missed)), (rule.trigger, moment)
            one = kept(looked.after)
            fired += expected is not None
            if expected is not None and rule.repeats and moment.at.minute % 2:
                one = replace(completed(one, moment.at), closed_at=None, ended=None)
    assert fired > 500
