"""Settings: where they come from, who may set what, and what a mistake is told."""

import sys
import traceback
from pathlib import Path

import pytest
from pydantic import ValidationError

from testbed.failures import each
from vestige.core.errors import ConfigError
from vestige.core.timezone import zone_name
from vestige.settings.settings import (
    Settings,
    allowed_in_project,
    documented_fields,
    environment_name,
    forget_own_store,
    is_project_directory,
    load_settings,
    unknown_variables,
    without_password,
)

SECRET = "sk-do-not-show"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    return folder


def write(data_dir: Path, text: str) -> None:
    data_dir.mkdir(parents=True, exist_ok=True)
    (data_dir / "vestige.toml").write_text(text, encoding="utf-8")


def load(data_dir: Path, environ: dict[str, str] | None = None, **flags: object) -> Settings:
    return load_settings(
        {"data_dir": str(data_dir), **{name.replace("__", "."): value for name, value in flags.items()}},
        environ={"HOME": str(data_dir.parent), **(environ or {})},
    )


def refusal(data_dir: Path, environ: dict[str, str] | None = None, **flags: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(data_dir, environ, **flags)
    return caught.value


# -- precedence ----------------------------------------------------------------------------------


def test_flags_win_over_the_environment_which_wins_over_the_file_which_wins_over_defaults(
    data_dir: Path,
) -> None:
    environ = {"VESTIGE_MEMORY_LIMIT": "30"}
    assert load(data_dir).memory.limit == 10
    write(data_dir, "[memory]\nlimit = 20\n")
    assert load(data_dir).memory.limit == 20
    assert load(data_dir, environ).memory.limit == 30
    assert load(data_dir, environ, memory__limit=40).memory.limit == 40


def test_settings_of_a_user_who_set_none_are_the_validated_defaults(data_dir: Path) -> None:
    none = load(data_dir)
    validated = load(data_dir, {"VESTIGE_MEMORY_LIMIT": "10"})
    assert none.model_dump() == validated.model_dump()


def test_layers_are_merged_setting_by_setting(data_dir: Path) -> None:
    write(data_dir, "[memory]\nlimit = 20\nscope = '/user/ada'\n")
    settings = load(data_dir, {"VESTIGE_MEMORY_LIMIT": "30"}, memory__detail_level="full")
    assert (settings.memory.limit, settings.memory.scope, settings.memory.detail_level) == (
        30,
        "/user/ada",
        "full",
    )


def test_a_variable_of_the_reference_sets_the_same_thing_and_ours_wins(data_dir: Path) -> None:
    old = {"VESTIGE_SYSTEM_PROMPT_MODE": "Full", "VESTIGE_STATE_TTL_DAYS": "7"}
    assert load(data_dir, old).mcp.instructions == "full"
    assert load(data_dir, {**old, "VESTIGE_MEMORY_STATE_TTL_DAYS": "9"}).memory.state_ttl_days == 9
    assert unknown_variables(old) == []


def test_a_flag_that_is_not_given_and_a_blank_variable_do_not_count(data_dir: Path) -> None:
    write(data_dir, "[memory]\nlimit = 20\n")
    assert load(data_dir, {"VESTIGE_MEMORY_LIMIT": "  "}, memory__limit=None).memory.limit == 20


@pytest.mark.parametrize(("text", "value"), [("1", True), ("true", True), ("0", False), ("no", False)])
def test_switches_in_the_environment_take_the_usual_words(data_dir: Path, text: str, value: bool) -> None:
    assert load(data_dir, {"VESTIGE_OFFLINE": text}).offline is value


def test_options_in_the_environment_are_taken_in_any_case(data_dir: Path) -> None:
    assert load(data_dir, {"VESTIGE_EMBEDDINGS_PROVIDER": "OpenAI"}).embeddings.provider == "openai"


def test_a_file_named_by_flag_or_variable_replaces_the_one_in_the_data_directory(
    data_dir: Path, tmp_path: Path
) -> None:
    write(data_dir, "[memory]\nlimit = 20\n")
    other = tmp_path / "other.toml"
    other.write_text("[memory]\nscope = '/x'\n", encoding="utf-8")
    by_flag = load(data_dir, config=str(other))
    by_variable = load(data_dir, {"VESTIGE_CONFIG": str(other)})
    assert by_flag == by_variable
    assert (by_flag.memory.scope, by_flag.memory.limit) == ("/x", 10)


# -- directories ---------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="the XDG directories are those of Linux")
def test_the_default_directories_follow_xdg(tmp_path: Path) -> None:
    plain = load_settings(environ={"HOME": "/home/ada"})
    assert plain.data_dir == Path("/home/ada/.local/share/vestige/core")
    assert plain.model_cache == Path("/home/ada/.cache/vestige/models")
    moved = load_settings(environ={"HOME": "/home/ada", "XDG_DATA_HOME": "/d", "XDG_CACHE_HOME": "/c"})
    assert moved.data_dir == Path("/d/vestige/core")
    assert moved.model_cache == Path("/c/vestige/models")


def test_the_data_directory_comes_from_the_flag_before_the_variable(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "VESTIGE_DATA_DIR": str(tmp_path / "variable")}
    assert load_settings(environ=environ).data_dir == tmp_path / "variable"
    assert load_settings({"data_dir": str(tmp_path / "flag")}, environ=environ).data_dir == tmp_path / "flag"


def test_a_tilde_is_expanded_because_clients_use_no_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "my.toml").write_text("[embeddings]\ncache_dir = '~/models'\n", encoding="utf-8")
    settings = load_settings({"data_dir": "~/memories", "config": "~/my.toml"})
    assert settings.data_dir == tmp_path / "memories"
    assert settings.model_cache == tmp_path / "models"


