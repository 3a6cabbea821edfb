"""The filter of `[event] where`, applied before any other field is read or refused.

An event that does not meet the conditions is skipped: it is not refused for a missing field or by a
metric, moves no watermark, and its id is not remembered. An event that cannot be parsed passes,
since its fields are unknown; the decoder then refuses it.

A field is absent if the event lacks it, if it is null, or if its CSV cell is empty; a struct column
is absent if all of its fields are. Values are compared as the texts that slices show: 7, 7.0 and
"7" are equal, and so are true and "true".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.events import Unfit
from streammetrics_consumers.events.arrow_columns import ArrowColumns
from streammetrics_consumers.events.arrow_messages import table_of
from streammetrics_consumers.events.csv_rows import read_csv, require_columns
from streammetrics_consumers.events.event_structs import OPTIONAL, struct_of
from streammetrics_consumers.events.fields import plain_list, values_of
from streammetrics_consumers.events.json_events import decoded, parsed_slowly, value_at
from streammetrics_consumers.events.messages import EventRows
from streammetrics_consumers.events.optional_columns import condition_test, stored_values
from streammetrics_consumers.events.record_texts import text_beside
from streammetrics_consumers.model.chunk import Chunk, StoredColumns, Texts, Values
from streammetrics_consumers.model.paths import is_beside, names_in

if TYPE_CHECKING:
    from streammetrics_consumers.config.config import Config
    from streammetrics_consumers.config.event import Condition

Flags = NDArray[np.bool_]
_Test = Callable[[object], bool]


class EventFilter:
    """The conditions of one config. `paths` are the paths into an event, `needed` the columns that
    a table must have, and `beside` the conditions on a record's key and headers."""

    def __init__(self, conditions: Sequence[Condition], *, in_kafka: bool) -> None:
        self.beside = tuple(
            condition for condition in conditions if in_kafka and is_beside(condition.path)
        )
        inside = [condition for condition in conditions if condition not in self.beside]
        self._inside = {condition.path: condition_test(condition) for condition in inside}
        self.paths = tuple(self._inside)
        self.needed = [condition.path for condition in inside if condition.present]
        self._json = _JsonFields(self.paths)

    def refuse_records(self, events: EventRows) -> EventRows:
        """Refuse the messages whose key or headers cannot be read."""
        return events.refuse(self._record_mask(events.messages)[1])

    def apply(self, events: EventRows) -> EventRows:
        """The events that meet the conditions.

        Raises SourceError if a table lacks a column that must be present."""
        keep = self._keep(events.chunk, events.rows)
        refused, left_out = events.refused, 0
        meets, unread = self._record_mask(events.messages)
        if self.beside:
            keep &= meets[events.messages_of(events.rows)]
        if events.chunk.columns is not None:
            refused, left_out = self._without_columns(events, unread)
        rows = events.rows if keep.all() else events.rows[keep]
        left_out += len(events.rows) - len(rows)
        return replace(events, rows=rows, refused=refused, left_out=left_out)

    def _without_columns(
        self, events: EventRows, unread: Mapping[int, Unfit]
    ) -> tuple[dict[int, Unfit], int]:
        """The refused messages, without Arrow messages that were refused for a column and have no
        row that meets the conditions on columns; and the number of their rows. unread: messages
        that were refused for their key or headers."""
        refused, left_out = dict(events.refused), 0
        for i, why in events.refused.items():
            if why.field is None or i in unread:
                continue
            table = table_of(events.messages.values[i] or b"", (), self.paths)
            if isinstance(table, Unfit):
                refused[i] = table if table.field is None else why
                continue
            batches = table.combine_chunks().to_batches()
            columns = [ArrowColumns(batch, checked=True) for batch in batches]
            batch_flags = map(self._column_mask, columns, [batch.num_rows for batch in batches])
            if not any(flags.any() for flags in batch_flags):
                del refused[i]
                left_out += table.num_rows
        return refused, left_out

    def _keep(self, chunk: Chunk, rows: NDArray[np.intp]) -> Flags:
        """Which of these rows meet the conditions on fields of the event."""
        if chunk.columns is not None:
            if chunk.indices is None:
                self._require(chunk.columns, chunk.partition.topic)
            return self._column_mask(chunk.columns, len(rows))
        values = values_of(chunk, rows)
        if chunk.fields is None:
            return self._json.test(values, self._inside, chunk.longest)
        self._require(chunk.fields, chunk.partition.topic)
        header_paths = [path for path in self.paths if path in chunk.fields]
        texts, bad = read_csv(values, chunk.fields, header_paths)
        good = np.delete(np.arange(len(rows)), list(bad)) if bad else np.arange(len(rows))
        keep = np.ones(len(rows), np.bool_)
        for path, test in self._inside.items():
            column = texts.get(path, [""] * len(good))
            keep[good] &= _flags(test, [text or None for text in column])
        return keep

    def lacks(self, names: Collection[str]) -> list[str]:
        """The paths that must be present and have no column among `names`."""
        return [
            path
            for path in self.needed
            if path not in names and not any(name.startswith(f"{path}.") for name in names)
        ]

    def _require(self, names: Collection[str], where: str) -> None:
        require_columns(self.lacks(names), list(names), where)

    def _column_mask(self, columns: StoredColumns, n: int) -> Flags:
        keep = np.ones(n, np.bool_)
        for path, test in self._inside.items():
            keep &= _tested(test, columns, path, n)
        return keep

    def _record_mask(self, records: Chunk) -> tuple[Flags, dict[int, Unfit]]:
        """Which records meet the conditions on key and headers, and which are refused."""
        keep = np.ones(len(records), np.bool_)
        bad: dict[int, Unfit] = {}
        for condition in self.beside:
            test = condition_test(condition)
            for i, text in enumerate(text_beside(condition.path, records)):
                if isinstance(text, Unfit):
                    bad.setdefault(i, text)
                else:
                    keep[i] &= test(text)
        return keep, bad


