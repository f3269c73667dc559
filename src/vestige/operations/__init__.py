"""Every operation, written once. Transports are views of the registry."""
