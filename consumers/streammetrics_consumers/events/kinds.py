"""Events of several kinds in one log: impressions and the outcomes that are joined to them, and
exposures beside other events.

The mark of an event is read first, and then the fields of its kind: an outcome lacks most fields
of an impression, and fields of the same name may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.config.event import Field, condition_field
from streammetrics_consumers.config.exposures import EXPERIMENT, unit_fields
from streammetrics_consumers.events import Unfit, shown
from streammetrics_consumers.events.columns import Bad, Column
from streammetrics_consumers.events.fields import (
    ID,
    KIND,
    FieldReader,
    Positions,
    field_of_event_id,
    fields_of_outcome,
    merged,
    spread,
)
from streammetrics_consumers.events.messages import EventRows

if TYPE_CHECKING:
    from streammetrics_consumers.config.config import Config
    from streammetrics_consumers.config.marks import Mark

# An outcome is its position in the config, counted from 1; an exposure comes after these.
IMPRESSION: Final = 0
EVENT: Final = 0  # any event that is no exposure, without a [join]
NEITHER: Final = -1


def exposure_kind(config: Config) -> int:
    """The kind of exposures: that after all others."""
    return 1 + (0 if config.join is None else len(config.join.outcomes))


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of events: its mark, None if it has the events without another mark; and what is read
    of them."""

    mark: Mark | None
    fields: tuple[Field, ...]


def kinds_of(config: Config) -> tuple[EventKind, ...]:
    """The kinds of events in the logs of a config, in the order of their numbers; empty if there is
    only one."""
    return tuple(_kinds_of(config))


def _kinds_of(config: Config) -> Iterator[EventKind]:
    event_id, join, exposures = field_of_event_id(config), config.join, config.exposures
    unit = () if config.exposed_unit is None else unit_fields(config.exposed_unit)
    if join is not None:
        id_fields = (Field(join.id, "hashed_id", name=ID), *event_id)
        yield EventKind(join.impression, (*config.fields, *unit, *id_fields))
        for outcome in join.outcomes:
            fields = fields_of_outcome(config, outcome.value)
            yield EventKind(outcome.mark, (*fields, *id_fields))
    elif exposures is not None:
        yield EventKind(None, (*config.fields, *unit, *event_id))
    if exposures is not None:
        yield EventKind(exposures.mark, (*exposures.fields, *event_id))


def _marking_fields(config: Config) -> Iterator[Field]:
    """The fields by whose texts kinds are told apart, each once. That of a join must have a plain
    value; an event with another value in that of exposures is no exposure."""
    of_join = () if config.join is None else config.join.marks
    paths = {mark.field for mark in of_join if mark.field is not None}
    for path in sorted(paths):
        yield Field(path, "slice", name=KIND)
    if config.exposures is not None and config.exposures.mark.field is not None:
        path = config.exposures.mark.field
        if path not in paths:
            yield Field(path, "arm", name=KIND, optional=True)


