"""Totals: sums in place of users or lists, once all of their rows are counted.

A metric that tells users or lists apart defines `_totals`. Totals are a metric that takes no rows;
`combine.sealed` keeps them with the proof of the users that are in them.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn, Protocol, runtime_checkable

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.core.parts.part import Slots


@runtime_checkable
class HasTotals(Protocol):
    """A metric that tells users or lists apart, or holds metrics that do."""

    def _totals(self) -> Accumulator:
        """A state of sums in place of the users or lists of this one; the state itself if it has
        none. Not a copy: the caller must not change it."""


def totals_of(metric: Accumulator) -> Accumulator:
    """The totals of a metric; the metric itself if it has no users or lists."""
    return metric._totals() if isinstance(metric, HasTotals) else metric


@runtime_checkable
class HasTotalsApart(Protocol):
    """A metric that tells lists apart."""

    def _totals_apart(self) -> Accumulator | None:
        """The totals of each of its states, whose sums have the results of sums of the states, to
        the last bit; None if a list is in several states, so that they do not."""


def unlimited(metric: Accumulator) -> SettingsError:
    """The error for sealing a metric with `max_rows`, which parts of a whole may not reach."""
    return SettingsError(
        expected="max_rows=None, because each sealed part has fewer rows than the whole",
        got=f"max_rows={metric.settings()['max_rows']}",
        where=f"sealing {type(metric).__name__}",
        hint="leave max_rows out; a task holds only the rows of its bucket",
    )


class WithoutRows(Accumulator):
    """A metric that takes no rows: its states are made from other states, and merge."""

    _nests: ClassVar[bool] = True  # whether a Panel, PerKey or Windows may hold it

    def update(self, **columns: object) -> None:
        """Refuse all rows: the state is complete."""
        self._refuse()

    def check(self, **columns: object) -> Batch:
        """Refuse all rows."""
        self._refuse()

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError(
            expected="a state that accepts rows",
            got=f"a sealed state of {type(self).__name__}",
            where="update",
            hint="recompute the whole scope from its rows, and seal the result",
        )
