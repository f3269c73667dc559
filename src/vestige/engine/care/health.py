"""Health of the store: counts, states, embedding coverage, warnings and advice."""

from dataclasses import replace
from datetime import datetime

from vestige.cognition.fsrs.strength import states_of
from vestige.cognition.fsrs.trend import SNAPSHOTS
from vestige.core.documents import PENDING, WAITING
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import MemoryState, StoreStats
from vestige.core.pair_model import PairModelState
from vestige.embed.background import EmbedderState, EmbedderStatus
from vestige.embed.protocol import Signature
from vestige.engine.care.backup import backup_warning
from vestige.engine.context import Call
from vestige.engine.sleep.runs import SNAPSHOT, run_records, run_scope
from vestige.settings.settings import Settings

LOW_RETENTION = 0.5
MANY_DUE = 10
AT_WORK = (EmbedderState.LOADING, EmbedderState.INSTALLING)
ASK = "Ask the operator of the server; its log says more."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCondition:
    """The state of the store and the model, with warnings and advice, without the strength of memories."""

    status: str
    stats: StoreStats
    embedder: EmbedderStatus
    warnings: tuple[str, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(StoreCondition):
    """The same with the strength of memories."""

    average_retention: float
    states: dict[MemoryState, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSnapshot:
    """Retention of everything accessible at a consolidation; an empty store has no `recall`."""

    at: datetime
    retention: float
    recall: float | None
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """A problem and what helps; without a warning it is only advice."""

    warning: str | None = None
    advice: str | None = None


def health(call: Call) -> Health:
    """The health of everything that this call has access to."""
    engine = call.engine
    levels = engine.store.levels(access=call.access, now=engine.now())
    average = float(levels.retentions.mean()) if levels.retentions.size else 0.0
    found = condition(call, fading=average < LOW_RETENTION)
    return Health(
        status=found.status,
        stats=found.stats,
        average_retention=average,
        states=states_of(levels.accessibilities),
        embedder=found.embedder,
        warnings=found.warnings,
        advice=found.advice,
    )


def condition(call: Call, *, fading: bool = False) -> StoreCondition:
    """The condition of everything that this call has access to; `fading`: most of it is."""
    engine = call.engine
    # The report matches what a search would get, without the cost of loading a model that is known to load.
    embedder = _as_seen(call, engine.embedders.outlook(engine.settings.embeddings.wait_seconds))
    engine.reranker()
    stats = engine.store.stats(access=call.access, now=engine.now())
    foreign = _model_finding(engine.store.signature(), embedder.signature)
    broken = _write_finding(engine.store.write_failure)
    findings = [
        broken or HealthFinding(),
        foreign or _embedding_finding(stats, embedder),
        _relation_finding(embedder),
        _reranker_finding(call, engine.reranker.status()),
        _fading_finding(stats) if fading else HealthFinding(),
        _due_finding(stats),
        HealthFinding(advice=backup_warning(call, stats.memories)),
    ]
    warnings = tuple(found.warning for found in findings if found.warning)
    # An empty store is healthy, unless it cannot be written or its model differs from the configured one.
    degraded = bool(warnings) if stats.memories else bool(foreign or broken)
    return StoreCondition(
        status="degraded" if degraded else "healthy" if stats.memories else "empty",
        stats=stats,
        embedder=embedder,
        warnings=warnings,
        advice=tuple(found.advice for found in findings if found.advice),
    )


def snapshots(call: Call) -> list[RetentionSnapshot]:
    """The last snapshots of exactly what this call has access to, newest first."""
    if call.access.domains is not None:  # snapshots are not taken by domain
        return []
    scope, names = run_scope(call), ("retention", "recall", "memories")
    rows = [row for row in run_records(call, SNAPSHOT) if row.scope == scope][:SNAPSHOTS]
    return [RetentionSnapshot(at=row.at, **{name: row.body[name] for name in names}) for row in rows]


def waiting_texts(call: Call) -> int:
    """How many texts wait in the review inbox."""
    return call.engine.store.count_documents(PENDING, access=call.access, terms=[WAITING])


def model_status(call: Call) -> EmbedderStatus:
    """The state of the model, as far as the caller may see it: an error can name files and addresses."""
    return _as_seen(call, call.engine.embedders.status())


def _as_seen(call: Call, status: EmbedderStatus) -> EmbedderStatus:
    if call.sees_installation or status.error is None:
        return status
    return replace(status, detail="The embedding model cannot be used.", error={"hint": ASK})


def why_no_model(embedder: EmbedderStatus) -> str:
    """Why there is no embedding model, as a sentence without its full stop."""
    if embedder.state in AT_WORK or not embedder.detail:
        return f"The embedding model is {embedder.state}"
    return embedder.detail.rstrip(".")


def _write_finding(failure: str | None) -> HealthFinding | None:
    if failure is None:
        return None
    return HealthFinding(
        warning=f"No write is acknowledged: {failure}.",
        advice="Stop all processes of this store. Then `vestige doctor` says which writes are missing.",
    )


def _model_finding(held: Signature | None, configured: Signature | None) -> HealthFinding | None:
    if held is None or configured is None or held == configured:
        return None
    return HealthFinding(
        warning=f"The store holds vectors of {held.profile}, the settings name {configured.profile}: search "
        "works on words only, and new memories get no vectors.",
        advice=f"Run `vestige rebuild --vectors` to embed every memory with {configured.name}, or set the "
        f"embeddings back to {held.name}.",
    )


def _embedding_finding(stats: StoreStats, embedder: EmbedderStatus) -> HealthFinding:
    """Whether memories are found by meaning. Switching embeddings off is a choice, not a problem."""
    missing = stats.memories - stats.embedded
    if embedder.state is EmbedderState.READY and missing:
        return HealthFinding(
            warning=f"{missing} of {stats.memories} memories have no vectors.",
            advice="Run `vestige rebuild --vectors`.",
        )
    if embedder.state in (EmbedderState.READY, EmbedderState.OFF):
        return HealthFinding()
    warning = f"Search works on words only: {why_no_model(embedder)}."
    if embedder.state in AT_WORK:
        return HealthFinding(warning=warning)
    hint = (embedder.error or {}).get("hint") or "Run `vestige model install`."
    return HealthFinding(warning=warning, advice=f"To find memories by meaning too: {hint}")


def _relation_finding(embedder: EmbedderStatus) -> HealthFinding:
    """Advice for a local model without the current pair model. Other embedders never have one."""
    if embedder.pair_model not in (PairModelState.ABSENT, PairModelState.OUTDATED):
        return HealthFinding()
    return HealthFinding(
        advice=f"The pair model is {embedder.pair_model}: corrections are recognised by rules alone. Run "
        "`vestige model install`."
    )


def _reranker_finding(call: Call, reranker: EmbedderStatus) -> HealthFinding:
    if reranker.state is not EmbedderState.FAILED:
        return HealthFinding()
    if not call.sees_installation:
        return HealthFinding(warning="Results are not reranked: the reranker cannot be used.")
    return HealthFinding(
        warning=f"Results are not reranked: {reranker.detail}", advice=(reranker.error or {}).get("hint")
    )


def _fading_finding(stats: StoreStats) -> HealthFinding:
    advice = "Most memories are fading; review the due ones, or let them fade."
    return HealthFinding(advice=advice if stats.memories else None)


def file_bytes(settings: Settings) -> int | None:
    """The size of the database file with its write-ahead log; None where a server keeps the data."""
    if settings.place != str(settings.database):
        return None
    files = (settings.database, settings.database.with_name(f"{settings.database.name}-wal"))
    return sum(file.stat().st_size for file in files if file.is_file())


def _due_finding(stats: StoreStats) -> HealthFinding:
    if stats.due <= MANY_DUE:
        return HealthFinding()
    return HealthFinding(
        advice=f"{stats.due:,} memories are due for review (`vestige memory list --order due`)."
    )
