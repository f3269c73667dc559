"""What belongs to what in a project."""
