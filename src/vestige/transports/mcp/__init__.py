"""The Model Context Protocol: a pure core (message in, messages out) and its stdio driver.

Clients start this server for every session and wait for it, so what runs before the first answers
(everything here but describe and service) imports json, threading and little else: no dataclasses,
typing or logging, and nothing of Vestige itself. ADR 0004 has the reasons and numbers.
"""
