"""API keys through the operations: shown once, kept as hashes, and closed to who reaches a part."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from tests.operations.shared.test_secrets import KEY
from tests.transports.cli.harness import invoke
from vestige.core.api_key import ApiKey
from vestige.core.errors import Forbidden
from vestige.core.models import EVERYTHING, Access
from vestige.engine.care.keys import caller_of, mint, note_used, recheck, verify
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

BROKEN = ("vst_", "vst_" + "a" * 31, "Bearer vst_" + "a" * 30, "", "vst_" + "é" * 30, "x" * 100_000)


def create(world: World, **wanted: Any) -> dict[str, Any]:
    return world.call("keys", action="create", **{"label": "Ada's laptop", **wanted})


def listed(world: World, **asked: Any) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = world.call("keys", action="list", **asked)["keys"]
    return keys


def opened(world: World, text: str) -> ApiKey | None:
    return verify(world.app.engine, text, world.clock.now)


def test_a_key_is_shown_once_and_opens_from_then_on(world: World) -> None:
    made = create(world)
    assert re.fullmatch(r"vst_[A-Za-z0-9_-]{30}", made["key"])
    key = opened(world, made["key"])
    assert key is not None
    assert (key.id, key.label, key.permissions) == (made["id"], "Ada's laptop", ("read", "write"))
    assert key.hash.startswith(made["hash"])
    assert len(made["hash"]) == 12
    told = json.dumps(listed(world, all=True))
    assert made["key"] not in told
    assert key.hash not in told


def test_two_keys_are_never_the_same(world: World) -> None:
    assert len({create(world, label=str(number))["key"] for number in range(5)}) == 5


def test_no_file_of_the_store_holds_the_text_of_a_key(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        text = create(world)["key"]
        world.call("keys", action="rotate", id="Ada's laptop")
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if text.encode() in file.read_bytes()]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_key_opens_nothing(world: World, text: str) -> None:
    create(world)
    assert opened(world, text) is None


def test_a_key_that_differs_in_one_character_opens_nothing(world: World) -> None:
    text = create(world)["key"]
    assert opened(world, text[:-1] + ("A" if text[-1] != "A" else "B")) is None


def test_a_key_calls_with_its_rights_and_filters(world: World) -> None:
    wanted = {"permissions": ["write"], "scopes": ["project/a/", "/user"], "domains": ["work", " work "]}
    key = opened(world, create(world, **wanted)["key"])
    assert key is not None
    caller = caller_of(world.app.engine, key)
    assert caller.name == "Ada's laptop"
    assert caller.permissions == {"read", "write"}
    assert caller.access == Access(scopes=("/project/a", "/user"), domains=("work",))


def test_a_key_without_filters_reaches_everything(world: World) -> None:
    key = opened(world, create(world, permissions=["admin"])["key"])
    assert key is not None
    assert caller_of(world.app.engine, key).access == EVERYTHING
    assert caller_of(world.app.engine, key).permissions == {"read", "write", "admin"}


def test_a_key_for_the_root_is_a_key_without_a_filter_of_scopes(tmp_path: Path) -> None:
    words = ["--data-dir", str(tmp_path)]
    for label, scopes in (("Ada", "/"), ("Bob", "/a,/"), ("Cy", "/a")):
        made = invoke(["keys", "create", "--label", label, "--scopes", scopes, *words, "--json"])
        assert made.exit_code == 0
        assert json.loads(made.stdout).get("scopes") == (["/a"] if label == "Cy" else None)
    told = json.loads(invoke(["keys", "list", *words, "--json"]).stdout)["keys"]
    assert [one.get("scopes") for one in told] == [None, None, ["/a"]]


@pytest.mark.parametrize("word", ["read", "WRITE", "admin", "read,write"])
def test_a_permission_that_is_given_as_a_scope_is_refused_and_makes_no_key(world: World, word: str) -> None:
    error = world.refused("keys", action="create", label="reporting", scopes=[word])
    assert error["code"] == "invalid_input"
    assert error["details"]["argument"] == "scopes"
    assert f"--permissions {word.split(',')[0].lower()}" in error["hint"]
    assert listed(world, all=True) == []


def test_a_permission_that_is_given_as_a_scope_is_refused_at_the_command_line(tmp_path: Path) -> None:
    words = ["--label", "reporting", "--data-dir", str(tmp_path), "--json"]
    refused = invoke(["keys", "create", "--scopes", "read", *words])
    assert refused.exit_code == 2
    assert "--permissions read" in refused.stderr
    assert json.loads(invoke(["keys", "create", "--permissions", "read", *words]).stdout)["permissions"] == [
        "read"
    ]


def test_a_scope_that_has_the_name_of_a_permission_is_written_as_a_path(world: World) -> None:
    assert create(world, scopes=["/read"])["scopes"] == ["/read"]


def test_a_secret_in_a_label_or_filter_is_refused_and_not_repeated(world: World) -> None:
    for wanted in ({"label": f"bot {KEY}"}, {"label": "bot", "domains": [KEY]}):
        error = world.refused("keys", action="create", **wanted)
        assert error["code"] == "secret_found"
        assert KEY not in json.dumps(error)
    assert listed(world, all=True) == []


@pytest.mark.parametrize(
    ("expires", "hours"),
    [("12h", 12), ("30d", 720), ("2 W", 336), ("2026-03-01T10:00:00Z", 1), ("2026-03-01", 15)],
)
def test_an_expired_key_opens_nothing(world: World, expires: str, hours: float) -> None:
    made = create(world, expires=expires)
    world.clock.advance(hours=hours - 0.001)
    assert opened(world, made["key"])
    world.clock.advance(hours=0.001)
    assert opened(world, made["key"]) is None
    assert recheck(world.app.engine, made["id"], world.clock.now) is None
    assert listed(world) == []
    (told,) = listed(world, all=True)
    assert told["status"] == "expired"


@pytest.mark.parametrize("wrong", ["soon", "2020-01-01", "0d", "999999w", "-1d", "1y", "2026-13-01"])
def test_an_expiry_that_cannot_be_meant_is_refused(world: World, wrong: str) -> None:
    error = world.refused("keys", action="create", label="x", expires=wrong)
    assert error["code"] == "invalid_input"
    assert error["details"]["argument"] == "expires"
    assert listed(world, all=True) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"permissions": ["everything"]},
        {"permissions": []},
        {"scopes": []},
        {"domains": []},
        {"scopes": ["/a/../b"]},
        {"label": " "},
        {"label": "a\0b"},
    ],
)
def test_a_key_that_cannot_be_meant_is_refused(world: World, wrong: dict[str, Any]) -> None:
    assert world.refused("keys", action="create", **{"label": "x", **wrong})["code"] == "invalid_input"
    assert listed(world, all=True) == []


@pytest.mark.parametrize("by", ["id", "hash", "label"])
def test_a_revoked_key_opens_nothing_from_then_on(world: World, by: str) -> None:
    made, other = create(world), create(world, label="other")
    revoked = world.call("keys", action="revoke", id=made[by])
    assert revoked["status"] == "revoked"
    assert opened(world, made["key"]) is None
    assert recheck(world.app.engine, made["id"], world.clock.now) is None
    assert opened(world, other["key"])
    answer = world.call("keys", action="list")
    assert ([key["label"] for key in answer["keys"]], answer["hidden"]) == (["other"], 1)
    assert [key["status"] for key in listed(world, all=True)] == ["revoked", "active"]


def test_revoking_is_seen_by_another_process_at_once(tmp_path: Path) -> None:
    with open_world(tmp_path) as one, open_world(tmp_path) as other:
        made = create(one)
        assert opened(other, made["key"])
        other.call("keys", action="revoke", id=made["id"])
        assert opened(one, made["key"]) is None


def test_a_second_working_key_with_the_same_label_is_refused(world: World) -> None:
    made = create(world, expires="30d")
    for label in ("Ada's laptop", " Ada's laptop "):
        error = world.refused("keys", action="create", label=label)
        assert (error["code"], error["details"]) == ("conflict", {"argument": "label", "ids": [made["id"]]})
        assert "rotate" in error["hint"]
    assert [key["id"] for key in listed(world, all=True)] == [made["id"]]


def test_the_label_of_a_key_that_opens_nothing_any_more_is_free(world: World) -> None:
    create(world, expires="30d")
    world.clock.advance(days=31)
    create(world)
    world.call("keys", action="revoke", id=listed(world)[0]["id"])
    create(world)
    assert [key["status"] for key in listed(world, all=True)] == ["expired", "revoked", "active"]


def test_a_label_that_several_keys_have_names_none_of_them(world: World) -> None:
    first = create(world)
    # As before labels were looked at, or by two who make one at the same moment.
    other, _ = mint(Call(engine=world.app.engine), "Ada's laptop", ["read"])
    error = world.refused("keys", action="revoke", id="Ada's laptop")
    assert error["code"] == "conflict"
    assert sorted(error["details"]["ids"]) == sorted([first["id"], other.id])
    world.call("keys", action="revoke", id=first["id"])
    assert world.call("keys", action="revoke", id="Ada's laptop")["id"] == other.id


@pytest.mark.parametrize("which", ["nobody", "01890000", "0" * 12, "vst_" + "a" * 30])
def test_an_unknown_key_is_not_found_and_not_repeated(world: World, which: str) -> None:
    create(world)
    for action in ("revoke", "rotate"):
        error = world.refused("keys", action=action, id=which)
        assert error["code"] == "not_found"
        assert error["hint"] == "Give an id, a hash or a label from `keys` with action `list`."
        assert which not in json.dumps(error)


def test_rotating_replaces_a_key_by_one_with_the_same_rights(world: World) -> None:
    wanted = {"permissions": ["read"], "scopes": ["/project/a"], "domains": ["work"], "expires": "30d"}
    made = create(world, **wanted)
    world.clock.advance(days=20)
    rotated = world.call("keys", action="rotate", id="Ada's laptop")
    assert rotated["replaces"] == made["id"]
    assert opened(world, made["key"]) is None
    old, new = (key for key in world.app.engine.store.list_keys())
    assert opened(world, rotated["key"]) == new
    assert (new.label, new.permissions, new.scopes, new.domains) == (
        old.label,
        old.permissions,
        old.scopes,
        old.domains,
    )
    assert new.expires_at == world.clock.now + timedelta(days=30)
    assert old.revoked_at == new.created_at == world.clock.now
    assert world.refused("keys", action="rotate", id=made["id"])["code"] == "conflict"


def test_a_key_until_the_end_of_time_can_be_rotated(world: World) -> None:
    create(world, expires="9999-12-30")
    world.clock.advance(days=20)
    assert world.call("keys", action="rotate", id="Ada's laptop")["expiresAt"].startswith(
        "9999-12-31T23:59:59"
    )


def test_the_last_use_is_told_once_it_was_noted(world: World) -> None:
    made = create(world)
    assert "lastUsed" not in listed(world)[0]
    note_used(world.app.engine, {made["id"]: world.clock.now, "gone": world.clock.now})
    assert listed(world)[0]["lastUsed"] == "2026-03-01T09:00:00Z"


def test_keys_are_in_a_backup_and_in_no_export(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        world.remember("Ada prefers tea.")
        made = create(world)
        backup = Path(world.call("backup")["path"])
        export = Path(world.call("export", format="portable", scope="/")["path"])
        (key,) = world.app.engine.store.list_keys()
    assert key.hash.encode() not in export.read_bytes()
    (tmp_path / "copy").mkdir()
    backup.rename(tmp_path / "copy" / "vestige.db")
    with open_world(tmp_path / "copy") as copy:
        assert opened(copy, made["key"]) == key


def test_only_who_reaches_everything_may_deal_with_keys(world: World) -> None:
    keys = [operation for name, operation in registry.operations.items() if name.startswith("keys.")]
    assert len(keys) == 4
    limited = Call(engine=world.app.engine, access=Access(scopes=("/project",)))
    reader = Call(engine=world.app.engine, permissions=frozenset({"read", "write"}))
    for operation in keys:
        for call in (limited, reader):
            with pytest.raises(Forbidden):
                operation.call(call, operation.example)
    assert world.app.engine.store.list_keys() == []


def test_a_person_gets_the_key_on_a_line_of_its_own(tmp_path: Path) -> None:
    words = ["--data-dir", str(tmp_path), "--table"]
    made = invoke(["keys", "create", "--label", "Ada", "--scopes", "/a,/b", "--expires", "30d", *words])
    assert made.exit_code == 0
    key, blank, *rest = made.stdout.splitlines()
    reach, what_next = rest[0], " ".join(rest[1:])
    assert re.fullmatch(r"vst_[A-Za-z0-9_-]{30}", key)
    assert blank == ""
    assert reach.startswith("It may read and write in /a, /b and below, until 2")
    assert "Label: Ada" in rest
    assert "not shown again" in what_next
    table = invoke(["keys", "list", *words]).stdout
    assert "Ada" in table
    assert "/a, /b" in table
    assert key not in table


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({}, "It may read and write everywhere."),
        ({"permissions": ["read"], "scopes": ["harbour"]}, "It may read in /harbour and below."),
        ({"permissions": ["admin"], "scopes": ["/"]}, "It may read, write and administer everywhere."),
        (
            {"scopes": ["/a", "/b"], "domains": ["work", "home"], "expires": "30d"},
            "It may read and write in /a, /b and below, in the domains work, home, "
            "until 2026-03-31 09:00 UTC.",
        ),
    ],
)
def test_a_person_is_told_what_the_new_key_reaches(world: World, wanted: dict[str, Any], told: str) -> None:
    operations, call = registry.operations, Call(engine=world.app.engine)
    made = operations["keys.create"].answer(call, {"label": "Ada", **wanted})
    assert told in operations["keys.create"].render(made).splitlines()
    rotated = operations["keys.rotate"].answer(call, {"id": "Ada"})
    assert told in operations["keys.rotate"].render(rotated).splitlines()


def test_a_key_needs_no_label(world: World) -> None:
    made = [world.call("keys", action="create")["label"] for _ in range(2)]
    assert made == ["key-1", "key-2"]
    world.call("keys", action="revoke", id="key-2")
    assert world.call("keys", action="create")["label"] == "key-3"
