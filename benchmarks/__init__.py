"""Benchmarks: each `bench_*` runs alone with `python -m benchmarks.bench_x` and prints a table."""
