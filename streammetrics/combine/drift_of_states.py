"""drift: how far one state has drifted from another, of values or of scores on one grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Self, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.combine.clustered import leave_one_out, summed
from streammetrics.combine.coarse_form import CollapsedGroups, states_of
from streammetrics.combine.user_groups import UserGroups
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import whole
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.slips import explained
from streammetrics.kernels.curves.drift_distances import (
    DesignEffects,
    Places,
    bin_ends,
    binned,
    cells_of,
    design_effects,
    differences_of_bins,
)
from streammetrics.kernels.inference.variances import (
    GroupVariance,
    doubts_of_groups,
    jackknife_variance,
)
from streammetrics.kernels.tables.grids import Gridded, grid_of
from streammetrics.present.views import value_of
from streammetrics.results.distribution import Distribution
from streammetrics.results.drift_result import Drift, Users, Values
from streammetrics.results.score_curve import ScoreCurve

BINS: Final = 10
_MOST_BINS: Final = 1000
_GRID: Final = ("grid", "resolution", "range", "floor", "ceiling", "edges")
_KINDS: Final = ("a state on a grid", "an exact state")
_READABLE: Final = "Quantiles, ExactQuantiles, HistogramAUC or ExactAUC"  # by `Forms._drift_of`


@explained
def drift(
    reference: Accumulator,
    current: Accumulator,
    *,
    label: int | None = None,
    bins: int = BINS,
) -> Drift:
    """How far the rows of `current` have drifted from those of `reference`.

    reference, current: two states on one grid: Quantiles, or the scores of HistogramAUC; or exact
    ones, ExactQuantiles and ExactAUC. Or UserGroups of such on both sides, whose errors are then
    those of users: a user who is on both sides leaves both. label: of scores, only those of rows
    with this label, 0 or 1; None: of all rows. bins: of PSI, cut at the quantiles of the reference.

    SettingsError for states on different grids. Undefined (nan) if a state has no rows. Changes
    neither state.

    >>> from streammetrics import Quantiles, drift
    >>> january, june = Quantiles(), Quantiles()
    >>> january.update(range(1000))
    >>> june.update(range(100, 1100))
    >>> found = drift(january, june)
    >>> round(found.psi, 3), round(found.ks.low, 3), found.certain()
    (0.596, 0.1, False)
    """
    n_bins, of_class = whole(bins), None if label is None else whole(label)
    if n_bins is None or not 2 <= n_bins <= _MOST_BINS:
        hint = "pass 10 for deciles"
        raise _bad("bins", f"a whole number from 2 to {_MOST_BINS}", shown(bins), hint)
    if label is not None and of_class not in (0, 1):
        hint = "leave it out for the scores of all rows"
        raise _bad("label", "0 or 1, where 1 is the positive class", shown(label), hint)
    bins, label = n_bins, of_class
    sides = _MetricSide.side_of(reference), _MetricSide.side_of(current)
    for name, side in zip(("reference", "current"), sides, strict=True):
        _require_readable(name, side, label)
    groups = [side.groups for side in sides if side.groups is not None]
    if len(groups) == 1:
        raise SettingsError(
            expected="UserGroups on both sides, or on neither",
            got=f"{type(reference).__name__} and {type(current).__name__}",
            where="drift(current)",
            hint="count both by users, or pass metric_state() of the UserGroups",
        )
    _require_one_grid(*sides)
    if not groups:
        return _drift(_state_side(reference, label), _state_side(current, label), bins)
    a, b = (_state_side(side.metric_state(), label) for side in groups)
    rows = np.array([side.rows_of_groups() for side in groups])
    states, ranked = _group_states(*groups)
    return _drift(a, b, bins, users=_BothGroups(states, rows, label, bins, ranked))


class _MetricSide(NamedTuple):
    """A metric that is compared, and the groups of users that count it, if any do."""

    metric: Accumulator
    groups: UserGroups | None

    @classmethod
    def side_of(cls, state: Accumulator) -> Self:
        """Of a state, or of groups of users."""
        return cls(state.metric, state) if isinstance(state, UserGroups) else cls(state, None)

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings that two sides must have in common; exact values have no grid."""
        settings = self.metric.settings()
        if _is_on_grid(self.metric):
            shared = {name: settings[name] for name in (*_GRID, "weight_unit")}
        else:
            rounds = "float32" in (settings.get("value_type"), settings.get("score_type"))
            shared = {"float32": rounds, "weight_unit": settings["weight_unit"]}
        if self.groups is None:
            return shared
        return {**shared, "buckets": self.groups.buckets, "salt": self.groups.salt}


