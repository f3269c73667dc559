"""Settings: built-in defaults, then `vestige.toml`, then `VESTIGE_*`, then flags; the last one wins.

Only this module reads the environment. A `vestige.toml` that comes with a project (in a data directory called
`.vestige`, or anywhere inside a version-controlled tree) may only set what cannot send memories elsewhere or
run a program: a cloned repository must not redirect a user's memories.
"""

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, tzinfo
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import parse_qsl, unquote

from pydantic import AfterValidator, BaseModel, Field, PrivateAttr, ValidationError
from pydantic.fields import FieldInfo

from vestige.core.errors import ConfigError, InvalidInput, nearest_name
from vestige.core.patterns import lazy_pattern
from vestige.core.timezone import known_zone, posix_zone, zone_name, zone_of
from vestige.settings.directories import default_data_directory
from vestige.settings.directories import environment_name as environment_name
from vestige.settings.schema_words import in_words
from vestige.settings.sections import (
    FROM_PROJECT,
    AgentSettings,
    AuthSettings,
    BackupSettings,
    BridgeSettings,
    DomainSettings,
    EmbeddingSettings,
    McpSettings,
    MechanismSettings,
    MemorySettings,
    ReviewSettings,
    SearchSettings,
    Section,
    ServerSettings,
    SessionSettings,
    SleepSettings,
    StorageSettings,
)

logger = logging.getLogger(__name__)

CONFIG_NAME = "vestige.toml"
DATABASE_NAME = "vestige.db"
PROJECT_DIRECTORY = ".vestige"
NOT_SETTINGS = ("VESTIGE_TEST_", "VESTIGE_MODEL_DIR", "VESTIGE_KEY")
"""Variables of the test suite and of clients: they share the prefix but are not settings."""

OLD_NAMES = {
    "VESTIGE_SYSTEM_PROMPT_MODE": "mcp.instructions",
    "VESTIGE_RETENTION_TARGET": "memory.retention_target",
    "VESTIGE_STATE_TTL_DAYS": "memory.state_ttl_days",
    "VESTIGE_CONSOLIDATION_INTERVAL_HOURS": "sleep.interval_hours",
    "VESTIGE_AUTOPILOT_ENABLED": "mechanisms.autopilot",
    "VESTIGE_HTTP_BIND": "server.bind",
    "VESTIGE_SESSION_SECRET": "auth.session_secret",
    "VESTIGE_ALLOW_ANONYMOUS": "bridge.allow_anonymous",
    "VESTIGE_BINARY": "bridge.binary",
    "VESTIGE_REQUEST_TIMEOUT": "bridge.request_timeout",
}
"""Variables of the reference system with the same meaning; ours win if both are set."""
DATABASE_URL = "VESTIGE_DATABASE_URL"
"""Sets `storage.postgres.url`, and selects the backend `postgres` if none is set."""
OTHERS = 0o077
"""Permission bits of users other than the owner."""
CLIENT_FOLDERS = {
    "CLAUDE_CONFIG_DIR": "sessions.claude_dir",
    "CODEX_HOME": "sessions.codex_dir",
    "XDG_DATA_HOME": "sessions.share_dir",
}
"""Variables of coding agents that name their folders."""
OTHER_NAMES = {**OLD_NAMES, **CLIENT_FOLDERS, DATABASE_URL: "storage.postgres.url"}

# Matches up to the last @: a password with an unescaped @ must not be shown in part.
_CREDENTIALS = lazy_pattern(r"(?<=://)([^:@/?]*):.*@|(?<=://)([^:@/?\[]*):(?!\d*(?:[,/?]|$)).*", re.DOTALL)
_PARAMETER = lazy_pattern(r"(?P<name>[?&][^?=&]*+=)[^&]*")


