"""The columns that closing adds to an event for the experiments whose arms come from exposures, and
the keys that follow from the first exposure of its unit.

An event has a column of arms for each such experiment, and one of the times of the exposures. A
metric of units is also kept apart by the day of the exposure and by the time since then, so that
results can be read by cohort: the units whose window is over, the effect by age.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.config.event import Field

EXPOSED_ON: Final = "exposed_on"  # the day of the first exposure, in UTC, such as "2026-12-01"
SINCE: Final = "since"  # the whole days since the first exposure, as one of SPANS
SPANS: Final = ("0", "1", "2-3", "4-7", "8-15", "16+")
EXPOSURE_DAY: Final = Field(EXPOSED_ON, "exposed_on", name=EXPOSED_ON)
SPAN_SINCE: Final = Field(SINCE, "since", name=SINCE)
_FIRST_DAYS: Final = np.array([1, 2, 4, 8, 16])  # of each span but the first
_DAY_MS: Final = 86_400_000


def exposed_arm(experiment: str) -> Field:
    """The column of the arms of an experiment: the arm in which the unit of each event is exposed,
    None if it is not exposed by then, or its time is over."""
    return Field(experiment, "exposed_arm", name=f"(arm) {experiment}")


def exposed_ms(experiment: str) -> str:
    """The column of the times of the first exposures, int64; of events that have an arm."""
    return f"(exposed) {experiment}"


def exposed_just_then(
    arms: Mapping[str, str], times_ms: NDArray[np.int64]
) -> tuple[dict[str, DictionaryColumn], dict[str, NDArray[np.int64]]]:
    """The columns of arms and of times of events, as if each unit had been exposed just then to
    these arms of all experiments."""
    codes = np.zeros(len(times_ms), np.intp)
    columns = {
        exposed_arm(name).column: DictionaryColumn(codes, (arm,)) for name, arm in arms.items()
    }
    return columns, {exposed_ms(name): times_ms for name in arms}


def exposure_days(exposed_ms: NDArray[np.int64]) -> DictionaryColumn:
    """The day of each exposure in UTC, as text.

    >>> exposure_days(np.array([0, 86_399_999, 86_400_000])).values
    ('1970-01-01', '1970-01-02')
    """
    days, codes = np.unique(exposed_ms // _DAY_MS, return_inverse=True)
    return DictionaryColumn(codes, tuple(days.astype("datetime64[D]").astype(str).tolist()))


def spans_since(exposed_ms: NDArray[np.int64], times_ms: NDArray[np.int64]) -> DictionaryColumn:
    """The span of SPANS of each event: its whole days since the exposure.

    >>> day = 86_400_000
    >>> spans_since(np.zeros(4, np.int64), np.array([0, day - 1, 4 * day, 99 * day])).codes.tolist()
    [0, 0, 3, 5]
    """
    days = (times_ms - exposed_ms) // _DAY_MS
    return DictionaryColumn(np.searchsorted(_FIRST_DAYS, days, side="right"), SPANS)