def test_a_tilde_of_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nosuchuser"):
        load_settings({"data_dir": "~nosuchuser/memories"}, environ={"HOME": str(tmp_path)})


def test_a_relative_data_directory_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings({"data_dir": ".vestige"}, environ={"HOME": str(tmp_path)})
    assert settings.data_dir == tmp_path / ".vestige"
    assert settings.database == tmp_path / ".vestige" / "vestige.db"


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    assert "not a directory" in refusal(file).message


# -- mistakes ------------------------------------------------------------------------------------


def test_an_unknown_key_is_refused_with_the_nearest_name(data_dir: Path) -> None:
    write(data_dir, "[memory]\nlimitx = 20\n")
    error = refusal(data_dir)
    assert error.details == {"setting": "memory.limitx"}
    assert error.hint == "Did you mean `memory.limit`?"


def test_an_unknown_section_and_an_unknown_flag_are_refused(data_dir: Path) -> None:
    assert refusal(data_dir, memory__limitx=3).details == {"setting": "memory.limitx"}
    write(data_dir, "[weather]\nsunny = true\n")
    assert refusal(data_dir).details == {"setting": "weather"}


@pytest.mark.parametrize(
    ("text", "setting", "hint"),
    [
        ("[memory]\nlimit = 0\n", "memory.limit", "A whole number from 1 to 100."),
        ("[memory]\nlimit = 'many'\n", "memory.limit", "A whole number from 1 to 100."),
        ("[memory]\ndetail_level = 'huge'\n", "memory.detail_level", "One of: brief, summary, full."),
        ("[storage]\nbusy_seconds = 0\n", "storage.busy_seconds", "A number above 0, at most 600."),
        ("[sleep]\nenabled = 'perhaps'\n", "sleep.enabled", "true or false."),
        ("memory = 3\n", "memory", "A section with "),
        ("embeddings = 3\n", "embeddings", "A section with "),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name_with_what_could_be(
    data_dir: Path, text: str, setting: str, hint: str
) -> None:
    write(data_dir, text)
    refused = refusal(data_dir)
    assert refused.details == {"setting": setting}
    assert str(refused.hint).startswith(hint)
    assert "Input should" not in refused.message


def test_bad_toml_is_refused_with_its_place(data_dir: Path) -> None:
    write(data_dir, "[memory\nlimit = 3\n")
    error = refusal(data_dir)
    assert str(data_dir / "vestige.toml") in error.message
    assert "line 1" in error.message


def test_a_file_that_is_not_utf8_is_refused(data_dir: Path) -> None:
    (data_dir / "vestige.toml").write_bytes(b"[memory]\nscope = '\xff'\n")
    assert "not valid TOML" in refusal(data_dir).message


def test_a_named_file_that_does_not_exist_is_refused(data_dir: Path) -> None:
    assert "There is no settings file" in refusal(data_dir, config=str(data_dir / "none.toml")).message


def test_a_file_that_cannot_be_read_is_refused(data_dir: Path) -> None:
    (data_dir / "vestige.toml").mkdir()
    assert "cannot be read" in refusal(data_dir).message


def test_a_file_cannot_move_the_directory_it_was_found_in(data_dir: Path) -> None:
    write(data_dir, "data_dir = '/elsewhere'\n")
    assert "data_dir" in refusal(data_dir).message


# -- projects ------------------------------------------------------------------------------------

FORBIDDEN = [
    "[embeddings]\nurl = 'http://thief.example/v1'\n",
    "[embeddings]\nprovider = 'openai'\n",
    "[embeddings]\napi_key = 'x'\n",
    "[embeddings]\ncache_dir = '/tmp/x'\n",
    "[embeddings]\nmodel_path = './model'\n",
    "[storage]\nbackend = 'memory'\n",
    "[storage]\nbackend = 'postgres'\n",
    "[storage.postgres]\nurl = 'postgresql://thief.example/x'\n",
    "[storage.postgres]\nschema = 'x'\n",
    "offline = true\n",
]


@pytest.mark.parametrize("text", FORBIDDEN)
def test_a_project_may_not_redirect_memories(tmp_path: Path, text: str) -> None:
    data_dir = tmp_path / "clone" / ".vestige"
    write(data_dir, text)
    error = refusal(data_dir)
    assert "belongs to a project" in error.message
    assert len(error.details["settings"]) == 1


@pytest.mark.parametrize("mark", [".git", ".hg", ".svn"])
@pytest.mark.parametrize("inside", ["data", "deep/er/data", "."])
def test_a_directory_inside_a_work_tree_is_a_project_whatever_its_name(
    tmp_path: Path, mark: str, inside: str
) -> None:
    clone = tmp_path / "clone"
    (clone / mark).mkdir(parents=True)
    data_dir = clone / inside
    write(data_dir, FORBIDDEN[0])
    assert "belongs to a project" in refusal(data_dir).message


def test_a_worktree_whose_mark_is_a_file_is_a_project_too(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / ".git").write_text("gitdir: /elsewhere\n", encoding="utf-8")
    assert is_project_directory(clone / "data")
    assert not is_project_directory(tmp_path / "data")


def test_a_project_may_set_how_memories_are_written_and_shown(tmp_path: Path) -> None:
    data_dir = tmp_path / "clone" / ".vestige"
    write(data_dir, "log_level = 'info'\n[memory]\nscope = '/project/x'\nlimit = 3\n")
    settings = load(data_dir)
    assert (settings.log_level, settings.memory.scope, settings.memory.limit) == ("info", "/project/x", 3)


def test_only_harmless_settings_are_open_to_projects() -> None:
    open_to_projects = {name for name, field in documented_fields() if allowed_in_project(field)}
    assert open_to_projects == {
        "log_level",
        "memory.scope",
        "memory.state_ttl_days",
        "memory.retention_target",
        "memory.limit",
        "memory.detail_level",
        "memory.record",
        *(name for name, _ in documented_fields() if name.startswith(("mechanisms.", "sleep."))),
    }


def test_a_user_may_set_everything_in_a_project_by_naming_the_file(tmp_path: Path) -> None:
    data_dir = tmp_path / "clone" / ".vestige"
    write(data_dir, FORBIDDEN[0])
    settings = load(data_dir, config=str(data_dir / "vestige.toml"))
    assert settings.embeddings.url == "http://thief.example/v1"


# -- secrets -------------------------------------------------------------------------------------


def test_a_key_is_not_shown_when_settings_are(data_dir: Path) -> None:
    settings = load(data_dir, {"VESTIGE_EMBEDDINGS_API_KEY": SECRET})
    assert settings.embeddings.api_key == SECRET
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)


def test_a_key_is_not_shown_by_an_error_nor_by_its_traceback(data_dir: Path) -> None:
    write(data_dir, f"[embeddings]\napi_key = ['{SECRET}']\n")
    error = refusal(data_dir)
    assert error.details == {"setting": "embeddings.api_key"}
    assert SECRET not in str(error.value())
    assert SECRET not in "".join(traceback.format_exception(error))


# -- PostgreSQL ----------------------------------------------------------------------------------

URL = f"postgresql://ada:{SECRET}@db.example:5432/memories?sslmode=verify-full"


def test_a_database_url_in_the_environment_is_enough_to_choose_postgres(data_dir: Path) -> None:
    settings = load(data_dir, {"VESTIGE_DATABASE_URL": f" {URL} "})
    assert settings.storage.backend == "postgres"
    assert settings.storage.postgres.url.get_secret_value() == URL


@pytest.mark.parametrize("where", ["file", "environment", "flag"])
def test_a_backend_that_is_set_wins_over_a_database_url(data_dir: Path, where: str) -> None:
    environ = {"VESTIGE_DATABASE_URL": URL}
    flags = {}
    if where == "file":
        write(data_dir, '[storage]\nbackend = "sqlite"\n')
    elif where == "environment":
        environ["VESTIGE_STORAGE_BACKEND"] = "sqlite"
    else:
        flags["storage__backend"] = "sqlite"
    assert load(data_dir, environ, **flags).storage.backend == "sqlite"


def test_a_url_in_the_file_waits_until_the_backend_is_chosen(data_dir: Path) -> None:
    write(data_dir, f'[storage.postgres]\nurl = "{URL}"\n')
    settings = load(data_dir)
    assert settings.storage.backend == "sqlite"
    assert settings.storage.postgres.url.get_secret_value() == URL


def test_everything_about_the_server_can_be_set_in_the_file(data_dir: Path) -> None:
    write(
        data_dir,
        f"""
        [storage]
        backend = "postgres"
        [storage.postgres]
        url = "{URL}"
        schema = "team_a"
        max_connections = 4
        statement_seconds = 2.5
        """,
    )
    chosen = load(data_dir).storage.postgres
    assert (chosen.schema_name, chosen.max_connections, chosen.statement_seconds) == ("team_a", 4, 2.5)
    assert load(data_dir, {"VESTIGE_STORAGE_POSTGRES_SCHEMA": "b"}).storage.postgres.schema_name == "b"


@pytest.mark.parametrize("value", ["localhost:5432", f"host=db password={SECRET}", "https://db.example/x"])
def test_what_is_no_address_of_a_server_is_refused_without_repeating_it(data_dir: Path, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(data_dir, {"VESTIGE_DATABASE_URL": value})
    assert caught.value.details == {"setting": "storage.postgres.url"}
    assert "postgresql://user@host:5432/database" in str(caught.value.hint)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", ['x"; DROP SCHEMA public', "a.b", "x" * 70, "Team", "1a", "pg_temp"])
def test_a_name_that_no_schema_can_have_is_refused_with_the_rule(data_dir: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"storage\.postgres\.schema") as caught:
        load(data_dir, {"VESTIGE_STORAGE_POSTGRES_SCHEMA": name})
    assert "lower-case letters" in str(caught.value.hint)
    assert "63" in str(caught.value.hint)
    assert "pg_" in str(caught.value.hint)
    assert caught.value.details == {"setting": "storage.postgres.schema"}


def test_a_password_is_not_shown_when_settings_are(data_dir: Path) -> None:
    settings = load(data_dir, {"VESTIGE_DATABASE_URL": URL})
    assert SECRET not in f"{settings!r} {settings} {settings.model_dump_json()}"
    assert settings.place == "postgresql://ada@db.example:5432/memories, schema vestige"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db.example:5433/memories",
        "postgresql://db.example/memories?sslmode=require",
        "postgres://[::1]:5432/memories",
        "postgresql:///memories?host=/run/postgresql&port=5433",
        "postgresql:///memories",
        "postgresql://db.example/with%20space",
        "postgresql://db.example?dbname=memories",
        "postgresql://ada:s3cret@db.example/memories",
        "postgresql://ada%20l@db.example/memories",
        "postgresql://db.example/memories?user=ada",
    ],
)
def test_a_place_on_a_server_is_spelt_as_the_store_spells_it(data_dir: Path, url: str) -> None:
    place = pytest.importorskip("vestige.store.postgres.server.address")
    settings = load(data_dir, {"VESTIGE_DATABASE_URL": url})
    assert settings.place == str(place.ServerAddress(url=url))


