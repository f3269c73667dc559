"""The sections of the settings: what can be set, with its default and what it does."""

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, SecretStr

from vestige.core.checks import SCHEMA_NAMES, is_schema_name
from vestige.core.errors import ConfigError
from vestige.core.models import normal_scope

FROM_PROJECT: dict[str, JsonValue] = {"project": True}
"""Marks a setting that a project's own file may change."""


class Section(BaseModel):
    """A frozen group of settings that takes no others."""

    # A refused value may be a key: it must not show up in an error or a traceback.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _switch(description: str) -> Any:  # what pydantic's Field is typed as
    return Field(True, description=description, json_schema_extra=FROM_PROJECT)


def _parted(given: object) -> object:
    """The environment has only text, with a comma between several."""
    return tuple(one.strip() for one in given.split(",") if one.strip()) if isinstance(given, str) else given


Several = Annotated[tuple[str, ...], BeforeValidator(_parted)]


def _hosts(given: tuple[str, ...]) -> tuple[str, ...]:
    for one in given:
        bare = f"[{one}]" if one.count(":") > 1 and not one.startswith("[") else one
        try:
            parts = urlsplit(f"//{bare}")
            known = parts.netloc == bare and bool(parts.hostname) and parts.port != 0 and "@" not in bare
        except ValueError:  # its port is no number
            known = False
        if not known:
            raise ConfigError(
                "The setting `server.allowed_hosts` has a value that is no name of a host.",
                hint="Give names as clients use them, such as memory.example or 192.0.2.7:8443, without http://.",
                details={"setting": "server.allowed_hosts"},
            )
    return given


def _scope_or_none(scope: str) -> str:
    return normal_scope(scope) if scope.strip() else ""


class MemorySettings(Section):
    """How memories are written and found when a call does not say."""

    scope: Annotated[str, AfterValidator(_scope_or_none)] = Field(
        "",
        description="Scope of new memories and of searches; empty means the project that the client's root "
        "or the working directory belongs to.",
        json_schema_extra=FROM_PROJECT,
    )
    limit: Annotated[int, Field(ge=1, le=100)] = Field(
        10, description="Most results of a search.", json_schema_extra=FROM_PROJECT
    )
    detail_level: Literal["brief", "summary", "full"] = Field(
        "summary", description="How much of each memory a search shows.", json_schema_extra=FROM_PROJECT
    )
    record: bool = Field(
        True,
        description="Whether a search leaves a trace on what it showed (the testing effect).",
        json_schema_extra=FROM_PROJECT,
    )
    state_ttl_days: float = Field(
        30.0,
        gt=0,
        le=36_500,
        description="How long a memory of the type `state` is taken as true when it does not say.",
        json_schema_extra=FROM_PROJECT,
    )
    secrets: Literal["refuse", "redact", "allow"] = Field(
        "refuse",
        description="What happens to a text that holds a key, a token or a password: it is refused, stored "
        "with the secret blacked out, or stored as it is.",
    )
    retention_target: Annotated[float, Field(ge=0, le=1)] = Field(
        0.8,
        description="The average chance of recall that `memory_health` measures against.",
        json_schema_extra=FROM_PROJECT,
    )


class McpSettings(Section):
    """What an MCP client is shown."""

    profile: Literal["core", "full"] = Field(
        "core",
        description="`core` lists a few tools through which all others are reached; `full` lists every tool.",
    )
    instructions: Literal["minimal", "full"] = Field(
        "minimal",
        description="How much an agent is told about when to search, save, promote and demote.",
    )


class EmbeddingSettings(Section):
    """Which model turns text into vectors."""

    provider: Literal["local", "fastembed", "openai", "hashing", "off"] = Field(
        "local",
        description="`local` is MiniLM on this machine; `openai` is any compatible endpoint; "
        "`hashing` is for tests; `off` means full text only.",
    )
    model: str = Field("all-MiniLM-L6-v2", description="Model name, for `fastembed` and `openai`.")
    url: str = Field("", description="Base URL of an OpenAI-compatible endpoint, ending in /v1.")
    api_key: str = Field("", description="Key for that endpoint.", repr=False)
    dimension: int = Field(0, ge=0, le=4096, description="Vector length of the endpoint; 0 asks it.")
    threads: int = Field(
        0, ge=0, le=64, description="Texts embedded at once; 0 means one per core, at most four."
    )
    model_path: str = Field("", description="A folder with the files of a `fastembed` model.")
    cache_dir: str = Field("", description="Where models are kept; empty means the user's cache directory.")
    wait_seconds: float = Field(
        5.0,
        ge=0,
        le=120,
        description="How long a call waits for a model that is being loaded from disk before it goes on "
        "without it.",
    )


