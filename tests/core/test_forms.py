"""Forms: an author's metric is counted in other forms as it declares, in a file outside of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Bounded,
    ExactAUC,
    HistogramAUC,
    InputError,
    Quantiles,
    Ratio,
    UnitMean,
    UnitRate,
    UserGroups,
    drift,
)
from streammetrics.authoring import SLOT_0, Batch, Histogram, Inputs, Real, Slots
from streammetrics.core.forms import DriftOf, Forms, PlainCells
from streammetrics.kernels.tables.grids import grid_of
from streammetrics.results.distribution import Distribution
from streammetrics.results.drift_result import Drift


class Delays(Histogram[Distribution[Bounded]], schema="tests-delays/1"):
    """Delays in buckets, of which `drift` and groups of users know by their declarations alone."""

    _drift_of: ClassVar[DriftOf] = "values"

    weight_unit: int = 1
    inputs = Inputs(values=Real())

    def _kinds_and_scores(self, batch: Batch) -> tuple[None, np.ndarray]:
        return None, batch.values

    def _coarse_in_groups(self) -> Self:
        return type(self)(grid="edges", edges=self.edges[::2])

    def _results(self, slots: Slots) -> Iterator[Distribution[Bounded]]:
        grid = grid_of(self)
        for buckets, counts in self.counts.each_occupied(slots):
            low, high = grid.least[buckets], np.nextafter(grid.ends[buckets], -np.inf)
            yield Distribution(low, low, high, counts, False, int(counts.sum()))

    def compute(self) -> Distribution[Bounded]:
        self._flush()
        return self._compute_all(SLOT_0)[0]


EDGES = tuple(np.arange(0.0, 50.0).tolist())
RNG = np.random.default_rng(5)
BEFORE, AFTER = RNG.gamma(3, 4, 2000).clip(0, 48), RNG.gamma(4, 4, 2000).clip(0, 48)


def psi(metric: Accumulator) -> Drift:
    sides = metric.empty(), metric.empty()
    for side, values in zip(sides, (BEFORE, AFTER), strict=True):
        side.update(values=values)
    return drift(*sides)


def test_drift_compares_an_author_s_metric_as_it_compares_ours() -> None:
    author_drift, library_drift = (
        psi(Delays(grid="edges", edges=EDGES)),
        psi(Quantiles(grid="edges", edges=EDGES)),
    )
    assert author_drift.psi == library_drift.psi > 0.1
    assert np.array_equal(author_drift.bin_counts, library_drift.bin_counts)


def test_groups_of_users_keep_the_coarser_form_of_an_author_s_metric() -> None:
    users = UserGroups(Delays(grid="edges", edges=EDGES))
    assert users.group_metric == Delays(grid="edges", edges=EDGES[::2])
    assert users.whole.by_name["metric"] == Delays(grid="edges", edges=EDGES)


def test_a_metric_that_declares_no_values_has_no_drift() -> None:
    with pytest.raises(InputError, match=r"drift\(reference\): .*, got Ratio;"):
        drift(Ratio(), Ratio())


def test_by_default_a_metric_has_no_other_form_and_no_units() -> None:
    plain = Forms()
    forms = plain._score_form(), plain._coarse_in_groups(), plain._plain_cells()
    assert forms == (None, None, None)
    assert (plain._drift_of, plain._tells_units) == ("", False)
    assert UnitMean._tells_units and UnitRate._tells_units and not ExactAUC._tells_units


def test_sql_can_count_cells_that_floats_tell_apart() -> None:
    assert BinaryConfusion(threshold=0.25)._plain_cells() == PlainCells(threshold=0.25)
    assert HistogramAUC(grid="equal", resolution=3)._plain_cells() == PlainCells(buckets=8)
    assert HistogramAUC()._plain_cells() is ExactAUC()._plain_cells() is None
