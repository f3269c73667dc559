"""Ranking: BM25, late interaction, relevance, stages, confidence."""
