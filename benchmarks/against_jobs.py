"""What `benchmarks.against` measures: the first case of each metric class, in batches of each size.

The classes are those of `tests/cases.py`, which has all of them. Where the inputs of a metric are
declared, its columns are drawn by their kinds; otherwise its rows are those of the case, repeated.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.workloads import generator, labels, unit_floats, users
from streammetrics import Accumulator, InputError
from streammetrics.core import inputs
from streammetrics.core.settings import Content
from streammetrics.testing import Case

SIZES: Final = (1, 10, 100, 1_000, 100_000)
BATCHES: Final = 64  # different ones of each size, if they are small
MOST_ROWS: Final = 100_000  # in all batches of a size
LISTS_UP_TO: Final = 1_000  # rows in batches of Python's lists
_DRAWN: Final = 64  # different rows of a case


@dataclass(frozen=True, slots=True)
class Job:
    """Updates of a metric: its class, the form of its columns, the rows of a batch, and the metric
    and its batches as a pickle of plain values."""

    metric: str
    form: str
    rows: int
    packed: bytes


def jobs(cases: Sequence[Case[Any]], sizes: Sequence[int] = SIZES) -> Iterator[Job]:
    """The jobs of these cases, one for each size and form of the columns."""
    for case in cases:
        metric, columns = plain(case.empty), None
        for rows in sizes:
            n = max(rows, min(MOST_ROWS, BATCHES * rows))
            columns = columns_of(case, n)
            batches = [_cut(columns, start, rows) for start in range(0, n, rows)]
            forms = {"arrays": batches}
            if rows <= LISTS_UP_TO:
                forms["lists"] = [_as_lists(batch) for batch in batches]
            for form, given_batches in forms.items():
                packed = pickle.dumps({"metric": metric, "batches": given_batches})
                yield Job(type(case.empty).__name__, form, rows, packed)


def plain(value: object) -> object:
    """A metric as its class and those settings that are not the default ones, all of it plain."""
    if isinstance(value, Accumulator):
        fields = dataclasses.fields(value)  # type: ignore[arg-type]
        defaults = {field.name: field.default for field in fields}
        chosen = {k: v for k, v in value.settings().items() if defaults[k] != v}
        return ("metric", type(value).__name__, {k: plain(v) for k, v in chosen.items()})
    if isinstance(value, Content):
        return value.values
    if isinstance(value, Mapping):
        return {name: plain(of) for name, of in value.items()}
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


def columns_of(case: Case[Any], n: int) -> Mapping[str, object]:
    """Columns of n rows, arrays where they can be."""
    try:
        drawn = {
            name: _drawn(case.empty, kind, n, stream)
            for stream, (name, kind) in enumerate(case.empty._inputs.columns.items())
        }
        case.empty.empty().update(**drawn)
    except (InputError, TypeError, KeyError):  # the inputs are not declared, or bound together
        few = case.small or _rows(case)
        rows = [few[i % len(few)] for i in range(n)]
        return {name: _as_array(column) for name, column in case.columns(rows).items()}
    return drawn


def _drawn(metric: Accumulator, kind: inputs.Input, n: int, stream: int) -> NDArray[Any]:
    """A column of an input; KeyError if its values depend on those of others."""
    match kind:
        case inputs.Binary():
            return labels(n, 0.3, stream)
        case inputs.Probability() | inputs.Real() | inputs.Amount():
            return unit_floats(n, stream)
        case inputs.Integers() | inputs.UnitIds():
            return users(n, 10_000, stream=stream)
        case inputs.Classes():
            return generator(stream).integers(0, getattr(metric, kind.n), n)
        case inputs.Table():
            table = generator(stream).random((n, getattr(metric, kind.n)))
            return table < 0.5 if kind.labels else table
        case inputs.Ids() if getattr(metric, kind.ids) == "integer":
            return users(n, 10_000, stream=stream)
    raise KeyError(type(kind).__name__)


def _rows(case: Case[Any]) -> list[Any]:
    """A few rows of a case, the same each time."""
    rows: list[Any] = []
    checks = list(HealthCheck)
    few = settings(max_examples=_DRAWN, derandomize=True, database=None, deadline=None)
    few = settings(few, phases=[Phase.generate], suppress_health_check=checks)

    @few
    @given(st.lists(case.row, min_size=4, max_size=4))
    def draw(more: list[Any]) -> None:
        rows.extend(more)

    draw()
    return rows


def _as_array(column: object) -> object:
    """A list of numbers of one kind as an array; other columns unchanged."""
    if not isinstance(column, list) or len(set(map(type, column))) != 1:
        return column
    return np.array(column) if isinstance(column[0], (bool, int, float)) else column


def _cut(columns: Mapping[str, Any], start: int, rows: int) -> dict[str, object]:
    return {name: column[start : start + rows] for name, column in columns.items()}


def _as_lists(batch: Mapping[str, object]) -> dict[str, object]:
    return {k: c.tolist() if isinstance(c, np.ndarray) else c for k, c in batch.items()}