def machine_zone(tz: str) -> tzinfo:
    """The zone of a value of TZ; of the system if it is empty, and UTC if that cannot be found out."""
    plain = tz.strip().removeprefix(":")
    if plain:
        zone = known_zone(plain) or posix_zone(plain)
        if zone is not None:
            return zone
        logger.warning("TZ is neither the name of a time zone nor a rule; the system's zone is used.")
    try:
        import tzlocal  # late: it is not needed before the first call

        found = tzlocal.get_localzone_name()
    except Exception as exc:  # what fails depends on the system; a wrong TZ must stop nothing
        logger.warning("The system's time zone was not found (%s); times are in UTC.", type(exc).__name__)
        return UTC
    return (known_zone(found) if found else None) or UTC


def _zone_or_none(name: str) -> str:
    if not name.strip():
        return ""
    try:
        return zone_name(zone_of(name))
    except InvalidInput as exc:
        raise ConfigError(
            f"The setting `timezone` is invalid: {exc.message}",
            hint=exc.hint,
            details={"setting": "timezone"},
        ) from exc


class Settings(Section):
    """All settings. Frozen; created once, in app.py."""

    data_dir: Path = Field(description="The data directory: database, backups and `vestige.toml`.")
    offline: bool = Field(
        False, description="Never use the network: nothing is downloaded, only local endpoints are used."
    )
    timezone: Annotated[str, AfterValidator(_zone_or_none)] = Field(
        "",
        description="Your time zone, such as Europe/Berlin, in which times without an offset are read and "
        "times are printed; empty: the variable TZ, or the zone of the system. For a client on another "
        "machine, empty means UTC.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "warning",
        description="Minimum level of log messages on standard error.",
        json_schema_extra=FROM_PROJECT,
    )
    memory: MemorySettings = MemorySettings.model_construct()
    review: ReviewSettings = ReviewSettings.model_construct()
    mcp: McpSettings = McpSettings.model_construct()
    embeddings: EmbeddingSettings = EmbeddingSettings.model_construct()
    search: SearchSettings = SearchSettings.model_construct()
    storage: StorageSettings = StorageSettings.model_construct()
    backup: BackupSettings = BackupSettings.model_construct()
    sessions: SessionSettings = SessionSettings.model_construct()
    mechanisms: MechanismSettings = MechanismSettings.model_construct()
    sleep: SleepSettings = SleepSettings.model_construct()
    domains: DomainSettings = DomainSettings.model_construct()
    agent: AgentSettings = AgentSettings.model_construct()
    server: ServerSettings = ServerSettings.model_construct()
    auth: AuthSettings = AuthSettings.model_construct()
    bridge: BridgeSettings = BridgeSettings.model_construct()
    _file: Path | None = PrivateAttr(None)
    _tz: str = PrivateAttr("")
    _home: Path | None = PrivateAttr(None)
    _sources: Mapping[str, str] = PrivateAttr(default_factory=dict)

    def source_of(self, name: str) -> str:
        """Where the value of a setting comes from: default, file, environment or flag."""
        return self._sources.get(name, "default")

    @property
    def file(self) -> Path:
        """The settings file, which may not exist."""
        return self._file or self.data_dir / CONFIG_NAME

    def in_home(self, given: str, otherwise: str) -> Path:
        """A folder of the settings; empty: the usual one, below the home directory of the user."""
        home = self._home or Path.home()
        return home / (given or otherwise).removeprefix("~/")  # an absolute path stays as it is

    def shown_path(self, path: Path) -> str:
        """A path with `~` for the home directory of the user."""
        home = self._home or Path.home()
        return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.data_dir / DATABASE_NAME

    @cached_property
    def zone(self) -> tzinfo:
        """The time zone of the user of this machine."""
        return zone_of(self.timezone) if self.timezone else machine_zone(self._tz)

    @property
    def place(self) -> str | None:
        """Where memories are stored, for display; None for the backend `memory`."""
        server = self.storage.postgres
        there = _server_location(server.url.get_secret_value(), server.schema_name)
        places = {"sqlite": str(self.database), "postgres": there}
        return places.get(self.storage.backend)

    @property
    def exposed_file(self) -> Path | None:
        """The settings file, if it contains a secret and users other than its owner can read it."""
        url = self.storage.postgres.url.get_secret_value()
        secrets = [
            self.embeddings.api_key,
            url if url != without_password(url) else "",
            self.auth.token.get_secret_value(),
            self.auth.session_secret.get_secret_value(),
        ]
        if self._file is None or os.name == "nt":  # Windows has no such permissions
            return None
        with suppress(OSError, UnicodeDecodeError):
            if self._file.stat().st_mode & OTHERS:
                text = self._file.read_text(encoding="utf-8")
                return self._file if any(one and one in text for one in secrets) else None
        return None

    @property
    def clients_home(self) -> Path:
        """The home directory in which coding agents have their folders."""
        given = self.sessions.home or self._home
        return Path(given).expanduser() if given else Path.home()

    @property
    def model_cache(self) -> Path:
        """The folder of embedding models, outside any data directory."""
        return Path(self.embeddings.cache_dir)


