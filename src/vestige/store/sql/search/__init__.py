"""The search index of a relational store: word rows, threads, vectors, token bits."""
