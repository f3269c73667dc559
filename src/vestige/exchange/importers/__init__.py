"""Memories of other systems: one module recognises files, one for each format reads them. Nothing is
written."""
