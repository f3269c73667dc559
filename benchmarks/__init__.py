"""Speed benchmarks. Each is a module with a command line: `python -m benchmarks.startup`."""
