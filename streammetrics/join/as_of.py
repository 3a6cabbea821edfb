"""The as-of join: which exposure, if any, each event of a unit belongs to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts.least_times import LeastTimes
from streammetrics.core.parts.record_table import Table
from streammetrics.core.rows import DictionaryColumn, Key, ranges, spans
from streammetrics.results.exposed_results import Attribution

Positions = NDArray[np.intp]
Times = NDArray[np.int64]


def name_order(keys: Sequence[Key]) -> list[int]:
    """The numbers of names in their order: integers first, then texts."""
    return sorted(range(len(keys)), key=lambda i: (isinstance(keys[i], str), keys[i]))


def first_exposures(first_times: LeastTimes, units: Words) -> tuple[Positions, Positions]:
    """For each unit and each experiment it was exposed to, the index of the unit and that of its
    first exposure among the known ones; [pairs] each, ascending by unit and then experiment.

    The first has the least time; of equal times, the arm whose name is first.
    """
    table = first_times.settled()
    positions, sizes = ranges(*spans(table.ids, units))
    rows = np.repeat(np.arange(len(units)), sizes)
    experiments = table.fields[0][positions]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (rows[1:] != rows[:-1]) | (experiments[1:] != experiments[:-1])
    if new.all():
        return rows, positions
    of_run, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    times = table.times[positions]
    of_arm = _ranks(first_times)
    ranks = of_arm[table.fields[1][positions]]
    is_least = times == np.minimum.reduceat(times, starts)[of_run]
    ranks[~is_least] = len(of_arm)  # above all
    first = np.flatnonzero(ranks == np.minimum.reduceat(ranks, starts)[of_run])
    first = first[is_least[first]]
    return rows[first], positions[first]


def _ranks(first_times: LeastTimes) -> NDArray[np.int64]:
    """The place of each arm in the order of names."""
    keys = first_times.keys[1]
    assert keys is not None
    ranks = np.zeros(len(keys.values), np.int64)
    ranks[name_order(keys.values)] = np.arange(len(keys.values))
    return ranks


def attributed(
    first_times: LeastTimes, units: Words, times: Times, window_ms: int | None
) -> Attribution:
    """The arm of each event in each experiment. units, times: [n]."""
    table = first_times.settled()
    rows, positions = first_exposures(first_times, units)
    exposed = table.times[positions]
    after = times[rows] - exposed
    is_after = after >= 0
    if window_ms is not None:
        is_after &= after < window_ms
    owned = np.flatnonzero(is_after)
    rows, positions, exposed = rows[owned], positions[owned], exposed[owned]
    of_experiment, arm = table.fields[0][positions], table.fields[1][positions]
    experiments, arms = first_times.keys
    assert experiments is not None and arms is not None
    arms_by_experiment: dict[Key, DictionaryColumn] = {}
    exposed_ms: dict[Key, Times] = {}
    for number, name in enumerate(experiments.values):
        inside = np.flatnonzero(of_experiment == number)
        arms_by_experiment[name] = _scattered(arm[inside], arms.values, rows[inside], len(units))
        exposed_ms[name] = np.zeros(len(units), np.int64)
        exposed_ms[name][rows[inside]] = exposed[inside]
    return Attribution(arms_by_experiment, exposed_ms)


def _scattered(
    arm: NDArray[np.unsignedinteger], arms: Sequence[Key], rows: Positions, n: int
) -> DictionaryColumn:
    """A column [n] of arms, None but in these rows."""
    used = np.flatnonzero(np.bincount(arm, minlength=len(arms)))
    numbers = np.zeros(len(arms), np.intp)
    numbers[used] = np.arange(1, len(used) + 1)
    codes = np.zeros(n, np.intp)
    codes[rows] = numbers[arm]
    return DictionaryColumn(codes, (None, *(arms[i] for i in used.tolist())))


def picked_events(table: Table, before: int) -> tuple[Positions, Positions]:
    """The positions of the events before a time, and of the others."""
    is_before = table.times < before
    return np.flatnonzero(is_before), np.flatnonzero(~is_before)
