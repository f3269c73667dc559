"""The documentation site: the Markdown pages of the repository, built by MkDocs."""
