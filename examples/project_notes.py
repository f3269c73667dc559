"""Notes of two projects in one memory: each project sees its own, and the program sees both.

Run it with `python examples/project_notes.py`. It prints:

    harbour: Harbour runs on PostgreSQL 16.
    tide: Tide stores its data in SQLite.
    decision: use gRPC between services, because the schemas are checked
    all notes: 3
"""

from vestige import Memory

with Memory(":memory:") as memory:
    harbour = memory.within("/project/harbour")
    tide = memory.within("/project/tide")
    harbour.add("Harbour runs on PostgreSQL 16.", tags=["database"], source="docs/db.md")
    tide.add("Tide stores its data in SQLite.", tags=["database"])
    harbour.codebase.remember_decision(
        "use gRPC between services", "the schemas are checked", files=["src/rpc.py"]
    )

    for name, project in (("harbour", harbour), ("tide", tide)):
        (hit,) = project.search("Which database do we use?", tags=["database"])["results"]
        print(f"{name}: {hit['content']}")
    decisions = harbour.codebase.get_context()["decisions"]["items"]
    title, reason = decisions[0]["title"], "the schemas are checked"
    print(f"decision: {title}, because {reason}")
    print(f"all notes: {memory.memory.list()['total']}")
