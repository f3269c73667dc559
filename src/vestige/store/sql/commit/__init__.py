"""One commit: changes become rows inside one transaction."""
