"""The sections of the settings: each setting with its default and description."""

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, SecretStr

from vestige.core.errors import ConfigError
from vestige.core.models import ROOT_SCOPE, SCHEMA_NAMES, is_schema_name, normal_scope

FROM_PROJECT: dict[str, JsonValue] = {"project": True}
"""Marks a setting that a project's own file may change."""


class Section(BaseModel):
    """A frozen group of settings that rejects unknown names."""

    # A rejected value may be a key, so it must not appear in an error or a traceback.
    # What validates a section is built with all settings, once, and only if some are given: defaults are not
    # validated (`model_construct`).
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


def _switch(description: str) -> Any:  # what pydantic's Field is typed as
    return Field(True, description=description, json_schema_extra=FROM_PROJECT)


def _split_list(given: object) -> object:
    """Split text from the environment at commas."""
    return tuple(one.strip() for one in given.split(",") if one.strip()) if isinstance(given, str) else given


Several = Annotated[tuple[str, ...], BeforeValidator(_split_list)]


def _hosts(given: tuple[str, ...]) -> tuple[str, ...]:
    for one in given:
        bare = f"[{one}]" if one.count(":") > 1 and not one.startswith("[") else one
        try:
            parts = urlsplit(f"//{bare}")
            known = parts.netloc == bare and bool(parts.hostname) and parts.port != 0 and "@" not in bare
        except ValueError:  # the port is not a number
            known = False
        if not known:
            raise ConfigError(
                "The setting `server.allowed_hosts` contains a value that is not a host name.",
                hint="Give names as clients use them, such as memory.example or 192.0.2.7:8443, without "
                "http://.",
                details={"setting": "server.allowed_hosts"},
            )
    return given


def _scope_or_none(scope: str) -> str:
    return normal_scope(scope) if scope.strip() else ""


class MemorySettings(Section):
    """Defaults for writing and searching memories."""

    scope: Annotated[str, AfterValidator(_scope_or_none)] = Field(
        "",
        description="Scope of new memories, and the one that ranks first in searches; empty: the project of "
        "the client's root or the working directory.",
        json_schema_extra=FROM_PROJECT,
    )
    isolate: bool = Field(
        False,
        description="Whether a search without a scope finds only the current scope and what it inherits, and "
        "what is stored about the user stays there too.",
    )
    limit: Annotated[int, Field(ge=1, le=100)] = Field(
        10, description="Maximum number of search results.", json_schema_extra=FROM_PROJECT
    )
    detail_level: Literal["brief", "summary", "full"] = Field(
        "summary", description="How much of each memory a search shows.", json_schema_extra=FROM_PROJECT
    )
    record: bool = Field(
        True,
        description="Whether a search strengthens the memories it shows (testing effect).",
        json_schema_extra=FROM_PROJECT,
    )
    state_ttl_days: float = Field(
        30.0,
        gt=0,
        le=36_500,
        description="Days that a memory of type `state` stays valid unless it states its own end.",
        json_schema_extra=FROM_PROJECT,
    )
    secrets: Literal["refuse", "redact", "allow"] = Field(
        "refuse",
        description="What to do with a text that contains a key, a token or a password: refuse it, store "
        "it with the secret redacted, or store it unchanged.",
    )
    retention_target: Annotated[float, Field(ge=0, le=1)] = Field(
        0.8,
        description="Target of the average recall probability, which `memory_health` compares with.",
        json_schema_extra=FROM_PROJECT,
    )


def _policies(given: tuple[str, ...]) -> tuple[str, ...]:
    for one in given:
        scope, _, policy = one.rpartition("=")
        if policy not in REVIEW_POLICIES or not scope.startswith("/") or normal_scope(scope) != scope:
            raise ConfigError(
                "The setting `review.scopes` contains a value that is not a scope with a policy.",
                hint=f"Give values such as /project/vestige=all; a policy is {', '.join(REVIEW_POLICIES)}.",
                details={"setting": "review.scopes"},
            )
    return given


REVIEW_POLICIES = ("off", "low_trust", "all")


