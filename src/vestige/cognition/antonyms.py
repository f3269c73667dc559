"""Words that cannot both be said of the same thing: opposites by class, and by prefix."""

from collections.abc import Collection

from vestige.cognition.synonyms import root
from vestige.cognition.text import STOP_WORDS

# Each line is a class; words of one side of `/` are opposed to those of the other.
_OPPOSITES = """
always / never rarely seldom
enable activate / disable deactivate
allow permit accept approve / deny forbid forbidden prohibit ban reject disallow refuse block
true yes / false no
on / off
like love enjoy adore prefer favor fond / dislike hate detest loathe avoid dread fear
use / avoid
include / exclude omit
increase rise rose grow grew raise up / decrease fall fell shrink shrank drop lower reduce down
start begin began begun resume launch / stop end cease halt finish quit
open / close shut
pass succeed work / fail break broke broken
safe secure / unsafe insecure dangerous risky
require mandatory compulsory obligatory necessary / optional voluntary
public / private
online / offline
synchronous sync / asynchronous async
cheap inexpensive / expensive costly
right correct / wrong incorrect
valid / invalid
single unmarried divorced / married
before / after
above over / below under beneath
inside indoors indoor in / outside outdoors outdoor out
early / late
more / less fewer
most / least
many / few
high tall / low short
big large huge / small little tiny
long / short
fast quick rapid / slow
hot warm / cold cool
new modern / old ancient
young / old
strong / weak
easy simple / hard difficult complex
light bright / dark
light / heavy
full / empty
wet / dry
clean / dirty
loud noisy / quiet silent
thick / thin
wide / narrow
deep / shallow
soft / hard
rich / poor
happy glad / sad unhappy
good great / bad poor terrible
better / worse
best / worst
alive / dead
awake / asleep
sit sat / stand stood
push / pull
give gave given / take took taken
send sent / receive
buy bought / sell sold
lend / borrow
win won / lose lost
add put insert / remove delete subtract take
near / far distant
hit catch / miss
into onto / out off
create / delete destroy
install / uninstall
lock / unlock
load / unload
connect / disconnect
encrypt / decrypt
push / pop
static / dynamic
mutable / immutable
nullable / required
positive / negative
visible / hidden invisible
manual manually / automatic automatically
temporary / permanent
present / absent
available / unavailable
possible / impossible
support / drop deprecate
everything all everybody everyone / nothing none nobody
trust / distrust
agree / disagree
arrive land / leave depart
enter / exit leave
lead / follow
attack / defend
remember / forget forgot forgotten
keep kept retain / discard drop delete
hire / fire
ally friend / enemy
vegetarian vegan / carnivore
paid / unpaid
finished complete done / unfinished incomplete pending
active / inactive idle
healthy / sick ill
sober / drunk
employed / unemployed retired
wanted / unwanted
stable / unstable flaky
blocking / nonblocking
optimistic / pessimistic
innocent / guilty
floating / sinking
ascend climb / descend
accelerate / brake
fill / empty
dress / undress
strict / lenient loose lax
tight / loose
implicit / explicit
inclusive / exclusive
sequential serial / parallel concurrent
global / local
centralized / decentralized distributed
virtual remote / physical onsite
digital / analog paper
verbose / terse concise
encrypted / plaintext
lossy / lossless
eager / lazy
major / minor
free / paid busy occupied
vacant / occupied
formal / informal casual
extrovert extroverted / introvert introverted
urban / rural
domestic / foreign
forward / backward
success / failure
profit / loss
current fresh / outdated obsolete stale
accept / decline
confirm admit / deny
attend / skip miss
show reveal expose / hide conceal
expand / collapse
merge / split
attach / detach
freeze / thaw melt
obey respect / ignore
pause / resume
often frequently / rarely seldom never
alone / together
opaque / transparent
fixed / variable
rigid / flexible
smooth / rough
sharp / blunt
brave / cowardly
polite / rude
patient / impatient
calm / nervous
tidy / messy
sweet / bitter sour
raw / cooked
reliable / flaky
sunny / cloudy rainy
crowded busy / deserted empty
ready / unready
awful / excellent
fail / pass succeed
approve / reject decline
"""
# Counterparts: two things of one kind, of which different things may be true.
_COUNTERPARTS = """
left / right
to at / from
mother / father
brother / sister
husband / wife
son / daughter
north / south
east / west
client / server
frontend / backend
internal / external
first / last
minimum / maximum
male man boy / female woman girl
day / night
morning / evening
summer / winter
upload / download
import / export
read / write
guest / host
teacher / student
parent / child
ceiling / floor
entrance / exit
local / remote
horizontal / vertical
ascending / descending
"""
LEAST_ROOT = 4
"""Letters of a word that a negative prefix makes another of."""
_PREFIXES = ("un", "dis", "in", "im", "ir", "il", "non", "non-", "mis")


def _table(classes: str) -> dict[str, frozenset[str]]:
    opposed: dict[str, set[str]] = {}
    for line in classes.strip().splitlines():
        left, right = ([form for word in side.split() for form in _forms(word)] for side in line.split("/"))
        for one in left:
            opposed.setdefault(one, set()).update(right)
        for one in right:
            opposed.setdefault(one, set()).update(left)
    return {word: frozenset(others - {word}) for word, others in opposed.items()}


def _forms(word: str) -> set[str]:
    """The roots of a word's forms; the stemmer takes "add" and "adding" apart."""
    if word in STOP_WORDS:
        return {word}
    short = word.removesuffix("e")
    return {root(form) for form in (word, f"{word}s", f"{short}ing", f"{short}ed")}


_OPPOSED, _OTHERS = _table(_OPPOSITES), _table(_COUNTERPARTS)


def opposites(word: str, others: Collection[str]) -> set[str]:
    """Which of the others are opposed to a word (or stem): by the table, or a negative prefix or ending."""
    found = _OPPOSED.get(word, frozenset()).intersection(others)
    if len(word) >= LEAST_ROOT:
        made = {f"{prefix}{word}" for prefix in _PREFIXES}
        made |= {
            word.removeprefix(prefix)
            for prefix in _PREFIXES
            if word.startswith(prefix) and len(word) >= LEAST_ROOT + len(prefix)
        }
        if word.endswith("ful"):
            made.add(f"{word.removesuffix('ful')}less")
        if word.endswith("less"):
            made.add(f"{word.removesuffix('less')}ful")
        found |= made.intersection(others)
    return set(found)


def counterpart(left: str, right: str) -> bool:
    """Whether two stems name the two things of a pair: left and right, client and server."""
    return right in _OTHERS.get(left, ())
