"""What tests and benchmarks need around Vestige and both import; neither imports the other for it."""
