"""The write path. `ingest.py` shows it: screen, draft, embed, find rivals, decide, apply, commit, emit."""
