"""Coverage of the intervals and error rates of the tests: `python -m benchmarks.coverage`."""
