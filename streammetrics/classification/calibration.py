"""Calibration: log loss, Brier score and the calibration of probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    QUANTA,
    SLOT_0,
    Accumulator,
    AnySlots,
    Batch,
    Binary,
    Counts,
    ExactSum,
    ExactSumColumn,
    ExactSums,
    Inputs,
    Pair,
    Probability,
    Schemas,
    SettingsError,
    Slots,
    Unit,
    WeightedCounts,
    Weights,
    as_float,
    check_choice,
    check_number,
    exact_parts,
    occupied_table,
    ordinary,
    refused_setting,
    require,
    require_finite,
    require_moments,
    require_rounded_cubes,
    require_signed_cubes,
    shown,
    side_by_side,
    weighted,
)
from streammetrics.core import (
    DOT_ROWS,
    SURELY,
    TOGETHER,
    Dot,
    Units,
    add_dots,
    leave_out,
    roughly,
    same_sums,
    surely_cubes,
)
from streammetrics.kernels.tables.probabilities import (
    ScoreBuckets,
    equal_bins,
    log_losses,
    probability_grid,
)
from streammetrics.results.calibration_figures import CalibrationFigures, CalibrationSums

Floats = NDArray[np.float64]

_MOST_BINS: Final = 1000
_RESOLUTION: Final = 8  # of a grid, if none is given
_FINEST: Final = 12
_LOSSES: Final = 2  # index of the last of the sums over rounded rows


class Calibration(Accumulator, schema="calibration/4"):
    """How well predicted probabilities fit the observed labels.

    Settings
        clip: None, or 0 < clip <= 1/2: for the log loss alone, scores below clip count as clip and
        scores above 1 - clip as 1 - clip, unrounded, so that the log loss of a row is at most -ln
        clip. bins: the number of bins of equal width, at most 1000. The edges are the doubles
        i/bins; a score at an edge is in the bin above it, and 1.0 is in the last bin. grid: None,
        or "relative": rows are also counted in buckets of scores, from which groups of equal mass
        follow. A bucket is at most 2**-resolution as wide as its distance from 0 or 1, the nearer
        one; scores within 2**-24 of either are in one bucket. resolution: 0 to 12, by default 8;
        None without a grid.
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    State
        Counts by label and bin, and exact sums of the scores in each bin and of the positives, of
        their squares and of the log losses; for intervals also of the squares and the cubes of each
        row's log loss and Brier score. With a grid also counts by label and bucket, and exact sums
        of the scores in each bucket. With round_weights=True the counts and sums, without those for
        intervals and of buckets, of the rows whose weight was rounded.
    Result
        CalibrationFigures. For many classes, pass the score of the true class and label 1 in each
        row: `log_loss` is then theirs. With a grid also `ece_by_mass`, `mce_by_mass` and `ace`,
        over `bins` groups of equal mass, and the table `reliability_by_mass(n)`. Where scores are
        near 0, such as those of clicks, nearly all rows are in one bin of equal width, and `ece`
        says little.
    Undefined
        nan without rows, or for 0/0. The log loss is inf if a score of 0 or 1 is wrong, unless
        `clip` is set.
    Exactness
        Brier score, ratios, mean score, ECE and MCE are rounded once from the exact fraction. A
        row's log loss has a relative error of at most 2**-67 and sums are exact, so the mean is off
        by less than 0.501 units in the last place, and has the same bits on every processor. Errors
        by mass have certain bounds, low <= exact <= high for every input, where exact is the value
        of all rows in the order of their scores; the value itself is that of the lines of
        `reliability_by_mass`.
    Cost
        50 ns a row in large batches, twice that with weights. State: 1 kB. With a grid a third more
        time, and at resolution 8 a state takes 0.8 MB (4 MB with scores such as 1e-300), and about
        60 kB as bytes; half of that for each bit less.
    Source
        Brier 1950, Mon. Weather Rev. 78; Naeini, Cooper & Hauskrecht 2015, AAAI, for ECE and MCE;
        He et al. 2014, ADKDD, for normalized entropy; Nixon et al. 2019, CVPR Workshops, for ACE.

    >>> from streammetrics import Calibration
    >>> metric = Calibration()
    >>> metric.update([1, 0, 0, 1], [0.5, 0.25, 0.5, 0.75])
    >>> result = metric.compute()
    >>> result.log_loss, result.brier, result.ratio
    (0.4904146265058631, 0.15625, 1.0)
    >>> by_mass = Calibration(grid="relative", bins=2)
    >>> by_mass.update([0, 1, 0, 1], [0.125, 0.25, 0.5, 0.75])
    >>> print(by_mass.compute().ece_by_mass)
    0.21875 (exact)
    """

    _many_slots: ClassVar[bool] = True
    _schemas: ClassVar[Schemas] = {"calibration/3": {"loss_cubes", "brier_cubes"}}
    _later = frozenset({"grid", "resolution"})

    clip: float | None = None
    bins: int = 15
    weight_unit: Unit = 1
    round_weights: bool = False
    grid: str | None = None
    resolution: int | None = None

    inputs = Inputs(
        labels=Binary(),
        scores=Probability(hint="pass probabilities, not logits"),
        weights=Weights(),
    )
    counts = WeightedCounts(2, "bins")  # [truth, bin]
    predicted = ExactSums("bins")
    predicted_of_positives = ExactSum()
    squares = ExactSum()  # of the scores: (p - y)² = p² - 2 p y + y for y of 0 and 1
    tiny_squares = ExactSum()  # those of tiny scores, at the second of SCALES
    losses = ExactSum()
    loss_squares = ExactSum()  # one for each row, without weights
    brier_squares = ExactSum()
    loss_cubes = ExactSum()
    brier_cubes = ExactSum()
    rounded = Counts("round_weights", 2, "bins")  # rows whose weight was rounded; sums over them
    rounded_predicted = ExactSums("round_weights", 2, "bins")
    rounded_losses = ExactSums("round_weights", 3)  # squares, tiny squares, losses
    by_score = Counts(2, "buckets")  # [truth, bucket], in units of weight
    sums_by_score = ExactSums("buckets")

    def check_settings(self) -> None:
        clip = None if self.clip is None else as_float(self.clip)
        if self.clip is not None and not (clip is not None and 0 < clip <= 0.5):
            raise SettingsError(
                expected="a number above 0 and at most 1/2, or None",
                got=shown(self.clip),
                where="Calibration.clip",
                hint="pass a small number such as 1e-15, or leave it out for the exact log loss",
            )
        self._set("clip", clip)
        hint = "pass the number of bins of equal width, or leave it out for 15"
        self._set("bins", check_number(self.bins, 1, _MOST_BINS, "Calibration.bins", hint))
        self._check_grid()

    def _check_grid(self) -> None:
        if self.grid is None and self.resolution is not None:
            raise refused_setting(self, "resolution", 'none without grid="relative"')
        if self.grid is None:
            leave_out(self, "by_score", "sums_by_score")
            return
        check_choice(self.grid, ("relative",), "Calibration.grid")
        resolution = _RESOLUTION if self.resolution is None else self.resolution
        hint = f"pass the bits of a score that are kept, or leave it out for {_RESOLUTION}"
        checked = check_number(resolution, 0, _FINEST, "Calibration.resolution", hint)
        self._set("resolution", checked)

    @property
    def buckets(self) -> int:
        """The number of buckets of the grid; 0 without one."""
        return 0 if self.resolution is None else probability_grid(self.resolution).n_buckets

    if TYPE_CHECKING:

        def update(
            self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
        ) -> None: ...

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        for piece, piece_slots in batch.pieces(slots, DOT_ROWS):
            remaining_rows = piece
            if piece_slots is None and piece.quanta is None:
                remaining_rows = piece.take(self._add_dots(piece))
            self._add_products(remaining_rows, piece_slots)
        for piece, piece_slots in batch.pieces(slots):
            labels, scores = piece.labels, piece.scores.astype(np.float64, copy=False)
            self._add(labels, scores, piece.quanta, piece_slots)

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        for piece, piece_slots in batch.pieces(slots):
            self._add_rounded(
                piece.labels, piece.scores.astype(np.float64, copy=False), piece_slots
            )

    def _add(
        self,
        labels: NDArray[np.uint8],
        scores: Floats,
        units: Units | None,
        slots: AnySlots | None,
    ) -> None:
        bins = equal_bins(scores, self.bins)
        cells = bins + labels * np.uint16(self.bins)
        self.counts.add_rows(cells, slots, units)
        for part in weighted([scores], units):
            self.predicted.add(part, bins, slots)
        if self.resolution is not None:
            self._add_by_score(labels, scores, units, slots)
        losses, brier = self._losses(labels, scores), labels - scores
        for part in weighted(losses, units):
            self.losses.add(part, slots)
        np.square(brier, out=brier)
        for values, squares, cubes in (
            (losses[0], self.loss_squares, self.loss_cubes),
            (brier, self.brier_squares, self.brier_cubes),
        ):
            powers = values * values
            squares.add(powers, slots)
            powers *= values
            cubes.add(powers, slots)

    def _add_dots(self, batch: Batch) -> NDArray[np.intp]:
        """Add the sums of products of ordinary rows of weight 1, and return the others."""
        labels, scores = batch.labels, batch.scores.astype(np.float64, copy=False)
        scores_of_positives = Dot(self.predicted_of_positives, labels, scores)
        return add_dots([scores_of_positives, Dot(self.squares, scores, scores)])

    def _add_products(self, batch: Batch, slots: AnySlots | None) -> None:
        for piece, piece_slots in batch.pieces(slots):
            scores, units = piece.scores.astype(np.float64, copy=False), piece.quanta
            hits = np.flatnonzero(piece.labels)
            slots_of_hits = None if piece_slots is None else piece_slots[hits]
            for part in weighted([scores[hits]], None if units is None else units[hits]):
                self.predicted_of_positives.add(part, slots_of_hits)
            for scale, part in _squares(scores, units):
                (self.tiny_squares if scale else self.squares).add(part, piece_slots)

    def _add_by_score(
        self,
        labels: NDArray[np.uint8],
        scores: Floats,
        units: Units | None,
        slots: AnySlots | None,
    ) -> None:
        buckets = probability_grid(self.resolution or 0).buckets(scores)
        self.by_score.add(labels * np.intp(self.buckets) + buckets, slots, units)
        for part in weighted([scores], units):
            self.sums_by_score.add(part, buckets, slots)

    def _add_rounded(self, labels: NDArray[np.uint8], scores: Floats, slots: Slots | None) -> None:
        cells = labels * np.intp(self.bins) + equal_bins(scores, self.bins)
        self.rounded.add(cells, slots)
        self.rounded_predicted.add(scores, cells, slots)
        for scale, part in _squares(scores, None):
            self.rounded_losses.add(part, np.full(len(part), scale, np.intp), slots)
        for part in self._losses(labels, scores):
            self.rounded_losses.add(part, np.full(len(part), _LOSSES, np.intp), slots)

    def _losses(self, labels: NDArray[np.uint8], scores: Floats) -> Pair:
        return log_losses(labels, scores, self.clip)

    def _require_possible(self) -> None:
        fault = "impossible sums of scores"
        finite = self.predicted.inner, self.predicted_of_positives, self.squares, self.tiny_squares
        for column in (*finite, self.brier_squares):
            require_finite(column, fault)
        for column in (self.losses, self.loss_squares):
            require(not column.infinities[: self._width, 0].any(), fault)
        tiny = np.asarray(self.tiny_squares.limbs[: self._width].any(axis=1))
        doubtful = np.arange(self._width)
        if self._width >= TOGETHER:
            doubtful = np.flatnonzero(tiny | ~self._surely_possible(doubtful))
        if len(doubtful) >= TOGETHER:
            doubtful = doubtful[~self._one_row_states(doubtful)]
        used = np.flatnonzero(self.predicted.inner.limbs.any(axis=1))
        if len(doubtful) < self._width:
            used = used[np.isin(used // self.bins, doubtful)]
        sums = {cell: self.predicted.inner.quanta(cell) for cell in used.tolist()}
        for slot in doubtful.tolist():
            negatives, positives = self.counts.dense(slot).tolist()
            units = list(map(sum, zip(negatives, positives, strict=True)))
            cells = range(slot * self.bins, (slot + 1) * self.bins)
            predicted = [sums.get(cell, 0) for cell in cells]
            require(all(0 <= p <= n * QUANTA for p, n in zip(predicted, units, strict=True)), fault)
            total, y = sum(predicted), sum(positives) * QUANTA
            hits, squares = self.predicted_of_positives.quanta(slot), self.squares.quanta(slot)
            require(0 <= hits <= min(total, y), fault)
            if not tiny[slot]:  # tiny squares are in other quanta
                require(squares <= total and squares - 2 * hits + y >= 0, fault)
                require_moments(sum(units), total, squares, fault)
            loss_columns = self.losses, self.loss_squares, self.brier_squares
            require(all(column.quanta(slot) >= 0 for column in loss_columns), fault)
            rows = sum(units) - int(self.counts.surplus[slot])
            for of_squares, cubes in self._cubes:
                require_rounded_cubes(rows, cubes, slot, fault)
                if of_squares.finite(slot):
                    require_signed_cubes(rows, of_squares.quanta(slot), cubes, slot, fault)
        if self.resolution is not None:
            self._require_possible_buckets(fault)

    def _require_possible_buckets(self, fault: str) -> None:
        """StateError unless the rows of the buckets are those of the bins, and so are the sums of
        all scores; and unless each sum is of scores of its bucket."""
        inner, every = self.sums_by_score.inner, np.arange(self._width)
        require_finite(inner, fault)
        counts, grid = self.by_score.tables(every), probability_grid(self.resolution or 0)
        of_classes = counts.sum(axis=2) == self.counts.tables(every).sum(axis=2)
        require(bool(of_classes.all()), fault)
        for slot in range(self._width):
            require(self.sums_by_score.total(slot) == self.predicted.total(slot), fault)
        units, sums = counts.sum(axis=1), roughly(inner).reshape(self._width, -1)
        sure = (units == 0) & (sums == 0)
        sure |= (units * grid.least <= SURELY * sums) & (sums <= SURELY * units * grid.largest)
        for slot, bucket in np.argwhere(~sure).tolist():
            ends = grid.least[bucket].item(), grid.largest[bucket].item()
            low, high = (int(Fraction(end) * QUANTA) * int(units[slot, bucket]) for end in ends)
            require(low <= inner.quanta(slot * self.buckets + bucket) <= high, fault)

    def _surely_possible(self, slots: Slots) -> NDArray[np.bool_]:
        """Of each of these decoded states, without tiny squares, whether one pass of floats proves
        that its sums are possible."""
        tables = self.counts.tables(slots)
        rows, positives = tables.sum(axis=1).astype(np.float64), tables[:, 1].sum(axis=1)
        predicted = roughly(self.predicted.inner).reshape(rows.shape)
        hits, squares = roughly(self.predicted_of_positives), roughly(self.squares)
        n, total = rows.sum(axis=1), predicted.sum(axis=1)
        sure: NDArray[np.bool_] = ((predicted >= 0) & (predicted <= SURELY * rows)).all(axis=1)
        sure &= (hits >= 0) & (hits <= SURELY * np.minimum(total, positives))
        sure &= (squares >= 0) & (squares <= SURELY * total)
        sure &= (2 * hits <= SURELY * (squares + positives)) & (total**2 <= SURELY * n * squares)
        for column in (self.losses, self.loss_squares, self.brier_squares):
            sure &= roughly(column) >= 0
        for of_squares, cubes in self._cubes:
            third = roughly(cubes)
            sure &= (third >= 0) & surely_cubes(roughly(of_squares), third)
            sure &= ~cubes.infinities[slots].any(axis=1)
        return sure

    def _one_row_states(self, slots: Slots) -> NDArray[np.bool_]:
        """Of each of these decoded states whether it is that of one row, and so possible. It lies
        on the limits of what is possible, where floats prove nothing."""
        counts = self.counts.tables(slots)
        scores = roughly(self.predicted.take(slots).inner).reshape(len(slots), -1).sum(axis=1)
        of_one: NDArray[np.bool_] = (counts.sum(axis=(1, 2)) == 1) & (scores >= 0) & (scores <= 1)
        of_one &= (self.counts.surplus[slots] == 0) & (self.grid is None) & (not self.round_weights)
        ones = np.flatnonzero(of_one)
        states, rows, every = self._take(slots[ones]), self._empty(len(ones)), np.arange(len(ones))
        labels = counts[ones, 1].sum(axis=1)
        rows._accumulate(self.check(labels=labels, scores=scores[ones]), every)
        same = (counts[ones] == rows.counts.tables(every)).all(axis=(1, 2))
        by_bin = same_sums(states.predicted.inner, rows.predicted.inner)
        same &= by_bin.reshape(-1, self.bins).all(axis=1)
        for column, of_row in zip(states._sums, rows._sums, strict=True):
            same &= same_sums(column, of_row)
        of_one[ones] = same
        return of_one

    @property
    def _sums(self) -> tuple[ExactSumColumn, ...]:
        """All exact sums but those of bins and of rounded rows."""
        products = self.predicted_of_positives, self.squares, self.tiny_squares
        moments = self.losses, self.loss_squares, self.brier_squares
        return *products, *moments, self.loss_cubes, self.brier_cubes

    @property
    def _cubes(self) -> tuple[tuple[ExactSumColumn, ExactSumColumn], ...]:
        """The squares and the cubes of the losses, and of the Brier scores."""
        losses = self.loss_squares, self.loss_cubes
        return losses, (self.brier_squares, self.brier_cubes)

    def _coarse_in_groups(self) -> Calibration | None:
        if self.grid is None:
            return None  # errors by mass have no variance
        return Calibration(self.clip, self.bins, self.weight_unit, self.round_weights)

    def compute(self) -> CalibrationFigures:
        """The losses, ratios and the table of bins."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _score_buckets(self, slots: Slots) -> Iterator[ScoreBuckets]:
        """The occupied buckets of each of these states."""
        grid = probability_grid(self.resolution or 0)
        occupied = self.by_score.each_occupied(slots)
        for slot, (cells, counts) in zip(slots.tolist(), occupied, strict=True):
            used, table = occupied_table(cells, counts, 2, self.buckets)
            sums, shift = self.sums_by_score.inner.units(slot * self.buckets + used)
            yield ScoreBuckets(grid.least[used], grid.largest[used], table, tuple(sums), shift)

    def _compute_all(self, slots: Slots) -> list[CalibrationFigures]:
        tables = self.counts.tables(slots)
        predicted, shift = self.predicted.units(slots)
        of_bins = tuple(predicted)  # no lists, which the garbage collector would visit
        columns = self.squares, self.tiny_squares, self.predicted_of_positives, self.losses
        sums = [column.units(slots) for column in (*columns, self.loss_squares, self.brier_squares)]
        units: list[list[int | None]] = [[*total.units] for total in sums]
        for i in self.losses.infinite(slots):
            units[3][i] = None
        return side_by_side(
            CalibrationFigures,
            len(slots),
            positives=tables[:, 1].sum(axis=1).tolist(),
            _units=tables.sum(axis=(1, 2)).tolist(),
            _surplus=self.counts.surplus[slots].tolist(),
            weight_unit=repeat(Fraction(self.weight_unit)),
            rows_rounded=self.rounded.totals(slots),
            _sums=map(
                CalibrationSums,
                repeat((shift, *[total.shift for total in sums])),
                map(np.copy, tables),  # a result must not keep those of all other keys
                [of_bins[i : i + self.bins] for i in range(0, len(of_bins), self.bins)],
                *units,
                zip(self.loss_cubes.pairs(slots), self.brier_cubes.pairs(slots), strict=True),
            ),
            **({} if self.grid is None else {"_by_score": self._score_buckets(slots)}),
        )


def _squares(scores: Floats, units: Units | None) -> Iterator[tuple[int, Floats]]:
    """The squares of scores in parts [n], each with the index of its scale: ordinary or tiny."""
    return exact_parts(scores, scores, units, far=not ordinary(scores))