def load_settings(
    flags: Mapping[str, Any] | None = None, *, environ: Mapping[str, str] | None = None
) -> Settings:
    """The effective settings. `flags` are `data_dir`, `config` and dotted names such as `memory.scope`."""
    environ = os.environ if environ is None else environ
    flags = {name: value for name, value in (flags or {}).items() if value is not None}
    named = "flag" if "data_dir" in flags else "environment" if "VESTIGE_DATA_DIR" in environ else "default"
    sources = {"data_dir": named}
    data_dir = _directory(flags.pop("data_dir", environ.get("VESTIGE_DATA_DIR")), environ)
    explicit = flags.pop("config", None) or environ.get("VESTIGE_CONFIG")
    merged: dict[str, Any] = {}
    path = _expanded(explicit) if explicit else data_dir / CONFIG_NAME
    for source, layer in (
        ("file", _from_file(path, data_dir, named=bool(explicit))),
        ("environment", _from_environment(environ)),
        ("flag", _nested(flags)),
    ):
        _merge(merged, layer)
        sources |= dict.fromkeys(_dotted(layer), source)
    merged["data_dir"] = data_dir
    storage = merged.setdefault("storage", {})
    if environ.get(DATABASE_URL, "").strip() and isinstance(storage, dict) and "backend" not in storage:
        storage["backend"], sources["storage.backend"] = "postgres", "environment"
    chosen = merged.setdefault("embeddings", {})
    if isinstance(chosen, dict):
        given = chosen.get("cache_dir")
        chosen["cache_dir"] = str(_expanded(given) if given else _cache_root(environ) / "models")
    try:
        settings = _defaults(merged) or Settings.model_validate(merged)
    except ValidationError as exc:
        raise _invalid_settings(exc) from exc
    except InvalidInput as exc:
        raise ConfigError(f"The setting `memory.scope` is invalid: {exc.message}", hint=exc.hint) from exc
    settings._file, settings._tz, settings._sources = path, environ.get("TZ", ""), sources
    settings._home = Path(environ["HOME"]) if environ.get("HOME") else None
    return settings


def _defaults(merged: Mapping[str, Any]) -> Settings | None:
    """The settings of a user who has set none: building what validates them takes a tenth of a command."""
    if merged.keys() != {"data_dir", "storage", "embeddings"} or merged["storage"]:
        return None
    chosen = merged["embeddings"]
    if not isinstance(chosen, dict) or chosen.keys() != {"cache_dir"}:
        return None
    embeddings = EmbeddingSettings.model_construct(**chosen)
    return Settings.model_construct(data_dir=merged["data_dir"], embeddings=embeddings)


def without_password(url: str) -> str:
    """The URL of a server without its password."""
    bare = _CREDENTIALS.sub(lambda found: f"{found[1]}@" if found[1] is not None else f"{found[2]}", url)
    return _PARAMETER.sub(lambda one: f"{one['name']}***" if "pass" in one["name"].lower() else one[0], bare)


