"""Values that every layer shares: models, events, errors, ids."""
