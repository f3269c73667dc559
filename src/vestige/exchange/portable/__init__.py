"""The portable file: everything canonical as lines of JSON, the same bytes for the same memories."""
