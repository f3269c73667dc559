"""Export, import and sync."""
