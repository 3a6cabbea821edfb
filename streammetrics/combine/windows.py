"""Windows: one state of a metric for each span of event time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from math import gcd
from typing import TYPE_CHECKING, ClassVar, Final, Generic, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.combine.children import Map
from streammetrics.combine.panel import Computes, R, Results, part_of, require_empty
from streammetrics.combine.per_key import checked, feed_by_key, require_as_many
from streammetrics.core import intakes
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.codec import damaged
from streammetrics.core.conversion import flag, whole
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.event_times import milliseconds
from streammetrics.core.ids.keys import dictionary_column
from streammetrics.core.intakes import Intake
from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.slips import explained
from streammetrics.present.views import Part

# Sliding windows over panes: windows that hold the same panes, and the sums of their states.

Span = tuple[int, int]  # [start_ms, end_ms)
_FAN: Final = 16  # states that are summed to one state of the next level
_IN_REPR: Final = 1_000  # windows


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive windows that hold the same panes: their `starts`, and the range of indices [low,
    high) of the panes among all panes in order of time."""

    starts: range
    low: int
    high: int


def runs(panes: Sequence[int], size_ms: int, slide_ms: int, pane_ms: int) -> Iterator[Run]:
    """The windows that hold a pane, in order of time; panes: starts, ascending.

    There are at most two runs for each pane: a run ends where a pane enters or leaves.
    """
    # The first window that holds each pane, and the first one after the last.
    enter = [-(-(pane + pane_ms - size_ms) // slide_ms) * slide_ms for pane in panes]
    leave = [(pane // slide_ms + 1) * slide_ms for pane in panes]
    low = high = 0
    start = enter[0] if enter else 0
    while low < len(panes):
        while high < len(panes) and enter[high] <= start:
            high += 1
        stop = leave[low] if high == len(panes) else min(leave[low], enter[high])
        yield Run(range(start, stop, slide_ms), low, high)
        start = stop
        while low < high and leave[low] <= start:
            low += 1
        if low == high and high < len(panes):
            start = enter[high]


class Spans(Mapping[Span, object]):
    """A value for each window, in order of time; windows of one run share it."""

    __slots__ = ("_firsts", "_found", "_runs", "_size_ms")

    def __init__(self, runs: Sequence[Run], results: Sequence[object], size_ms: int) -> None:
        """results: the value of the windows of each run."""
        self._runs, self._found, self._size_ms = runs, results, size_ms
        self._firsts = [run.starts.start for run in runs]

    def __getitem__(self, window: Span) -> object:
        if type(window) is not tuple or [*map(type, window)] != [int, int]:
            raise KeyError(window)
        start, end = window
        index = bisect_right(self._firsts, start) - 1
        if index < 0 or start not in self._runs[index].starts or end != start + self._size_ms:
            raise KeyError(window)
        return self._found[index]

    def __iter__(self) -> Iterator[Span]:
        return ((start, start + self._size_ms) for run in self._runs for start in run.starts)

    def __len__(self) -> int:
        return sum(len(run.starts) for run in self._runs)

    def __repr__(self) -> str:
        """Like that of a dict; for very many windows the first ones, and the number of others."""
        texts = [f"{span!r}: {self[span]!r}" for span in islice(self, _IN_REPR)]
        n_more = len(self) - len(texts)
        return "{" + ", ".join([*texts, *([f"... and {n_more} more"] if n_more else [])]) + "}"


class Sums:
    """Sums of consecutive states, for many ranges.

    A state of level k + 1 is the sum of a block of 16 states of level k, so each state is added
    once per level, and any range of n states is the sum of a few dozen states of each of log n
    levels. Nothing is subtracted from a sum, which states do not allow.
    """

    def __init__(self, states: Accumulator, order: NDArray[np.intp], empty: Accumulator) -> None:
        """states: side by side, one in each slot. order: [n], the slots in the states' order."""
        self._empty = empty
        self._levels = [(states, order)]  # each level, and the slots of its states in order

    def sum_of(self, low: int, high: int) -> Accumulator:
        """The sum of the states [low, high)."""
        if high - low == 1:
            states, order = self._levels[0]
            return states._take(order[low:high])
        total = self._empty.empty()
        level = 0
        while low < high:
            first, last = -(-low // _FAN), high // _FAN  # the blocks inside the range
            if last - first < 2:
                self._add(total, level, np.arange(low, high))
                break
            edges = np.arange(low, first * _FAN), np.arange(last * _FAN, high)
            self._add(total, level, np.concatenate(edges))
            low, high, level = first, last, level + 1
        return total

    def _add(self, total: Accumulator, level: int, positions: NDArray[np.intp]) -> None:
        """Add the states at these positions of a level to a sum."""
        if len(self._levels) <= level:
            states, order = self._levels[level - 1]
            n = -(-len(order) // _FAN)
            blocks = np.empty(len(order), np.intp)
            blocks[order] = np.arange(len(order)) // _FAN
            sums = self._empty._empty(n)
            sums._merge_slots(states, blocks)
            self._levels.append((sums, np.arange(n)))
        states, order = self._levels[level]
        if len(positions):
            total._merge_slots(states._take(order[positions]), np.zeros(len(positions), np.intp))


_MAX_OVERLAP: Final = 3_600  # an hour that slides by a second; a result names each window
_INT64: Final = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WindowsResult(Results[Span, R]):
    """The result of each window [start_ms, end_ms) that holds rows, and `total` of all rows."""

    _kind: ClassVar[str] = "windows"

    total: R

    def _parts(self) -> Iterator[tuple[Part, object]]:
        yield from ((Part(f"[{span!r}]", window=span), result) for span, result in self.items())
        yield Part("total", name="total"), self.total


class Windows(Accumulator, Generic[R], schema="windows/1"):
    """A metric for each window of event time, tumbling or sliding, aligned to the Unix epoch.

    Settings
        metric: an empty metric.
        size_s: length of a window in seconds, a multiple of a millisecond.
        slide_s: seconds from one window's start to the next one's; `size_s` by default.
    Rows
        times_ms: [n], event times: integers, in milliseconds since the epoch (values that are a
        time of 1995 to 2052 in seconds, micro- or nanoseconds are refused); `datetime64`, in UTC;
        or datetimes with a zone. Then the metric's own columns. A
        window [start, end) holds the rows with start <= time < end, whenever they arrive: a late
        row is added to its window.
    State
        A map from pane to the metric's state. Panes are as long as the greatest common divisor
        of size and slide, and a window is the sum of its panes.
    Result
        A mapping from (start_ms, end_ms) to result for each window with rows, and `total`.
    Cost
        One lookup for each distinct pane of a batch. Reading computes a result each time a pane
        enters or leaves, from a sum of a few dozen states; windows in between share it.
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

    if TYPE_CHECKING:  # the type of the results is that of the metric

        def __init__(
            self, metric: Computes[R], size_s: float, slide_s: float | None = None
        ) -> None: ...

    def check_settings(self) -> None:
        self._set("metric", require_empty(self.metric, "Windows.metric"))
        if self.slide_s is None:
            self._set("slide_s", self.size_s)
        for name in ("size_s", "slide_s"):
            value = self.settings()[name]
            if isinstance(value, bool) or not isinstance(value, int | float) or not _is_span(value):
                raise SettingsError(
                    expected="a positive number of seconds, in whole milliseconds, up to 10 years",
                    got=shown(value),
                    where=f"Windows.{name}",
                    hint="pass 3600 for an hour, for example",
                )
            # 60 and 60.0 are one setting, and so one state.
            self._set(name, int(value) if value == int(value) else value)
        if self.slide_ms > self.size_ms:
            raise SettingsError(
                expected=f"at most size_s={self.size_s}, so that no row falls between windows",
                got=shown(self.slide_s),
                where="Windows.slide_s",
                hint="slide by at most the length of a window",
            )
        if self.size_ms > _MAX_OVERLAP * self.slide_ms:
            raise SettingsError(
                expected=f"at most {_MAX_OVERLAP:,} windows per row, because a result names "
                "each of them",
                got=f"size_s={self.size_s}, slide_s={self.slide_s}",
                where="Windows.slide_s",
                hint=f"slide by at least {_least_slide(self.size_ms)} s",
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

    def stored_names(self) -> Mapping[str, str]:
        return self.metric.stored_names()

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        return self.metric.widths()

    def _roles(self) -> Mapping[str, str]:
        return self.metric._roles()

    @explained
    def update(
        self,
        times_ms: ArrayLike | Sequence[datetime],
        **columns: ArrayLike | DictionaryColumn | None,
    ) -> None:
        """Feed each row to the pane of its time.

        times_ms: [n] event times: integers in milliseconds since the epoch, `datetime64` in UTC, or
        datetimes with a zone. columns: those of the metric's own `update`, by name; `arguments()`
        lists them.
        """
        if not self._wait({"times_ms": times_ms, **columns}):
            self._update(self.check(times_ms, **columns))

    @property
    def _intakes(self) -> Mapping[str, Intake | None]:
        return {"times_ms": intakes.times, **self.metric._intakes}

    def check(
        self,
        times_ms: ArrayLike | Sequence[datetime],
        **columns: ArrayLike | DictionaryColumn | None,
    ) -> Batch:
        """The panes and the metric's rows, or InputError; changes nothing."""
        times = milliseconds(times_ms, "times_ms")
        return self._rows_by_pane(times, self.metric.check(**columns))

    def check_rows(self, times_ms: ArrayLike | Sequence[datetime], rows: Batch) -> Batch:
        """As `check`, of rows that the metric's own `check`, or `check_rows`, returned: see
        `PerKey.check_rows`. times_ms: as in `update`, one for each of these rows."""
        times = milliseconds(times_ms, "times_ms")
        return self._rows_by_pane(times, checked(rows, "Windows.check_rows"))

    def _rows_by_pane(self, times: NDArray[np.int64], rows: Batch) -> Batch:
        require_as_many(len(times), rows.n, "times_ms")
        pane_ms = self.pane_ms
        panes = dictionary_column(times // pane_ms)  # near each other, and so fast to distinguish
        starts = tuple([p * pane_ms for p in panes.values if isinstance(p, int)])
        return Batch(
            rows.n, {"keys": DictionaryColumn(panes.codes, starts), "rows": rows}, rows.total
        )

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        feed_by_key(self.states, batch, slots)

    def compute(self) -> WindowsResult[R]:
        all_runs = list(self._runs())
        results = self._results(all_runs)
        by_window = cast("Mapping[Span, R]", Spans(all_runs, results, self.size_ms))
        return WindowsResult(by_window, cast("R", self.total_state().compute()))

    def _results(self, all_runs: Sequence[Run]) -> list[object]:
        """The result of the windows of each run: those of single panes together, the others from
        the sum of their panes."""
        child = part_of(self, self.states.child)
        single = [run.high - run.low == 1 for run in all_runs]
        panes = [run.low for run, is_single in zip(all_runs, single, strict=True) if is_single]
        summed_runs = [
            run for run, is_single in zip(all_runs, single, strict=True) if not is_single
        ]
        of_panes = iter(child._compute_all(self._ordered_windows()[panes]))
        of_sums = (state.compute() for _, state in self._states(summed_runs))
        return [next(of_panes if is_single else of_sums) for is_single in single]

    def _rows_text(self) -> str:
        n = len(self.windows()) if self._width == 1 else 0
        return f": {n:,} window{'s' * (n != 1)}" if n else ""

    def windows(self) -> tuple[Span, ...]:
        """The windows that hold rows, in order of time."""
        return tuple(Spans(list(self._runs()), (), self.size_ms))

    def window_states(self) -> Iterator[tuple[tuple[Span, ...], Accumulator]]:
        """In order of time, the windows that hold the same panes, and their state.

        At most two states for each pane, however many windows there are. Do not update the metric
        before the last one is taken.
        """
        for run, state in self._states(list(self._runs())):
            yield tuple((start, start + self.size_ms) for start in run.starts), state

    def window_state(self, start_ms: int, end_ms: int) -> Accumulator:
        """The state of all rows in [start_ms, end_ms), both multiples of `pane_ms`."""
        for name, value in (("start_ms", start_ms), ("end_ms", end_ms)):
            if (bound := whole(value)) is None or bound % self.pane_ms:
                raise SettingsError(
                    expected=f"a multiple of the pane length, {self.pane_ms} ms",
                    got=shown(value),
                    where=f"Windows.window_state, {name}",
                    hint="pass the bounds of whole panes",
                )
        return self._sum(
            [slot for pane, slot in self._panes().items() if start_ms <= pane < end_ms]
        )

    def panes(self, *, copy: bool = True) -> dict[int, Accumulator]:
        """The state of each pane by its start_ms, in order of time.

        copy: False: a state may share memory with this one. Read it before the next update, and
        change nothing.
        """
        panes, states = sorted(self._panes().items()), self.states.child
        if not flag(copy, "Windows.panes(copy)") and len(panes) == states._width == 1:
            columns = {name: states.__dict__[name] for name in states._parts}
            return {panes[0][0]: states._holding(columns, 1, self._total_count)}
        return {pane: self._sum([slot]) for pane, slot in panes}

    def total_state(self) -> Accumulator:
        """The state of all rows."""
        return self._sum(list(self._panes().values()))

    def _runs(self) -> Iterator[Run]:
        return runs(sorted(self._panes()), self.size_ms, self.slide_ms, self.pane_ms)

    def _states(self, all_runs: Sequence[Run]) -> Iterator[tuple[Run, Accumulator]]:
        """Each run with the state of its windows."""
        sums = Sums(self.states.child, self._ordered_windows(), self.metric)
        for run in all_runs:
            yield run, part_of(self, sums.sum_of(run.low, run.high))

    def _ordered_windows(self) -> NDArray[np.intp]:
        """The slots of the panes, in order of time."""
        return np.array([slot for _, slot in sorted(self._panes().items())], np.intp)

    def _sum(self, children: list[int]) -> Accumulator:
        states = self.states.child
        if len(children) == 1 or len(children) < states._width:
            states = states._take(np.array(children, np.intp))
        if len(children) == 1:
            return part_of(self, states)
        total = self.metric.empty()
        total._merge_slots(states, np.zeros(len(children), np.intp))
        return part_of(self, total)

    def _panes(self) -> dict[int, int]:
        self._flush()
        return {key: slot for key, slot in self.states.index[0].items() if isinstance(key, int)}

    def _require_possible(self) -> None:
        pane_ms = self.pane_ms
        first, last = int(_INT64.min) // pane_ms * pane_ms, int(_INT64.max)
        for keys in self.states.index:
            for key in keys:
                if type(key) is not int or key % pane_ms or not first <= key <= last:
                    raise damaged("a window that does not begin at a pane")


def _least_slide(size_ms: int) -> float | int:
    """The least slide, in seconds, for windows of this size."""
    least_ms = -(-size_ms // _MAX_OVERLAP)
    return least_ms // 1000 if least_ms % 1000 == 0 else least_ms / 1000


def _is_span(seconds: float) -> bool:
    ms = seconds * 1000
    return 0 < seconds <= 315_576_000 and abs(ms - round(ms)) <= 1e-9 * ms
