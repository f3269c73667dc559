"""What Vestige does: load, decide, save, emit. Operations call it, and it calls the store and cognition."""
