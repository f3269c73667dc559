"""A store of which a transfer has brought a part only, as people and programs see it."""

import json
from pathlib import Path

import pytest

from testbed.postgres_server import Server
from tests.store.support.transfer_ends import a_life, in_file, on_server, quietly, stop_after
from tests.transports.cli.harness import invoke
from vestige.store.transfer.ends import End
from vestige.store.transfer.move import move


@pytest.mark.parametrize("kind", ["file", pytest.param("server", marks=pytest.mark.slow)])
def test_a_part_of_a_store_is_told_by_status_and_opened_by_no_command(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    source = in_file(a_life(tmp_path / "source"))
    environ = {"VESTIGE_DATA_DIR": str(tmp_path / "goal")}
    goal: End = in_file(tmp_path / "goal" / "vestige.db")
    if kind == "server":
        server: Server = request.getfixturevalue("postgres_server")
        environ["VESTIGE_DATABASE_URL"] = server.new_database()
        goal = on_server(environ["VESTIGE_DATABASE_URL"])
    with pytest.raises(KeyboardInterrupt):
        move(source, goal, stop_after(2), batch=3)
    seen = invoke(["db", "status"], environ=environ)
    shown = invoke(["db", "status", "--table"], environ=environ)
    assert (seen.exit_code, json.loads(seen.stdout)["state"]) == (1, "incomplete")
    assert "vestige migrate --from" in " ".join(shown.stdout.split())
    for words in (["search", "tea"], ["ingest", "Too early."], ["db", "init"], ["migrate"]):
        done = invoke(words, environ=environ)
        assert (done.exit_code != 0, done.stdout) == (True, "")
        assert "not complete" in json.loads(done.stderr.splitlines()[-1])["error"]["message"]
    assert move(source, goal, quietly).is_whole
    assert json.loads(invoke(["db", "status"], environ=environ).stdout)["state"] == "ready"