def _server_location(url: str, schema: str) -> str:
    """The location of a server's store, formatted as the store does. Works without the driver."""
    address, _, query = without_password(url).partition("?")
    where, _, database = address.partition("://")[2].partition("/")
    named, _, hosts = where.rpartition("@")
    parameters = dict(parse_qsl(query))
    user = parameters.get("user") or unquote(named)
    host = parameters.get("host") or parameters.get("hostaddr") or hosts or "local"
    port = f":{parameters['port']}" if "port" in parameters else ""
    who = f"{user}@" if user else ""
    return f"postgresql://{who}{host}{port}/{parameters.get('dbname') or unquote(database)}, schema {schema}"


def forget_own_store() -> None:
    """Keep generated memories, such as a benchmark's, out of the store that the environment names."""
    stores = [name for name in os.environ if name.startswith("VESTIGE_STORAGE_")]
    for name in (DATABASE_URL, "VESTIGE_CONFIG", *stores):
        os.environ.pop(name, None)


def forbid_telemetry() -> None:
    """Disable telemetry of libraries. Call it before they are imported.

    onnxruntime creates a device id and queues usage reports as soon as it is imported.
    """
    for name in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
        os.environ[name] = "1"


def is_project_directory(data_dir: Path) -> bool:
    """Whether a data directory belongs to a project rather than to the user."""
    # Resolve links, which could hide where the directory really is.
    real = data_dir.resolve()
    if PROJECT_DIRECTORY in real.parts:
        return True
    return any(is_repository(place) for place in (real, *real.parents))


def installation_directory(data_dir: Path, environ: Mapping[str, str] | None = None) -> Path:
    """The folder for what no project may bring: the data directory, or the user's own if that one belongs
    to a project."""
    if not is_project_directory(data_dir):
        return data_dir
    return Path(default_data_directory(os.environ if environ is None else environ, sys.platform))


def is_repository(folder: Path) -> bool:
    """Whether a folder is the root of a version-controlled tree."""
    return any((folder / mark).exists() for mark in (".git", ".hg", ".svn"))


def documented_fields(
    section: type[BaseModel] = Settings, prefix: str = ""
) -> Iterator[tuple[str, FieldInfo]]:
    """Every setting with its dotted name, for the reference page and the tests."""
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from documented_fields(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{field.alias or name}", field


def unknown_variables(environ: Mapping[str, str] | None = None) -> list[str]:
    """Warnings about `VESTIGE_*` variables that are not settings, each with the nearest known one."""
    environ = os.environ if environ is None else environ
    known = {environment_name(name) for name, _ in documented_fields()} | {"VESTIGE_CONFIG", *OTHER_NAMES}
    complaints = []
    if not environ.get(DATABASE_URL, "x").strip():
        complaints.append(
            f"{DATABASE_URL} is blank: memories are in SQLite unless other settings say otherwise."
        )
    for name in sorted(environ):
        if name.startswith("VESTIGE_") and name not in known and not name.startswith(NOT_SETTINGS):
            close = nearest_name(name, known)
            complaints.append(f"{name} is not a setting" + (f"; did you mean {close}?" if close else "."))
    return complaints


def is_empty_variable(name: str) -> bool:
    """Whether a variable is set but blank, which counts as not set everywhere else."""
    return not os.environ.get(name, "x").strip()


def is_set(name: str) -> bool:
    """Whether a variable has a value: for variables of other programs."""
    return bool(os.environ.get(name, "").strip())


def environment_without(prefix: str) -> dict[str, str]:
    """The environment for another program, without the variables whose names begin like this."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefix)}


def variables_of(dotted: str) -> list[str]:
    """Every environment variable of a setting; the first one that is set wins."""
    return [environment_name(dotted), *(name for name, setting in OTHER_NAMES.items() if setting == dotted)]


def allowed_in_project(field: FieldInfo) -> bool:
    """Whether a project's own file may set this."""
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("project"))


