"""Requests to a server that is a process of its own; they wait for one that stands still for a while."""

from functools import partial

import httpx

from testbed.patience import PATIENCE_SECONDS

get = partial(httpx.get, timeout=PATIENCE_SECONDS)
post = partial(httpx.post, timeout=PATIENCE_SECONDS)
request = partial(httpx.request, timeout=PATIENCE_SECONDS)
