"""File formats: our portable file, and the files of other systems."""
