"""A table of a simulation: every figure is a mean over replicates of a seeded experiment."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

SEED = 20191124  # the first day of obd_men; an arbitrary but fixed number
Replicate = Callable[[np.random.Generator], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Row:
    """One experiment, repeated.

    once: one replicate, a number for each column of the table: 1 for yes and 0 for no, so that the
    mean is a share; nan is left out. ms: its approximate time in milliseconds.
    """

    name: str
    once: Replicate
    replicates: int
    ms: float

    def run(
        self, replicates: int, report: Callable[[float], object] = lambda ms: None
    ) -> list[float]:
        """The mean of each column; report: called with `ms` after each replicate.

        The random numbers of a replicate depend only on the row's name and the replicate's number.
        """
        seed = zlib.crc32(self.name.encode())
        results = []
        for i in range(replicates):
            results.append(tuple(self.once(np.random.default_rng([SEED, seed, i]))))
            report(self.ms)
        return [_mean(column) for column in zip(*results, strict=True)]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of equal columns; `key` names it on the command line and on the page."""

    key: str
    first: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def head(self) -> tuple[str, ...]:
        """All columns, with the row's name before them and the replicates after them."""
        return self.first, *self.columns, "replicates"

    def markdown(self, figures: Iterable[tuple[Row, int, Sequence[float]]]) -> str:
        """The table of these rows: each with its replicates and its means."""
        lines = [_line(self.head), _line(["---"] * len(self.head))]
        lines += [_line([row.name, *map(shown, means), f"{n:,}"]) for row, n, means in figures]
        return "\n".join(lines)


def shown(mean: float) -> str:
    """Three decimals, without the zero before the point: .953; two above 1: 2.51.

    >>> shown(0.95349), shown(1.0), shown(2.514), shown(math.nan)
    ('.953', '1.000', '2.51', '')
    """
    if math.isnan(mean):
        return ""
    return f"{mean:.2f}" if mean > 1 else f"{mean:.3f}".removeprefix("0")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _mean(values: Sequence[float]) -> float:
    numbers = [value for value in values if not math.isnan(value)]
    return math.fsum(numbers) / len(numbers) if numbers else math.nan
