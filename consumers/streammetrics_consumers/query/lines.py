"""The first lines of a table of slices: searched, sorted and cut before their rows are made.

A line is one slice in one window, with all its variants side by side. A page shows a few of
thousands of lines, and one view. So the states of all lines are computed only if the order needs
their values, many at once, and only the lines that are shown become rows.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from streammetrics.results import Bounded, counts_of, value_of, views_of
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import Slices
from streammetrics_consumers.query.query import OTHER, Lines, Slice, says, slice_key
from streammetrics_consumers.query.rows import SliceRow, Window
from streammetrics_consumers.query.slices import (
    VARIANT,
    Computed,
    Key,
    KeyedState,
    preference,
    window_key,
)
from streammetrics_consumers.query.turns import expect_work

# The values of a result by view, and which are headline views.
Views: TypeAlias = tuple[Mapping[str, float | Bounded], tuple[str, ...]]
LineKey: TypeAlias = tuple[object, ...]  # the window, and the slice without its variant
_DIGITS: Final = re.compile(r"([0-9]{1,18})")


class _Line(NamedTuple):
    """A line, and what it may be sorted by: its name with numbers in their order, and a number (nan
    where it is undefined, or the order is that of the names)."""

    key: LineKey
    name: tuple[tuple[int, str], ...]
    number: float


class _OfMetric:
    """The lines of one metric so far: all of them, how many have the searched text, and those of
    these that may be among the first."""

    def __init__(self) -> None:
        self.all: set[LineKey] = set()
        self.found = 0
        self.first: dict[LineKey, _Line] = {}


class FirstLines:
    """Chooses the first lines of each metric, from one state after another."""

    def __init__(self, wanted: Lines, more: Mapping[str, Sequence[str]]) -> None:
        """more: by metric, its views that the config names."""
        self._wanted = wanted
        self._more = more
        self._metrics: dict[str, _OfMetric] = defaultdict(_OfMetric)
        self._groupings: set[frozenset[str]] = set()

    def choose(self, state: KeyedState) -> tuple[list[tuple[Slice, Key]], bool]:
        """The slices whose rows may be needed, and whether those of the other keys are."""
        members: dict[LineKey, list[tuple[Slice, Key]]] = defaultdict(list)
        names: dict[LineKey, str] = {}
        for slice_, key in state.slices():
            line = line_of(state.window, slice_)
            members[line].append((slice_, key))
            names[line] = names.get(line) or line_name(slice_)
        rest: Slice = {OTHER: state.names}
        if state.other is not None:
            names[line_of(state.window, rest)] = line_name(rest)
        if names:
            self._groupings.add(frozenset(state.names))
        lines, text = self._metrics[state.metric], self._wanted.find.strip().casefold()
        matching = {line: name for line, name in names.items() if text in name.casefold()}
        lines.found += len(matching.keys() - lines.all)
        lines.all |= names.keys()
        numbers = self._numbers(state, {line: members.get(line, ()) for line in matching})
        for line, name in matching.items():
            before, number = lines.first.get(line), numbers.get(line, math.nan)
            if before is not None and not math.isnan(before.number):  # from another range of keys
                number = before.number + (0.0 if math.isnan(number) else number)
            lines.first[line] = _Line(line, _natural(name), number)
        if not state.is_part:
            lines.first = {line.key: line for line in self._first_in_order(lines.first.values())}
        chosen = [member for line in members if line in lines.first for member in members[line]]
        return chosen, line_of(state.window, rest) in lines.first

    def shows(self, row: SliceRow) -> bool:
        """Whether this row is among the first lines, after all states."""
        lines = self._metrics[row.metric]
        if len(lines.first) > self._wanted.most:
            lines.first = {line.key: line for line in self._first_in_order(lines.first.values())}
        return line_of(row.window, row.slice) in lines.first

    def views(self, result: object, more: Sequence[str]) -> Views:
        """The one view that is wanted of a result: its first headline view by default."""
        (values, headlines), view = headline_views(result, more), self._wanted.view
        if view is not None and view not in headlines:
            values = views_of(result)
        if view not in values:
            view = next(iter(headlines), None)
        return {} if view is None else {view: values[view]}, headlines

    @property
    def groupings(self) -> tuple[frozenset[str], ...]:
        """All groupings that have slices, the default one first."""
        return tuple(sorted(self._groupings, key=preference))

    @property
    def left_out(self) -> int:
        """The greatest number of lines of a metric that are not shown."""
        return max(
            (len(lines.all) - len(lines.first) for lines in self._metrics.values()), default=0
        )

    @property
    def counts(self) -> Mapping[str, Slices]:
        """The number of lines of each metric."""
        return {
            name: Slices(
                all=len(lines.all), found=lines.found, shown=min(lines.found, self._wanted.most)
            )
            for name, lines in sorted(self._metrics.items())
        }

    def _first_in_order(self, lines: Iterable[_Line]) -> list[_Line]:
        """The first lines in order; those of an undefined number come last, and equals by their
        names."""
        of_names, down = self._wanted.order == "slice", self._wanted.down
        ranked = sorted(lines, key=lambda line: line.key[0])  # type: ignore[arg-type, return-value]
        ranked.sort(key=lambda line: line.name, reverse=of_names and down)
        if not of_names:
            ranked.sort(
                key=lambda line: 0.0 if math.isnan(line.number) else line.number, reverse=down
            )
            ranked.sort(key=lambda line: math.isnan(line.number))
        return ranked[: self._wanted.most]

    def _numbers(
        self, state: KeyedState, members: Mapping[LineKey, Sequence[tuple[Slice, Key]]]
    ) -> dict[LineKey, float]:
        """What each of these lines is sorted by, if not by its name."""
        if self._wanted.order == "slice":
            return {}
        numbers: dict[LineKey, float] = {}
        line_keys = [
            (line, key)
            for line, slices in members.items()
            for slice_, key in slices
            if self._counts_for(slice_)
        ]
        line_of_key = {key: line for line, key in line_keys}
        expect_work(len(line_of_key))
        for key, result in state.results(list(line_of_key)):
            line = line_of_key[key]
            numbers[line] = numbers.get(line, 0.0) + self._number(result, state.metric)
        rest = line_of(state.window, {OTHER: state.names})
        if rest in members and state.other is not None and self._counts_for({OTHER: state.names}):
            numbers[rest] = self._number(Computed.of(state.other).value, state.metric)
        return numbers

    def _number(self, result: object, metric: str) -> float:
        if self._wanted.order == "rows":
            return float(counts_of(result).get("rows", 0))
        values, _ = self.views(result, self._more.get(metric, ()))
        return float(next(iter(values.values()), math.nan))

    def _counts_for(self, slice_: Slice) -> bool:
        """Whether lines are sorted by the number of this slice: all slices have rows."""
        variant = self._wanted.variant
        if self._wanted.order == "rows":
            return True
        if variant is None or VARIANT not in slice_:
            return (variant is None) == (VARIANT not in slice_)
        return says(slice_[VARIANT], variant)


def all_views(result: object, more: Sequence[str] = ()) -> Views:
    """All views of a result. more: views that the config names; they count as headline views."""
    values, headlines = headline_views(result, more)
    return {**views_of(result), **values}, headlines


def headline_views(result: object, more: Sequence[str] = ()) -> Views:
    """Only the headline views, and those that the config names; no other is computed."""
    values = views_of(result, headlines=True)
    values |= {view: value_of(result, view) for view in more if view not in values}
    return values, tuple(values)


def line_of(window: Window, slice_: Slice) -> LineKey:
    """The line of a slice: slices that differ only in their variant share one."""
    shared = {name: value for name, value in slice_.items() if name != VARIANT}
    return window_key(window), slice_key(shared)


def line_name(slice_: Slice) -> str:
    """The name of a line, without its window: the value if there is only one name."""
    names = slice_.get(OTHER)
    if isinstance(names, tuple):
        return f"{OTHER} of {', '.join(map(formatting.name, names))}"
    shared = sorted((name, value) for name, value in slice_.items() if name != VARIANT)
    if len(shared) == 1:
        return formatting.name(shared[0][1])
    return ", ".join(
        f"{formatting.name(name)} = {formatting.name(value)}" for name, value in shared
    )


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key in which "item 9" comes before "item 10"."""
    parts = _DIGITS.split(name.casefold())
    return tuple((int(part), "") if i % 2 else (-1, part) for i, part in enumerate(parts))
