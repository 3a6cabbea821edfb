"""The sample ratio in the looks: its readings, and the greatest of them, which the alarm keeps.

Units that balance later do not take an alarm back, so each look stores the e-value, by epoch: an
alarm ends with a new epoch. The e-value of the days is stored beside it and repeated by later
looks, for a time when the days are not known any more because their windows were dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from streammetrics.experiments.assignment import ALARM, SampleRatioFound, with_days
from streammetrics.experiments.monitor import Watched
from streammetrics.experiments.one_look import Anytime

RATIO: Final = "(sample ratio)"
BY_DAY: Final = "(sample ratio by day)"


def ratio_alphas(found: SampleRatioFound) -> dict[str, float]:
    """The names of its readings, with the probability of a false alarm."""
    return {_named(RATIO, found): 1.0 / ALARM, _named(BY_DAY, found): 1.0 / ALARM}


def ratio_readings(
    found: SampleRatioFound, last: Mapping[str, Anytime]
) -> Iterator[tuple[str, Anytime]]:
    """What a look stores; last: the readings of the look before."""
    if found.reason:
        return
    before = last.get(_named(BY_DAY, found))
    now = _with_days(found, before)
    yield _named(RATIO, found), Anytime(log_e=now.log_e)
    if now.by_day is not None:
        yield _named(BY_DAY, found), Anytime(log_e=now.by_day)


def with_looks(found: SampleRatioFound, watched: Mapping[str, Watched]) -> SampleRatioFound:
    """The sample ratio with the looks at it: the greatest e-value, and that of the days."""
    if found.reason:
        return found
    looks, days = watched.get(_named(RATIO, found)), watched.get(_named(BY_DAY, found))
    now = _with_days(found, None if days is None else days.latest)
    return now if looks is None else replace(now, greatest=max(now.greatest, looks.log_e))


def _with_days(found: SampleRatioFound, stored: Anytime | None) -> SampleRatioFound:
    if found.by_day is not None or stored is None or math.isnan(stored.log_e):
        return found
    return with_days(found, stored.log_e)


def _named(name: str, found: SampleRatioFound) -> str:
    return f"{name} {found.epoch}".rstrip()
