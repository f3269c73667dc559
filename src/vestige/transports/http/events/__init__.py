"""Live events over WebSocket and server-sent events."""
