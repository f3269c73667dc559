"""Code search on pinned repositories: questions with the files that answer them."""
