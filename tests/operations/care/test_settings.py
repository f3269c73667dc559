"""`system_settings`: what is in force, where it comes from, and who may see it."""

from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from vestige.core.caller import Caller, Invocation
from vestige.core.errors import Forbidden
from vestige.core.models import Access
from vestige.settings.effective import MASK, effective_settings
from vestige.settings.settings import load_settings

SECRET = "sk-hidden"


def ask(world: World, caller: Caller | None = None) -> dict[str, Any]:
    more: dict[str, Any] = {} if caller is None else {"caller": caller}
    return world.app.call_operation(
        Invocation(name="system_settings", arguments={}, request_id="test", **more)
    )


def test_each_value_says_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "vestige.toml").write_text("[memory]\nlimit = 7\nrecord = false\n", encoding="utf-8")
    environ = {"VESTIGE_MEMORY_LIMIT": "8", "VESTIGE_SEARCH_MIN_SIMILARITY": "", "HOME": str(tmp_path)}
    settings = load_settings({"data_dir": str(tmp_path), "log_level": "error"}, environ=environ)
    found = {one.name: (one.value, one.source) for one in effective_settings(settings)}
    assert found["memory.limit"] == (8, "environment")
    assert found["memory.record"] == (False, "file")
    assert found["log_level"] == ("error", "flag")
    assert found["data_dir"] == (str(tmp_path), "flag")
    assert found["memory.scope"][1] == "default"
    assert load_settings(environ={"HOME": str(tmp_path)}).source_of("data_dir") == "default"


def test_a_database_in_the_environment_also_explains_the_backend(tmp_path: Path) -> None:
    environ = {"VESTIGE_DATABASE_URL": "postgresql://ada:hidden@db.example.org/memory", "HOME": str(tmp_path)}
    settings = load_settings({"data_dir": str(tmp_path)}, environ=environ)
    found = {one.name: one for one in effective_settings(settings)}
    assert (found["storage.backend"].value, found["storage.backend"].source) == ("postgres", "environment")
    assert "hidden" not in found["storage.postgres.url"].value


def test_the_operation_shows_the_settings_of_its_process_and_no_secret(tmp_path: Path) -> None:
    given: dict[str, Any] = {"embeddings.api_key": SECRET}
    with open_world(tmp_path, **given) as world:
        answer = ask(world)
    found = {one["name"]: one for one in answer["settings"]}
    assert (found["embeddings.api_key"]["value"], found["embeddings.api_key"]["source"]) == (MASK, "flag")
    assert SECRET not in str(answer)
    assert (answer["file"], answer["fileExists"]) == (str(tmp_path / "vestige.toml"), False)


@pytest.mark.parametrize(
    "caller",
    [
        Caller(name="writer", permissions=frozenset({"read", "write"})),
        Caller(
            name="limited", permissions=frozenset({"read", "write", "admin"}), access=Access(scopes=("/a",))
        ),
    ],
    ids=lambda caller: caller.name,
)
def test_only_an_administrator_of_everything_sees_them(world: World, caller: Caller) -> None:
    with pytest.raises(Forbidden):
        ask(world, caller)
