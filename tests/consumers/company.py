"""The log of the simulated company as tables of polars: who was exposed to what, and what they did.

It is worked out from the lines alone: which of them are good and in time, the first exposure of
each user, and a join of that table with the outcomes. Nothing of the library is used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import pytest
from streammetrics_consumers.simulate.exposures_simulation import ExposuresSimulation

pl = pytest.importorskip("polars", reason="needs polars: pip install '.[dev]' in a clone")

LATENESS_MS: Final = 600_000
KINDS: Final = ("exposure", "click", "purchase", "crash")
BLOCK: Final = 50_000  # lines that become a table at once
SCHEMA: Final = {
    "kind": pl.String, "ts": pl.Int64, "user": pl.String, "experiment": pl.String,
    "arm": pl.String, "amount": pl.Float64,
}  # fmt: skip


def lines_of(simulation: ExposuresSimulation) -> list[bytes]:
    """All events as they arrive."""
    return [line for batch in simulation.batches() for line in batch]


def logs_of(simulation: ExposuresSimulation) -> list[list[bytes]]:
    """The events of each kind, as they arrive."""
    logs: list[list[bytes]] = [[] for _ in KINDS]
    for batch in simulation.batches():
        for line in batch:
            logs[kind_of(line)].append(line)
    return logs


def kind_of(line: bytes) -> int:
    """The place of the kind of an event, also of a broken one."""
    return next((i for i, kind in enumerate(KINDS) if b'"%b"' % kind.encode() in line), 0)


def good(line: bytes) -> Mapping[str, Any] | None:
    """The fields of an event that nothing is wrong with."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    if not isinstance(event, dict) or not event["ts"].endswith("Z"):
        return None
    time = datetime.fromisoformat(event["ts"])
    return {**event, "ts": round(time.timestamp() * 1000)}


def table_of(log: Sequence[bytes]) -> pl.DataFrame:
    """The good events of a log that are not late in it, with their `line` in the log."""

    def tables() -> Iterator[pl.DataFrame]:
        for start in range(0, max(len(log), 1), BLOCK):
            events = map(good, log[start : start + BLOCK])
            rows = [
                (number, *map(event.get, SCHEMA))
                for number, event in enumerate(events, start)
                if event is not None
            ]
            yield pl.DataFrame(rows, schema={"line": pl.Int64, **SCHEMA}, orient="row")

    table = pl.concat(tables())
    newest = pl.col("ts").cum_max().shift(1)
    return table.filter(newest.is_null() | (pl.col("ts") >= newest - LATENESS_MS))


def events_of(tables: Sequence[pl.DataFrame], lines: Sequence[int] | None = None) -> pl.DataFrame:
    """The events of these logs, each once; lines: among the first lines of each."""
    ends = lines or [sys.maxsize] * len(tables)
    pairs = zip(tables, ends, strict=True)
    return pl.concat(t.filter(pl.col("line") < end).drop("line") for t, end in pairs).unique()


def users_of(events: pl.DataFrame, before_ms: int, window_ms: int) -> pl.DataFrame:
    """A row for each experiment and user exposed to it before a time: the arm, the time, and what
    the user did in the window after it: `revenue`, `purchases`, `clicks`, `crashes`."""
    closed = events.filter(pl.col("ts") < before_ms)
    exposed = (
        closed.filter(pl.col("kind") == "exposure")
        .sort("ts", "arm")
        .group_by("experiment", "user", maintain_order=True)
        .agg(pl.first("arm"), pl.first("ts").alias("exposed"))
    )
    outcomes = closed.filter(pl.col("kind") != "exposure").select("user", "ts", "kind", "amount")
    since = pl.col("ts") - pl.col("exposed")
    sums = (
        exposed.join(outcomes, on="user")
        .filter((since >= 0) & (since < window_ms))
        .group_by("experiment", "user")
        .agg(
            pl.col("amount").sum().alias("revenue"),
            *((pl.col("kind") == kind).sum().alias(name) for kind, name in (
                ("purchase", "purchases"), ("click", "clicks"), ("crash", "crashes"))),
        )
    )  # fmt: skip
    return exposed.join(sums, on=["experiment", "user"], how="left").fill_null(0)


def by_arm(users: pl.DataFrame) -> dict[tuple[str, str], Mapping[str, float]]:
    """Of each experiment and arm its users, and the means over them."""
    table = users.group_by("experiment", "arm").agg(
        pl.len().alias("units"),
        pl.col("revenue").mean(),
        (pl.col("purchases") > 0).mean().alias("conversion"),
        pl.col("clicks").mean(),
        (pl.col("crashes") > 0).mean().alias("crashed"),
    )
    return {(row["experiment"], row["arm"]): row for row in table.to_dicts()}