@dataclass(frozen=True, eq=False)
class _Side:
    """The values of a state, and the key of each place, float64 [k]: its bucket, or its value.
    last: the greatest key that there can be."""

    values: Values
    keys: NDArray[np.float64]
    last: float

    @property
    def places(self) -> Places:
        """The cells that have rows."""
        return Places(self.keys, self.values.counts, self.values.low, self.values.high)


def _state_side(state: Accumulator, label: int | None) -> _Side:
    return _side(state, state.compute(), label)


def _side(metric: Accumulator, result: object, label: int | None) -> _Side:
    """A side from the result of a metric; metric: any state with its settings."""
    curve = cast("ScoreCurve[float]", result)
    values = result if isinstance(result, Distribution) else _scores(curve, label)
    if not _is_on_grid(metric):
        return _Side(values, values.values, np.inf)
    grid = grid_of(metric)
    return _Side(values, grid.buckets(values.values).astype(np.float64), grid.n_buckets - 1)


def _scores(curve: ScoreCurve[float], label: int | None) -> Values:
    """The scores of a curve in ascending order: of all rows, or of those with a label."""
    counts = curve.counts.sum(0) if label is None else curve.counts[label]
    if label is not None and (curve.weight_units is not None or curve.rows_rounded):
        raise InputError(
            expected="rows of weight 1, since the weighted rows of each label are not counted",
            got="weighted rows",
            where="drift(label)",
            hint="leave label out for the scores of all rows",
        )
    used = np.flatnonzero(counts)
    counts, rows = counts[used], curve.rows if label is None else int(counts.sum())
    totals = (rows, curve.reason, curve.weight_unit, curve.rows_rounded)
    low = curve.scores[used].astype(np.float64)
    if curve._ends is None:
        return Distribution[float](low, low, low, counts, True, *totals)
    ends = curve._ends[used]
    high = np.where(np.isnan(ends), np.inf, np.nextafter(ends, -np.inf))
    middle = low / 2 + high / 2
    # The middle of a bucket, or the only end that it has.
    values = np.where(np.isfinite(middle), middle, np.where(np.isfinite(low), low, high))
    values = values.clip(low, high)  # halves of subnormal numbers are rounded
    return Distribution[Bounded](values, low, high, counts, False, *totals)


def _drift(
    a: _Side,
    b: _Side,
    bins: int,
    ends: NDArray[np.float64] | None = None,
    users: Users | None = None,
) -> Drift:
    """The drift of two sides. ends: the keys at which bins end; None: at the quantiles of `a`."""
    cells, keys = cells_of(a.places, b.places)
    if ends is None:
        ends = _ends(a, bins)
    return Drift(a.values, b.values, cells, binned(keys, cells.counts, ends), users)


def _ends(a: _Side, bins: int) -> NDArray[np.float64]:
    """The keys at which the bins of a reference end; the last bin has no end."""
    if not len(a.keys):
        return np.empty(0)
    ends = a.keys[bin_ends(a.values.counts, bins)]
    return ends[ends < a.last]


