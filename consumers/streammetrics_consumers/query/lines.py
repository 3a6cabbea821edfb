"""The first lines of a table of slices: searched, sorted and cut before their rows are made.

A line is one slice in one window, with all its variants side by side. A page shows a few of
thousands of lines, and one view. So the states of all lines are computed only if the order needs
their values, many at once, and only the lines that are shown become rows.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from streammetrics.results import Bounded, counts_of, value_of, views_of
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import Slices
from streammetrics_consumers.query.query import OTHER, Lines, Slice, says, slice_key
from streammetrics_consumers.query.rows import SliceRow, Window
from streammetrics_consumers.query.slices import (
    VARIANT,
    Choice,
    Computed,
    Key,
    KeyedState,
    preference,
    slice_of,
    window_key,
)
from streammetrics_consumers.query.turns import expect_work

# The values of a result by view, and which are headline views.
Views: TypeAlias = tuple[Mapping[str, float | Bounded], tuple[str, ...]]
LineKey: TypeAlias = tuple[object, ...]  # the window, and the slice without its variant
KEYS_TOGETHER: Final = 20_000  # of the states whose lines are chosen together
LINES_KEPT: Final = 50_000  # of tables, half a kilobyte each
_DIGITS: Final = re.compile(r"([0-9]{1,18})")


class _Line(NamedTuple):
    """A line, and what it may be sorted by: its name with numbers in their order, and a number (nan
    where it is undefined, or the order is that of the names)."""

    key: LineKey
    name: tuple[tuple[int, str], ...]
    number: float


class LineTable(NamedTuple):
    """The lines of the keys of one window and grouping, which metrics share: their names as they
    are searched, what they are sorted by, and the slices of each. rest: that of all other keys."""

    texts: Mapping[LineKey, str]
    lines: Mapping[LineKey, _Line]
    members: Mapping[LineKey, Sequence[tuple[Slice, Key]]]
    rest: LineKey


def line_table(
    window: Window, names: tuple[str, ...], keys: Sequence[Key], rest: bool
) -> LineTable:
    """The table of these keys. rest: whether there are others."""
    members: dict[LineKey, list[tuple[Slice, Key]]] = defaultdict(list)
    line_names: dict[LineKey, str] = {}
    for key in keys:
        slice_ = slice_of(key, names)
        line = line_of(window, slice_)
        members[line].append((slice_, key))
        line_names[line] = line_names.get(line) or line_name(slice_)
    other_slice: Slice = {OTHER: names}
    rest_key = line_of(window, other_slice)
    if rest:
        line_names[rest_key] = line_name(other_slice)
    texts = {line: name.casefold() for line, name in line_names.items()}
    lines = {line: _Line(line, _natural(name), math.nan) for line, name in line_names.items()}
    return LineTable(texts, lines, members, rest_key)


class LineTables:
    """The tables of the last lists of keys. Thread-safe; most: how many lines it keeps at most."""

    def __init__(self, most: int = LINES_KEPT) -> None:
        self._most, self._count = most, 0
        self._tables: dict[tuple[object, ...], LineTable] = {}

    def table(self, state: KeyedState) -> LineTable:
        """The table of a state."""
        keys, has_other = state.states.keys(), state.other is not None
        place = window_key(state.window), state.names, keys, has_other
        table = self._tables.get(place)
        if table is None:
            table = line_table(state.window, state.names, keys, has_other)
            self._count += len(keys)
            if self._count > self._most:
                self._tables, self._count = {}, len(keys)
            if self._count <= self._most:
                self._tables[place] = table
        return table


class _OfMetric(NamedTuple):
    """The lines of one metric so far: all of them, how many have the searched text, and those of
    these that may be among the first."""

    all: frozenset[LineKey] = frozenset()
    found: int = 0
    first: Mapping[LineKey, _Line] = MappingProxyType({})


class _Choice(NamedTuple):
    """The lines of a metric after a state, and what is chosen of this state."""

    lines: _OfMetric
    slices: list[tuple[Slice, Key]]
    with_other: bool


def states_together(states: Iterable[KeyedState]) -> Iterator[list[KeyedState]]:
    """The states of one metric in its windows, so few that they fit into memory; parts alone."""
    together: list[KeyedState] = []
    n_keys = 0
    for state in states:
        n_keys += len(state.states.keys())
        is_alone = state.is_part or n_keys > KEYS_TOGETHER
        if together and (is_alone or state.metric != together[0].metric):
            yield together
            together, n_keys = [], len(state.states.keys())
        together.append(state)
        if is_alone:
            del state  # before the next one is read
            yield together
            together, n_keys = [], 0
    if together:
        yield together


class FirstLines:
    """Chooses the first lines of each metric, from one state after another."""

    def __init__(
        self,
        lines: Lines,
        config_views: Mapping[str, Sequence[str]],
        tables: LineTables | None = None,
    ) -> None:
        """config_views: by metric, those that the config names. tables: of states, also of
        others."""
        self._wanted = lines
        self._more = config_views
        self._tables = tables or LineTables()
        self._metrics: dict[str, _OfMetric] = {}
        self._groupings: set[frozenset[str]] = set()
        # In the order of names, what is chosen of a table is the same for each metric that had the
        # same tables before: by the identity of both, which the values keep alive.
        self._choices: dict[tuple[int, int, bool], tuple[_OfMetric, LineTable, _Choice]] = {}
        self._line_keys: dict[int, LineKey] = {}  # by the identity of a slice of a table

    @property
    def name(self) -> Hashable:
        """What `views` depends on."""
        return ("line", self._wanted.view)

    def choose(self, state: KeyedState) -> tuple[list[tuple[Slice, Key]], bool]:
        """The slices whose rows may be needed, and whether those of the other keys are."""
        table = self._tables.table(state)
        if table.texts:
            self._groupings.add(frozenset(state.names))
        before = self._metrics.get(state.metric, _NO_LINES)
        if self._wanted.order != "slice":
            choice = self._choice(state, before, table)
        else:
            place = id(before), id(table), state.is_part
            if place not in self._choices:
                self._choices[place] = before, table, self._choice(state, before, table)
            choice = self._choices[place][2]
        self._metrics[state.metric] = choice.lines
        return choice.slices, choice.with_other

    def _choice(self, state: KeyedState, before: _OfMetric, table: LineTable) -> _Choice:
        text = self._wanted.find.strip().casefold()
        matching = [line for line, name in table.texts.items() if text in name]
        numbers = self._numbers(state, {line: table.members.get(line, ()) for line in matching})
        first = dict(before.first)
        for key in matching:
            line, number = first.get(key), numbers.get(key, math.nan)
            if line is not None and not math.isnan(line.number):  # from another range of keys
                number = line.number + (0.0 if math.isnan(number) else number)
            first[key] = _Line(key, table.lines[key].name, number)
        lines = _OfMetric(
            before.all.union(table.texts),
            before.found + sum(line not in before.all for line in matching),
            first if state.is_part else self._cut(first),
        )
        chosen = [key for key in table.members if key in lines.first]
        slices = [member for key in chosen for member in table.members[key]]
        for key in chosen:
            self._line_keys |= {id(slice_): key for slice_, _ in table.members[key]}
        return _Choice(lines, slices, table.rest in lines.first)

    def kept(self, state: KeyedState, slices: list[tuple[Slice, Key]], with_other: bool) -> Choice:
        """What is still needed of what was chosen of a state, after others of its metric."""
        first, line_keys = self._metrics[state.metric].first, self._line_keys
        if slices or with_other:
            slices = [pair for pair in slices if line_keys[id(pair[0])] in first]
            with_other = with_other and line_of(state.window, {OTHER: state.names}) in first
        return state, slices, with_other

    def shows(self, row: SliceRow) -> bool:
        """Whether this row is among the first lines, after all states."""
        lines = self._metrics[row.metric]
        if len(lines.first) > self._wanted.most:
            lines = _OfMetric(lines.all, lines.found, self._cut(lines.first))
            self._metrics[row.metric] = lines
        if OTHER in row.slice:  # of no table: a slice that is gone may have had its identity
            return line_of(row.window, row.slice) in lines.first
        return self._line_keys[id(row.slice)] in lines.first

    def views(self, result: object, config_views: Sequence[str]) -> Views:
        """The one view that is wanted of a result: its first headline view by default."""
        (values, headlines), view = headline_views(result, config_views), self._wanted.view
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

    def _cut(self, lines: Mapping[LineKey, _Line]) -> Mapping[LineKey, _Line]:
        return {line.key: line for line in self._first_in_order(lines.values())}

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
        other_line = line_of(state.window, {OTHER: state.names})
        if (
            other_line in members
            and state.other is not None
            and self._counts_for({OTHER: state.names})
        ):
            numbers[other_line] = self._number(
                Computed.from_state(state.other, "").value, state.metric
            )
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


_NO_LINES: Final = _OfMetric()


def all_views(result: object, config_views: Sequence[str] = ()) -> Views:
    """All views of a result. config_views: those that the config names; they count as headline
    views."""
    values, headlines = headline_views(result, config_views)
    return {**views_of(result), **values}, headlines


def headline_views(result: object, config_views: Sequence[str] = ()) -> Views:
    """Only the headline views, and those that the config names; no other is computed."""
    values = views_of(result, headlines=True)
    values |= {view: value_of(result, view) for view in config_views if view not in values}
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
