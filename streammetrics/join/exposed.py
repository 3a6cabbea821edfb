"""Exposed: a metric of what units did after their exposure to an experiment, by arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.combine.panel import require_empty
from streammetrics.combine.per_key import KeyedResult, PerKey
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.ids.id_hashes import HashedIds
from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts.least_times import LeastTimes
from streammetrics.core.rows import DictionaryColumn, Key
from streammetrics.core.settings import nested_settings
from streammetrics.join.as_of import first_exposures, name_order
from streammetrics.join.closing_metric import Bound, ClosingMetric, bound_inputs, events_at
from streammetrics.join.event_sets import END_OF_TIME, EventSets
from streammetrics.join.exposed_rows import ExposedRows, Names
from streammetrics.join.join_events import OF_EXPOSURES, Given, check_span, checked_columns
from streammetrics.results.exposed_results import ExposedResult

C = TypeVar("C", bound="NDArray[np.generic] | DictionaryColumn")
_EXPERIMENT: Final = ""  # the name of the only experiment of a state
_SOURCES: Final = ("units", "times_ms", "exposed_ms")
_ZEROS: Final = ("values", "denominators")  # of a unit that did nothing yet


class Exposed(ClosingMetric, schema="exposed/1"):
    """A metric of the events of exposed units, by the arm that each unit was exposed to first.

    Most events of a product do not say to which arm of an experiment their user belongs. What does
    is a log of exposures. An event counts in the arm of its unit if it came with or after the
    unit's first exposure. The result depends on the set of events, not on their order, sharding and
    repetition.

    Settings
        metric: an empty metric. columns: name → kind of a column of the events that are no
        exposures, as in `ExposedRows`. arms: the names of the arms; others are refused. None:
        whichever come. window_ms: an event counts if it came before the exposure + window; None:
        whenever it came. inputs: argument of the metric → column, "units", "times_ms" or
        "exposed_ms", the time of the exposure, where names differ.
    Rows
        Events of both kinds, as in `ExposedRows`, of one experiment. Events before the closed time
        are counted as late, and not joined.
    State
        The sets of `ExposedRows`, the metric's state of closed events by arm, and counts.
    Result
        ExposedResult: by arm the metric's result over all events so far. Metrics of units, such as
        UnitMean, are over all exposed units: each one also counts with a value of 0, so that those
        without any event are in the denominator. `exposed`, the units of each arm; `in_several`,
        the units that were exposed to several arms, which count in the first.
    Undefined
        As the metric.
    Exactness
        As the metric, over exactly joined rows. Without `close`, repeated events change nothing.
    Cost
        The cost of `ExposedRows`, and of the metric when events are closed. `compute` closes a
        copy: its cost grows with the pending events.
    Source
        Kohavi, Tang & Xu 2020, "Trustworthy Online Controlled Experiments", chapter 20, on
        triggering: only units that could have been affected are analysed, all of them.

    >>> from streammetrics import Exposed, UnitMean
    >>> revenue = Exposed(UnitMean(), columns={"values": "float64"})
    >>> shown = ["ann", "bo", "cy"], [1_000, 2_000, 3_000], ["new", "old", "new"]
    >>> revenue.update_exposures(*shown)
    >>> revenue.update_events(["ann", "ann", "bo"], [500, 9_000, 9_500], values=[70, 20, 30])
    >>> found = revenue.compute()
    >>> found["new"].mean, found["old"].mean, found.exposed
    (10.0, 30.0, {'new': 2, 'old': 1})
    """

    metric: Accumulator
    columns: Mapping[str, str]
    arms: tuple[str, ...] | None = None
    window_ms: int | None = None
    inputs: Mapping[str, str] | None = None

    def check_settings(self) -> None:
        self._set("metric", require_empty(self.metric, "Exposed.metric"))
        reserved_names = (*OF_EXPOSURES, "exposed_ms")
        self._set("columns", checked_columns(self.columns, "Exposed.columns", reserved_names))
        self._set("arms", _checked_arms(self.arms))
        if self.window_ms is not None:
            check_span(self.window_ms, 1, "Exposed.window_ms")
        sources = (*self.columns, *_SOURCES)
        inputs = bound_inputs(self.metric, sources, self.inputs, lambda argument: None, _bad)
        self._set("inputs", inputs)
        if self._counts_every_unit:
            self._require_units()

    @property
    def _counts_every_unit(self) -> bool:
        """Whether the metric is one of units, which all count."""
        return _is_of_units(self.metric)

    def _require_units(self) -> None:
        """SettingsError unless a unit without events is a row of the metric."""
        roles, inputs = self.metric._roles(), self.inputs or {}
        for argument in self.metric.arguments():
            role, source = roles.get(argument, argument), inputs.get(argument)
            if role == "units" and source != "units":
                raise _bad("the units that were exposed as units of the metric", shown(source))
            if role == "times_ms" and source not in (None, "times_ms", "exposed_ms"):
                raise _bad('"times_ms" or "exposed_ms" as times', shown(source))
            if role not in ("units", "times_ms", *_ZEROS):
                expected = "a metric of units, a Panel or Windows of them"
                raise _bad(expected, f"one with {argument}, which a unit without events has not")

    @property
    def _parts_of(self) -> Mapping[str, Accumulator]:
        """Its nested states: the sets, and the metric of closed events by arm."""
        return {"rows": self._rows_of(), "metric": PerKey(self.metric)}

    def arguments(self) -> Mapping[str, bool]:
        takes = self._rows_of().arguments()
        return {name: takes[name] for name in takes if name != "experiments"}

    def update(
        self,
        units: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        arms: Names,
        *,
        event_ids: Given = None,
        **columns: Given,
    ) -> None:
        """Add events.

        units: [n] integers, strings or hashes, such as users. times_ms: [n] integers since the
        epoch. arms: [n] strings or integers, those of exposures, None for other events.
        event_ids: [n], to tell other events of one time apart; may be left out. columns: [n] each,
        those of the setting `columns` by name, read for other events.
        """
        self._update(self.check(units, times_ms, arms, event_ids=event_ids, **columns))

    def update_exposures(
        self, units: ArrayLike | DictionaryColumn, times_ms: ArrayLike, arms: Names
    ) -> None:
        """Add exposures [n] of units to arms."""
        columns: dict[str, Given] = dict.fromkeys(self.columns)
        self.update(units, times_ms, arms, **columns)

    def update_events(
        self,
        units: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        *,
        event_ids: Given = None,
        **columns: Given,
    ) -> None:
        """Add other events [n], as in `update`."""
        self.update(units, times_ms, None, event_ids=event_ids, **columns)

    def check(
        self,
        units: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        arms: Names,
        *,
        event_ids: Given = None,
        **columns: Given,
    ) -> Batch:
        """The events, or InputError, also for values that the metric refuses; changes nothing."""
        rows = self._rows().check(
            units, times_ms, _EXPERIMENT, arms, event_ids=event_ids, **columns
        )
        if self.arms is not None:
            self._require_declared(rows.as_keys("arms"))
        event_positions = np.flatnonzero(self._has_columns(rows))
        if len(event_positions):  # the metric must refuse values now, not at `close`
            bound = events_at(rows, self.columns, event_positions)
            self.metric.check(**self._keywords(_with_units(bound, rows.units[event_positions])))
        return Batch(rows.n, rows.columns, rows.n)

    def _require_declared(self, arms: DictionaryColumn) -> None:
        is_arm = np.array([arm is None or arm in (self.arms or ()) for arm in arms.values])
        bad = np.flatnonzero(~is_arm[arms.codes]) if len(is_arm) else np.empty(0, np.intp)
        if len(bad):
            raise InputError(
                expected=f"one of {', '.join(map(str, self.arms or ()))}",
                got=shown(arms.values[arms.codes[bad[0]]]),
                where=f"arms[{bad[0]}]",
                hint="declare it in the setting arms, or leave these events out",
                rows=bad,
            )

    def _has_columns(self, batch: Batch) -> NDArray[np.bool_]:
        is_other: NDArray[np.bool_] = ~batch.is_exposure
        return is_other

    def close(self, before_ms: int) -> None:
        """Count events older than `before_ms` for good, and drop them; exposures stay known.

        All events with a time below should have arrived: those that arrive later count as late.
        """
        self._close(before_ms)

    def _closed(self, rows: EventSets, before_ms: int) -> tuple[int, int]:
        out = cast("ExposedRows", rows).close(before_ms)
        by_arm = self.states.by_name["metric"]
        n_counted = 0
        arms = out.attribution.arms.get(_EXPERIMENT)
        if arms is not None:
            is_arm = np.array([arm is not None for arm in arms.values])
            counted = np.flatnonzero(is_arm[arms.codes])
            n_counted = len(counted)
            bound: dict[str, NDArray[np.generic] | DictionaryColumn] = {
                "times_ms": out.times_ms[counted],
                "exposed_ms": out.attribution.exposed_ms[_EXPERIMENT][counted],
            }
            for name, column in out.columns.items():
                bound[name] = _taken(column, counted)
            if n_counted:
                keywords = self._keywords(_with_units(bound, out.units[counted]))
                by_arm.update(_taken(arms, counted), **keywords)
        first = np.flatnonzero(out.exposures.first)
        if self._counts_every_unit and len(first):
            self._count_units(
                out.exposures.units[first],
                out.exposures.times_ms[first],
                _taken(out.exposures.arms, first),
            )
        return n_counted, len(out) - n_counted

    def _count_units(self, units: Words, times: NDArray[np.int64], arms: DictionaryColumn) -> None:
        """Count units, each with a value of 0, from their first exposure on."""
        roles, zeros = self.metric._roles(), np.zeros(len(units))
        bound = _with_units({"times_ms": times, "exposed_ms": times}, units)
        keywords = self._keywords({**dict.fromkeys(self.columns, zeros), **bound})
        for argument in self.metric.arguments():
            if roles.get(argument, argument) in _ZEROS:
                keywords[argument] = zeros
        self.states.by_name["metric"].update(arms, **keywords)

    def compute(self) -> ExposedResult:
        """The metric's result by arm over all events so far, and the exposed units."""
        self._flush()
        before, newest = self.closed_before.value(), self.newest.value()
        pending, twin = self._rows().compute().events, self._so_far()
        counted, other_events, late_events, late_exposures = twin.counts.dense().tolist()
        results = cast("KeyedResult[object]", twin.states.by_name["metric"].compute()).results
        exposed, in_several = _units_by_arm(cast("LeastTimes", twin._rows().known_rows.sets[0]))
        names = [*dict.fromkeys([*(self.arms or ()), *exposed])]
        names = [names[i] for i in name_order(names)]
        return ExposedResult(
            {arm: results[arm] if arm in results else self.metric.compute() for arm in names},
            {arm: exposed.get(arm, 0) for arm in names},
            in_several,
            counted,
            other_events,
            pending,
            late_exposures,
            late_events,
            before,
            newest,
        )

    def states_by_arm(self) -> PerKey[object]:
        """The metric's states by arm, over all events so far, for `compare` and experiments."""
        return cast("PerKey[object]", self._so_far()._copy_of("metric"))

    def _so_far(self) -> Self:
        """A copy in which all events are closed."""
        twin = self.copy()
        twin.close(END_OF_TIME)
        return twin

    def _rows(self) -> ExposedRows:
        return cast("ExposedRows", self._event_sets())

    def _rows_of(self) -> ExposedRows:
        """An empty ExposedRows with these settings."""
        return ExposedRows(self.columns, self.window_ms)


