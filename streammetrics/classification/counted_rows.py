"""A state from counts that were made elsewhere, such as an SQL aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    Accumulator,
    Setting,
    SettingsError,
    WeightedCountsColumn,
    checks,
)
from streammetrics.core import bad_rows

A = TypeVar("A", bound=Accumulator)


def add_counts(
    state: A,
    counted: WeightedCountsColumn,
    labels: ArrayLike,
    cells: tuple[str, ArrayLike, int],
    counts: ArrayLike,
) -> A:
    """The empty `state` with these counts of rows by label and cell; all [k].

    cells: their name, the cell of each count, and the number of cells.
    """
    _require_plain(state.settings(), type(state).__name__)
    name, cell_indices, n_cells = cells
    truth = checks.binary_labels(labels)
    indices = checks.integers(cell_indices, name)
    numbers = checks.integers(counts, "counts")
    for column, array in ((name, indices), ("counts", numbers)):
        checks.same_length(len(truth), array, column, other="labels")
    _require_within(indices, name, n_cells - 1)
    _require_within(numbers, "counts", (1 << 63) - 1)
    total = sum(numbers.tolist())
    state._require_room(total, "from_counts")
    occupied = np.flatnonzero(numbers)
    counted.add(
        truth[occupied].astype(np.intp) * n_cells + indices[occupied], None, numbers[occupied]
    )
    state.__dict__["_total_count"] = total
    return state


def _require_plain(settings: Mapping[str, Setting], name: str) -> None:
    if settings["weight_unit"] != 1 or settings["round_weights"]:
        raise SettingsError(
            expected="weight_unit=1, because each counted row weighs 1",
            got=f"weight_unit={settings['weight_unit']}, round_weights={settings['round_weights']}",
            where=f"{name}.from_counts",
            hint="update it with rows and their weights",
        )


def _require_within(values: NDArray[np.int64], name: str, most: int) -> None:
    bad = np.flatnonzero((values < 0) | (values > most))
    if len(bad):
        hint = "count rows in the cells of this metric"
        raise bad_rows(values, bad, name, f"integers from 0 to {most}", hint)
