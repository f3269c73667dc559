"""Operations on memories: store, search, read, change, link, forget."""
