#!/usr/bin/env python3
"""Says by its exit code whether the server on this port of the container answers: vestige-healthy PORT."""

import http.client
import sys


def healthy(port: int) -> bool:
    """Whether /health answers 200. Asked directly, whatever proxy the environment names."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(0 if healthy(int(sys.argv[1])) else 1)
