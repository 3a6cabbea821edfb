"""The states of exposed units by cohort: those whose window is over, and by days since exposure.

A metric of units of an exposed experiment has two groupings: by epoch and arm, over all exposed
units, and by epoch, arm, the UTC day of the exposure and the days since it. The units of a cohort
are all in its first day, in which each has the value 0 from its exposure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple, TypeAlias, cast

import streammetrics as sm
from streammetrics_consumers.model.generation import Pane

DAY_MS: Final = 86_400_000  # as in model.times, which loads numpy, which `status` does not need
ALL_UNITS: Final = 0  # the grouping by epoch and arm
COHORTS: Final = 1  # the grouping by epoch, arm, day of exposure and days since it
SINCE: Final = ("0", "1", "2-3", "4-7", "8-15", "16+")  # keys of the days since an exposure
FIRST_DAY: Final = SINCE[0]  # in which each unit is
_EPOCH: Final = date(1970, 1, 1)

OfUnits: TypeAlias = "sm.UnitMean | sm.UnitRate"
# Of one metric, by epoch and value of the arm in the events.
ArmStates: TypeAlias = "dict[tuple[str | None, str | None], OfUnits]"


class Days(NamedTuple):
    """Days since an exposure: from the first on to just before `end`, None where there is none."""

    first: int
    end: int | None

    @staticmethod
    def parse(key: str) -> Days:
        """Those of a key.

        >>> Days.parse("0"), Days.parse("2-3"), Days.parse("16+")
        (Days(first=0, end=1), Days(first=2, end=4), Days(first=16, end=None))
        """
        first, dash, last = key.rstrip("+").partition("-")
        end = None if key.endswith("+") else int(last if dash else first) + 1
        return Days(int(first), end)

    def end_ms(self, window_ms: int | None) -> int | None:
        """The time after an exposure from which on no event counts in them; None: never."""
        ends = [None if self.end is None else self.end * DAY_MS, window_ms]
        return min((end for end in ends if end is not None), default=None)

    def exist(self, window_ms: int | None) -> bool:
        """Whether they begin within the window after an exposure."""
        return window_ms is None or self.first * DAY_MS < window_ms


class Cohort(NamedTuple):
    """The place of a state: its epoch, the value of its arm, the day of its exposures in days since
    1970, and the key of the days since then."""

    epoch: str | None
    value: str | None
    day: int
    since: str

    @staticmethod
    def parse(key: object) -> Cohort:
        """That of a key of the grouping of cohorts."""
        assert isinstance(key, tuple)
        _, epoch, value, exposed_on, since = cast("tuple[object, ...]", key)
        day = (date.fromisoformat(str(exposed_on)) - _EPOCH).days
        epoch, value = (None if text is None else str(text) for text in (epoch, value))
        return Cohort(epoch, value, day, str(since))


def last_day_over(closed_ms: int | None, after_ms: int) -> int | None:
    """The last day all of whose exposures were longer than `after_ms` before a time; None: no time
    is closed.

    >>> last_day_over(10 * DAY_MS - 1, 3 * DAY_MS), last_day_over(10 * DAY_MS, 3 * DAY_MS)
    (5, 6)
    """
    return None if closed_ms is None else (closed_ms - after_ms) // DAY_MS - 1


def cohort_panes(panes: Iterable[Pane]) -> list[Pane]:
    """The panes of the cohorts since the start."""
    return [pane for pane in panes if pane.grouping == COHORTS and pane.is_total]


@dataclass(frozen=True, slots=True)
class CohortStates:
    """One sum of states of units, by epoch and arm. first, end: the days of exposure [first, end)
    of the cohorts in it, in days since 1970."""

    states: ArmStates
    first: int
    end: int


def closed_units(state: sm.PerKey, closed_ms: int | None, window_ms: int) -> CohortStates | None:
    """The units whose window is over, with all that they did in it; None without a cohort, and
    where the state does not keep all cohorts apart."""
    last = last_day_over(closed_ms, window_ms)
    if last is None or state.overflow_state() is not None:
        return None
    cohorts = [(cohort, key) for cohort, key in _cohorts(state) if cohort.day <= last]
    sums: ArmStates = {}
    for cohort, key in cohorts:
        _add(sums, cohort, _unit_state(state, key))
    return _cohort_sum(sums, [cohort for cohort, _ in cohorts])


def units_since(
    state: sm.PerKey, closed_ms: int | None, window_ms: int | None
) -> Iterator[tuple[Days, CohortStates]]:
    """What units did in each of the days since their exposure, the last days first, over all units
    of the cohorts for which these are over; nothing where the state does not keep all cohorts
    apart."""
    if closed_ms is None or state.overflow_state() is not None:
        return
    by_since: dict[str, list[tuple[Cohort, object]]] = {}
    for cohort, key in _cohorts(state):
        by_since.setdefault(cohort.since, []).append((cohort, key))
    exposed = sorted(by_since.get(FIRST_DAY, ()), key=lambda place: place[0].day)
    units: ArmStates = {}  # of the first cohorts, without values
    n_cohorts = 0
    for since in reversed(SINCE):  # so that cohorts are only added
        days = Days.parse(since)
        end_ms = days.end_ms(window_ms)
        if end_ms is None or not days.exist(window_ms):
            continue
        last = last_day_over(closed_ms, end_ms)
        assert last is not None
        while n_cohorts < len(exposed) and exposed[n_cohorts][0].day <= last:
            cohort, key = exposed[n_cohorts]
            _add(units, cohort, _unit_state(state, key).without_values())
            n_cohorts += 1
        sums = {place: arm.copy() for place, arm in units.items()}
        for cohort, key in by_since.get(since, ()):
            if cohort.day <= last:
                _add(sums, cohort, _unit_state(state, key))
        whole = _cohort_sum(sums, [cohort for cohort, _ in exposed[:n_cohorts]])
        if whole is not None:
            yield days, whole


def _cohorts(state: sm.PerKey) -> Iterator[tuple[Cohort, object]]:
    """The keys with a known day of exposure."""
    for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
        assert isinstance(key, tuple)
        if key[-2] is not None and key[-1] is not None:
            yield Cohort.parse(key), key


def _unit_state(state: sm.PerKey, key: object) -> OfUnits:
    of_key = state.state(key)  # type: ignore[arg-type]
    assert isinstance(of_key, sm.UnitMean | sm.UnitRate)
    return of_key


def _add(sums: ArmStates, cohort: Cohort, state: OfUnits) -> None:
    """Add a state to that of its epoch and arm, which belongs to these sums."""
    place = cohort.epoch, cohort.value
    if place in sums:
        sums[place].merge(state)  # type: ignore[arg-type]  # both are of one metric
    else:
        sums[place] = state.copy()


def _cohort_sum(sums: ArmStates, cohorts: list[Cohort]) -> CohortStates | None:
    if not cohorts:
        return None
    days = [cohort.day for cohort in cohorts]
    return CohortStates(sums, min(days), max(days) + 1)


def arms_of(
    metrics: Mapping[str, CohortStates],
    arms: Mapping[str, str],
) -> dict[str, dict[str, dict[str, sm.Accumulator]]]:
    """The states of metrics by epoch, arm and metric, as an experiment takes them. arms: the arm of
    each value; other values are left out."""
    states: dict[str, dict[str, dict[str, sm.Accumulator]]] = {}
    for metric, cohorts in metrics.items():
        for (epoch, value), state in cohorts.states.items():
            arm = None if value is None else arms.get(value)
            if arm is not None:
                of_arm = states.setdefault(epoch or "", {}).setdefault(arm, {})
                of_arm[metric] = of_arm[metric] + state if metric in of_arm else state
    return states
