"""The updates of one version of the library, in a process of its own: see `benchmarks.against`.

`python -P against_child.py CLOCK` reads a request a line: a file of batches, the form of their
columns, and the number of updates. The answer is a line of JSON: nanoseconds, or an
error. It imports nothing of this package, since any version of the library is on its path.
"""

from __future__ import annotations

import base64
import gc
import importlib
import json
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A value from JSON, as `tests/update_jobs.py` writes it."""
    match value:
        case {"metric": name, "settings": settings}:
            return getattr(importlib.import_module("streammetrics"), name)(**plain(settings))
        case {"array": content, "dtype": kind, "shape": shape}:
            return np.frombuffer(base64.b64decode(content), np.dtype(kind)).reshape(shape)
        case {"fraction": text}:
            return Fraction(text)
        case {"mapping": pairs}:
            return {plain(key): plain(entry) for key, entry in pairs}
        case {"tuple": values}:
            return tuple(map(plain, values))
        case list():
            return list(map(plain, value))
    return value


@lru_cache(maxsize=1)
def read(path: str, form: str) -> tuple[Any, list[dict[str, Any]]]:
    """An empty state and the batches for it; with "lists" without arrays."""
    file = json.loads(Path(path).read_text(encoding="utf-8"))
    batches = [plain(batch) for batch in file["batches"]]
    if form == "lists":
        batches = [
            {k: c.tolist() if isinstance(c, np.ndarray) else c for k, c in batch.items()}
            for batch in batches
        ]
    return plain(file["metric"]), batches


def spent(path: str, form: str, updates: int, clock: Callable[[], int]) -> int:
    """Nanoseconds of so many updates of an empty state, and of merging it, by which pending rows
    are counted."""
    empty, batches = read(path, form)
    state, total = empty.empty(), empty.empty()
    inputs = (batches * (1 + updates // len(batches)))[:updates]
    start = clock()
    for columns in inputs:
        state.update(**columns)
    total.merge(state)
    return clock() - start


def main() -> None:
    """Answer requests until there are no more."""
    module, _, name = sys.argv[1].rpartition(".")
    clock = getattr(importlib.import_module(module), name)
    library = importlib.import_module("streammetrics")
    gc.disable()
    print(json.dumps({"library": library.__file__}), flush=True)
    for line in sys.stdin:
        path, form, updates = json.loads(line)
        gc.collect(1)  # here and not while the clock runs
        try:
            answer: dict[str, object] = {"ns": spent(path, form, updates, clock)}
        except Exception as error:  # of another version: its message is the answer
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
