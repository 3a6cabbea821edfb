"""The updates of one version of the library, in a process of its own: see `benchmarks.against`.

`python -P against_child.py JOBS CLOCK` reads the pickled jobs, then a request a line: the numbers
of a job and of updates. The answer is a line of JSON: nanoseconds, or an error. It imports nothing
of this package, since any version of the library is on its path.
"""

from __future__ import annotations

import gc
import importlib
import json
import pickle
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def built(value: object) -> object:
    """A metric from its class and settings, each as plain values; other values unchanged."""
    match value:
        case ("metric", str(name), dict(settings)):
            metric = getattr(importlib.import_module("streammetrics"), name)
            return metric(**{setting: built(of) for setting, of in settings.items()})
        case dict():
            return {name: built(of) for name, of in value.items()}
        case tuple():
            return tuple(map(built, value))
    return value


def unpickled(packed: bytes) -> Mapping[str, Any]:
    """A job whose arrays are as a program makes them: with numpy's own dtype objects, by which the
    library knows common columns, and which a pickle does not keep."""
    job: dict[str, Any] = pickle.loads(packed)
    job["batches"] = [
        {k: c.view(np.dtype(c.dtype.str)) if type(c) is np.ndarray else c for k, c in batch.items()}
        for batch in job["batches"]
    ]
    return job


def spent(job: Mapping[str, Any], updates: int, clock: Callable[[], int]) -> int:
    """Nanoseconds of so many updates of an empty state; what is buffered is counted too."""
    state: Any = built(job["metric"])
    batches = job["batches"]
    rounds, rest = divmod(updates, len(batches))
    given = batches * rounds + batches[:rest]
    gc.collect()
    gc.disable()
    start = clock()
    for columns in given:
        state.update(**columns)
    state._flush()
    end = clock()
    gc.enable()
    return end - start


def main() -> None:
    """Answer requests until there are no more."""
    path, clock_name = sys.argv[1:]
    with open(path, "rb") as file:
        packed: list[bytes] = pickle.load(file)
    module, _, name = clock_name.rpartition(".")
    clock = getattr(importlib.import_module(module), name)
    library = importlib.import_module("streammetrics")
    print(json.dumps({"library": library.__file__}), flush=True)
    known: dict[int, Mapping[str, Any]] = {}
    for line in sys.stdin:
        number, updates = map(int, line.split())
        try:
            if number not in known:
                known[number] = unpickled(packed[number])
            answer: dict[str, object] = {"ns": spent(known[number], updates, clock)}
        except Exception as error:  # of another version: its message is the answer
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