@pytest.mark.parametrize(
    ("text", "mode", "warned"),
    [
        (f'[storage.postgres]\nurl = "postgresql://ada:{SECRET}@db/x"\n', 0o644, True),
        (f'[storage.postgres]\nurl = "postgresql://ada:{SECRET}@db/x"\n', 0o600, False),
        ('[storage.postgres]\nurl = "postgresql://ada@db/x"\n', 0o644, False),
        (f'[embeddings]\napi_key = "{SECRET}"\n', 0o640, True),
        ("", 0o644, False),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
def test_a_file_with_a_secret_that_others_may_read_is_known(
    data_dir: Path, text: str, mode: int, warned: bool
) -> None:
    write(data_dir, text)
    file = data_dir / "vestige.toml"
    file.chmod(mode)
    assert load(data_dir).exposed_file == (file if warned else None)
    elsewhere = load(data_dir.parent / "other", {"VESTIGE_CONFIG": str(file)})
    assert elsewhere.exposed_file == (file if warned else None)
    assert load(data_dir.parent / "other").exposed_file is None


@each(
    ("url", "shown"),
    [
        ("postgresql://db.example/x", "postgresql://db.example/x"),
        ("postgresql://ada@[::1]:5432/x", "postgresql://ada@[::1]:5432/x"),
        ("postgresql://[::1]:5432/x", "postgresql://[::1]:5432/x"),
        ("postgresql://one:5432,two:5433/x?target_session_attrs=primary",) * 2,
        ("postgresql://ada:p%40ss@db/x", "postgresql://ada@db/x"),
        # Written wrongly, and nothing of it told all the same.
        ("postgresql://ada:p@s/s?w@db/x", "postgresql://ada@db/x"),
        ("postgresql://ada:hunter2", "postgresql://ada"),
        (
            "postgresql:///x?host=/run&password=hunter2&user=ada",
            "postgresql:///x?host=/run&password=***&user=ada",
        ),
        (
            "postgresql://db/x?sslmode=require&sslpassword=h",
            "postgresql://db/x?sslmode=require&sslpassword=***",
        ),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_what_is_made_up_is_kept_out_of_the_store_that_the_environment_names(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {
        "VESTIGE_DATABASE_URL": URL,
        "VESTIGE_STORAGE_BACKEND": "postgres",
        "VESTIGE_CONFIG": str(data_dir / "mine.toml"),
        "VESTIGE_MEMORY_LIMIT": "3",
    }
    for name, value in own.items():
        monkeypatch.setenv(name, value)

    forget_own_store()

    settings = load_settings({"data_dir": str(data_dir)})
    assert (settings.storage.backend, settings.memory.limit) == ("sqlite", 3)


@pytest.mark.parametrize(("backend", "ends"), [("sqlite", "vestige.db"), ("memory", None)])
def test_the_settings_tell_where_memories_are(data_dir: Path, backend: str, ends: str | None) -> None:
    place = load(data_dir, storage__backend=backend).place
    assert (place and place.rpartition("/")[2]) == ends


# -- the fields themselves -----------------------------------------------------------------------

FIELDS = list(documented_fields())


@each(("name", "description"), [(name, field.description) for name, field in FIELDS])
def test_every_setting_is_documented(name: str, description: str | None) -> None:
    assert description, f"{name} has no description"
    assert description.endswith(".")


@each("name", [name for name, field in FIELDS if name != "data_dir"])
def test_every_setting_but_the_data_directory_has_a_default(name: str) -> None:
    field = dict(FIELDS)[name]
    assert not field.is_required()


def test_every_setting_has_a_variable_of_its_own() -> None:
    names = [environment_name(name) for name, _ in FIELDS]
    assert len(set(names)) == len(names)
    assert environment_name("embeddings.api_key") == "VESTIGE_EMBEDDINGS_API_KEY"


def test_settings_cannot_be_changed(data_dir: Path) -> None:
    settings = load(data_dir)
    with pytest.raises(ValidationError):
        settings.memory.limit = 3  # type: ignore[misc]  # that it fails is what is tested


def test_a_variable_that_sets_nothing_is_named_with_the_nearest_that_would() -> None:
    environ = {
        "VESTIGE_EMBEDDING_PROVIDER": "off",
        "VESTIGE_OFFLINE": "1",
        "VESTIGE_TEST_X": "1",
        "HOME": "/",
    }
    assert unknown_variables(environ) == [
        "VESTIGE_EMBEDDING_PROVIDER is not a setting; did you mean VESTIGE_EMBEDDINGS_PROVIDER?"
    ]


@pytest.mark.parametrize("value", ["", "  "])
def test_an_address_that_is_set_and_blank_is_complained_about(value: str) -> None:
    (told,) = unknown_variables({"VESTIGE_DATABASE_URL": value})
    assert "VESTIGE_DATABASE_URL is blank" in told
    assert "SQLite" in told


@pytest.mark.parametrize("below", ["agent1", "a/b"])
def test_a_folder_below_a_project_directory_belongs_to_the_project_too(tmp_path: Path, below: str) -> None:
    assert is_project_directory(tmp_path / ".vestige" / below)


def test_a_link_does_not_hide_that_a_directory_is_a_project_s(tmp_path: Path) -> None:
    (tmp_path / ".vestige").mkdir()
    (tmp_path / "mine").symlink_to(tmp_path / ".vestige")
    assert is_project_directory(tmp_path / "mine")


def test_an_empty_data_directory_is_not_the_default_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="empty"):
        load_settings({"data_dir": " "}, environ={"HOME": str(tmp_path)})


def test_a_relative_xdg_directory_is_ignored(tmp_path: Path) -> None:
    settings = load_settings({}, environ={"HOME": str(tmp_path), "XDG_DATA_HOME": "data"})
    assert settings.data_dir.is_relative_to(tmp_path)


def test_a_scope_is_checked_when_it_is_set(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "VESTIGE_MEMORY_SCOPE": "../x"}
    with pytest.raises(ConfigError, match=r"memory\.scope"):
        load_settings({}, environ=environ)
    settings = load_settings({}, environ={**environ, "VESTIGE_MEMORY_SCOPE": "project/x"})
    assert settings.memory.scope == "/project/x"


# -- The time zone


@pytest.mark.parametrize(
    ("environ", "zone"),
    [
        ({"TZ": "Asia/Tokyo"}, "Asia/Tokyo"),
        ({"TZ": ":America/New_York"}, "America/New_York"),
        ({"TZ": "EST5EDT,M3.2.0,M11.1.0"}, "EST5EDT,M3.2.0,M11.1.0"),
        ({"TZ": "Asia/Tokyo", "VESTIGE_TIMEZONE": "asia/kolkata"}, "Asia/Kolkata"),
        ({"VESTIGE_TIMEZONE": "+05:30"}, "+05:30"),
        ({"TZ": "nonsense"}, "UTC"),
        ({}, "UTC"),  # the system's, which is UTC in the tests
    ],
)
def test_the_zone_is_the_setting_or_tz_or_that_of_the_system(environ: dict[str, str], zone: str) -> None:
    assert zone_name(load_settings(environ=environ).zone) == zone


def test_a_wrong_zone_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(environ={"VESTIGE_TIMEZONE": "Europe/Berln"})
    assert refused.value.hint == "Did you mean Europe/Berlin?"
    assert refused.value.details == {"setting": "timezone"}
