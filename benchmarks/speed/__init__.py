"""How fast a search is, and what memories cost, from a thousand to a million, beside what it cannot beat."""
