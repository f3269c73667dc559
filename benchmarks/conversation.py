"""Turns of conversations to remember: LoCoMo's where its file is at hand, else made by a seeded grammar.

LoCoMo (Maharana et al. 2024) is long chats between two friends: short turns about their lives, about 125
characters each. The grammar makes turns of that length and manner; no two of them are equal.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = "locomo.json"
TURNS_PER_SESSION = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing said: by whom, and where in which conversation. A note has no speaker."""

    speaker: str
    text: str
    thread: str
    position: int

    @property
    def content(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


def load_turns(data: Path | None, count: int) -> tuple[list[Turn], str]:
    """`count` turns with different texts, and where they come from."""
    found: list[Turn] = []
    if data is not None and (data / FILE).is_file():
        conversations = json.loads((data / FILE).read_text(encoding="utf-8"))
        distinct = {turn.content: turn for talk in conversations for turn in _told(talk)}
        found = list(distinct.values())[:count]
    made = generated(count - len(found))
    origin = f"{len(found)} turns of LoCoMo" if found else ""
    if made:
        origin += f"{' and ' if found else ''}{len(made)} generated turns"
    return [*found, *made], origin


def _told(talk: dict[str, Any]) -> Iterator[Turn]:  # Any: JSON as it is
    for name, session in talk["conversation"].items():
        if not isinstance(session, list):  # dates and speakers stand beside the sessions
            continue
        for position, said in enumerate(session):
            thread = f"{talk['sample_id']}/{name}"
            yield Turn(speaker=said["speaker"], text=said["text"], thread=thread, position=position)


def generated(count: int, *, seed: int = 1) -> list[Turn]:
    """LoCoMo-like turns from the grammar; the same for the same seed, all different."""
    rng = random.Random(seed)
    distinct: dict[str, Turn] = {}
    while len(distinct) < count:
        number, position = divmod(len(distinct), TURNS_PER_SESSION)
        speaker = _SPEAKERS[(2 * (number // 15) + position % 2) % len(_SPEAKERS)]
        turn = Turn(speaker=speaker, text=_said(rng), thread=f"generated-{seed}/{number}", position=position)
        distinct.setdefault(turn.content, turn)
    return list(distinct.values())


def alike_notes(count: int, *, seed: int = 3) -> list[Turn]:
    """Short notes that are alike, as agents store them: each has rivals that the gate must compare."""
    rng = random.Random(seed)
    distinct: dict[str, Turn] = {}
    while len(distinct) < count:
        one, other = rng.sample(_TOOLS, 2)
        text = f"User prefers {one} over {other} for {rng.choice(_TASKS)}."
        distinct.setdefault(text, Turn(speaker="", text=text, thread="alike", position=len(distinct)))
    return list(distinct.values())


def _said(rng: random.Random) -> str:
    form = rng.choice(_FORMS)
    return form.format(
        hello=rng.choice(_HELLOS),
        deed=rng.choice(_DEEDS),
        thing=rng.choice(_THINGS),
        place=rng.choice(_PLACES),
        who=rng.choice(_PEOPLE),
        when=rng.choice(_TIMES),
        mood=rng.choice(_MOODS),
        plan=rng.choice(_PLANS),
        ask=rng.choice(_QUESTIONS),
        number=rng.randint(2, 60),
    )


_FORMS = (
    "{hello} I {deed} {place} with {who} {when}. It was {mood}, and now I want to {plan}. {ask}",
    "{hello} {when} I {deed} {place}. {ask}",
    "That sounds {mood}! {who} and I talked about {thing} {when}, and we decided to {plan}.",
    "I found {thing} {place} for {number} dollars {when}. {who} says it is {mood}. {ask}",
    "{hello} Thanks for asking about {thing}. I {deed} {place} {when}, so I had no time to {plan}.",
    "My plan is to {plan} before {who} comes over. {when} we {deed} {place}, which felt {mood}.",
    "It took me {number} days to {plan}, but {thing} made it worth it. {ask}",
    "{who} showed me {thing} {when}. We were {place} and it was so {mood}!",
    "Do you remember {thing}? I saw it again {place} {when}. {hello} It made me want to {plan}.",
    "I have kept {thing} for {number} years. {who} gave it to me when we {deed} {place}.",
)
_TOOLS = (
    "TypeScript", "JavaScript", "Rust", "Go", "Python", "Kotlin", "Ruby", "Elixir", "PostgreSQL", "MySQL",
    "SQLite", "Redis", "Kafka", "RabbitMQ", "Docker", "Podman", "Vim", "Emacs", "tabs", "spaces", "pnpm",
    "yarn", "uv", "Poetry", "Helm", "Terraform",
)  # fmt: skip
_TASKS = (
    "new services", "scripts", "front-end work", "data pipelines", "side projects", "the billing service",
    "tests", "prototypes", "internal tools", "mobile apps", "batch jobs", "notebooks",
)  # fmt: skip
_SPEAKERS = ("Joanna", "Nate", "Tim", "Maria", "Deborah", "Jon", "Gina", "Audrey", "Andrew", "Calvin")
_HELLOS = (
    "Hey!", "Wow!", "Hi there!", "Oh nice!", "Good question.", "Absolutely.", "Long time no see!",
    "Guess what?", "Ha!", "Not much new here.",
)  # fmt: skip
_DEEDS = (
    "went hiking", "played a chess tournament", "tried a new recipe", "ran a half marathon",
    "painted a mural", "volunteered all day", "recorded a song", "took the dogs out",
    "fixed an old bicycle", "gave a short talk", "watched the sunset", "planted tomatoes",
    "started pottery classes", "lost my keys", "met an old teacher", "built a bookshelf",
    "danced until midnight", "adopted a kitten", "taught a coding class", "went kayaking",
)  # fmt: skip
_THINGS = (
    "a signed first edition", "that turquoise necklace", "the screenplay about two sisters",
    "a vintage camera", "the recipe for coconut curry", "my grandfather's watch",
    "a jigsaw puzzle of Lisbon", "the charity auction", "a pair of running shoes", "the broken piano",
    "an adoption agency", "the new fantasy trilogy", "a stained glass window", "the gaming console",
    "an acoustic guitar", "the job at the museum", "a mortgage offer", "the science podcast",
    "a bag of sunflower seeds", "the scholarship letter",
)  # fmt: skip
_PLACES = (
    "at the lake", "in the community centre", "near the old harbour", "at my cousin's farm",
    "in Seattle", "on the coast of Maine", "at the animal shelter", "in a tiny café",
    "behind the library", "in the Rockies", "at the city hall", "in my parents' garage",
    "at the summer fair", "on the night train", "in Barcelona", "at the children's hospital",
    "in the botanical garden", "at the skating rink", "downtown", "at church",
)  # fmt: skip
_PEOPLE = (
    "my sister Lena", "Coach Alvarez", "my neighbour Priya", "Uncle Ben", "the twins", "my therapist",
    "our band", "my roommate", "Grandma Ruth", "a colleague from work", "my daughter", "Dr. Osei",
    "my husband", "an old friend from college", "the book club", "my mentor Hana", "Sam",
    "the whole team", "my nephew Theo", "a stranger",
)  # fmt: skip
_TIMES = (
    "yesterday", "last weekend", "two weeks ago", "on Tuesday", "back in March", "this morning",
    "last summer", "on my birthday", "the week before Easter", "in 2019", "a few days ago",
    "last Friday night", "over the holidays", "on the first of May", "earlier today",
    "three months ago", "on Sunday", "last year", "right after work", "during the storm",
)  # fmt: skip
_MOODS = (
    "amazing", "exhausting", "so peaceful", "a bit scary", "really inspiring", "bittersweet",
    "hilarious", "overwhelming", "delicious", "disappointing", "tough but worth it",
    "surprisingly easy", "freezing cold", "a dream come true", "awkward", "therapeutic",
)  # fmt: skip
_PLANS = (
    "open my own studio", "learn Portuguese", "visit Japan", "apply for the counselling job",
    "run a marathon", "write a second draft", "repaint the kitchen", "start a food blog",
    "save up for a van", "adopt a puppy", "join the choir", "build an app for local farmers",
    "finish my degree", "take a break from social media", "host a game night", "grow my own vegetables",
    "publish a short story", "move closer to the sea", "organise a fundraiser", "learn to sail",
)  # fmt: skip
_QUESTIONS = (
    "What have you been up to?", "Have you ever tried that?", "How is your family doing?",
    "Any advice?", "Do you want to come along next time?", "What keeps you going?",
    "Did you finish your project?", "What was the best part for you?", "How did the interview go?",
    "Have you been there?", "Crazy, right?", "Want to see a picture?", "Which one would you pick?",
    "I can't wait to tell you more.", "Take care!",
)  # fmt: skip