def filter_of(config: Config) -> EventFilter | None:
    """The filter of a config, None if it has no conditions."""
    where = config.event.where
    return EventFilter(where, in_kafka=config.source.kind == "kafka") if where else None


def _flags(test: _Test, values: Sequence[object]) -> Flags:
    return np.fromiter(map(test, values), np.bool_, len(values))


def _tested(test: _Test, columns: StoredColumns, path: str, n: int) -> Flags:
    return _flags_of(test, stored_values(columns, path, n))


def _flags_of(test: _Test, values: Values) -> Flags:
    if isinstance(values, Texts):
        values = values.dictionary_column()
    if isinstance(values, DictionaryColumn):
        return _flags(test, values.values)[values.codes]
    return _flags(test, values if isinstance(values, list) else plain_list(values))


class _JsonFields:
    """Reads a few fields of JSON objects, of any type, present or absent."""

    def __init__(self, paths: Sequence[str]) -> None:
        names = {path: names_in(path) for path in paths}
        tree: dict[str, Any] = {}
        for path in sorted(names.values(), key=len):
            node = tree
            for name in path[:-1]:
                node = node.setdefault(name, {})
                if node is OPTIONAL:  # a parent of this field is read whole
                    break
            else:
                node[path[-1]] = OPTIONAL
        event, attributes, _ = struct_of(tree)
        self._getters = {path: _field_getter(names[path], attributes) for path in paths}
        self._decode: Callable[[bytes], object] = msgspec.json.Decoder(event).decode

    def test(
        self, values: Sequence[bytes], tests: Mapping[str, _Test], longest: int | None
    ) -> Flags:
        """Which events meet all tests or cannot be parsed."""
        unread, events, errors = decoded(self._decode, values, longest)
        keep = np.ones(len(values), np.bool_)
        for i in errors:
            keep[i] = self._test_slowly(values[i], tests)
        if unread or errors:
            positions = np.delete(np.arange(len(values)), [*unread, *errors])
        else:
            positions = np.arange(len(values))
        for path, test in tests.items():
            keep[positions] &= _flags(test, list(map(self._getters[path], events)))
        return keep

    def _test_slowly(self, value: bytes, tests: Mapping[str, _Test]) -> bool:
        """As `test`, for one event that the decoder refuses; a number may be too large."""
        event = parsed_slowly(value)
        if event is None:
            return True
        return all(test(value_at(event, names_in(path))) for path, test in tests.items())


def _field_getter(
    path: tuple[str, ...], attributes: Mapping[tuple[str, ...], str]
) -> Callable[[object], object]:
    """A function that returns a field of a decoded event, None if it is absent."""
    read = next(n for n in range(len(path), 0, -1) if path[:n] in attributes)
    get, inner_path = attrgetter(attributes[path[:read]]), path[read:]
    if len(path) == 1:
        return get

    def found(event: object) -> object:
        try:
            value: object = get(event)
        except AttributeError:  # a parent is not an object
            return None
        return value_at(value, inner_path) if inner_path else value

    return found
