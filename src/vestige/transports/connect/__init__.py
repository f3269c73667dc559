"""Adding Vestige to an agent: what each client wants to read, and careful edits of its settings file.
`clients` says where the files are and what an entry looks like, `plans` what would change, `files` writes it.
Nothing here reads the environment: home, platform and project are arguments (`Machine`)."""
