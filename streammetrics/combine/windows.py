"""Windows: one state of a metric for each span of event time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.combine.children import Map
from streammetrics.combine.panel import part_of, require_empty
from streammetrics.combine.per_key import absorb_by_key, require_as_many
from streammetrics.combine.sliding import Run, Span, Spans, Sums, runs
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.checks import integers
from streammetrics.core.codec import damaged
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.keys import coded
from streammetrics.core.parts import Column, Slots
from streammetrics.core.rows import Coded, Rows
from streammetrics.core.slips import refuse_other_units
from streammetrics.results.shown import Shown

_MAX_OVERLAP: Final = 3_600  # an hour that slides by a second; a result names each window
_INT64: Final = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class WindowsResult(Mapping[Span, object], Shown):
    """The result of each window [start_ms, end_ms) that holds rows, and `total` of all rows."""

    results: Mapping[Span, object]
    total: object

    def __getitem__(self, window: Span) -> object:
        return self.results[window]

    def __iter__(self) -> Iterator[Span]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


class Windows(Accumulator, schema="windows/1"):
    """A metric for each window of event time, tumbling or sliding, aligned to the Unix epoch.

    Settings
        metric: an empty metric.
        size_s: length of a window in seconds, a multiple of a millisecond.
        slide_s: seconds from one window's start to the next one's; `size_s` by default.
    Rows
        times_ms: int64 [n], event times in milliseconds since the epoch, of which those are refused
        that are a time in seconds, micro- or nanoseconds of 1995 to 2052; then the metric's own
        columns. A window [start, end) holds the rows with start <= time < end, whenever they
        come: a late row adds to its window.
    State
        A map from pane to the metric's state. Panes are as long as the greatest common divisor
        of size and slide, and a window is the sum of its panes.
    Result
        A mapping from (start_ms, end_ms) to result for each window with rows, and `total`.
    Cost
        One look-up for each distinct pane of a batch. Reading computes a result where a pane
        enters or leaves, of a sum of a few dozen states; windows in between share it.
    Source
        Panes: Li, Maier, Tufte, Papadimos & Tucker 2005, "No pane, no gain", SIGMOD Record
        34(1), section 2.

    >>> from streammetrics import Ratio, Windows
    >>> hourly = Windows(Ratio(), size_s=3600)
    >>> hourly.update([0, 1_800_000, 3_600_000], numerators=[1, 0, 1])
    >>> hourly.compute()[(0, 3_600_000)].ratio, hourly.compute().total.rows
    (0.5, 3)
    """

    metric: Accumulator
    size_s: float
    slide_s: float | None = None
    states = Map()

    def check_settings(self) -> None:
        self._set("metric", require_empty(self.metric, "Windows.metric"))
        if self.slide_s is None:
            self._set("slide_s", self.size_s)
        for name in ("size_s", "slide_s"):
            value = self.settings()[name]
            if isinstance(value, bool) or not isinstance(value, int | float) or not _is_span(value):
                raise SettingsError(
                    expected="a positive number of seconds, in whole milliseconds, up to 10 years",
                    came=shown(value),
                    where=f"Windows.{name}",
                    todo="pass for instance 3600 for an hour",
                )
            # 60 and 60.0 are one setting, and so one state.
            self._set(name, int(value) if value == int(value) else value)
        if self.slide_ms > self.size_ms:
            raise SettingsError(
                expected=f"at most size_s={self.size_s}, so that no row falls between windows",
                came=shown(self.slide_s),
                where="Windows.slide_s",
                todo="slide by no more than a window's length",
            )
        if self.size_ms > _MAX_OVERLAP * self.slide_ms:
            raise SettingsError(
                expected=f"at most {_MAX_OVERLAP:,} windows that hold the same row, since a result "
                "names each of them",
                came=f"size_s={self.size_s}, slide_s={self.slide_s}",
                where="Windows.slide_s",
                todo=f"slide by at least {_least_slide(self.size_ms)} s",
            )

    @property
    def size_ms(self) -> int:
        """Length of a window in milliseconds."""
        return round(self.size_s * 1000)

    @property
    def slide_ms(self) -> int:
        """Milliseconds from one window's start to the next one's."""
        return round((self.slide_s or self.size_s) * 1000)

    @property
    def pane_ms(self) -> int:
        """Length of the panes of which windows are sums, in milliseconds."""
        return gcd(self.size_ms, self.slide_ms)

    def arguments(self) -> Mapping[str, bool]:
        return {"times_ms": True, **self.metric.arguments()}

    def update(self, times_ms: ArrayLike, **columns: ArrayLike | Coded | None) -> None:
        """Feed each row to the pane of its time."""
        self._update(self.check(times_ms, **columns))

    def check(self, times_ms: ArrayLike, **columns: ArrayLike | Coded | None) -> Rows:
        """The panes and the metric's rows, or InputError; changes nothing."""
        times = integers(times_ms, "times_ms")
        refuse_other_units(times, "times_ms")
        rows = self.metric.check(**columns)
        require_as_many(len(times), rows.n, "times_ms")
        panes = coded(times // self.pane_ms)  # near each other, and so quick to tell apart
        starts = tuple(p * self.pane_ms for p in panes.values if isinstance(p, int))
        return Rows(rows.n, (Coded(panes.codes, starts), rows), rows.mass)

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        absorb_by_key(self.states, rows, slots)

    def compute(self) -> WindowsResult:
        found = list(self._runs())
        results = [state.compute() for _, state in self._states(found)]
        return WindowsResult(Spans(found, results, self.size_ms), self.total_state().compute())

    def windows(self) -> tuple[Span, ...]:
        """The windows that hold rows, in order of time."""
        return tuple(Spans(list(self._runs()), (), self.size_ms))

    def window_states(self) -> Iterator[tuple[tuple[Span, ...], Accumulator]]:
        """In order of time, windows that hold the same panes, and their state.

        At most two states for each pane, however many windows there are. The rows are to stay as
        they are until the last one was taken.
        """
        for run, state in self._states(list(self._runs())):
            yield tuple((start, start + self.size_ms) for start in run.starts), state

    def window_state(self, start_ms: int, end_ms: int) -> Accumulator:
        """The state of all rows in [start_ms, end_ms), which must fall between panes."""
        for name, value in (("start_ms", start_ms), ("end_ms", end_ms)):
            if value % self.pane_ms:
                raise SettingsError(
                    expected=f"a multiple of the panes' {self.pane_ms} ms",
                    came=shown(value),
                    where=f"Windows.window_state, {name}",
                    todo="ask for whole windows",
                )
        return self._sum([at for pane, at in self._panes().items() if start_ms <= pane < end_ms])

    def panes(self) -> dict[int, Accumulator]:
        """The state of each pane by its start_ms, in order of time."""
        return {pane: self._sum([at]) for pane, at in sorted(self._panes().items())}

    def total_state(self) -> Accumulator:
        """The state of all rows."""
        return self._sum(list(self._panes().values()))

    def _runs(self) -> Iterator[Run]:
        return runs(sorted(self._panes()), self.size_ms, self.slide_ms, self.pane_ms)

    def _states(self, found: Sequence[Run]) -> Iterator[tuple[Run, Accumulator]]:
        """Each of these runs with the state of its windows."""
        order = np.array([at for _, at in sorted(self._panes().items())], np.intp)
        sums = Sums(self.states.child, order, self.metric)
        for run in found:
            yield run, part_of(self, sums.of(run.low, run.high))

    def _sum(self, children: list[int]) -> Accumulator:
        some = self.states.child._take(np.array(children, np.intp))
        if len(children) == 1:
            return part_of(self, some)
        total = self.metric.empty()
        total._merge_slots(some, np.zeros(len(children), np.intp))
        return part_of(self, total)

    def _panes(self) -> dict[int, int]:
        self._flush()
        return {key: at for key, at in self.states.index[0].items() if isinstance(key, int)}

    def _read(self, columns: Mapping[str, Column], width: int) -> Self:
        new = super()._read(columns, width)
        pane_ms = new.pane_ms
        first, last = int(_INT64.min) // pane_ms * pane_ms, int(_INT64.max)
        for keys in new.states.index:
            for key in keys:
                if type(key) is not int or key % pane_ms or not first <= key <= last:
                    raise damaged("a window that does not begin with a pane")
        return new


def _least_slide(size_ms: int) -> float | int:
    """Seconds."""
    found = -(-size_ms // _MAX_OVERLAP)
    return found // 1000 if found % 1000 == 0 else found / 1000


def _is_span(seconds: float) -> bool:
    ms = seconds * 1000
    return 0 < seconds <= 315_576_000 and abs(ms - round(ms)) <= 1e-9 * ms