class ReviewSettings(Section):
    """Which texts wait in the review inbox instead of being stored."""

    policy: Literal["off", "low_trust", "all"] = Field(
        "low_trust",
        description="`low_trust`: texts that give orders to an agent or hide something, unless the user "
        "wrote them; `all`: everything that the user did not write; `off`: nothing. What the rules of "
        "`capture` propose always waits.",
    )
    scopes: Annotated[Several, AfterValidator(_policies)] = Field(
        (),
        description="Policies of single scopes and what is below them, such as `/project/vestige=all`; the "
        "nearest one counts. `vestige review choose` sets them without a restart.",
    )

    def by_scope(self) -> dict[str, str]:
        """The policies by their scopes, with that of the root."""
        return {ROOT_SCOPE: self.policy} | dict(one.rpartition("=")[::2] for one in self.scopes)


class McpSettings(Section):
    """What MCP clients see."""

    profile: Literal["core", "full"] = Field(
        "core",
        description="`core` lists a few tools, one of which can run all others; `full` lists every tool.",
    )
    instructions: Literal["minimal", "full"] = Field(
        "minimal",
        description="How much an agent is instructed about when to search, save, promote and demote.",
    )


class EmbeddingSettings(Section):
    """The model that embeds text as vectors."""

    provider: Literal["local", "fastembed", "openai", "hashing", "off"] = Field(
        "local",
        description="`local` is MiniLM on this machine; `openai` is any compatible endpoint; `hashing` is "
        "for tests; `off` disables vectors (full-text search only).",
    )
    model: str = Field("all-MiniLM-L6-v2", description="Model name, for `fastembed` and `openai`.")
    url: str = Field("", description="Base URL of an OpenAI-compatible endpoint, ending in /v1.")
    api_key: str = Field("", description="Key for that endpoint.", repr=False)
    dimension: int = Field(
        0, ge=0, le=4096, description="Vector length of the endpoint; 0: ask the endpoint."
    )
    threads: int = Field(0, ge=0, le=64, description="Texts embedded at once; 0: one per core, at most four.")
    model_path: str = Field("", description="Folder with the files of a `fastembed` model.")
    cache_dir: str = Field("", description="Folder for models; empty: the user's cache directory.")
    wait_seconds: float = Field(
        5.0,
        ge=0,
        le=120,
        description="Seconds that a call waits for a model that is being loaded, before it continues "
        "without it.",
    )


class SearchSettings(Section):
    """Reranking of search results by a second model, and what searches run in. A project may not set what is
    downloaded."""

    native: bool = Field(
        True,
        description="Use the compiled library for the inner loops of a search, if the package has one for "
        "this platform. Without it numpy gives the same results, slower.",
    )
    reranker: Literal["off", "fastembed"] = Field(
        "off",
        description="`fastembed` reranks the best candidates of every search with a cross-encoder: slower, "
        "and needs the extra `fastembed`.",
    )
    reranker_model: str = Field(
        "Xenova/ms-marco-MiniLM-L-6-v2", description="Name of a cross-encoder that fastembed supports."
    )
    reranker_path: str = Field(
        "", description="Folder with the files of a cross-encoder with one logit; nothing is downloaded."
    )


def _server_address(url: SecretStr) -> SecretStr:
    given = SecretStr(url.get_secret_value().strip())
    if given.get_secret_value() and not given.get_secret_value().startswith(("postgresql://", "postgres://")):
        # The value is not repeated: it may contain a password.
        raise ConfigError(
            "`storage.postgres.url` (or VESTIGE_DATABASE_URL) is not the URL of a PostgreSQL server.",
            hint="Use the form postgresql://user@host:5432/database.",
            details={"setting": "storage.postgres.url"},
        )
    return given


def _schema_name(name: str) -> str:
    if not is_schema_name(name):
        raise ConfigError(
            "The setting `storage.postgres.schema` is not a valid schema name.",
            hint=SCHEMA_NAMES,
            details={"setting": "storage.postgres.schema"},
        )
    return name


