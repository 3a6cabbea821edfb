"""Runs the notebooks of examples/ and writes their outputs: `python -m docs.notebooks`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

LIMIT_S = 300  # of the start of a kernel, and of a cell, on a machine that may be busy
ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
# The kernel and its version are those of any reader.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a new kernel, in an empty folder.

    CellExecutionError, with its traceback, if a cell raises.
    """
    notebook = nbformat.read(path, 4)
    paths = [str(ROOT), str(ROOT / "consumers"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with tempfile.TemporaryDirectory() as folder:
        quiet = ["--log-level=ERROR"]  # it warns that it talks on a port of this machine
        client = NotebookClient(
            notebook,
            startup_timeout=LIMIT_S,
            timeout=LIMIT_S,
            record_timing=False,
            coalesce_streams=True,
            extra_arguments=quiet,
        )
        client.execute(cwd=folder, env=environment)
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


def main() -> None:
    """Rewrites every notebook with its outputs."""
    for path in NOTEBOOKS:
        text = nbformat.writes(executed(path))
        path.write_text(text + "\n", encoding="utf-8")
        sys.stderr.write(f"examples/{path.name}: {len(text) / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
