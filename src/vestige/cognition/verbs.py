"""Classes of English words that frame a value: verbs of one value and of many, and what goes with them."""

from vestige.cognition.synonyms import root


def _stems(words: str) -> frozenset[str]:
    return frozenset(root(word) for word in words.split())


BE = frozenset("is are was were am be been being".split())
HAVE = frozenset("has have had having".split())
POSSIBLE = frozenset("can could may might".split())
AUXILIARIES = (
    BE | HAVE | POSSIBLE | frozenset("will would must should shall do does did gets get got".split())
)
PREPOSITIONS = frozenset(
    "in on at to for from with by of about into onto under over between after before until since through as "
    "than via around near behind during against without within per towards toward".split()
)
ARTICLES = frozenset("a an the this that these those some any".split())
OWNERS = frozenset("my our your his her its their".split())
PRONOUNS = frozenset("i we you he she it they me us him them".split())
TITLES = frozenset("mr mrs ms dr prof version next close opposite front top".split())
"""What may stand between a verb and its value: "is next to", "is Mr"."""

SINGLE_VALUED = _stems(
    "live reside stay sit sleep work study teach cost weigh measure last take start begin end finish "
    "close open expire arrive leave depart land run meet drive earn charge rank stand equal total deploy "
    "retry poll rotate stop wake commute retire plan bind redirect inherit bill"
)
"""Verbs whose object or adverbial has one value at a time: residence, work, cost, size, time, place."""
MANY_WITH = frozenset({("work", "on"), ("work", "with"), ("run", "with"), ("meet", "with"), ("live", "with")})
"""Verbs of one value that have many after this preposition."""
SINGLE_WITH = frozenset(
    (root(verb), preposition)
    for verb, preposition in (
        ("report", "to"), ("belong", "to"), ("listen", "on"), ("point", "to"), ("resolve", "to"),
        ("default", "to"), ("route", "to"), ("forward", "to"), ("sync", "to"), ("map", "to"),
        ("come", "from"), ("major", "in"), ("answer", "in"), ("renew", "in"), ("renew", "on"),
    )
)  # fmt: skip
"""Verbs of one value after this preposition only."""
PLACES = frozenset(
    "in on at under behind beside near next above below inside outside between against".split()
)
"""What begins the place of a thing."""
PLACED = _stems("go hang lie belong sit stand live")
"""Verbs that say where a thing is."""
PLACING = _stems(
    "store keep host bill track manage write deploy ship publish save archive hold run serve park charge "
    "invoice document plan do test build develop pay price quote"
)
"""Verbs that put their object in one place: "we track bugs in Jira"."""
SETTINGS = _stems(
    "call name set plan schedule due write host locate base store keep paint build born hold own make assign "
    "register cap limit configure deploy manage lead maintain run serve pin title dub fix price value date "
    "rate label mark found install mount bind rent lease print implement code develop compile encode format "
    "sort key partition park situate book reserve estimate expect version tag written built held made kept "
    "led enroll license power insure send deliver route cache mirror render log authenticate back"
)
"""What follows "is" and still takes one value: called, set to, planned for, written in."""
MANY_DONE = _stems(
    "use support affect inspire love like call visit attend know follow cover include surround "
    "enable disable allow permit need require read see hear watch speak teach sell find eat grow play "
    "mention involve interest specialize experience train link relate connect add invite present list "
    "describe feature bundle translate"
)
"""Participles whose agent or place is one of many: "is used by", "is enabled in"."""
CHOSEN = _stems("use prefer choose recommend")
"""Verbs of many objects, but of one for each purpose: "we use Kafka for events"."""
ROLES = _stems("lead manage head chair run maintain captain own coordinate host direct supervise coach edit")
"""Verbs of a post that one person holds: "Ada leads the data team"."""
MANY_VALUED = _stems(
    "speak like love enjoy use own have has visit meet know support accept depend include contain offer play "
    "read collect publish raise cover need require want see watch hear eat drink cook buy sell write "
    "make do attend teach learn try ask help hate dislike avoid remember mention recommend prefer add"
)
PAST_EVENTS = frozenset(
    "ran went met took won came bought paid sold made did saw had ate drank read wrote drove flew gave got "
    "lost found left fell broke felt heard kept led told said swam spent slept spoke taught caught brought "
    "built hit visited attended watched finished walked talked called asked played worked scored".split()
)
"""Past forms: what happened once, and may happen again with other values."""

LABELS = frozenset(
    "issue task ticket pr bug step chapter section part room day week question item line page id phase "
    "number no nr topic sprint lesson exercise test case user player order invoice building floor gate "
    "flight server node version release build milestone episode season track lane platform table".split()
)
"""A number behind one of these names a thing; it is not a value that changed."""
PLATFORMS = frozenset("android ios linux windows macos safari firefox chrome edge web".split())
"""What a thing mostly runs on several of."""
ADJECTIVES = frozenset(
    "good great nice bad fine kind tall short big small slow fast ugly pretty smart clever funny "
    "calm shy loud rich poor strong weak hard soft easy cheap expensive new old young late early "
    "warm cold hot dry wet clean safe useful stable simple complex modern robust brave polite "
    "strict fair honest tired sick well busy free".split()
)
ADJECTIVE_ENDINGS = ("ful", "able", "ible", "ous", "ive", "less", "ish", "ic", "y", "ed", "en")
"""A thing can be many of these at once."""
