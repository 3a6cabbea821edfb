"""ExposedRows: exposures of units to experiments, and the events that follow them, as sets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.batch import Batch, Column
from streammetrics.core.checks import same_length
from streammetrics.core.codec import require
from streammetrics.core.errors import InputError, shown
from streammetrics.core.ids.keys import dictionary_column
from streammetrics.core.parts.least_times import LeastTimes
from streammetrics.core.parts.part import Column as StateColumn
from streammetrics.core.parts.part import Slots
from streammetrics.core.parts.record_set import Records, RecordSet
from streammetrics.core.rows import DictionaryColumn, Key
from streammetrics.join.as_of import attributed, first_exposures, picked_events
from streammetrics.join.event_sets import EventSets
from streammetrics.join.join_events import (
    OF_EXPOSURES,
    Given,
    check_span,
    checked_columns,
    columns_at,
    declared,
    event_words,
    unit_keys,
    widened,
)
from streammetrics.results.exposed_results import (
    AttributedRows,
    Attribution,
    NewExposures,
    PendingExposures,
)

Names = Key | ArrayLike | DictionaryColumn | Sequence[Key]
Span = tuple[int | None, int | None]


class ExposedRows(EventSets, schema="exposed-rows/1"):
    """Exposures of units to experiments, and other events of these units, joined at their time.

    A unit is exposed to an experiment from its first exposure on, in the arm of that one. Its other
    events belong to that arm if they come later, or at the same time. The state consists of sets,
    and a merge is their union: any order, any sharding and any repetition of events gives the same
    bits, and `a + a == a`. It has no clock: `close` removes and returns the events older than a
    given time, each with its arms.

    Settings
        columns: name → kind of a column of the other events: "float32", "float64", "int64", "bool",
        "key" (few different strings, integers, None or tuples: a code each) or "hashed" (string
        ids). window_ms: an event belongs to an exposure at x if it comes before x + window; None:
        whenever it comes.
    Rows
        Events of both kinds: units (64-bit integers, strings, or hashes by `hash_ids`), times_ms,
        arms (strings or integers; None for an event that is no exposure), experiments (as arms, one
        for all, read for exposures), event_ids, which distinguish other events of the same time,
        and each column of these.
    State
        Other events (unit, time, columns, event id), exposures that are not closed, and of the
        closed ones the least time of each unit, experiment and arm.
    Result
        PendingExposures: the numbers of pending events, and of known exposures.
    Undefined
        Nothing.
    Exactness
        Exact, unless two of n units have one hash (strings: n² / 2⁶⁵ expected pairs; integers:
        none). Of exposures at the same time the arm whose name is first counts.
    Cost
        24 bytes an event and its columns; 18 bytes an exposure, and once it is closed 18 bytes a
        unit and arm (14 as bytes, where all are within 49 days). n events cost n log n steps,
        however small the batches are; the cost of `close` grows with the pending events, and a
        little with the known exposures.
    Source
        The as-of join of time series: `aj` of kdb+, `merge_asof` of pandas, ASOF JOIN of DuckDB.
        Exposures: Kohavi, Tang & Xu 2020, "Trustworthy Online Controlled Experiments", chapter 20,
        on triggering.

    >>> from streammetrics import ExposedRows
    >>> rows = ExposedRows({"price": "float64"})
    >>> rows.update_events(["ann", "bo", "ann"], [500, 2_000, 3_000], price=[9.0, 5.0, 7.0])
    >>> rows.update_exposures(["ann", "ann"], [1_000, 2_500], "checkout", ["new", "old"])
    >>> (rows + rows) == rows
    True
    >>> out = rows.close(before_ms=10_000)
    >>> arms = out.attribution.arms["checkout"]
    >>> sorted(zip(out.columns["price"].tolist(), [arms.values[code] for code in arms.codes]))
    [(5.0, None), (7.0, 'new'), (9.0, None)]
    >>> out.exposures.first.tolist()
    [True, False]
    """

    columns: Mapping[str, str]
    window_ms: int | None = None
    event_rows = Records("_event_kinds")
    exposure_rows = Records("_exposure_kinds")
    known_rows = Records("_exposure_kinds", LeastTimes)

    def check_settings(self) -> None:
        where = "ExposedRows.columns"
        self._set("columns", checked_columns(self.columns, where, OF_EXPOSURES))
        if self.window_ms is not None:
            check_span(self.window_ms, 1, "ExposedRows.window_ms")

    @property
    def _event_kinds(self) -> tuple[str, ...]:
        """The kinds of an event's fields: its columns in the order of their names, and the hash of
        its event id."""
        return (*(self.columns[name] for name in sorted(self.columns)), "word")

    @property
    def _exposure_kinds(self) -> tuple[str, ...]:
        """The kinds of an exposure's fields: its experiment and its arm."""
        return ("key", "key")

    def arguments(self) -> Mapping[str, bool]:
        required = dict.fromkeys(("units", "times_ms", "experiments", "arms"), True)
        return {**required, "event_ids": False, **dict.fromkeys(self.columns, True)}

    # -- events ---------------------------------------------------------------------------
    def update(
        self,
        units: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        experiments: Names,
        arms: Names,
        *,
        event_ids: Given = None,
        **columns: Given,
    ) -> None:
        """Add events.

        units: [n] integers, strings or hashes, such as users. times_ms: [n] integers since the
        epoch. arms: [n] strings or integers, those of exposures, None for other events.
        experiments: [n], or one for all, read for exposures. event_ids: [n], to tell other events
        of one time apart; may be left out. columns: [n] each, those of the setting `columns` by
        name, read for other events.
        """
        batch = self.check(units, times_ms, experiments, arms, event_ids=event_ids, **columns)
        self._accumulate(batch, None)

    def check(
        self,
        units: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        experiments: Names,
        arms: Names,
        *,
        event_ids: Given = None,
        **columns: Given,
    ) -> Batch:
        """The events as columns, or InputError; changes nothing."""
        events = unit_keys(units, times_ms)
        n = len(events.ids)
        arm = _names(arms, n, "arms")
        is_exposure = np.array([value is not None for value in arm.values], np.bool_)[arm.codes]
        exposures, other_rows = np.flatnonzero(is_exposure), np.flatnonzero(~is_exposure)
        experiment = _names(experiments, n, "experiments")
        _require_names(arm, exposures, "arms")
        _require_names(experiment, exposures, "experiments")
        values = declared(n, columns, self.columns, other_rows, "event that is no exposure")
        names = zip(sorted(self.columns), values, strict=True)
        wide: dict[str, Column] = {name: widened(c, other_rows, n) for name, c in names}
        event_columns: dict[str, Column] = {
            "units": events.ids,
            "times_ms": events.times,
            "experiments": experiment,
            "arms": arm,
            "is_exposure": is_exposure,
            "event_ids": event_words(event_ids, n),
        }
        return Batch(n, {**event_columns, **wide}, 0)

    def update_exposures(
        self,
        units: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        experiments: Names,
        arms: Names,
    ) -> None:
        """Add exposures [n] of units to arms of an experiment, or each of its own."""
        events = unit_keys(units, times_ms)
        every = np.arange(len(events.ids))
        experiment = _names(experiments, len(every), "experiments")
        arm = _names(arms, len(every), "arms")
        _require_names(experiment, every, "experiments")
        _require_names(arm, every, "arms")
        self.exposure_rows.add(events.ids, events.times, (experiment, arm))

    def update_events(
        self,
        units: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        *,
        event_ids: Given = None,
        **columns: Given,
    ) -> None:
        """Add other events [n]."""
        events = unit_keys(units, times_ms)
        n = len(events.ids)
        values = declared(n, columns, self.columns, rows="event that is no exposure")
        self.event_rows.add(events.ids, events.times, (*values, event_words(event_ids, n)))

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        ids, times = batch.units, batch.times_ms
        for is_exposure in (False, True):
            rows = np.flatnonzero(batch.is_exposure == is_exposure)
            row_slots = None if slots is None else slots[rows]
            if is_exposure:
                fields = [*columns_at(batch, ("experiments", "arms"), rows).values()]
                values = [fields[1], fields[0]]  # in the order of names
                self.exposure_rows.add(ids[rows], times[rows], values, row_slots)
            else:
                values = [*columns_at(batch, self.columns, rows).values(), batch.event_ids[rows]]
                self.event_rows.add(ids[rows], times[rows], values, row_slots)

    def _read(self, columns: Mapping[str, StateColumn], width: int) -> Self:
        new = super()._read(columns, width)
        for part in (new.exposure_rows, new.known_rows):
            for record_set in part.sets:
                keys = [key for table in record_set.keys if table for key in table.values]
                require(all(isinstance(key, str | int) for key in keys), "an arm that is no name")
        return new

    # -- closing --------------------------------------------------------------------------
    def close(
        self,
        before_ms: int,
        experiments: Collection[Key] | Mapping[Key, Span] | None = None,
    ) -> AttributedRows:
        """Remove and return all events older than `before_ms`; newer ones stay in this state.

        It must hold all events with a time below. Closing at increasing times gives the same as
        closing once, at the last of them. END_OF_TIME closes everything. experiments: those whose
        exposures become known, or by each of them the times [from, to) of these, None for no end;
        other exposures are dropped. None: all become known.
        """
        before = self._closing_time(before_ms)
        events, exposures, known_set = cast("tuple[RecordSet, RecordSet, LeastTimes]", self._sets())
        closing, remaining = picked_events(exposures.settled(), before)
        entering = closing if experiments is None else _chosen(exposures, closing, experiments)
        known_set = known_set.twin()
        new = _entered(known_set, _least_times(exposures, entering))
        table = events.settled()
        closed, staying = picked_events(table, before)
        units, times = table.ids[closed], table.times[closed]
        out = AttributedRows(
            units,
            times,
            {name: events.column(i, closed) for i, name in enumerate(sorted(self.columns))},
            attributed(known_set, units, times, self.window_ms),
            new,
            len(closing) - len(entering),
        )
        self._put([events.picked(staying), exposures.picked(remaining), known_set])
        return out

    def attribute(self, units: ArrayLike | DictionaryColumn, times_ms: ArrayLike) -> Attribution:
        """The arms of events [n] in each experiment, by the known exposures alone.

        units, times_ms: as in `update_events`.
        """
        events = unit_keys(units, times_ms)
        known_set = cast("LeastTimes", self.known_rows.sets[0])
        return attributed(known_set, events.ids, events.times, self.window_ms)

    def known(self) -> Self:
        """A state of the known exposures alone."""
        events, exposures, known_set = self._sets()
        return self._with([events.empty_twin(), exposures.empty_twin(), known_set.twin()])

    def pending(self) -> Self:
        """A state of the pending events and exposures alone."""
        events, exposures, known_set = self._sets()
        return self._with([events.twin(), exposures.twin(), known_set.empty_twin()])

    def known_of(self, exposures: NewExposures) -> Self:
        """A state whose known exposures are these alone, as `close` returned them."""
        if not isinstance(exposures, NewExposures):
            raise InputError(
                expected="the exposures that `close` returned",
                got=shown(exposures),
                where="ExposedRows.known_of",
                hint="pass the `exposures` of its result",
            )
        new = self.empty()
        fields = (exposures.experiments, exposures.arms)
        new.known_rows.add(exposures.units, exposures.times_ms, fields)
        return new

    def compute(self) -> PendingExposures:
        """The numbers of pending events, and of known exposures."""
        events, exposures, known_set = self._sets()
        times = np.concatenate([events.settled().times, exposures.settled().times])
        return PendingExposures(
            len(events.run),
            _counts_by_experiment(exposures),
            _counts_by_experiment(known_set),
            int(times.min()) if len(times) else None,
            int(times.max()) if len(times) else None,
        )


