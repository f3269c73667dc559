"""The labelled corpus of secrets: what each line holds, with its random parts drawn anew from a seed."""

import gzip
import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

from testbed.project import PROJECT

FOLDER = Path(__file__).with_name("data")
ALPHABETS = {
    "hex": digits + "abcdef",
    "HEX": digits + "ABCDEF",
    "let": ascii_letters,
    "lower": ascii_lowercase,
    "b58": "".join(sorted(set(ascii_letters + digits) - set("0OIl"))),
    "b62": ascii_letters + digits,
    "b64": ascii_letters + digits + "+/",
    "url": ascii_letters + digits + "-_",
    "UP": ascii_uppercase + digits,
    "B32": ascii_uppercase + "234567",
    "low": ascii_lowercase + digits,
    "dig": digits,
}
_DRAWN = re.compile(r"%(\w+):(\d+)%")
_ROW = re.compile(r"\| (?P<kind>.+?) \| `(?P<text>.+)` \| .+ \|")
KINDS = PROJECT / "docs" / "concepts" / "secret-kinds.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A text, with the secret in it and where that stands; no secret at all where it is empty."""

    text: str
    secret: str
    kind: str

    def span(self) -> tuple[int, int]:
        start = self.text.index(self.secret)
        return start, start + len(self.secret)


def ours(seed: int = 7) -> list[Line]:
    """The half that was written beside the detector."""
    rows = (FOLDER / "ours.jsonl").read_text(encoding="utf-8").splitlines()
    return [_drawn(json.loads(row), random.Random(f"{seed} {number}")) for number, row in enumerate(rows)]


def kinds(seed: int = 7) -> list[Line]:
    """The rows of the documented table of kinds."""
    rows = _ROW.finditer(KINDS.read_text(encoding="utf-8"))
    return [_drawn(row.groupdict(), random.Random(f"{seed} {row['kind']}")) for row in rows]


def theirs() -> list[Line]:
    """The half that was written without sight of the first detector."""
    return _told("theirs")


def blind() -> list[Line]:
    """What was written without sight of the second detector; what that one missed was read later."""
    return _told("blind")


def unread() -> list[Line]:
    """The quarter of that half that nobody has looked at to improve the detector. Keep it so."""
    return theirs()[3::4]


def ordinary() -> list[str]:
    """Lines that hold no secret."""
    return _unpacked("ordinary.txt.gz")


def _told(name: str) -> list[Line]:
    rows = map(json.loads, _unpacked(f"{name}.jsonl.gz"))
    return [Line(text=row["text"], secret=row["secret"], kind=row["kind"]) for row in rows]


def _unpacked(name: str) -> list[str]:
    lines = gzip.decompress((FOLDER / name).read_bytes()).decode("utf-8").splitlines()
    return [line for line in lines if line.strip()]


def _drawn(row: dict[str, str], chance: random.Random) -> Line:
    def draw(found: re.Match[str]) -> str:
        return "".join(chance.choices(ALPHABETS[found[1]], k=int(found[2])))

    before, _, rest = _DRAWN.sub(draw, row["text"]).partition("«")
    secret, _, after = rest.partition("»")
    return Line(text=before + secret + after, secret=secret, kind=row.get("kind", "none"))
