"""Applies the changes of one commit as rows, inside one transaction."""