def _expanded(path: str) -> Path:
    """The path with its tilde expanded: MCP clients start Vestige without a shell."""
    try:
        return Path(path).expanduser()
    except RuntimeError as exc:
        raise ConfigError(
            f"The home directory in {path} cannot be determined.", hint="Give the full path."
        ) from exc


def _directory(given: str | None, environ: Mapping[str, str]) -> Path:
    if given is not None:
        if not str(given).strip():
            raise ConfigError("The data directory is empty.", hint="Omit --data-dir, or give a directory.")
        return _expanded(given).absolute()
    return Path(default_data_directory(environ, sys.platform))


def _cache_root(environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "vestige"
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "vestige" / "cache"
    return _absolute(environ.get("XDG_CACHE_HOME"), home / ".cache") / "vestige"


def _absolute(given: str | None, otherwise: Path) -> Path:
    """A directory of the XDG standard, which requires ignoring a relative path."""
    return Path(given) if given and Path(given).is_absolute() else otherwise


def _from_file(path: Path, data_dir: Path, *, named: bool) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError as exc:
        if named:
            raise ConfigError(f"There is no settings file {path}.", hint="Check --config.") from exc
        return {}
    except NotADirectoryError as exc:
        raise ConfigError(
            f"The data directory {data_dir} is not a directory.", hint="Give another --data-dir."
        ) from exc
    except OSError as exc:
        raise ConfigError(f"The settings file {path} cannot be read: {exc.strerror}.") from exc
    import tomllib  # most installations have no settings file

    try:
        values = tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path} is not valid TOML: {exc}.") from exc
    if "data_dir" in values:
        raise ConfigError(
            f"{path} sets `data_dir`, but the settings file itself is in the data directory.",
            hint="Use --data-dir or VESTIGE_DATA_DIR.",
        )
    if not named and is_project_directory(data_dir):
        _check_project_file(path, values)
    return values


def _check_project_file(path: Path, values: Mapping[str, Any]) -> None:
    allowed = {name for name, field in documented_fields() if allowed_in_project(field)}
    forbidden = sorted(name for name in _dotted(values) if name not in allowed)
    if forbidden:
        raise ConfigError(
            f"{path} belongs to a project and may not set {', '.join(forbidden)}.",
            hint=f"A project may set {', '.join(sorted(allowed))}. Set the others with --config, VESTIGE_* "
            "or in your own data directory.",
            details={"settings": forbidden},
        )


def _dotted(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name, field in documented_fields():
        text = next(filter(None, (environ.get(one, "").strip() for one in variables_of(name))), "")
        if text and name != "data_dir":
            # Words of a choice are accepted in any case.
            found[name] = text.lower() if get_args(field.annotation) else text
    return _nested(found)


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for dotted, value in flat.items():
        *sections, name = dotted.split(".")
        level = tree
        for section in sections:
            level = level.setdefault(section, {})
        level[name] = value
    return tree


def _merge(into: dict[str, Any], layer: Mapping[str, Any]) -> None:
    for name, value in layer.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = dict(value) if isinstance(value, Mapping) else value


def _invalid_settings(exc: ValidationError) -> ConfigError:
    first = exc.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        close = nearest_name(name, [dotted for dotted, _ in documented_fields()])
        return ConfigError(
            f"There is no setting `{name}`.",
            hint=f"Did you mean `{close}`?" if close else "See `vestige docs settings`.",
            details={"setting": name},
        )
    # The value is not repeated: it may be a key.
    hint = (in_words(Settings.model_json_schema(), first["loc"]) or "").replace("An object", "A section")
    return ConfigError(
        f"The setting `{name}` has an invalid value.",
        hint=hint or f"{first['msg'].rstrip('.')}.",
        details={"setting": name},
    )
