"""The same corpus and questions through other memories, where they are installed."""