class PostgresSettings(Section):
    """The server and database of the backend `postgres`."""

    url: Annotated[SecretStr, AfterValidator(_server_address)] = Field(
        SecretStr(""),
        description="URL of the database: postgresql://user@host:5432/database. A password in it is never "
        "shown; ~/.pgpass keeps it out of the settings.",
    )
    # pydantic already has a method with the setting's name.
    schema_name: Annotated[str, AfterValidator(_schema_name)] = Field(
        "vestige",
        alias="schema",
        description="Database schema of the store; one database can hold several. Lower-case letters, "
        "digits and _.",
    )
    max_connections: int = Field(
        10, ge=2, le=1_000, description="Maximum connections of one process for reading and writing."
    )
    statement_seconds: float = Field(
        60.0, gt=0, le=86_400, description="Seconds after which the server cancels a statement."
    )


class StorageSettings(Section):
    """Where and how memories are stored."""

    backend: Literal["sqlite", "postgres", "memory"] = Field(
        "sqlite",
        description="`sqlite` is one file in the data directory; `postgres` is a database server, for a "
        "team; `memory` is lost at exit. If unset, VESTIGE_DATABASE_URL selects `postgres`.",
    )
    busy_seconds: float = Field(
        5.0, gt=0, le=600, description="Seconds that a write waits for other writers before it fails."
    )
    synchronous: Literal["normal", "full"] = Field(
        "normal",
        description="What an acknowledged write in SQLite survives: `normal`: a crash of any process; "
        "`full`: also a power loss or a system crash (each write waits for the disk). "
        "PostgreSQL uses its own `synchronous_commit`.",
    )
    exclusive: bool = Field(
        False, description="A server refuses to start while another one uses the store, and blocks others."
    )
    postgres: PostgresSettings = PostgresSettings.model_construct()


class BackupSettings(Section):
    """Automatic backups of a server."""

    every_hours: float = Field(
        0.0, ge=0, le=8_760, description="Hours between automatic backups; 0 disables them."
    )
    keep: int = Field(7, ge=1, le=1_000, description="How many automatic and `--rotate` backups are kept.")


class SessionSettings(Section):
    """Transcripts of coding agents, which `vestige sessions` reads."""

    home: str = Field(
        "", description="Folder in which the clients' folders are looked for; empty: the home directory."
    )
    claude_dir: str = Field("", description="Claude Code's folder; empty: CLAUDE_CONFIG_DIR, or ~/.claude.")
    codex_dir: str = Field("", description="Codex's folder; empty: CODEX_HOME, or ~/.codex.")
    share_dir: str = Field(
        "",
        description="Folder of the data of OpenCode, Goose and Amp; empty: XDG_DATA_HOME, or ~/.local/share.",
    )
    background: Literal["off", "follow", "all"] = Field(
        "follow",
        description="What a running server indexes by itself, a little at a time: `follow`: what is new once "
        "`vestige sessions index` was run; `all`: also without that; `off`: nothing.",
    )


class MechanismSettings(Section):
    """Memory mechanisms. Each can be disabled to see its effect."""

    decay: bool = _switch("Faded memories rank lower.")
    spreading: bool = _switch("Links add memories connected to the best results.")
    importance: bool = _switch("New, rewarding and attended texts are encoded more strongly.")
    emotion: bool = _switch("Emotional texts are encoded more strongly.")
    capture: bool = _switch("An important memory strengthens those learned around the same time.")
    context: bool = _switch("Memories learned in a context like the current one rank higher.")
    competition: bool = _switch("Among rivals the currently valid one wins, and the others fade.")
    reconsolidation: bool = _switch("An edit right after recall counts as a correction and strengthens.")
    prediction: bool = _switch("Searches are recorded as patterns, which predict what is needed next.")
    autopilot: bool = _switch("Events trigger the mechanisms in the background.")


