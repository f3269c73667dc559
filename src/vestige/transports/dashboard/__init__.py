"""The dashboard: pages in a browser, which call the same REST operations as every other client."""
