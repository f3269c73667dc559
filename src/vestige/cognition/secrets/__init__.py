"""Secret detection: keys, tokens, passwords, cards."""