class SearchSettings(Section):
    """Whether a second model judges the best results of a search. A project may not set what is fetched."""

    reranker: Literal["off", "fastembed"] = Field(
        "off",
        description="`fastembed` has a cross-encoder judge the best candidates of every search: slower, and "
        "needs the extra `fastembed`.",
    )
    reranker_model: str = Field(
        "Xenova/ms-marco-MiniLM-L-6-v2", description="Name of the cross-encoder, one that fastembed knows."
    )
    reranker_path: str = Field(
        "", description="A folder with the files of a cross-encoder; any with one logit, nothing is fetched."
    )


def _server_address(url: SecretStr) -> SecretStr:
    given = SecretStr(url.get_secret_value().strip())
    if given.get_secret_value() and not given.get_secret_value().startswith(("postgresql://", "postgres://")):
        # What was given is not repeated: it may hold a password.
        raise ConfigError(
            "`storage.postgres.url` (or VESTIGE_DATABASE_URL) is not the address of a PostgreSQL server.",
            hint="It looks like postgresql://user@host:5432/database.",
            details={"setting": "storage.postgres.url"},
        )
    return given


def _schema_name(name: str) -> str:
    if not is_schema_name(name):
        raise ConfigError(
            "The setting `storage.postgres.schema` is no name that a schema can have.",
            hint=SCHEMA_NAMES,
            details={"setting": "storage.postgres.schema"},
        )
    return name


class PostgresSettings(Section):
    """The server and the database, for the backend `postgres`."""

    url: Annotated[SecretStr, AfterValidator(_server_address)] = Field(
        SecretStr(""),
        description="Where the database is: postgresql://user@host:5432/database. A password in it is shown "
        "nowhere; ~/.pgpass keeps it out of the settings.",
    )
    # pydantic has a method of the setting's name.
    schema_name: Annotated[str, AfterValidator(_schema_name)] = Field(
        "vestige",
        alias="schema",
        description="The schema in that database which holds the store; several may be side by side. Small "
        "letters, digits and _.",
    )
    max_connections: int = Field(
        10, ge=2, le=1_000, description="Most connections that one process holds for reading and writing."
    )
    statement_seconds: float = Field(
        60.0, gt=0, le=86_400, description="How long one statement may take before the server ends it."
    )


class StorageSettings(Section):
    """Where and how memories are kept."""

    backend: Literal["sqlite", "postgres", "memory"] = Field(
        "sqlite",
        description="`sqlite` is one file in the data directory; `postgres` a database on a server, for a "
        "team; `memory` forgets at exit. Where this is not set, VESTIGE_DATABASE_URL chooses `postgres`.",
    )
    busy_seconds: float = Field(
        5.0, gt=0, le=600, description="How long a write waits for other writers before it gives up."
    )
    synchronous: Literal["normal", "full"] = Field(
        "normal",
        description="What an acknowledged write survives in SQLite: `normal` the death of any process, "
        "`full` also a loss of power or a crash of the system (each write waits for the disk). PostgreSQL "
        "goes by its own `synchronous_commit`.",
    )
    exclusive: bool = Field(
        False, description="A server refuses to start beside another one, and lets no other start."
    )
    postgres: PostgresSettings = PostgresSettings()


class BackupSettings(Section):
    """Backups that a server makes by itself."""

    every_hours: float = Field(
        0.0, ge=0, le=8_760, description="Hours between two backups; 0 means none are made by themselves."
    )
    keep: int = Field(
        7, ge=1, le=1_000, description="How many backups made by themselves or with `--rotate` are kept."
    )


class MechanismSettings(Section):
    """Which mechanisms of the living memory take part. Each can be switched off to see what it does."""

    decay: bool = _switch("What has faded ranks lower.")
    spreading: bool = _switch("Links bring in what is connected to the best results.")
    importance: bool = _switch("What is new, rewarding and attended to is encoded more strongly.")
    emotion: bool = _switch("What is told with feeling is encoded more strongly.")
    capture: bool = _switch("Something important strengthens what was learned around it.")
    context: bool = _switch("What was learned in a context like the present one ranks higher.")
    competition: bool = _switch("Of rivals the one that holds now wins, and the others fade.")
    reconsolidation: bool = _switch("An edit right after recall is a correction and strengthens.")
    prediction: bool = _switch("Searches leave patterns, from which what comes next is predicted.")
    autopilot: bool = _switch("Events drive the mechanisms in the background.")


