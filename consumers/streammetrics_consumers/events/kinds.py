"""Events of several kinds in one log: impressions, and the outcomes that are joined to them.

The mark of an event is read first, and then the fields of its kind: an outcome lacks most fields
of an impression, and fields of the same name may differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.config.event import Field
from streammetrics_consumers.events import Unfit, shown
from streammetrics_consumers.events.columns import Bad
from streammetrics_consumers.events.fields import (
    ID,
    KIND,
    FieldReader,
    field_of_event_id,
    fields_of_outcome,
    spread,
)
from streammetrics_consumers.events.messages import EventRows

if TYPE_CHECKING:
    from streammetrics_consumers.config.config import Config
    from streammetrics_consumers.config.join import JoinConfig

IMPRESSION: Final = 0  # an outcome is its position in the config, counted from 1
NEITHER: Final = -1


class Kinds:
    """Tells the kinds of the events in a log apart. `readings` are those of each kind."""

    def __init__(self, config: Config, join: JoinConfig) -> None:
        in_kafka = config.source.kind == "kafka"
        self.join = join
        path = join.kind_field
        kind = None if path is None else Field(path, "slice", name=KIND)
        self._kind = None if kind is None else FieldReader([kind], in_kafka=in_kafka)
        id_fields = [Field(join.id, "hashed_id", name=ID), *field_of_event_id(config)]
        self.readings = [FieldReader([*config.fields, *id_fields], in_kafka=in_kafka)]
        for outcome in join.outcomes:
            outcome_fields = [*fields_of_outcome(config, outcome.value), *id_fields]
            self.readings.append(FieldReader(outcome_fields, in_kafka=in_kafka))

    @property
    def paths(self) -> list[str]:
        """The paths into an event that any kind reads."""
        readings = self.readings if self._kind is None else [self._kind, *self.readings]
        return list(dict.fromkeys(path for reading in readings for path in reading.paths))

    @property
    def beside(self) -> bool:
        """Whether any kind reads the key or headers of a record."""
        readings = self.readings if self._kind is None else [self._kind, *self.readings]
        return any(reading.beside is not None for reading in readings)

    def apply(self, events: EventRows) -> EventRows:
        """The events that have a kind, with it; the others are refused or skipped."""
        kinds, bad = self._kinds(events)
        has_kind = kinds != NEITHER
        without_kind = len(kinds) - int(has_kind.sum()) - len(bad)
        return replace(events, kinds=kinds, of_no_kind=without_kind).where(has_kind, bad)

    def _kinds(self, events: EventRows) -> tuple[NDArray[np.int8], Bad]:
        """The kind of each event, NEITHER for bad ones too, and the reasons of these."""
        topic, marks, n = events.chunk.partition.topic, self.join.marks, len(events.rows)
        topic_marks = [(i, m.equals) for i, m in enumerate(marks) if m.topic in (None, topic)]
        by_topic = next((i for i, equals in topic_marks if equals is None), NEITHER)
        kinds = np.full(n, by_topic, np.int8)
        texts: DictionaryColumn | None = None
        bad: Bad = {}
        if by_topic == NEITHER and self._kind is not None:
            columns, unread, unfit = self._kind.read(events, events.rows)
            column, bad = columns[KIND], {**unread, **unfit}
            if unread:
                column = spread(column, np.delete(np.arange(n), list(unread)), n)
            assert isinstance(column, DictionaryColumn)
            texts, by_text = column, {equals: i for i, equals in topic_marks}
            of_values = [by_text.get(_text(value), NEITHER) for value in texts.values]
            kinds = np.array(of_values or [NEITHER], np.int8)[texts.codes]
            kinds[list(bad)] = NEITHER
        if self.join.others == "refuse":
            for i in np.flatnonzero(kinds == NEITHER).tolist():
                got = f"one of topic {topic}"
                if texts is not None:
                    got = shown(texts.values[texts.codes[i]])
                detail = f"expected an impression or one of {len(marks) - 1} outcomes, got {got}"
                bad.setdefault(i, Unfit("unknown_kind", self.join.kind_field, detail))
        return kinds, bad


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
