"""A reminder that waits for its situation, and one that waits for its time.

Run it with `python examples/reminder.py`. It prints:

    nothing to do in search.py
    in db.py: run the migration test before you change the schema
    done, nothing left
"""

from vestige import Memory

with Memory(":memory:") as memory:
    memory.intention.set(
        "run the migration test before you change the schema",
        trigger={"type": "context", "file_pattern": "db.py"},
    )
    if not memory.intention.check(context={"file": "src/search.py"})["triggered"]:
        print("nothing to do in search.py")
    (due,) = memory.intention.check(context={"file": "src/db.py"})["triggered"]
    print(f"in db.py: {due['description']}")
    memory.intention.update(due["id"], "complete")
    if not memory.intention.list()["intentions"]:
        print("done, nothing left")
