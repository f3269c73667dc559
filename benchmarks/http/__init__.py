"""The server under load: what a request costs over HTTP, beside the same call in a process."""