class SleepSettings(Section):
    """When the memory consolidates and dreams by itself. Only a server does."""

    enabled: bool = _switch("Whether it sleeps by itself.")
    interval_hours: float = Field(
        6.0, gt=0, le=8_760, description="Hours between two consolidations.", json_schema_extra=FROM_PROJECT
    )
    idle_minutes: float = Field(
        30.0,
        ge=0,
        le=10_080,
        description="Minutes without a call before it sleeps.",
        json_schema_extra=FROM_PROJECT,
    )
    dream_memories: int = Field(
        50, ge=5, le=500, description="Memories replayed in a dream.", json_schema_extra=FROM_PROJECT
    )


class ServerSettings(Section):
    """The server that `vestige serve` starts."""

    bind: str = Field(
        "127.0.0.1:3927",
        description="Where the server listens: host:port, [v6 address]:port; port 0 takes a free one. Other "
        "machines reach it only if this is no loopback address.",
    )
    allowed_hosts: Annotated[Several, AfterValidator(_hosts)] = Field(
        (),
        description="Names by which clients reach the server, beside the one it is bound to and localhost. "
        "Requests for another Host are refused.",
    )
    allowed_origins: Several = Field(
        (),
        description="Origins of web pages on other sites that may use the server, such as https://a.example.",
    )
    trusted_proxies: Several = Field(
        (), description="Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed."
    )
    max_body_bytes: int = Field(
        4_194_304,
        ge=1_024,
        le=1_073_741_824,
        description="Largest body of a request. An answer may be twice as large, and 2 MiB at least.",
    )
    max_concurrent: int = Field(
        64,
        ge=1,
        le=10_000,
        description="Requests served at once; more of them wait a little, then are refused.",
    )
    max_connections: int = Field(
        2_000, ge=1, le=1_000_000, description="Connections open at once, streams included."
    )
    request_seconds: float = Field(
        60.0, gt=0, le=86_400, description="How long a call may take, waiting for its turn included."
    )
    long_request_seconds: float = Field(
        1_800.0,
        gt=0,
        le=604_800,
        description="The same for long work, such as backups. It has a quarter as many threads as "
        "`max_concurrent` says, and one key at most half of those.",
    )
    requests_per_minute: int = Field(
        6_000,
        ge=0,
        le=1_000_000,
        description="Requests a minute that one key, or one address without a key, may go on making; as many "
        "may come at once after a rest. Each message of an MCP batch counts. 0: no limit.",
    )
    max_sessions: int = Field(
        100,
        ge=1,
        le=100_000,
        description="MCP sessions of the handshake era that are open at once; one key has at most half of "
        "them.",
    )
    session_idle_minutes: float = Field(
        30.0, gt=0, le=10_080, description="Minutes after which an MCP session that is not used ends."
    )
    max_listeners: int = Field(1_000, ge=1, le=100_000, description="Live event streams open at once.")
    shutdown_seconds: float = Field(
        10.0, ge=0, le=3_600, description="How long requests under way may take to end when the server stops."
    )


class AuthSettings(Section):
    """Who may use the server."""

    enabled: bool = Field(
        True, description="Whether a key is needed. Without, the server listens on loopback addresses only."
    )
    token: SecretStr = Field(
        SecretStr(""),
        description="The token that the bridge needs. For the server it is deprecated: one token that may "
        "read and write everything. Use keys.",
        repr=False,
    )
    session_secret: SecretStr = Field(
        SecretStr(""),
        repr=False,
        description="Signs the cookies of people who logged in, 64 bytes or more in base64url; several "
        "servers share one. Empty: a file in the data directory.",
    )
    session_hours: float = Field(8.0, gt=0, le=720, description="How long a person stays logged in.")


class BridgeSettings(Section):
    """The bridge for OpenClaw that `vestige bridge` starts. Its token is `auth.token`; its limits are those
    of the server."""

    bind: str = Field(
        "127.0.0.1:8000",
        description="Where the bridge listens: host:port, [v6 address]:port; port 0 takes a free one.",
    )
    allow_anonymous: bool = Field(
        False,
        description="Whether the bridge may start without a token and let in everybody on this machine; it "
        "listens on a loopback address only then.",
    )
    binary: str = Field(
        "", description="The `vestige-mcp` that the bridge starts; empty means that of this installation."
    )
    request_timeout: float = Field(
        30.0, gt=0, le=3_600, description="Seconds that a call may take before it is taken back."
    )
    long_timeout: float = Field(
        180.0, gt=0, le=86_400, description="The same for dreams, consolidations and backups."
    )
    isolate_agents: bool = Field(
        False,
        description="Whether each agent (`X-Agent-Id`) has memories of its own in /agent/<id>, beside what "
        "all read in /shared.",
    )
