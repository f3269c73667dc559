"""Importers of other systems' files: one module recognises files, one for each format reads them."""
