"""The values of one state as rows show them, computed once for its digest and kept.

Equal digests prove equal states, so a cell is never stale: a commit costs the cells of the states
that it changed, and a query of other windows or slices finds those that it shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from msgspec import UNSET, UnsetType

from streammetrics import Accumulator, Interval
from streammetrics.present import ValueRow
from streammetrics.results import (
    band_of,
    counts_of,
    doubts_of,
    headlines_of,
    interval_of,
    is_exact,
    range_of,
)
from streammetrics_consumers.query.lines import LineTables, Views
from streammetrics_consumers.query.query import Slice
from streammetrics_consumers.query.slices import Computed, Key, KeyedState

Range: TypeAlias = tuple[float, float]  # the least and the greatest value

KEPT: Final = 20_000  # cells of a server
CELL_BYTES: Final = 2000
_NAMED: Final = (
    "{} of one user are taken as independent although users are named; "
    'cluster = "groups" of the metric changes it'
)


class StateCell(NamedTuple):
    """One state as rows show it, without its place. kind: the type of the rows. values: of each
    view by name, with the band of quantiles. alarm: why no value must be believed, or ""; doubts:
    reasons to doubt the first headline."""

    digest: str
    kind: str
    values: tuple[tuple[ValueRow, Interval | UnsetType], ...]
    headlines: tuple[str, ...]
    ranges: tuple[tuple[str, Range], ...]
    alarm: str
    doubts: tuple[str, ...]


class CellForm(NamedTuple):
    """Which values cells have. views: chooses those of a result, by `name`; more: the views that
    the config names; users: whether it names users that the metric does not use."""

    name: Hashable
    views: Callable[[object, Sequence[str]], Views]
    more: tuple[str, ...] = ()
    users: bool = False

    def cell(self, computed: Computed) -> StateCell:
        """The cell of a state."""
        state, result = computed.metric, computed.value
        values, headlines = self.views(result, self.more)
        counts = counts_of(result)
        rows = []
        for view in sorted(values):
            value = values[view]
            # Over users if the state has them; an undefined value has the reason of the metric
            # itself.
            shown = result if math.isnan(value) else computed.result
            interval_in = _interval_beside_users if self.users else interval_of
            interval = interval_in(shown, state, view)
            band = band_of(computed.result, view)
            row = ValueRow(
                view,
                value,
                interval if interval.formula else None,
                counts,
                exact=is_exact(result, view),
            )
            rows.append((row, UNSET if band is None else band))
        alarm = getattr(computed.result, "alarm", "")
        doubts = tuple(f"{headlines_of(result)[0]}: {why}" for why in doubts_of(result))
        return StateCell(
            computed.digest,
            computed.kind,
            tuple(rows),
            headlines,
            tuple((view, range_of(result, view)) for view in values),
            alarm if isinstance(alarm, str) else "",
            doubts,
        )


class CellCache:
    """Cells by the digests of their states, and tables of lines. Thread-safe; most: how many cells
    it keeps at most."""

    def __init__(self, most: int = KEPT) -> None:
        self._half = most // 2
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.tables = LineTables() if self._half else LineTables(0)
        self._newer: dict[tuple[Hashable, ...], StateCell] = {}
        self._older: dict[tuple[Hashable, ...], StateCell] = {}  # go when as many are newer

    @property
    def nbytes(self) -> int:
        """The approximate bytes of the cells."""
        return CELL_BYTES * (len(self._newer) + len(self._older))

    def cells(
        self,
        state: KeyedState,
        slices: Sequence[tuple[Slice, Key]],
        form: CellForm,
        *,
        with_other: bool,
    ) -> Iterator[tuple[Slice, StateCell]]:
        """The cells of these slices of a state, then that of the other keys."""
        kept_as = form.name, form.more, form.users
        kept_cells: dict[str, StateCell] = {}  # that were found: others may remove them

        def needs(digest: str) -> bool:
            key = digest, *kept_as
            cell = self._newer.get(key) or self._older.get(key)
            if cell is not None:
                self._keep(key, cell)
                kept_cells[digest] = cell
            return cell is None

        for slice_, digest, computed in state.computed(slices, needs, with_other=with_other):
            if computed is None:
                yield slice_, kept_cells[digest]
                continue
            cell = form.cell(computed)
            if not computed.drift:
                self._keep((digest, *kept_as), cell)
            yield slice_, cell

    def _keep(self, key: tuple[Hashable, ...], cell: StateCell) -> None:
        if len(self._newer) >= self._half:
            self._newer, self._older = {}, self._newer
        if self._half:
            self._newer[key] = cell


def _interval_beside_users(result: object, state: Accumulator, view: str) -> Interval:
    """The interval of a view of rows whose users are named, and not used by the metric."""
    interval = interval_of(result, state, view, cluster="none")
    units = getattr(result, "independent", "")
    if not interval.defined or not units:
        return interval
    why = filter(None, (_NAMED.format(units), interval.reason))
    return replace(interval, reason="; ".join(why))
