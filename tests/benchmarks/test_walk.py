"""The walk of a call: which modules it visits, and that it does not grow."""

from pathlib import Path

from benchmarks.walk import measure, visited

MOST_INGEST, MOST_SEARCH = 74, 72
"""What is reached now. Since they were 60 and 64, a call knows the time zone of its caller, hits have a
confidence, masks, columns and a snapshot are kept for filters and counts, commits are grouped, a memory has
domains and an origin, a text may wait for a review, orders to an agent are found in it, and dataclasses are
compiled on use; each is a module of its own. The learned judgement of orders and the form of a text that it
asks for are two more, and so are hints and private keys of the search for secrets. A search reads English
words to compare a question with short notes. The aim is 60 and 70."""


def test_a_call_visits_its_pipeline_and_no_more_modules_than_it_did(tmp_path: Path) -> None:
    stored, found = measure(tmp_path, {"embeddings.provider": "hashing"})
    assert {
        "engine/ingest/ingest.py",
        "cognition/gate/decide.py",
        "cognition/secrets/find.py",
    } <= stored.keys()
    assert {"engine/recall/recall.py", "cognition/ranking/stages.py"} <= found.keys()
    assert len(stored) <= MOST_INGEST
    assert len(found) <= MOST_SEARCH


def test_only_modules_of_the_package_are_counted() -> None:
    assert not visited(lambda: Path("x").as_posix())
