"""How the weights that come with the package were made. Nothing here is part of the package."""
