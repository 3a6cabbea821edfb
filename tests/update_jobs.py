"""The updates that `benchmarks.against` measures: cases of each metric class, as plain JSON.

Where the inputs of a metric are declared, its columns are drawn by their kinds, as the benchmarks
draw theirs; otherwise its rows are those of the case, repeated. The JSON has no type of the
library, since any version of it must read it.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
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
from tests.cases import CASES

_BATCHES: Final = 16  # different ones of a size
_MOST_ROWS: Final = 100_000  # in all of them, unless one has more
_DRAWN: Final = 64  # different rows of a case
_USERS: Final = 10_000


def cases() -> dict[str, list[Case[Any]]]:
    """The cases of each metric class, by the name of the class."""
    cases_by_class: dict[str, list[Case[Any]]] = {}
    for case in CASES:
        cases_by_class.setdefault(type(case.empty).__name__, []).append(case)
    return dict(sorted(cases_by_class.items()))


def batches_as_json(case: Case[Any], rows: int) -> str:
    """The metric of a case and batches of so many rows, which `against_child.plain` reads."""
    batches = [_encoded(batch) for batch in batches_of(case, rows)]
    return json.dumps({"metric": _encoded(case.empty), "batches": batches})


def batches_of(case: Case[Any], rows: int) -> list[Mapping[str, object]]:
    """Different batches of so many rows; their columns are arrays where they can be."""
    n = rows * max(1, min(_BATCHES, _MOST_ROWS // rows))
    starts = range(0, n, rows)
    try:
        drawn = {
            name: _drawn(case.empty, kind, n, stream)
            for stream, (name, kind) in enumerate(case.empty._inputs.columns.items())
        }
        case.empty.empty().update(**drawn)
    except (InputError, TypeError, KeyError):  # an input is not declared, or bound to another
        few = case.small or _rows(case)
        chosen = [few[i % len(few)] for i in range(n)]
        batches = [case.columns(chosen[start : start + rows]) for start in starts]
        return [{name: _as_array(column) for name, column in batch.items()} for batch in batches]
    return [{name: c[start : start + rows] for name, c in drawn.items()} for start in starts]


def _drawn(metric: Accumulator, kind: inputs.Input, n: int, stream: int) -> NDArray[Any]:
    """A column of an input; KeyError if its values are not declared."""
    match kind:
        case inputs.Binary():
            return labels(n, 0.3, stream)
        case inputs.Probability() | inputs.Real() | inputs.Amount():
            return unit_floats(n, stream)
        case inputs.Integers() | inputs.UnitIds():
            return users(n, _USERS, stream=stream)
        case inputs.Classes():
            return generator(stream).integers(0, getattr(metric, kind.n), n)
        case inputs.Table():
            table = generator(stream).random((n, getattr(metric, kind.n)))
            return table < 0.5 if kind.labels else table
        case inputs.Ids() if getattr(metric, kind.ids) == "integer":
            return users(n, _USERS, stream=stream)
    raise KeyError(type(kind).__name__)


def _rows(case: Case[Any]) -> Sequence[Any]:
    """A few rows of a case, the same each time."""
    rows: list[Any] = []
    few = settings(
        max_examples=_DRAWN,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @few
    @given(st.lists(case.row, min_size=4, max_size=4))
    def draw(new_rows: list[Any]) -> None:
        rows.extend(new_rows)

    draw()
    return rows


def _as_array(column: object) -> object:
    """A list of numbers of one kind as an array; other columns unchanged."""
    if not isinstance(column, list) or len(set(map(type, column))) != 1:
        return column
    return np.array(column) if isinstance(column[0], (bool, int, float)) else column


def _encoded(value: object) -> object:
    """A value as JSON; of a metric its class, and the settings that are not the default ones."""
    if isinstance(value, Accumulator):
        defaults = {field.name: field.default for field in dataclasses.fields(value)}  # type: ignore[arg-type]
        chosen = {k: v for k, v in value.settings().items() if defaults[k] != v}
        return {"metric": type(value).__name__, "settings": _encoded(chosen)}
    if isinstance(value, Content):
        return _encoded(value.values("a setting of a case"))
    if isinstance(value, np.ndarray):
        content = base64.b64encode(value.tobytes()).decode()
        return {"array": content, "dtype": value.dtype.str, "shape": value.shape}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, Mapping):
        return {"mapping": [[_encoded(k), _encoded(v)] for k, v in value.items()]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return {"tuple": [_encoded(member) for member in value]}
    return [_encoded(member) for member in value] if isinstance(value, list) else value
