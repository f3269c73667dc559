"""What is true, what was true, and what was known: a fact that changes, and its past.

Run it with `python examples/time_travel.py`. It prints:

    today: The team lead of Harbour is Grace.
    in March: The team lead of Harbour is Ada.
    the gate decided: supersede
    history: The team lead of Harbour is Ada. (until 2026-06-01)
"""

from vestige import Memory

QUESTION = "Who is the team lead of Harbour?"

with Memory(":memory:") as memory:
    old = memory.add("The team lead of Harbour is Ada.", valid_from="2026-01-01")
    new = memory.add("The team lead of Harbour is Grace.", valid_from="2026-06-01")

    print(f"today: {memory.search(QUESTION)['results'][0]['content']}")
    print(f"in March: {memory.search(QUESTION, as_of='2026-03-15')['results'][0]['content']}")
    print(f"the gate decided: {new['decision']}")
    ended = memory.get(old["nodeId"])["node"]
    print(f"history: {ended['content']} (until {ended['validUntil'][:10]})")
