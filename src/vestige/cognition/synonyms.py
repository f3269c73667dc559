"""Words that mean the same in nearly every sentence, and irregular forms: what a stemmer cannot join.

Only words that nobody would tell apart as values belong here; whatever is merely alike is left to the
model's token states.
"""

from functools import lru_cache

from vestige.cognition.porter import stem

# The first of a line stands for the others.
_CLASSES = """
start begin began begun commence
buy bought purchase
big large
small little tiny
fix repair mend
answer reply respond response
car automobile
doctor physician
film movie
photo photograph
holiday vacation
help assist assistance
choose chose chosen pick select
use utilize utilise usage
need require
allow permit
forbid forbade forbidden prohibit
remove delete erase
live reside dwell
happen occur
show display shown
quick fast rapid
hard difficult
happy glad
sick ill
cheap inexpensive
expensive costly
wrong incorrect
mandatory compulsory obligatory
leave depart departure
colleague coworker
apartment flat
staff personnel
company firm
lawyer attorney
woman lady
man guy
sea ocean
jump leap
close shut
locate situate
mail email e-mail
decide decision
contract agreement
broken broke
lead led
keep kept
hold held
meet met
run ran
sell sold
send sent
make made
go went gone
take took taken
write wrote written
give gave given
drive drove driven
speak spoke spoken
teach taught
think thought
catch caught
pay paid
say said
tell told
build built
spend spent
lose lost
win won
wake woke woken
sleep slept
sit sat
stand stood
become became
come came
eat ate eaten
drink drank drunk
fly flew flown
swim swam
feel felt
hear heard
see seen
know knew known
fall fell fallen
grow grew grown
rise rose risen
steal stole stolen
bring brought
find found
get got gotten
"""
_STANDS_FOR = {
    stem(word): stem(line.split()[0]) for line in _CLASSES.strip().splitlines() for word in line.split()
}


@lru_cache(maxsize=8192)
def root(word: str) -> str:
    """What a word in lower case is compared by: its stem, or that of the word that stands for it."""
    made = stem(word)
    return _STANDS_FOR.get(made, made)