class SleepSettings(Section):
    """Automatic consolidation and dreams. Only servers run them."""

    enabled: bool = _switch("Whether automatic consolidation runs.")
    interval_hours: float = Field(
        6.0, gt=0, le=8_760, description="Hours between consolidations.", json_schema_extra=FROM_PROJECT
    )
    idle_minutes: float = Field(
        30.0,
        ge=0,
        le=10_080,
        description="Minutes without a call before consolidation starts.",
        json_schema_extra=FROM_PROJECT,
    )
    dream_memories: int = Field(
        50, ge=5, le=500, description="Memories replayed in a dream.", json_schema_extra=FROM_PROJECT
    )


class SignalSettings(Section):
    """What the metadata of a new memory says about its domain."""

    git: bool = Field(True, description="Whether `git_repo` in the metadata speaks for domains about code.")
    ide: bool = Field(
        True, description="Whether `editor` or `ide` in the metadata speaks for domains about editing files."
    )
    git_boost: float = Field(0.05, ge=0, description="What a repository adds to a score; 0.1 at most counts.")
    ide_boost: float = Field(0.05, ge=0, description="What an editor adds to a score; 0.1 at most counts.")


class DomainSettings(Section):
    """Domains: topics that are found in the memories."""

    enabled: bool = Field(
        True, description="Whether new memories are assigned to domains, and dreams look for new ones."
    )
    discovery_threshold: int = Field(
        150, ge=1, le=1_000_000, description="Memories that a discovery needs at least."
    )
    min_cluster_size: int = Field(10, ge=2, le=10_000, description="The least size of a domain.")
    min_samples: int = Field(5, ge=1, le=1_000, description="`min_samples` of HDBSCAN.")
    recluster_interval: int = Field(
        5, ge=0, le=1_000, description="Dreams between two discoveries; 0 turns them off."
    )
    assign_quantile: float = Field(
        0.05,
        ge=0,
        le=0.5,
        description="The share of its members that may lie below the threshold of a domain.",
    )
    assign_threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="A cosine as the threshold of every domain, instead of `assign_quantile`.",
    )
    cross_domain_decay: float = Field(
        0.5, ge=0, le=1, description="The factor of spreading activation for a link into another domain."
    )
    top_terms_k: int = Field(10, ge=1, le=50, description="Terms that are kept for a domain.")
    signals: SignalSettings = SignalSettings.model_construct()


class AgentSettings(Section):
    """The files of a persistent agent, and what hooks put into its context. Empty folders are the usual ones
    in the user's home."""

    memory_dir: str = Field(
        "", description="Folder of `MEMORY.md`, `sessions/` and `reflections.jsonl`; empty: ~/.claude/memory."
    )
    on_demand_dir: str = Field(
        "",
        description="Folder of `setup.md` and `credentials.md`, which Vestige never reads; empty: ~/.claude.",
    )
    knowledge_dir: str = Field(
        "", description="Folder of Markdown notes, the knowledge base; empty: ~/knowledge."
    )
    recall: bool = Field(True, description="Whether hooks recall memories for a prompt.")
    capture: bool = Field(
        True, description="Whether hooks propose memories from a session; they wait in the review inbox."
    )
    pack_chars: int = Field(
        8_000, ge=500, le=8_000, description="Most characters of the context at the start of a session."
    )
    tail_chars: int = Field(1_000, ge=200, le=1_000, description="Most characters recalled for a prompt.")
    hook_seconds: float = Field(
        6.0,
        gt=0,
        le=600,
        description="Seconds that `vestige-hook` waits for an answer before it says nothing. It reads only "
        "the variable, no settings file.",
    )
    quiet_minutes: float = Field(
        30.0, ge=0, le=10_080, description="Minutes that a new memory is not recalled for a prompt."
    )


