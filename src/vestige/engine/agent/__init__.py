"""The layers of a persistent agent: its files, its context at the start of a session, and recall by hooks."""
