"""Background work on the whole store: consolidation, dreams, the personal forgetting curve."""
