"""The default model, all-MiniLM-L6-v2: download, conversion, installation."""
