"""SlidingAUC: the exact area under the ROC curve of the last rows, updated with each event."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from math import inf, isnan
from sys import float_info
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sortedcontainers import SortedList

from streammetrics.core.checks import binary_labels, check_positive, numbers, same_length
from streammetrics.core.checks import scores as checked_scores
from streammetrics.core.conversion import array_of, plain, vector, whole
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.event_times import milliseconds
from streammetrics.core.settings import named_settings
from streammetrics.core.slips import FIRST_MS, explained, refuse_milliseconds
from streammetrics.core.tables import Names, Table, TableRequest, arguments_of, table_error
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.results.areas import SlidingArea

_NEVER: Final = -inf  # earlier than any time
_LAST: Final = float_info.max


class SlidingAUC:
    """The AUC of the last n rows or the last t seconds, which can be read after every event.

    It depends on the order of rows, so it is not an Accumulator: it has no merge and no bytes. Its
    law is equality with `ExactAUC` over the same last rows. For windows that merge and are aligned
    to the clock, use `Windows(ExactAUC(), size_s)`.

    Settings
        rows: the number of rows in the window. seconds: the length of the window (now - seconds,
        now], where now is the time of the newest row. Pass one of the two. positive: the label of
        the positive class; with the default 1, labels are 0/1 or False/True.
    Rows
        labels: [n]. scores: [n], no NaN; infinities rank first and last.
        times_s: [n] finite numbers, `datetime64` in UTC, or datetimes with a zone (both cut to
        milliseconds), none below the one before it; with `seconds` only. Each argument may be a
        single value, for one row. Rows are in order, the newest last.
    State
        The rows of the window, each twice: in order of arrival, and by label in order of score.
        About 130 bytes a row.
    Result
        SlidingArea, with `auc` a float.
    Undefined
        nan while the window has one class only.
    Exactness
        Exact: a ratio of integers, correctly rounded, without drift however long it runs.
    Cost
        O(log n) for each row that enters and each that leaves; O(1) to read. Rows of a batch that
        leave within it cost nothing.
    Source
        Mann & Whitney 1947, Ann. Math. Stat. 18; over a sliding window Brzezinski & Stefanowski
        2017, "Prequential AUC", Knowl. Inf. Syst. 52, section 4 (ties count one half here).

    >>> from streammetrics import SlidingAUC
    >>> metric = SlidingAUC(rows=4)
    >>> metric.update([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    >>> metric.compute()
    SlidingArea: rows 4, positives 2
           value
    auc  0.87500
    >>> metric.update(0, 0.9)  # the oldest row leaves
    >>> metric.compute()
    SlidingArea: rows 4, positives 2
           value
    auc  0.37500
    """

    @named_settings(("rows", "seconds", "positive"))
    def __init__(
        self, rows: int | None = None, seconds: float | None = None, positive: int | str = 1
    ) -> None:
        """SettingsError unless exactly one of rows and seconds is given, and positive."""
        if (rows is None) == (seconds is None):
            raise SettingsError(
                expected="either rows or seconds",
                got="neither" if rows is None else "both",
                where="SlidingAUC",
                hint="pass rows=1000 or seconds=3600, for example",
            )
        n = whole(rows)
        if rows is not None and (n is None or n < 1):
            raise _bad_setting("a whole number of rows from 1", rows, "rows")
        self.rows, self.seconds = n, None if seconds is None else _span(seconds)
        self.positive = check_positive(plain(positive), "SlidingAUC.positive")
        self.reset()

    @explained
    def update(
        self, labels: ArrayLike, scores: ArrayLike, *, times_s: ArrayLike | None = None
    ) -> None:
        """Add rows, in order, and remove those that leave the window; all or none.

        labels: [n] of 0/1 or False/True. scores: [n], no NaN. times_s: [n] finite numbers,
        `datetime64` in UTC, or datetimes with a zone, none below the one before it; by name, with
        the setting `seconds` only. Each may be a single value, for one row.
        """
        y, s, t = self._checked(labels, scores, times_s)
        if t:
            self._newest = t[-1]
        # Only rows that are in the window at the end are counted: no read can see the others.
        first = self._first_kept(t, len(y))
        self._drop(len(y) - first)
        for i in range(first, len(y)):
            self._enter(y[i], s[i], t[i] if t else _NEVER)

    @explained
    def update_from(
        self,
        table: Table,
        /,
        *,
        columns: Mapping[str, Names] | None = None,
        where: str | None = None,
        **names: Names,
    ) -> None:
        """Add the rows of a table, in their order; as in `ExactAUC.update_from`. `time` is short
        for `times_s`.

        >>> from streammetrics import SlidingAUC
        >>> metric = SlidingAUC(rows=1000)
        >>> metric.update_from({"click": [0, 1], "scores": [0.2, 0.7]}, labels="click")
        >>> metric.compute().auc
        1.0
        """
        request = TableRequest(names, "SlidingAUC.update_from", columns, where)
        values, kept_rows = arguments_of(self, table, request)
        arguments: dict[str, Any] = values
        try:
            self.update(**arguments)
        except InputError as error:
            raise table_error(error, kept_rows) from None

    def arguments(self) -> Mapping[str, bool]:
        """The arguments of `update`, each with whether it is required."""
        timed = {} if self.seconds is None else {"times_s": True}
        return {"labels": True, "scores": True, **timed}

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        """The widths of arguments that are tables: none."""
        return {}

    def _roles(self) -> Mapping[str, str]:
        return {}

    def reset(self) -> None:
        """Forget all rows; the settings stay."""
        self._newest = _NEVER
        self._window: deque[tuple[int, float, float]] = deque()  # label, score, time
        self._sorted = SortedList(), SortedList()  # scores of the negatives, of the positives
        # 2U: 2 for each pair in the right order, 1 for each tie. A Python integer, since the
        # pairs of a large window do not fit 64 bits.
        self._twice_u = 0

    def compute(self) -> SlidingArea:
        """The area of the rows in the window."""
        negatives, positives = map(len, self._sorted)
        area = ratio(self._twice_u, 2 * positives * negatives)
        return SlidingArea(area, positives + negatives, positives)

    def __repr__(self) -> str:
        limit = f"rows={self.rows}" if self.rows is not None else f"seconds={self.seconds}"
        label = "" if self.positive == 1 else f", positive={self.positive!r}"
        return f"SlidingAUC({limit}{label})"

    def _checked(
        self, labels: Any, scores: Any, times_s: Any
    ) -> tuple[Sequence[int], Sequence[float], Sequence[float]]:
        if (times_s is None) != (self.seconds is None):
            raise InputError(
                expected="times_s" if times_s is None else "no times",
                got="none" if times_s is None else "some",
                where="times_s",
                hint="pass the time of each row in seconds"
                if times_s is None
                else "leave them out, or use SlidingAUC(seconds=...)",
            )
        y: Sequence[int]
        s: Sequence[float]
        # The fast path for a single event of plain numbers, without the overhead of numpy.
        plain_row = type(labels) is int and labels in (0, 1) and self.positive == 1
        if plain_row and type(scores) is float and not isnan(scores):
            y, s = [labels], [scores]
        else:
            truth = binary_labels(_rows(labels, "labels"), "labels", self.positive)
            values = checked_scores(_rows(scores, "scores"))
            same_length(len(truth), values, "scores", other="labels")
            y, s = truth.tolist(), values.tolist()  # every float32 is a float64
        return y, s, [] if times_s is None else self._checked_times(times_s, len(y))

    def _checked_times(self, times_s: Any, n: int) -> Sequence[float]:
        if n == 1 and type(times_s) is float and max(self._newest, -_LAST) <= times_s < FIRST_MS:
            return [times_s]
        times = self._seconds_of(_rows(times_s, "times_s"))
        same_length(n, times, "times_s", other="labels")
        refuse_milliseconds(times, "times_s")
        finite = np.isfinite(times)
        finite_times = np.concatenate([[self._newest], np.where(finite, times, _NEVER)])
        before = np.maximum.accumulate(finite_times)[:-1]
        bad = np.flatnonzero(~finite | (times < before))
        if len(bad):
            got = times[bad[0]]
            why = f"{shown(got)} after {shown(before[bad[0]])}"
            raise InputError(
                expected="finite times in seconds that do not decrease",
                got=why if np.isfinite(got) else shown(got),
                where=f"times_s[{bad[0]}]",
                hint="pass rows in time order; drop late ones, or use Windows for them",
                rows=bad,
            )
        seconds: list[float] = times.tolist()
        return seconds

    @staticmethod
    def _seconds_of(times: Any) -> NDArray[np.float64]:
        array: NDArray[Any] = vector(times, "times_s")
        if array.dtype.kind == "M" or isinstance(array.flat[0] if array.size else 0, datetime):
            return milliseconds(times, "times_s") / 1000
        return numbers(times, "times_s").astype(np.float64, copy=False)

    def _first_kept(self, times: Sequence[float], n: int) -> int:
        """The index of the first row of a batch that is in the window at its end."""
        if self.rows is not None:
            return max(0, n - self.rows)
        # The newest row is always in the window.
        return bisect_left(times, True, hi=max(0, n - 1), key=lambda time: not self._is_over(time))

    def _is_over(self, time: float) -> bool:
        """Whether now - time >= seconds, exactly."""
        assert self.seconds is not None
        # Rounding is monotonic, so a rounded difference can mislead only where it is equal.
        passed = self._newest - time
        if passed != self.seconds:
            return passed > self.seconds
        return Fraction(self._newest) - Fraction(time) >= Fraction(self.seconds)

    def _drop(self, coming: int) -> None:
        """Remove the rows that leave the window when `coming` rows enter."""
        window = self._window
        if self.rows is not None:
            for _ in range(len(window) + coming - self.rows):
                self._leave()
        else:
            while window and self._is_over(window[0][2]):
                self._leave()

    def _enter(self, label: int, score: float, time: float) -> None:
        self._twice_u += self._pairs(label, score)
        self._sorted[label].add(score)
        self._window.append((label, score, time))

    def _leave(self) -> None:
        label, score, _ = self._window.popleft()
        self._sorted[label].remove(score)
        self._twice_u -= self._pairs(label, score)

    def _pairs(self, label: int, score: float) -> int:
        """The contribution of a row to 2U: 2 for each pair in the right order, 1 for each tie."""
        other_scores = self._sorted[1 - label]
        below_and_up_to: int = other_scores.bisect_left(score) + other_scores.bisect_right(score)
        return below_and_up_to if label else 2 * len(other_scores) - below_and_up_to


def _rows(values: Any, name: str) -> Any:
    """A single value as one row; other values as they are."""
    if values is None or isinstance(values, (int, float, str, datetime, np.generic)):
        return [values]
    return array_of(values, name).reshape(1) if getattr(values, "ndim", 1) == 0 else values


def _span(seconds: object) -> float:
    number = plain(seconds)
    if isinstance(number, (int, float)) and not isinstance(number, bool) and 0 < number < inf:
        return number
    raise _bad_setting("a positive, finite number of seconds", seconds, "seconds")


def _bad_setting(expected: str, got: object, name: str) -> SettingsError:
    return SettingsError(
        expected=expected,
        got=shown(got),
        where=f"SlidingAUC.{name}",
        hint="pass rows=1000 or seconds=3600, for example",
    )
