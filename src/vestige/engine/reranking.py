"""The optional second judge: a cross-encoder reads the best candidates beside the query."""

import logging
from datetime import datetime

from vestige.cognition.ranking import Ranking
from vestige.cognition.reranking import RERANKED, reranked
from vestige.cognition.text import searchable
from vestige.engine.context import Call
from vestige.engine.history import as_known
from vestige.errors import EmbedderError
from vestige.pool import Pool

logger = logging.getLogger(__name__)


def rerank(call: Call, text: str, pool: Pool, ranking: Ranking, known_at: datetime | None) -> Ranking:
    """The ranking after the judge, where there is one; as it was where there is none or it fails."""
    reranker = call.engine.reranker()
    if reranker is None:
        return ranking
    best = ranking.best(RERANKED)
    records = call.engine.store.get_many([pool.ids[at] for at in best], access=call.access)
    records = as_known(call, records, known_at)
    texts = {record.memory.id: searchable(record.memory) for record in records}
    order = [at for at in best if pool.ids[at] in texts]
    pieces = [texts[pool.ids[at]][pool.starts[at] : pool.ends[at] or None] for at in order]
    try:
        judged = reranker.score(text, pieces)
    except EmbedderError as exc:
        logger.warning("The answer goes without the reranker: %s", exc.message)
        return ranking
    return ranking.scored("reranking", reranked(ranking.scores, order, judged))
