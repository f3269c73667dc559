"""Where memories are kept: one contract (protocol.py), several stores."""