def _units_by_arm(first_times: LeastTimes) -> tuple[dict[Key, int], int]:
    """The number of units by the arm of their first exposure, and that of units in several."""
    table, arms = first_times.settled(), first_times.key_values(1)
    new = np.ones(len(table), np.bool_)
    np.not_equal(table.ids[1:], table.ids[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    _, first = first_exposures(first_times, table.ids[starts])
    counts = np.bincount(table.fields[1][first], minlength=len(arms)).tolist()
    sizes = np.diff(starts, append=len(table))
    return dict(zip(arms, counts, strict=True)), int(np.count_nonzero(sizes > 1))


def _with_units(bound: Bound, units: Words) -> Bound:
    """The columns of events with their units; the times stand for those of exposures if there are
    none."""
    ids = units.view(np.int64).view(HashedIds)
    return {"exposed_ms": bound["times_ms"], **bound, "units": ids}


def _taken(column: C, rows: NDArray[np.intp]) -> C:
    if isinstance(column, DictionaryColumn):
        return cast("C", DictionaryColumn(column.codes[rows], column.values))
    return cast("C", column[rows])


def _is_of_units(metric: Accumulator) -> bool:
    """Whether a metric, or each one within it, is of units; SettingsError if some are."""
    leaves = [inner for inner in (metric, *_nested(metric)) if not _nested(inner)]
    kinds = {leaf._shows_units for leaf in leaves}
    if len(kinds) > 1:
        raise _bad("metrics of units, or others", "some of each", "Exposed.metric")
    return kinds == {True}


def _nested(metric: Accumulator) -> list[Accumulator]:
    """The metrics among the settings of a metric."""
    values = metric.settings().values()
    inner = [setting for value in values for setting in nested_settings(value)]
    return [setting for setting in inner if isinstance(setting, Accumulator)]


def _checked_arms(value: object) -> tuple[str, ...] | None:
    """The setting `arms`, in the order of names."""
    if value is None:
        return None
    names = value if isinstance(value, tuple) else ()
    are_names = all(type(name) in (str, int) for name in names)
    if not are_names or not 1 <= len(set(names)) == len(names) <= 255:
        raise SettingsError(
            expected="1 to 255 different names, or None",
            got=shown(value),
            where="Exposed.arms",
            hint='pass names, such as ("control", "treatment")',
        )
    return tuple(names[i] for i in name_order(names))


def _bad(expected: str, got: str, where: str = "Exposed.inputs") -> SettingsError:
    return SettingsError(
        expected=expected,
        got=got,
        where=where,
        hint='name them, such as {"values": "price"}; count each kind in a state of its own',
    )
