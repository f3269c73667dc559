"""Source code as documents: sections of a file, the words of a section, and the ranking of sections."""