class Kinds:
    """Tells the kinds of the events in a log apart. `readings` are those of each kind."""

    def __init__(self, config: Config) -> None:
        in_kafka = config.source.kind == "kafka"
        kinds = kinds_of(config)
        self.marks = {i: kind.mark for i, kind in enumerate(kinds) if kind.mark is not None}
        self.readings = [FieldReader(kind.fields, in_kafka=in_kafka) for kind in kinds]
        self._marking = {
            field.path: FieldReader([field], in_kafka=in_kafka) for field in _marking_fields(config)
        }
        self.exposure = exposure_kind(config)
        where = () if config.exposures is None else config.exposures.where
        self._conditions = FieldReader(list(map(condition_field, where)), in_kafka=in_kafka)
        self._others = next((i for i in range(len(kinds)) if i not in self.marks), NEITHER)
        self._refuses = config.join is not None and config.join.others == "refuse"
        n_outcomes = 0 if config.join is None else len(config.join.outcomes)
        self._expected = f"an impression or one of {n_outcomes} outcomes"
        if config.exposures is not None:
            self._expected = f"an impression, an exposure or one of {n_outcomes} outcomes"
        self._only = "" if config.exposures is None else config.exposures.only

    @property
    def all_readings(self) -> list[FieldReader]:
        """The readings of marks, of conditions on exposures, and of each kind."""
        return [*self._marking.values(), self._conditions, *self.readings]

    @property
    def paths(self) -> list[str]:
        """The paths into an event that any kind reads."""
        return list(dict.fromkeys(path for reading in self.all_readings for path in reading.paths))

    @property
    def beside(self) -> bool:
        """Whether any kind reads the key or headers of a record."""
        return any(reading.beside is not None for reading in self.all_readings)

    def apply(self, events: EventRows) -> EventRows:
        """The events that have a kind, with it; the others are refused or skipped."""
        kinds, bad = self._kinds(events)
        self._skip_exposures(events, kinds)
        has_kind = kinds != NEITHER
        without_kind = len(kinds) - int(has_kind.sum()) - len(bad)
        return replace(events, kinds=kinds, of_no_kind=without_kind).where(has_kind, bad)

    def merged(
        self, parts: Sequence[tuple[Positions, Mapping[str, Column]]], n: int
    ) -> dict[str, Column]:
        """The columns of n events of all kinds, of which each part has some. Exposures that do not
        say their experiment have the only one."""
        columns = merged(parts, n)
        if self._only:
            columns[EXPERIMENT] = DictionaryColumn(np.zeros(n, np.intp), (self._only,))
        return columns

    def _kinds(self, events: EventRows) -> tuple[NDArray[np.int8], Bad]:
        """The kind of each event, NEITHER for bad ones too, and the reasons of these."""
        topic, n = events.chunk.partition.topic, len(events.rows)
        marks = {i: mark for i, mark in self.marks.items() if mark.topic in (None, topic)}
        by_topic = next((i for i, mark in marks.items() if mark.field is None), None)
        if by_topic is not None:
            return np.full(n, by_topic, np.int8), {}
        # Marks of other fields are of other topics: no event may have two marks.
        path = next((mark.field for mark in marks.values()), None)
        kinds = np.full(n, self._others, np.int8)
        texts: DictionaryColumn | None = None
        bad: Bad = {}
        if path is not None:
            texts, bad = self._texts(path, events)
            by_text = {mark.equals: i for i, mark in marks.items()}
            of_values = [by_text.get(_text(value), self._others) for value in texts.values]
            kinds = np.array(of_values or [self._others], np.int8)[texts.codes]
            kinds[list(bad)] = NEITHER
        if self._refuses:
            for i in np.flatnonzero(kinds == NEITHER).tolist():
                got = f"one of topic {topic}"
                if texts is not None:
                    got = shown(texts.values[texts.codes[i]])
                detail = f"expected {self._expected}, got {got}"
                bad.setdefault(i, Unfit("unknown_kind", path, detail))
        return kinds, bad

    def _skip_exposures(self, events: EventRows, kinds: NDArray[np.int8]) -> None:
        """Give exposures that do not meet their conditions no kind. One that cannot be parsed is
        refused when its fields are read."""
        exposures = np.flatnonzero(kinds == self.exposure)
        if not len(exposures) or not self._conditions.fields:
            return
        columns, unread, _ = self._conditions.read(events, events.rows[exposures])
        read = np.delete(exposures, list(unread)) if unread else exposures
        for field in self._conditions.fields:
            flags = columns[field.column]
            assert isinstance(flags, np.ndarray)
            kinds[read[~flags.astype(np.bool_)]] = NEITHER

    def _texts(self, path: str, events: EventRows) -> tuple[DictionaryColumn, Bad]:
        """The texts of a field that has marks, and the reasons of events where it is unreadable."""
        n = len(events.rows)
        columns, unread, unfit = self._marking[path].read(events, events.rows)
        column = columns[KIND]
        if unread:
            column = spread(column, np.delete(np.arange(n), list(unread)), n)
        assert isinstance(column, DictionaryColumn)
        return column, {**unread, **unfit}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
