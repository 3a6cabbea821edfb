"""Benchmarks: `python -m benchmarks` asks all questions; each `bench_*` also runs alone."""

import os

# One core for every peer with its own threads; they read these variables on import.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(_name, "1")
