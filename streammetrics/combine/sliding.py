"""Sliding windows over panes: which windows hold the same panes, and the sums of their states."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.accumulator import Accumulator

Span = tuple[int, int]  # [start_ms, end_ms)
_FAN: Final = 16  # states that become one state of the next level
_IN_REPR: Final = 1_000  # windows


@dataclass(frozen=True, slots=True)
class Run:
    """Windows that follow each other and hold the same panes: those that start at `starts`, and
    the places [low, high) of the panes among all panes in order of time."""

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
    """What each window has, in order of time; windows of one run share it."""

    __slots__ = ("_firsts", "_found", "_runs", "_size_ms")

    def __init__(self, runs: Sequence[Run], found: Sequence[object], size_ms: int) -> None:
        """found: what the windows of each run have."""
        self._runs, self._found, self._size_ms = runs, found, size_ms
        self._firsts = [run.starts.start for run in runs]

    def __getitem__(self, window: Span) -> object:
        if type(window) is not tuple or [*map(type, window)] != [int, int]:
            raise KeyError(window)
        start, end = window
        at = bisect_right(self._firsts, start) - 1
        if at < 0 or start not in self._runs[at].starts or end != start + self._size_ms:
            raise KeyError(window)
        return self._found[at]

    def __iter__(self) -> Iterator[Span]:
        return ((start, start + self._size_ms) for run in self._runs for start in run.starts)

    def __len__(self) -> int:
        return sum(len(run.starts) for run in self._runs)

    def __repr__(self) -> str:
        """As that of a dict; of very many windows the first ones, and how many more there are."""
        texts = [f"{span!r}: {self[span]!r}" for span in islice(self, _IN_REPR)]
        more = len(self) - len(texts)
        return "{" + ", ".join([*texts, *([f"... and {more} more"] if more else [])]) + "}"


class Sums:
    """Sums of states that follow each other, for many ranges of them.

    A state of level k + 1 is the sum of a block of 16 states of level k, so each state enters one
    sum of every level, and any range of n states is the sum of a few dozen of each of log n levels.
    Nothing is ever taken away from a sum, which states do not allow.
    """

    def __init__(self, states: Accumulator, order: NDArray[np.intp], empty: Accumulator) -> None:
        """states: side by side, one in each slot. order: [n], the slots in the states' order."""
        self._empty = empty
        self._levels = [(states, order)]  # each level, and the slots of its states in order

    def of(self, low: int, high: int) -> Accumulator:
        """The sum of the states [low, high)."""
        if high - low == 1:
            states, order = self._levels[0]
            return states._take(order[low:high])
        total = self._empty.empty()
        level = 0
        while low < high:
            first, last = -(-low // _FAN), high // _FAN  # the blocks that lie in the range
            if last - first < 2:
                self._add(total, level, np.arange(low, high))
                break
            edges = np.arange(low, first * _FAN), np.arange(last * _FAN, high)
            self._add(total, level, np.concatenate(edges))
            low, high, level = first, last, level + 1
        return total

    def _add(self, total: Accumulator, level: int, places: NDArray[np.intp]) -> None:
        """Add the states at these places of a level to a sum."""
        if len(self._levels) <= level:
            states, order = self._levels[level - 1]
            n = -(-len(order) // _FAN)
            blocks = np.empty(len(order), np.intp)
            blocks[order] = np.arange(len(order)) // _FAN
            sums = self._empty._empty(n)
            sums._merge_slots(states, blocks)
            self._levels.append((sums, np.arange(n)))
        states, order = self._levels[level]
        if len(places):
            total._merge_slots(states._take(order[places]), np.zeros(len(places), np.intp))
