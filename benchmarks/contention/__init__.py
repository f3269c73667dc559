"""Many processes on one store: nothing lost, everything seen, no word of a lock."""
