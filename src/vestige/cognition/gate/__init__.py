"""The gate: what a new text is to what is known already."""
