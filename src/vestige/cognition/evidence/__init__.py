"""What several memories say together: trust, duplicates, merging, briefings."""
