"""The default store: one SQLite file, standard library only."""
