"""Query analysis: terms, literals, names, kind of question."""
