"""Links between memories: kinds, spreading activation, paths, layout."""
