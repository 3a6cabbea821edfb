"""Uplift: how well scores order the effect of a treatment, from counts in score buckets."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import decimal_share
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.core.inputs import Binary, Inputs, Probability, Weights
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.many_slots import distinct
from streammetrics.core.parts.part import SLOT_0, Slots
from streammetrics.core.parts.weighted_counts import WeightedCounts
from streammetrics.core.weights import Unit, unit_of
from streammetrics.kernels.tables.grids import check_grid, grid_of
from streammetrics.results.uplift_curve import UpliftCurve

_AT_ONCE: Final = 1 << 6  # states whose counts are copied together: 100 MB if all are full


class Uplift(Accumulator, schema="uplift/1"):
    """How well scores order the effect of a randomised treatment, with certain bounds, in a state
    of bounded size.

    Settings
        grid: the buckets of scores. "relative": of relative width 2**-resolution, from `floor` to
        `ceiling` on either side of 0; smaller scores share a bucket, and so do those of size
        `ceiling` or more on either side. With range="probability" scores are in [0, 1] and the
        width is also relative to the distance from 1. "equal": 2**resolution buckets of equal width
        over [0, 1]. "edges": between the given `edges`.
        range: "real" (default), any score, or "probability", scores in [0, 1].
        treated_share: the share of rows that the randomisation treats, such as 0.5 or "1/3"; the
        result then tests it. None (default): not declared.
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    State
        Counts by arm, outcome and bucket, in units of weight; only the occupied ones while these
        are few. The grid is a function of the settings alone, so states merge exactly.
    Result
        UpliftCurve: the uplift curve, the Qini coefficient, AUUC, the uplift in equal parts of the
        rows, and the average treatment effect. Figures are Bounded, the last one is exact.
    Undefined
        nan without rows of both arms.
    Exactness
        low <= exact <= high for every input, rounding included. Orders of rows of weight 1 attain
        the bounds of the Qini coefficient; half their width is Σ_b [y_t(s - y_t)/N_t +
        y_c(s - y_c)/N_c] / 2N, with s rows and y successes in bucket b. Others are wider.
    Cost
        As HistogramAUC; 790 kB if all of the default grid is occupied.
    Source
        Radcliffe 2007, Direct Marketing Analytics Journal; Devriendt et al. 2020, IEEE TKDE.

    >>> from streammetrics import Uplift
    >>> metric = Uplift()
    >>> metric.update([1, 0, 1, 0], [0.9, 0.7, 0.2, 0.1], [1, 0, 0, 1])
    >>> print(metric.compute().qini)
    0.25 (exact)
    """

    grid: str = "relative"
    resolution: int = 8
    range: str = "real"
    floor: float = 2**-24
    ceiling: float = 2.0**24
    edges: tuple[float, ...] = ()
    treated_share: float | Fraction | str | None = None
    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(
        labels=Binary(), scores=Probability("_in_unit"), treated=Binary(), weights=Weights()
    )
    counts = WeightedCounts(2, 2, "buckets")  # [arm, outcome, bucket]
    rounded = Counts("round_weights")  # rows whose weight was rounded

    def check_settings(self) -> None:
        for name, value in check_grid(self).items():
            self._set(name, value)
        self._set("treated_share", checked_share(self.treated_share, "Uplift.treated_share"))

    @property
    def _in_unit(self) -> bool:
        """Whether scores must be in [0, 1]."""
        return self.range == "probability"

    @property
    def buckets(self) -> int:
        """The number of buckets of the grid."""
        return grid_of(self).n_buckets

    if TYPE_CHECKING:

        def update(
            self,
            labels: ArrayLike,
            scores: ArrayLike,
            treated: ArrayLike,
            *,
            weights: ArrayLike | None = None,
        ) -> None: ...

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        quanta = batch.quanta
        for piece, cells in grid_of(self).cells(kinds(batch), batch.scores):
            here = None if slots is None else slots[..., piece]
            self.counts.add_rows(cells, here, None if quanta is None else quanta[piece])

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        self.rounded.add(np.zeros(batch.n, np.intp), slots)

    def compute(self) -> UpliftCurve[Bounded]:
        """The curve, with certain bounds on its figures."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[UpliftCurve[Bounded]]:
        curves: list[UpliftCurve[Bounded]] = []
        for start in range(0, len(slots), _AT_ONCE):
            some, size = slots[start : start + _AT_ONCE], 4 * self.buckets
            cells, held = self.counts.cells_of(some)
            firsts = np.arange(len(some) + 1) * size
            ends = np.searchsorted(cells, firsts).tolist()
            surplus, rounded = self.counts.surplus[some].tolist(), self.rounded.totals(some)
            for i, (first, end) in enumerate(pairwise(ends)):
                of = cells[first:end] - firsts[i], held[first:end]
                curves.append(self._curve(*of, surplus[i], rounded[i]))
        return curves

    def _curve(
        self,
        cells: NDArray[np.int64],
        held: NDArray[np.int64],
        surplus: int,
        rounded: int | None,
    ) -> UpliftCurve[Bounded]:
        """The curve of one state from its occupied cells and their counts."""
        b = self.buckets
        kind, bucket = np.divmod(cells, b)
        used, column = distinct(bucket, b)
        counts = np.zeros((4, len(used)), np.int64)
        counts[kind, column] = held
        return UpliftCurve(
            grid_of(self).least[used],
            counts.reshape(2, 2, -1),
            exact=False,
            rows=int(held.sum()) - surplus,
            weight_unit=Fraction(self.weight_unit),
            rows_rounded=rounded,
            declared_share=cast("Fraction | None", self.treated_share),  # as it was checked
            _open=not self._in_unit and len(used) > 0 and int(used[-1]) == b - 1,
        )


def checked_share(value: object, where: str) -> Fraction | None:
    """The setting `treated_share`; SettingsError if it is no share of rows that both arms can
    have."""
    if value is None:
        return None
    try:
        found = unit_of(value, where) if isinstance(value, str) else decimal_share(value, where)
    except (InputError, SettingsError) as error:
        found, got = Fraction(0), error.got
    else:
        got = str(value)
    if not 0 < found < 1:
        raise SettingsError(
            expected="a share above 0 and below 1, such as 0.5 or '1/3', or None",
            got=got,
            where=where,
            hint="pass 0.5 if each row is treated with probability 1/2",
        )
    return found


def kinds(batch: Batch) -> NDArray[np.uint8]:
    """The kind of each row, 2 * treated + label: uint8 [n]."""
    found: NDArray[np.uint8] = batch.treated << np.uint8(1)
    found |= batch.labels
    return found
