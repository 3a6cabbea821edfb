"""Which column or outcome each argument of a joined metric is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.id_hashes import HashedIds
from streammetrics.core.rows import Coded, Rows

_LABELS: Final = ("labels", "numerators")
Given = Mapping[str, NDArray[np.generic] | Coded]


def bound_inputs(
    metric: Accumulator, columns: Mapping[str, str], outcomes: Mapping[str, str], inputs: object
) -> Mapping[str, str]:
    """Argument of the metric → column, outcome or "times_ms"; SettingsError for one without."""
    given = {} if inputs is None else inputs
    takes = metric.arguments()
    if not isinstance(given, Mapping) or not set(given) <= set(takes):
        raise _bad(f"arguments of the metric ({', '.join(takes)})", shown(inputs))
    both = sorted(set(columns) & set(outcomes))
    if both:
        raise _bad("columns and outcomes of different names", f"{both[0]} twice")
    sources = (*columns, *outcomes, "times_ms")
    bound: dict[str, str] = {}
    for argument, required in sorted(takes.items()):
        name = given.get(argument, argument)
        if argument not in given and name not in sources:
            alone = argument in _LABELS and len(outcomes) == 1
            name = next(iter(outcomes)) if alone else None
        if name is None and not required:
            continue
        if name not in sources:
            came = f"{argument}={name!r}" if argument in given else f"none for {argument}"
            raise _bad(f"one of {', '.join(sources)} for each argument of the metric", came)
        bound[argument] = name
    return bound


def arguments_from(bound: Mapping[str, str], given: Given) -> dict[str, ArrayLike | Coded]:
    """The metric's keywords."""
    return {argument: given[name] for argument, name in bound.items()}


def without_outcomes(rows: Rows, columns: Mapping[str, str], outcomes: Mapping[str, str]) -> Given:
    """The impressions of checked events, as if nothing followed them."""
    place, _, times = rows.columns[:3]
    assert isinstance(place, np.ndarray) and isinstance(times, np.ndarray)
    at = np.flatnonzero(place == 0)
    given: dict[str, NDArray[np.generic] | Coded] = {"times_ms": times[at]}
    for (name, kind), column in zip(columns.items(), rows.columns[5:], strict=True):
        if isinstance(column, Coded):
            given[name] = Coded(column.codes[at], column.values)
        elif isinstance(column, np.ndarray):
            given[name] = column[at].view(HashedIds) if kind == "hashed" else column[at]
    return {**given, **dict.fromkeys(outcomes, np.zeros(len(at), np.uint8))}


def _bad(expected: str, came: str) -> SettingsError:
    return SettingsError(
        expected=expected,
        came=came,
        where="Joined.inputs",
        todo='name them, as {"labels": "click", "scores": "score"}',
    )
