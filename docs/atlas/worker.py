"""Evaluate the calls of one adapter in its environment: `worker.py ADAPTER OUTPUT < rows.json`.

It runs where our library is not, so it needs the standard library only. Standard input has the rows
of each definition; OUTPUT gets the version of the library and a value, or an error, for each call.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import runpy
import sys
import warnings
from pathlib import Path


def main() -> None:
    """Evaluate each call with the names of the adapter and the rows of its definition."""
    adapter, output = sys.argv[1:]
    warnings.simplefilter("ignore")
    os.environ.update(CUDA_VISIBLE_DEVICES="", NUMBA_DISABLE_JIT="1")
    rows, names = json.load(sys.stdin), runpy.run_path(adapter)
    values: dict[str, object] = {}
    for key, call in names["CALLS"].items():
        try:
            answer = eval(call, {**names, **rows[key]})  # the adapter's own text
            value = float("nan") if str(answer) == "None" else float(answer)
            values[key] = value if abs(value) < float("inf") else str(value)
        except NameError:  # a slip of the adapter
            raise
        except Exception as error:  # what the library says of such rows is the answer
            message = str(error).strip().partition("\n")[0][:100]
            values[key] = f"{type(error).__name__}: {message}" if message else type(error).__name__
    version = importlib.metadata.version(names["DISTRIBUTION"])
    Path(output).write_text(json.dumps({"version": version, "values": values}), encoding="utf-8")


if __name__ == "__main__":
    main()
