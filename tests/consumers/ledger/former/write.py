"""Stores and state files of each schema version, written by the last code of that version.

    git archive COMMIT | tar x -C TREE
    PYTHONPATH=TREE:TREE/consumers python tests/consumers/ledger/former/write.py VERSION

    version  1         2         3         4         5         6         7         8
    COMMIT   10c29f34  dc87102c  376b2777  aa248d9c  27d43716  bc6d6d61  f6e2d18a  60e29b16

It imports nothing of the present source, since it runs with that of the time: it counts the first
events of a log, and exports the state of all rows. The tests beside it count the rest.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
FIRST = 40  # lines that the former version counts
KINDS = {"plain": 1, "experiment": 4, "rates": 4, "join": 5, "means": 7}  # since which version
CONFIG = """\
[source]
kind = "file"
path = "clicks.jsonl"
[event]
time = "ts"
variant = "variant"
variants = ["old", "new"]
user = "user"
{label}score = "score"
[windows]
size_s = 3600
max_ahead_s = 60
lateness_s = 600
[slices]
by = [[], ["variant"], ["variant", "phase"]]
[metrics]
auc = {{ type = "HistogramAUC"{labels} }}
ctr = {{ type = "Ratio"{numerators} }}
by_user = {{ type = "GroupedAUC"{labels} }}
[store]
url = "store.db"
[server]
port = 0
"""
EXPERIMENT = """\
[experiment]
control = "old"
decision = ["ctr"]
guardrails = [{ metric = "auc", margin = 0.1 }]
mdes = { ctr = 0.05, auc = 0.05 }
"""
RATES = """\
[experiment]
control = "old"
decision = ["ctr"]
mdes = { ctr = 0.05 }
"""
MEANS = """\
error = { type = "Regression" }
fit = { type = "Calibration" }
[store]
"""
OF_MEANS = """\
[experiment]
control = "old"
decision = ["error"]
mdes = { error = 0.05 }
"""
JOIN = """\
[join]
id = "request"
impression = { field = "kind", equals = "impression" }
label_window_s = 600
[join.outcomes]
click = { field = "kind", equals = "click" }
"""


def config(kind: str) -> str:
    """The config of a store."""
    if kind == "join":
        inputs = ', inputs = {{ {} = "click" }}'
        plain = CONFIG.format(
            label="", labels=inputs.format("labels"), numerators=inputs.format("numerators")
        )
        return plain + EXPERIMENT + JOIN
    plain = CONFIG.format(label='label = "label"\n', labels="", numerators="")
    if kind == "means":
        return plain.replace("[store]\n", MEANS) + OF_MEANS
    return plain + {"plain": "", "experiment": EXPERIMENT, "rates": RATES}[kind]


def lines(kind: str) -> list[str]:
    """The log: an hour and a half, with an event that is not JSON and one that is late."""
    log_lines = [json.dumps(event) + "\n" for event in _events(kind)]
    log_lines[10:10] = ["{\n"]
    log_lines[30], log_lines[5] = log_lines[5], log_lines[30]
    return log_lines


def _events(kind: str) -> Iterator[dict[str, object]]:
    for i in range(72):
        event = {
            "ts": _time(i * 75_000),
            "variant": "new" if i % 2 else "old",
            "user": f"u{i * 5 % 24}",
            "phase": "fit" if i % 3 else "eval",
            "score": (i * 7 % 10) / 10,
        }
        if kind != "join":
            yield {**event, "label": int(i * 5 % 7 < 3)}
            continue
        yield {**event, "kind": "impression", "request": f"r{i}"}
        if i * 5 % 7 < 3:
            yield {"ts": _time(i * 75_000 + 1000), "kind": "click", "request": f"r{i}"}


def _time(ms: int) -> str:
    minute, rest = divmod(ms, 60_000)
    return f"1970-01-01T{minute // 60:02d}:{minute % 60:02d}:{rest / 1000:06.3f}Z"


def write(version: str, kind: str) -> None:
    """Count the first lines, and keep the store and the exported state."""
    try:
        from streammetrics_consumers.cli.main import main
    except ImportError:
        from consumers.cli.main import main  # type: ignore[import-not-found,no-redef]

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("clicks.jsonl").write_text("".join(lines(kind)[:FIRST]), encoding="utf-8")
        Path("clicks.toml").write_text(config(kind), encoding="utf-8")
        assert main(["run", "clicks.toml", "--until-end", "--no-serve"]) == 0
        assert main(["export", "store.db", "-o", "total.state"]) == 0
        with sqlite3.connect("store.db") as store:
            store.execute("PRAGMA journal_mode = DELETE")
            store.execute("PRAGMA page_size = 512")
            store.execute("VACUUM")
            store.execute("PRAGMA journal_mode = WAL")
        store.close()
        for name in ("store.db", "total.state"):
            suffix = name.rpartition(".")[2].replace("db", "sqlite")
            shutil.copy(name, HERE / f"version_{version}_{kind}.{suffix}")
        os.chdir(HERE)


if __name__ == "__main__":
    for one, since in KINDS.items():
        if int(sys.argv[1]) >= since:
            write(sys.argv[1], one)
