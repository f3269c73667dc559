"""The story of a year: what somebody who looks after twenty services tells, asks, corrects and drops.

It is made beforehand from a seed, so that every arm lives through the same one. Facts change: the new value
is told, mostly in other words and often without saying so, and the old one is never taken back, so that only
the memory can tell what still holds. Half of the services are in daily use; the others are set up in spring
and then left alone.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

DAYS = 365
SETTING_UP_DAYS = 60
FOCUS_DAYS = 30
BUSY = 10
"""How many services are in use; the rest is quiet."""
CHANGES_A_DAY = 0.8
NOTES_A_DAY = 1.5
RETOLD_A_DAY = 0.3
QUESTIONS_A_DAY = 4
SAID = 0.4
"""The share of the changes that are told as such; the others silently, a third of them in the old words."""
NEWS_DAYS = 30
"""How long a remark is news."""
REJECTED_ON = (50, 52, 54, 56)
"""Days of every second month on which one and the same remark is said to be wrong."""
PINNED = 6
OVERVIEWS = 0.3
"""The share of the questions that are about a service as a whole."""

SERVICES = (
    "Falcon", "Harbor", "Juniper", "Kestrel", "Lantern", "Meridian", "Nimbus", "Orchard", "Pelican", "Quarry",
    "Rosewood", "Saffron", "Tundra", "Umbra", "Vireo", "Willow", "Yarrow", "Zephyr", "Basalt", "Cobalt",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """Something a service has: how it is told, how it is asked for, and what it can be."""

    name: str
    told: tuple[str, ...]
    asked: tuple[str, ...]
    values: tuple[str, ...]


ATTRIBUTES = (
    Attribute(
        name="database",
        told=("{s} keeps its data in {v}.", "The database behind {s} is {v}.", "Storage for {s}: {v}."),
        asked=("Which database does {s} use?", "Where does {s} keep its data?"),
        values=("PostgreSQL", "MySQL", "SQLite", "MongoDB", "CockroachDB", "MariaDB", "DynamoDB"),
    ),
    Attribute(
        name="owner",
        told=("{v} looks after {s}.", "Ask {v} about anything in {s}.", "The owner of {s} is {v}."),
        asked=("Who looks after {s}?", "Who owns {s}?"),
        values=("Ada", "Boris", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Inga", "Jonas"),
    ),
    Attribute(
        name="region",
        told=("{s} runs in {v}.", "We host {s} in {v}.", "The region of {s} is {v}."),
        asked=("Where is {s} hosted?", "In which region does {s} run?"),
        values=("Frankfurt", "Dublin", "Virginia", "Oregon", "Singapore", "Tokyo", "Sydney"),
    ),
    Attribute(
        name="release day",
        told=("{s} is released on {v}.", "Releases of {s} go out every {v}.", "{v} is release day for {s}."),
        asked=("When is {s} released?", "On which day do releases of {s} go out?"),
        values=("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    ),
    Attribute(
        name="language",
        told=("{s} is written in {v}.", "The code of {s} is {v}.", "Developers of {s} work in {v}."),
        asked=("What language is {s} written in?", "Which language do we use for {s}?"),
        values=("Go", "Rust", "Python", "Kotlin", "TypeScript", "Elixir", "Scala"),
    ),
    Attribute(
        name="alerts",
        told=("Alerts of {s} go to {v}.", "{s} reports its alarms in {v}.", "For alerts of {s} watch {v}."),
        asked=("Where do alerts of {s} go?", "Where does {s} report alarms?"),
        values=("the blue channel", "the pager", "the ops mailbox", "the wall screen", "the night phone"),
    ),
    Attribute(
        name="port",
        told=("{s} listens on port {v}.", "The port of {s} is {v}.", "Reach {s} at port {v}."),
        asked=("Which port does {s} listen on?", "What is the port of {s}?"),
        values=("7001", "7443", "8010", "8088", "9090", "9321", "5544"),
    ),
    Attribute(
        name="cache",
        told=("{s} caches with {v}.", "The cache of {s} is {v}.", "In front of {s} there is {v} as a cache."),
        asked=("What does {s} cache with?", "Which cache does {s} have?"),
        values=("Redis", "Memcached", "Varnish", "an in-process map", "Hazelcast"),
    ),
)

REMARKS = (
    "{who} asked for a demo of {s} {when}.",
    "Long meeting about {s} with {who} {when}, nothing decided.",
    "{s} was slow {when} and recovered before {who} looked.",
    "{who} wants to rework the {thing} of {s}.",
    "Cleaned up the {thing} of {s} with {who}.",
    "A customer complained about the {thing} of {s} {when}.",
    "{who} sketched the {thing} of {s} on the whiteboard {when}.",
    "Read an article about the {thing}, it reminded me of {s}.",
)
MOVING = (
    "URGENT: the {thing} of {s} is down, {who} says customers are furious, a disaster!!!",
    "Amazing news from {who}!!! The {thing} of {s} won the award, everybody is thrilled!",
)
MOVED = 0.04
"""The share of the remarks that are made with feeling."""
WHO = ("Marta", "Nils", "Olga", "Pedro", "Ruth", "Samir", "Tove", "Uma", "Viktor", "Wanda", "Yusuf", "Zoe")
WHEN = (
    "in the morning",
    "after lunch",
    "in the afternoon",
    "late in the day",
    "before the weekend",
    "at noon",
)
THING = (
    "login page", "search box", "billing job", "import", "export", "mobile view", "settings page", "report",
    "onboarding", "help text", "dashboard", "mail template", "nightly job", "icon set", "changelog",
)  # fmt: skip
OVERVIEW = ("What should I know about {s}?", "How is {s} set up?", "Tell me the current state of {s}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """A text is told. `slot` is the (service, attribute) it gives a value, None for a remark."""

    key: str
    text: str
    service: str
    slot: tuple[str, str] | None
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question about a slot, or (with no attribute) about a whole service."""

    text: str
    service: str
    attribute: str | None
    busy_with: str
    """What the one who asks works on this month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hush:
    """Something that was told is not to come up again."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """Somebody says that something he was told is wrong."""

    key: str


Step = Tell | Ask | Hush | Reject


@dataclass(slots=True)
class Truth:
    """What holds now, and what held before. Keys name what was told."""

    current: dict[tuple[str, str], str] = field(default_factory=dict)
    wordings: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)
    told_on: dict[str, int] = field(default_factory=dict)
    remarks: dict[str, list[str]] = field(default_factory=dict)

    def learn(self, day: int, tell: Tell, value: str | None) -> None:
        """Take a told text into account: a new value makes everything said of the old one stale."""
        self.texts[tell.key], self.told_on[tell.key] = tell.text, day
        if tell.slot is None or value is None:
            self.remarks.setdefault(tell.service, []).append(tell.key)
            return
        if self.current.get(tell.slot) != value:
            self.stale |= self.wordings.pop(tell.slot, set())
        self.current[tell.slot] = value
        self.wordings.setdefault(tell.slot, set()).add(tell.key)

    def holding(self, service: str, day: int) -> set[str]:
        """The keys of everything that holds of a service: facts that were not replaced, and news."""
        facts = {key for slot, keys in self.wordings.items() if slot[0] == service for key in keys}
        news = {key for key in self.remarks.get(service, ()) if day - self.told_on[key] <= NEWS_DAYS}
        return facts | news


@dataclass(slots=True)
class Story:
    """The steps of each day, and what was true at the end of each."""

    days: list[list[Step]]
    values: dict[str, str]
    """What the told facts say, by key."""
    busy: tuple[str, ...]
    quiet: tuple[str, ...]


def tell_story(seed: int, days: int = DAYS) -> Story:
    """The story of a year."""
    return _Teller(seed, days).story()


class _Teller:
    def __init__(self, seed: int, days: int) -> None:
        self._rng = random.Random(seed)
        services = list(SERVICES)
        self._rng.shuffle(services)
        self._busy, self._quiet = tuple(services[:BUSY]), tuple(services[BUSY:])
        self._days = days
        self._said = 0
        self._value: dict[tuple[str, str], str] = {}
        self._values: dict[str, str] = {}
        self._remarks: list[str] = []
        self._wrong: str | None = None

    def story(self) -> Story:
        days: list[list[Step]] = [[] for _ in range(self._days)]
        setting_up = min(SETTING_UP_DAYS, self._days)
        slots = [(service, one) for service in SERVICES for one in ATTRIBUTES]
        self._rng.shuffle(slots)
        pinned = {slot for slot in slots if slot[0] in self._quiet}
        kept = set(sorted(((s, one.name) for s, one in pinned), key=str)[:PINNED])
        for number, (service, attribute) in enumerate(slots):
            told = self._fact(service, attribute, pinned=(service, attribute.name) in kept)
            days[number * setting_up // len(slots)].append(told)
        for day in range(self._days):
            days[day] += self._day(day)
        return Story(days=days, values=self._values, busy=self._busy, quiet=self._quiet)

    def _day(self, day: int) -> Iterator[Step]:
        focus = self._focus(day)
        if day >= SETTING_UP_DAYS:
            for _ in range(self._times(CHANGES_A_DAY)):
                yield self._fact(self._rng.choice(self._busy), self._rng.choice(ATTRIBUTES))
            for _ in range(self._times(RETOLD_A_DAY)):
                yield self._again(self._rng.choice(focus), self._rng.choice(ATTRIBUTES))
        for _ in range(self._times(NOTES_A_DAY)):
            yield self._remark(self._rng.choice(SERVICES))
        if day % 11 == 10 and self._remarks:
            yield Hush(key=self._rng.choice(self._remarks))
        if day % 60 == 50:
            self._wrong = self._rng.choice(self._remarks)
        if day % 60 in REJECTED_ON and self._wrong is not None:
            yield Reject(key=self._wrong)
        for _ in range(QUESTIONS_A_DAY):
            yield self._question(self._rng.choice(focus), focus[0])

    def _focus(self, day: int) -> Sequence[str]:
        """The services somebody works on this month, some of them much more than others."""
        month = random.Random(f"{day // FOCUS_DAYS}-{self._busy[0]}")
        few = month.sample(self._busy, 4)
        return [few[0]] * 4 + [few[1]] * 2 + few[2:]

    def _fact(self, service: str, attribute: Attribute, *, pinned: bool = False) -> Tell:
        slot = (service, attribute.name)
        changed = slot in self._value
        others = [value for value in attribute.values if value != self._value.get(slot)]
        self._value[slot] = self._rng.choice(others)
        return self._say(slot, attribute, pinned=pinned, said=changed and self._rng.random() < SAID)

    def _again(self, service: str, attribute: Attribute) -> Tell:
        return self._say((service, attribute.name), attribute)

    def _say(
        self, slot: tuple[str, str], attribute: Attribute, *, pinned: bool = False, said: bool = False
    ) -> Tell:
        key = self._key()
        self._values[key] = self._value[slot]
        text = self._rng.choice(attribute.told).format(s=slot[0], v=self._value[slot])
        text = f"Update: {text}" if said else text
        return Tell(key=key, text=text, service=slot[0], slot=slot, pinned=pinned)

    def _remark(self, service: str) -> Tell:
        key = self._key()
        self._remarks.append(key)
        some = {"who": WHO, "when": WHEN, "thing": THING}
        drawn = {name: self._rng.choice(words) for name, words in some.items()}
        moved = self._rng.random() < MOVED
        text = self._rng.choice(MOVING if moved else REMARKS).format(s=service, **drawn)
        return Tell(key=key, text=text, service=service, slot=None)

    def _question(self, service: str, busy_with: str) -> Ask:
        if self._rng.random() < OVERVIEWS:
            text = self._rng.choice(OVERVIEW).format(s=service)
            return Ask(text=text, service=service, attribute=None, busy_with=busy_with)
        attribute = self._rng.choice(ATTRIBUTES)
        text = self._rng.choice(attribute.asked).format(s=service)
        return Ask(text=text, service=service, attribute=attribute.name, busy_with=busy_with)

    def _key(self) -> str:
        self._said += 1
        return f"t{self._said}"

    def _times(self, rate: float) -> int:
        """How often something happens today: the rate, its fraction by chance."""
        return int(rate) + (self._rng.random() < rate - int(rate))
