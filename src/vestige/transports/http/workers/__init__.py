"""Several worker processes behind one port: `vestige serve --workers N`."""
