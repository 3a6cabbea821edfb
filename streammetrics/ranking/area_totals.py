"""What a GroupedAUC is once no row of its groups is to come: sums over groups, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple, Self, cast

from streammetrics.core.accumulator import Accumulator, WithoutRows
from streammetrics.core.parts.exact_sums import ExactSums, add_whole, require_whole
from streammetrics.core.parts.part import Column
from streammetrics.core.settings import Setting
from streammetrics.kernels.curves.area_sums import AreaSpread, AreaSums, area_spread, area_sums
from streammetrics.kernels.curves.segments import GroupPairs
from streammetrics.kernels.exact.fraction_mean import ExactArea
from streammetrics.results.areas import as_float
from streammetrics.results.grouped import GroupedArea
from streammetrics.results.weighted import units_counted

_COUNTS = 7
_AREAS = 4
_UNUSED = (0, 0)  # older states have other numbers there, of weights that were rounded
_SPREAD = _COUNTS + _AREAS + len(_UNUSED)
_CELLS = _SPREAD + 6  # an AreaSpread has 6


class AreaCounts(NamedTuple):
    """What was counted: groups, those of both labels, rows, units of weight, those of groups that
    are kept, those of positives, and rows whose weight was rounded."""

    groups: int
    kept: int
    rows: int
    units: int
    units_kept: int
    positives: int
    rounded: int


class AreaTotals(WithoutRows, schema="grouped-auc-totals/1"):
    """Sums over the groups of a GroupedAUC; only a Sealed holds one.

    Settings
        metric: the GroupedAUC.
    State
        AreaCounts, AreaSums and AreaSpread, as integers.
    Result
        That of the metric, whose areas are off by 2**-97 at most before they are rounded.
    """

    metric: Accumulator
    sums = ExactSums(_CELLS)

    def arguments(self) -> Mapping[str, bool]:
        return self.metric.arguments()

    def count(self, counts: AreaCounts, groups: GroupPairs) -> None:
        """Add what was counted in groups that are complete."""
        settings = self.metric.settings()
        weight, bounded = str(settings["weight"]), settings["grid"] is not None
        areas = area_sums(groups, weight, bounded=bounded)
        add_whole(self.sums, (*counts, *areas, *_UNUSED, *area_spread(groups, weight)))

    def _read(self, columns: Mapping[str, Column], width: int) -> Self:
        new = super()._read(columns, width)
        require_whole(new.sums)
        return new

    def compute(self) -> GroupedArea:
        """The result of the metric."""
        found = [int(value) for value in self.sums.fractions()]
        counts = AreaCounts(*found[:_COUNTS])
        areas = AreaSums(*found[_COUNTS : _COUNTS + _AREAS])
        settings = self.metric.settings()
        area = areas.mean(bounded=settings["grid"] is not None)
        return area_result(settings, counts, area, AreaSpread(*found[_SPREAD:]))


def area_result(
    settings: Mapping[str, Setting],
    counts: AreaCounts,
    area: ExactArea,
    spread: AreaSpread | tuple[GroupPairs, str],
) -> GroupedArea:
    """The result of a GroupedAUC with these settings."""
    unit = cast("Fraction", settings["weight_unit"])
    units = units_counted(counts.units, counts.rows, unit)
    return GroupedArea(
        as_float(area),
        groups=counts.groups,
        groups_kept=counts.kept,
        groups_one_class=counts.groups - counts.kept,
        rows=counts.rows,
        rows_kept=counts.units_kept if units is None else None,
        rows_one_class=counts.rows - counts.units_kept if units is None else None,
        positives=counts.positives,
        compared_as="buckets" if settings["grid"] is not None else str(settings["score_type"]),
        ids=str(settings["ids"]),
        weight_unit=unit,
        weight_units=units,
        weight_units_kept=None if units is None else counts.units_kept,
        rows_rounded=counts.rounded if settings["round_weights"] else None,
        _area=area,
        _groups=spread,
    )