@dataclass(frozen=True, eq=False)
class _BothGroups:
    """Both states in each bucket of users, [buckets] slots each; rows: int64 [2, buckets]. ranked:
    whether values are ranks."""

    states: tuple[Accumulator, Accumulator]
    rows: NDArray[np.int64]
    label: int | None
    bins: int
    ranked: bool

    @property
    def exact(self) -> bool:
        """Whether the groups hold each value, not buckets of values."""
        return not any(map(_is_on_grid, self.states))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons to doubt the variances."""
        doubts = (doubts_of_groups(side.tolist()) for side in self.rows)
        return tuple(dict.fromkeys(doubt for side in doubts for doubt in side))

    @cached_property
    def effects(self) -> DesignEffects:
        """The design effects of bins; nan if they are not known."""
        together, *without = self._drifts
        differences = [differences_of_bins(result.bin_counts) for result in without]
        return design_effects(together.bin_counts, np.array(differences))

    def variance_of(self, view: str) -> GroupVariance:
        """The variance of a view, by the jackknife over the buckets that have rows."""
        replicates = [float(value_of(result, view)) for result in self._drifts[1:]]
        return jackknife_variance(replicates, self.rows.sum(0).tolist())

    @cached_property
    def _drifts(self) -> list[Drift]:
        """The drift of all buckets, and that without each one that has rows, in the same bins."""
        a, b = (_state_side(summed(side), self.label) for side in self.states)
        ends, weights = _ends(a, self.bins), self.rows.sum(0).tolist()
        drifts = [_drift(a, b, self.bins, ends)]
        for results in zip(*(leave_one_out(side, weights) for side in self.states), strict=True):
            if None not in results:
                pairs = zip(self.states, results, strict=True)
                a, b = (_side(state, result, self.label) for state, result in pairs)
                drifts.append(_drift(a, b, self.bins, ends))
        return drifts


def _group_states(
    reference: UserGroups, current: UserGroups
) -> tuple[tuple[Accumulator, Accumulator], bool]:
    """The states of the groups of both sides, on one grid, and whether that is one of ranks."""
    a, b = reference._groups_of(), current._groups_of()
    if isinstance(a, CollapsedGroups) and isinstance(b, CollapsedGroups):
        return a.joint_states(b), True
    return (states_of(a), states_of(b)), False


def _require_readable(name: str, side: _MetricSide, label: int | None) -> None:
    """Refuse a state without values or scores, and a label for one without labels."""
    kind, rows = type(side.metric).__name__, getattr(side.metric, "_drift_of", "")
    if not rows:
        got = kind if side.groups is None else f"UserGroups of {kind}"
        hint = "of a Panel, a PerKey or Windows pass the state of one metric"
        raise _bad(name, f"a state of {_READABLE}, or UserGroups of one", got, hint)
    if label is not None and rows != "scores":
        got = f"{label} for {kind}"
        raise _bad("label", "none, since the rows have no labels", got, "leave it out")


def _require_one_grid(reference: _MetricSide, current: _MetricSide) -> None:
    """Refuse states whose buckets, of values or of users, are not the same."""
    kinds = [_KINDS[not _is_on_grid(side.metric)] for side in (reference, current)]
    if kinds[0] != kinds[1]:
        raise SettingsError(
            expected=f"{kinds[0]}, as the reference is",
            got=kinds[1],
            where="drift(current)",
            hint="compare states on one grid: count both with the same metric and settings",
        )
    expected, settings = reference.settings, current.settings
    for name in expected:
        if expected[name] != settings.get(name):
            raise SettingsError(
                expected=f"{name}={shown(expected[name])}, as in the reference",
                got=shown(settings[name]) if name in settings else "none",
                where="drift(current)",
                hint="compare states on one grid: count both with the same settings",
            )


def _is_on_grid(metric: Accumulator) -> TypeGuard[Gridded]:
    """Whether values are counted in buckets, and not kept."""
    return "grid" in metric.settings()


def _bad(name: str, expected: str, got: str, hint: str) -> InputError:
    return InputError(expected=expected, got=got, where=f"drift({name})", hint=hint)
