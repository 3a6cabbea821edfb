"""JoinRows: impressions and the outcomes that follow them, as sets, until label windows close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.core.batch import Batch, Column
from streammetrics.core.checks import check_choice
from streammetrics.core.codec import require
from streammetrics.core.parts.part import Column as StateColumn
from streammetrics.core.parts.part import Slots
from streammetrics.core.parts.record_set import Records
from streammetrics.core.rows import DictionaryColumn, Key
from streammetrics.join.event_sets import EventSets
from streammetrics.join.join_close import Terms, closed
from streammetrics.join.join_events import (
    ATTRIBUTIONS,
    IMPRESSION,
    Given,
    check_span,
    checked_columns,
    checked_outcomes,
    columns_at,
    declared,
    event_keys,
    kinds_of,
    outcomes,
    widened,
)
from streammetrics.results.join_results import ClosedRows, PendingRows


class JoinRows(EventSets, schema="join-rows/1"):
    """Impressions, and outcomes such as clicks that follow later, joined by id.

    The state consists of sets, and a merge is their union: any order, any sharding and any
    repetition of events gives the same bits, and `a + a == a`. It has no clock: `close` removes and
    returns the events older than a given time, each impression with its labels.

    Settings
        columns: name → kind of a column of impressions: "float32", "float64", "int64", "bool",
        "key" (few different strings, integers, None or tuples: a code each) or "hashed" (string
        ids). outcomes: name → kind of its label: "once" (0 or 1), "count", or "sum" of values.
        label_window_ms: an outcome at T belongs to an impression at t with t <= T < t + window.
        attribution: an outcome belongs to the "last" such impression of its id, or to "every" one;
        "one": an id has one impression, and of several the first by (time, content) counts.
        remember_ms: how long the times of closed impressions are kept, so that a late outcome has a
        delay, and a second impression of an id is detected; None: two windows.
    Rows
        Events of both kinds: kinds ("impression" or the name of an outcome), ids (64-bit integers,
        strings, or hashes by `hash_ids`), times_ms, and each column of the impressions; values of
        summed outcomes; event_ids, which distinguish outcomes of the same time.
    State
        Impressions (id, time, columns), outcomes (id, time, kind, value, event id), and the time of
        the last closed impression of each id. Equal records are stored once.
    Result
        PendingRows: the numbers of pending events.
    Undefined
        Nothing.
    Exactness
        Exact, unless two of n ids have one hash (strings: n² / 2⁶⁵ expected pairs; integers: none).
        Sums are rounded once.
    Cost
        16 bytes an impression and its columns, 33 bytes an outcome, 16 bytes a remembered
        impression. n events cost n log n steps, however small the batches are; the cost of `close`
        grows with the pending events.
    Source
        Joins as unions of sets: Shapiro, Preguiça, Baquero & Zawirski 2011, "Conflict-free
        replicated data types", SSS, section 2.3. Photon, for the join itself: Ananthanarayanan et
        al. 2013, SIGMOD, pages 577-588.

    >>> from streammetrics import JoinRows
    >>> rows = JoinRows({"score": "float32"}, {"click": "once"}, label_window_ms=60_000)
    >>> rows.update_outcomes("click", ids=["b"], times_ms=[9_000])
    >>> rows.update_impressions(ids=["a", "b"], times_ms=[1_000, 2_000], score=[0.25, 0.5])
    >>> (rows + rows) == rows
    True
    >>> out = rows.close(before_ms=10_000)
    >>> sorted(zip(out.columns["score"].tolist(), out.labels["click"].tolist()))
    [(0.25, 0), (0.5, 1)]
    """

    columns: Mapping[str, str]
    outcomes: Mapping[str, str]
    label_window_ms: int
    attribution: str = "one"
    remember_ms: int | None = None
    shown_rows = Records("_column_kinds")
    outcome_rows = Records("_outcome_kinds")
    known_rows = Records("_no_kinds")

    def check_settings(self) -> None:
        self._set("columns", checked_columns(self.columns, "JoinRows.columns"))
        self._set("outcomes", checked_outcomes(self.outcomes, "JoinRows.outcomes"))
        check_span(self.label_window_ms, 1, "JoinRows.label_window_ms")
        check_choice(self.attribution, ATTRIBUTIONS, "JoinRows.attribution")
        if self.remember_ms is None:
            self._set("remember_ms", 2 * self.label_window_ms)
        check_span(self.remember_ms, self.label_window_ms, "JoinRows.remember_ms")

    @property
    def _column_kinds(self) -> tuple[str, ...]:
        """The kinds of the columns, in the order of their names."""
        return tuple(self.columns[name] for name in sorted(self.columns))

    @property
    def _outcome_kinds(self) -> tuple[str, ...]:
        """The kinds of an outcome's fields: its index, its value, and the hash of its event id."""
        return ("byte", "float64", "word")

    @property
    def _no_kinds(self) -> tuple[str, ...]:
        """The kinds of a closed impression's fields: none."""
        return ()

    def arguments(self) -> Mapping[str, bool]:
        required = dict.fromkeys(("kinds", "ids", "times_ms"), True)
        summed = "sum" in self.outcomes.values()
        return {
            **required,
            "values": summed,
            "event_ids": False,
            **dict.fromkeys(self.columns, True),
        }

    # -- events ---------------------------------------------------------------------------
    def update(
        self,
        kinds: ArrayLike | DictionaryColumn | Sequence[Key],
        ids: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        *,
        values: ArrayLike | None = None,
        event_ids: Given = None,
        **columns: Given,
    ) -> None:
        """Add events.

        kinds: [n] of "impression" or the name of an outcome. ids: [n] integers, strings or hashes,
        by which outcomes find their impression. times_ms: [n] integers since the epoch. values: [n]
        of summed outcomes; event_ids: [n], to tell outcomes of one time apart; both may be left
        out. columns: [n] each, those of the setting `columns` by name, read for impressions.
        """
        batch = self.check(kinds, ids, times_ms, values=values, event_ids=event_ids, **columns)
        self._accumulate(batch, None)

    def check(
        self,
        kinds: ArrayLike | DictionaryColumn | Sequence[Key],
        ids: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        *,
        values: ArrayLike | None = None,
        event_ids: Given = None,
        **columns: Given,
    ) -> Batch:
        """The events as columns, or InputError; changes nothing."""
        events = event_keys(ids, times_ms)
        n = len(events.ids)
        all_kinds = (IMPRESSION, *self.outcomes)
        place = kinds_of(kinds, n, all_kinds)
        shown_at = np.flatnonzero(place == 0)
        shown_columns = declared(n, columns, self.columns, shown_at)
        summed = np.array([False, *(c == "sum" for c in self.outcomes.values())])[place]
        value, event = outcomes(n, summed, values, event_ids)
        names = zip(sorted(self.columns), shown_columns, strict=True)
        wide: dict[str, Column] = {name: widened(c, shown_at, n) for name, c in names}
        event_columns = {
            "kinds": place,
            "ids": events.ids,
            "times_ms": events.times,
            "values": value,
        }
        return Batch(n, {**event_columns, "event_ids": event, **wide}, 0)

    def update_impressions(
        self, ids: ArrayLike | DictionaryColumn, times_ms: ArrayLike, **columns: Given
    ) -> None:
        """Add impressions [n]."""
        events = event_keys(ids, times_ms)
        shown_columns = declared(len(events.ids), columns, self.columns)
        self.shown_rows.add(events.ids, events.times, shown_columns)

    def update_outcomes(
        self,
        kinds: str | ArrayLike | DictionaryColumn | Sequence[Key],
        ids: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        *,
        values: ArrayLike | None = None,
        event_ids: Given = None,
    ) -> None:
        """Add outcomes [n], all of one kind or each of its own."""
        events = event_keys(ids, times_ms)
        n = len(events.ids)
        place = kinds_of(kinds, n, tuple(self.outcomes))
        summed = np.array([c == "sum" for c in self.outcomes.values()])[place]
        value, event = outcomes(n, summed, values, event_ids)
        self.outcome_rows.add(events.ids, events.times, (place.astype(np.uint8), value, event))

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        place, ids, times = batch.kinds, batch.ids, batch.times_ms
        rows = np.flatnonzero(place == 0)
        row_slots = None if slots is None else slots[rows]
        shown_ = [*columns_at(batch, self.columns, rows).values()]
        self.shown_rows.add(ids[rows], times[rows], shown_, row_slots)
        rows = np.flatnonzero(place != 0)
        row_slots = None if slots is None else slots[rows]
        fields = ((place[rows] - 1).astype(np.uint8), batch.values[rows], batch.event_ids[rows])
        self.outcome_rows.add(ids[rows], times[rows], fields, row_slots)

    def _read(self, columns: Mapping[str, StateColumn], width: int) -> Self:
        new = super()._read(columns, width)
        for record_set in new.outcome_rows.sets:
            places = record_set.settled().fields[0]
            require(not len(places) or int(places.max()) < len(new.outcomes), "an unknown outcome")
        return new

    # -- closing --------------------------------------------------------------------------
    def close(self, before_ms: int) -> ClosedRows:
        """Remove and return all events older than `before_ms`; newer ones stay in this state.

        It must hold all events with time < before_ms + label_window_ms. Closing at increasing times
        gives the same as closing once, at the last of them. END_OF_TIME closes everything.
        """
        before = self._closing_time(before_ms)
        window = self.label_window_ms
        remember = self.remember_ms or 2 * window
        terms = Terms(self.columns, self.outcomes, window, self.attribution, remember)
        out, remaining = closed(terms, self._sets(), before)
        self._put(remaining)
        return out

    def compute(self) -> PendingRows:
        """The numbers of pending events."""
        shown_, outcome, remembered = (record_set.settled() for record_set in self._sets())
        kind = outcome.fields[0]
        times = np.concatenate([shown_.times, outcome.times])
        return PendingRows(
            len(shown_),
            {name: int(np.count_nonzero(kind == i)) for i, name in enumerate(self.outcomes)},
            len(remembered),
            int(times.min()) if len(times) else None,
            int(times.max()) if len(times) else None,
        )
