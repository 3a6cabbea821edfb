"""Results of joins of events with exposures: attributed rows, new exposures, and pending events."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import unknown_key
from streammetrics.core.rows import DictionaryColumn, Key
from streammetrics.present.notebook import Shown
from streammetrics.present.row_table import RowTable, table_of_columns
from streammetrics.present.value_rows import LEVEL, Columns
from streammetrics.present.view import NONE, View
from streammetrics.present.views import Part


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PendingExposures(Shown):
    """The numbers of events and exposures that are not yet closed, and of known exposures.

    exposures: by experiment the pending ones. known: by experiment the pairs of a unit and an arm;
    a unit in several arms counts several times. first_ms, last_ms: the least and the greatest time
    of what is pending, None without any.
    """

    events: int
    exposures: Mapping[Key, int]
    known: Mapping[Key, int]
    first_ms: int | None
    last_ms: int | None

    def _notes(self) -> Iterator[str]:
        for name, counts in (("pending exposures", self.exposures), ("known", self.known)):
            if counts:
                yield f"{name}: " + ", ".join(f"{key} {n:,}" for key, n in counts.items())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExposedResult(Shown, Mapping[Key, object]):
    """The metric's result by arm, over the events of exposed units, and other counts.

    exposed: the units of each arm. in_several: units that were exposed to several arms; they count
    in the first. counted, others: events that belong to an arm, and those of units that were not
    exposed before, or longer ago than the window. pending: those of them that are not closed.
    late_exposures, late_events: older than the closed time when they arrived. closed_before_ms: the
    time before which events are counted for good, None if none are. newest_ms: the greatest time of
    all events.
    """

    results: Mapping[Key, object]
    exposed: Mapping[Key, int]
    in_several: int
    counted: int
    others: int
    pending: int
    late_exposures: int
    late_events: int
    closed_before_ms: int | None
    newest_ms: int | None

    @property
    @View(better=NONE, undefined="no exposed units")
    def share_in_several(self) -> float:
        """Units in several arms / exposed units; nan where there are none."""
        n = sum(self.exposed.values())
        return self.in_several / n if n else math.nan

    def __getitem__(self, arm: Key) -> object:
        try:
            return self.results[arm]
        except (KeyError, TypeError):
            raise unknown_key(arm, self.results, type(self).__name__, "arms") from None

    def __iter__(self) -> Iterator[Key]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def _parts(self) -> Iterator[tuple[Part, object]]:
        yield from (
            (Part(f"[{arm!r}]", keys=(arm,)), result) for arm, result in self.results.items()
        )

    def _notes(self) -> Iterator[str]:
        units = ", ".join(f"{arm} {n:,}" for arm, n in self.exposed.items())
        yield f"exposed units: {units or 'none'}; in several arms {self.in_several:,}"
        yield f"events counted {self.counted:,}, others {self.others:,}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribution(Shown):
    """To which arm of each experiment n events belong.

    arms: for each experiment with a known exposure [n], the arm, or None where the unit was not
    exposed at that time, or too long before. exposed_ms: for each int64 [n], the time of the unit's
    first exposure, 0 where the arm is None.
    """

    arms: Mapping[Key, DictionaryColumn]
    exposed_ms: Mapping[Key, NDArray[np.int64]]

    def _notes(self) -> Iterator[str]:
        for experiment, arms in self.arms.items():
            is_arm = np.array([arm is not None for arm in arms.values], np.bool_)
            n = int(np.count_nonzero(is_arm[arms.codes]))
            yield f"{experiment}: {n:,} of {len(arms):,} events"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NewExposures(Shown):
    """Exposures that a closing made known: m triples of a unit, an experiment and an arm, by
    ascending unit.

    units: uint64 [m], the 64 bits of each id, or of its hash by `hash_ids`. times_ms: int64 [m],
    the least time of each triple. first: bool [m], whether it is the unit's first exposure to this
    experiment; the others are of units in several arms.
    """

    units: NDArray[np.uint64]
    times_ms: NDArray[np.int64]
    experiments: DictionaryColumn
    arms: DictionaryColumn
    first: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.units)

    def _columns(self, level: float) -> Columns:
        """The triples, with their times."""
        return {
            "unit": self.units.tolist(),
            "time_ms": self.times_ms.tolist(),
            "experiment": listed(self.experiments),
            "arm": listed(self.arms),
            "first": self.first.tolist(),
        }

    def _table(self, most: int) -> RowTable:
        return table_of_columns(type(self).__name__, self._columns(LEVEL), most)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributedRows(Shown):
    """The events that `ExposedRows.close` removes, n by ascending unit and time, and the exposures.

    units: uint64 [n], the 64 bits of each id, or of its hash by `hash_ids`. times_ms: int64 [n].
    columns: each [n], an array of its kind, or `DictionaryColumn` for keys; for "hashed" columns
    the hashes of `hash_ids`. attribution: of these events. exposures: those that became known.
    other_exposures: those that were dropped, since their experiment or their time is none of those
    given.
    """

    units: NDArray[np.uint64]
    times_ms: NDArray[np.int64]
    columns: Mapping[str, NDArray[np.generic] | DictionaryColumn]
    attribution: Attribution
    exposures: NewExposures
    other_exposures: int

    def __len__(self) -> int:
        return len(self.units)

    def _columns(self, level: float) -> Columns:
        """The events: their units, times and columns, and the arm of each experiment."""
        columns: Columns = {"unit": self.units.tolist(), "time_ms": self.times_ms.tolist()}
        for name, column in self.columns.items():
            columns[name] = listed(column)
        for experiment, arms in self.attribution.arms.items():
            columns[f"arm of {experiment}"] = listed(arms)
        return columns

    def _table(self, most: int) -> RowTable:
        table = table_of_columns(type(self).__name__, self._columns(LEVEL), most)
        about = f"{table.about}, new exposures {len(self.exposures):,}"
        return table._replace(about=f"{about}, dropped {self.other_exposures:,}")


def listed(column: NDArray[np.generic] | DictionaryColumn) -> list[object]:
    """The value of each row."""
    if isinstance(column, DictionaryColumn):
        return [column.values[code] for code in column.codes.tolist()]
    return cast("list[object]", column.tolist())