def _chosen(
    exposures: RecordSet,
    closing: NDArray[np.intp],
    experiments: Collection[Key] | Mapping[Key, Span],
) -> NDArray[np.intp]:
    """Those of the closing exposures that become known."""
    numbers, times = exposures.run.fields[0][closing], exposures.run.times[closing]
    is_chosen = np.zeros(len(closing), np.bool_)
    for number, name in enumerate(exposures.key_values(0)):
        if name not in experiments:
            continue
        is_match = numbers == number
        first, end = experiments[name] if isinstance(experiments, Mapping) else (None, None)
        if first is not None:
            is_match &= times >= first
        if end is not None:
            is_match &= times < end
        is_chosen |= is_match
    return closing[is_chosen]


def _least_times(exposures: RecordSet, positions: NDArray[np.intp]) -> LeastTimes:
    """The least time of each unit, experiment and arm among some exposures."""
    least = LeastTimes(exposures.kinds)
    table = exposures.run
    names = [exposures.column(i, positions) for i in (0, 1)]
    least.add(table.ids[positions], table.times[positions], names)
    return least


def _entered(first_times: LeastTimes, entering: LeastTimes) -> NewExposures:
    """Add exposures to the known ones; those of them that are new."""
    new = entering.picked(np.flatnonzero(first_times.lacks(entering)))
    first_times.unite(entering)
    merged = first_times.settled()
    table = first_times.numbered(new)
    rows, positions = first_exposures(first_times, table.ids)
    is_same = merged.fields[0][positions] == table.fields[0][rows]
    is_same &= merged.fields[1][positions] == table.fields[1][rows]
    first = np.zeros(len(table), np.bool_)
    first[rows[is_same]] = True
    every = slice(None)
    new.settled()
    experiments, arms = (cast("DictionaryColumn", new.column(i, every)) for i in (0, 1))
    return NewExposures(new.run.ids, new.run.times, experiments, arms, first)


def _counts_by_experiment(exposures: RecordSet) -> dict[Key, int]:
    """The number of records of each experiment."""
    field, names = exposures.settled().fields[0], exposures.key_values(0)
    counts = np.bincount(field, minlength=len(names)).tolist()
    return dict(zip(names, counts, strict=True))


def _names(names: Names, n: int, argument: str) -> DictionaryColumn:
    """A column [n] of names, or one for all."""
    single = names is None or isinstance(names, str | int)
    whole = DictionaryColumn(np.zeros(n, np.intp), (cast("Key", names),)) if single else names
    column = dictionary_column(cast("ArrayLike", whole), argument)
    same_length(n, column.codes, argument, "units")
    return column


def _require_names(column: DictionaryColumn, rows: NDArray[np.intp], argument: str) -> None:
    """InputError unless the values in these rows are names."""
    is_name = np.array([isinstance(value, str | int) for value in column.values], np.bool_)
    if is_name.all():
        return
    bad = rows[~is_name[column.codes[rows]]]
    if len(bad):
        raise InputError(
            expected="a string or an integer for each exposure",
            got=shown(column.values[column.codes[bad[0]]]),
            where=f"{argument}[{bad[0]}]",
            hint="leave out exposures without a name",
            rows=bad,
        )
