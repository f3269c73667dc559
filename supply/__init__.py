"""What Vestige is made of: the packages that are installed, their hashes, and the bill of materials."""
