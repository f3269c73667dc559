"""What Vestige does: load, decide, save, emit."""
