"""Uplift: how well scores order the effect of a treatment, from counts in score buckets."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    SLOT_0,
    Batch,
    Binary,
    Bounded,
    Counts,
    Histogram,
    InputError,
    Inputs,
    Probability,
    SettingsError,
    Slots,
    Unit,
    Weights,
    grid_of,
    occupied_table,
)
from streammetrics.core import ScoreForm, decimal_share, unit_of
from streammetrics.results.uplift_curve import UpliftCurve


class Uplift(Histogram[UpliftCurve[Bounded]], schema="uplift/1"):
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

    _kinds: ClassVar[int] = 4  # 2 * treated + label

    treated_share: float | Fraction | str | None = None
    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(
        labels=Binary(), scores=Probability("_in_unit"), treated=Binary(), weights=Weights()
    )
    rounded = Counts("round_weights")  # rows whose weight was rounded

    def check_settings(self) -> None:
        super().check_settings()
        self._set("treated_share", checked_share(self.treated_share, "Uplift.treated_share"))

    if TYPE_CHECKING:

        def update(
            self,
            labels: ArrayLike,
            scores: ArrayLike,
            treated: ArrayLike,
            *,
            weights: ArrayLike | None = None,
        ) -> None: ...

    def _kinds_and_scores(self, batch: Batch) -> tuple[NDArray[np.uint8], NDArray[np.floating]]:
        return kinds(batch), batch.scores

    def _score_form(self) -> ScoreForm:
        return ScoreForm(Uplift, self._kinds, kinds)

    def compute(self) -> UpliftCurve[Bounded]:
        """The curve, with certain bounds on its figures."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _results(self, slots: Slots) -> Iterator[UpliftCurve[Bounded]]:
        b, least = self.buckets, grid_of(self).least
        columns = self.counts.each_occupied(slots), self.counts.surplus[slots].tolist()
        for (cells, cell_counts), extra, rounded in zip(
            *columns, self.rounded.totals(slots), strict=True
        ):
            used, table = occupied_table(cells, cell_counts, 4, b)
            yield UpliftCurve(
                least[used],
                table.reshape(2, 2, -1),  # [arm, outcome, bucket]
                exact=False,
                rows=int(cell_counts.sum()) - extra,
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
        share = unit_of(value, where) if isinstance(value, str) else decimal_share(value, where)
    except (InputError, SettingsError) as error:
        share, got = Fraction(0), error.got
    else:
        got = str(value)
    if not 0 < share < 1:
        raise SettingsError(
            expected="a share above 0 and below 1, such as 0.5 or '1/3', or None",
            got=got,
            where=where,
            hint="pass 0.5 if each row is treated with probability 1/2",
        )
    return share


def kinds(batch: Batch) -> NDArray[np.uint8]:
    """The kind of each row, 2 * treated + label: uint8 [n]."""
    codes: NDArray[np.uint8] = batch.treated << np.uint8(1)
    codes |= batch.labels
    return codes
