"""How often the intervals are right and the tests wrong: `python -m benchmarks.coverage`."""
