"""The operations of the tool `intention`."""