class ServerSettings(Section):
    """The HTTP server that `vestige serve` starts."""

    bind: str = Field(
        "127.0.0.1:3927",
        description="Address of the server: host:port, [v6 address]:port; port 0 picks a free one. Other "
        "machines can connect only if it is not a loopback address.",
    )
    allowed_hosts: Annotated[Several, AfterValidator(_hosts)] = Field(
        (),
        description="Host names that clients use for the server, besides its bind address and localhost. "
        "Requests for any other Host are refused.",
    )
    allowed_origins: Several = Field(
        (),
        description="Origins of web pages on other sites that may use the server, such as https://a.example.",
    )
    trusted_proxies: Several = Field(
        (), description="Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted."
    )
    workers: int = Field(
        0,
        ge=0,
        le=64,
        description="Processes that serve requests, on one store behind one port. 0: one less than the "
        "cores, as far as the memory allows (512 MiB each), at most an eighth of `max_concurrent`. Always "
        "1 on Windows. Limits are those of the whole server.",
    )
    max_body_bytes: int = Field(
        4_194_304,
        ge=1_024,
        le=1_073_741_824,
        description="Maximum size of a request body. An answer may be twice as large, and at least 2 MiB.",
    )
    max_concurrent: int = Field(
        64,
        ge=1,
        le=10_000,
        description="Requests processed at once; others wait briefly and are then refused.",
    )
    max_connections: int = Field(
        2_000, ge=1, le=1_000_000, description="Connections open at once, streams included."
    )
    request_seconds: float = Field(
        60.0, gt=0, le=86_400, description="Seconds that a call may take, including its time in the queue."
    )
    long_request_seconds: float = Field(
        1_800.0,
        gt=0,
        le=604_800,
        description="Seconds that long work, such as backups, may take. It has a quarter of the "
        "`max_concurrent` threads, and one key gets at most half of those.",
    )
    requests_per_minute: int = Field(
        6_000,
        ge=0,
        le=1_000_000,
        description="Sustained requests a minute of one key, or of one address without a key; the same "
        "number may come at once after a pause. Each message of an MCP batch counts. 0: no "
        "limit.",
    )
    max_sessions: int = Field(
        100,
        ge=1,
        le=100_000,
        description="MCP sessions with a handshake open at once; one key has at most half of them.",
    )
    session_idle_minutes: float = Field(
        30.0, gt=0, le=10_080, description="Minutes after which an unused MCP session ends."
    )
    max_listeners: int = Field(1_000, ge=1, le=100_000, description="Live event streams open at once.")
    shutdown_seconds: float = Field(
        10.0, ge=0, le=3_600, description="Seconds that running requests get to finish when the server stops."
    )


class AuthSettings(Section):
    """Authentication of the server."""

    enabled: bool = Field(
        True,
        description="Whether a key is required. Without it, the server listens on loopback addresses only.",
    )
    token: SecretStr = Field(
        SecretStr(""),
        description="The token of the bridge. Deprecated for the server, where it gives read and write "
        "access to everything: use keys.",
        repr=False,
    )
    session_secret: SecretStr = Field(
        SecretStr(""),
        repr=False,
        description="Signs the cookies of logged-in users, 64 bytes or more in base64url; several servers "
        "share one. Empty: a file in the data directory.",
    )
    session_hours: float = Field(8.0, gt=0, le=720, description="Hours that a user stays logged in.")


class BridgeSettings(Section):
    """The OpenClaw bridge that `vestige bridge` starts. Its token is `auth.token`; its limits are the
    server's.
    """

    bind: str = Field(
        "127.0.0.1:8000",
        description="Address of the bridge: host:port, [v6 address]:port; port 0 picks a free one.",
    )
    allow_anonymous: bool = Field(
        False,
        description="Whether the bridge may start without a token and accept everyone on this machine; it "
        "then listens on a loopback address only.",
    )
    binary: str = Field(
        "", description="The `vestige-mcp` program that the bridge starts; empty: that of this installation."
    )
    request_timeout: float = Field(
        30.0, gt=0, le=3_600, description="Seconds after which a call is cancelled."
    )
    long_timeout: float = Field(
        180.0, gt=0, le=86_400, description="Seconds for dreams, consolidations and backups."
    )
    isolate_agents: bool = Field(
        False,
        description="Whether each agent (`X-Agent-Id`) has its own memories in /agent/<id>, besides "
        "/shared, which all can read.",
    )
