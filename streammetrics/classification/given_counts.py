"""States from counts that something else made, as an aggregate of SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.parts.weighted_counts import WeightedCountsColumn
from streammetrics.core.settings import Setting

A = TypeVar("A", bound=Accumulator)


def add_counts(
    state: A,
    counted: WeightedCountsColumn,
    labels: ArrayLike,
    cells: tuple[str, ArrayLike, int],
    counts: ArrayLike,
) -> A:
    """The empty `state` with these counts of rows of each label and cell; all [k].

    cells: their name, the cell of each, and how many there are.
    """
    _require_plain(state.settings(), type(state).__name__)
    name, given, n_cells = cells
    truth = checks.binary_labels(labels)
    places = checks.integers(given, name)
    numbers = checks.integers(counts, "counts")
    for column, array in ((name, places), ("counts", numbers)):
        checks.same_length(len(truth), array, column, of="labels")
    _require_within(places, name, n_cells - 1)
    _require_within(numbers, "counts", (1 << 63) - 1)
    total = sum(numbers.tolist())
    state._require_room(total, "from_counts")
    here = np.flatnonzero(numbers)
    counted.add(truth[here].astype(np.intp) * n_cells + places[here], None, numbers[here])
    state.__dict__["_total_count"] = total
    return state


def _require_plain(settings: Mapping[str, Setting], name: str) -> None:
    if settings["weight_unit"] != 1 or settings["round_weights"]:
        raise SettingsError(
            expected="weight_unit=1, as each row that is counted weighs 1",
            got=f"weight_unit={settings['weight_unit']}, round_weights={settings['round_weights']}",
            where=f"{name}.from_counts",
            hint="update it with rows and their weights",
        )


def _require_within(values: NDArray[np.int64], name: str, most: int) -> None:
    bad = np.flatnonzero((values < 0) | (values > most))
    if len(bad):
        raise InputError(
            expected=f"integers from 0 to {most}",
            got=shown(values[bad[0]]),
            where=f"{name}[{bad[0]}]",
            hint="count rows by the same cells as this metric",
            rows=bad,
        )
