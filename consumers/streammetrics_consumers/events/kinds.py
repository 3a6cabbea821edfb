"""Events of several kinds in one log: impressions, and the outcomes that are joined to them.

The mark of an event is read first, and then the fields of its kind: an outcome lacks most fields
of an impression, and fields of the same name may differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.config.event import Field
from streammetrics_consumers.events import Unfit, shown
from streammetrics_consumers.events.columns import Bad, Column, taken
from streammetrics_consumers.events.fields import (
    ID,
    KIND,
    Reading,
    field_of_event_id,
    fields_of_outcome,
    spread,
)
from streammetrics_consumers.events.messages import Opened
from streammetrics_consumers.model.chunk import Chunk

if TYPE_CHECKING:
    from streammetrics_consumers.config.config import Config
    from streammetrics_consumers.config.join import JoinConfig

IMPRESSION: Final = 0  # an outcome is its position in the config, counted from 1
NEITHER: Final = -1


class Kinds:
    """Reads the events of a log with several kinds of events."""

    def __init__(self, config: Config, join: JoinConfig) -> None:
        in_kafka = config.source.kind == "kafka"
        self.join = join
        path = join.kind_field
        kind = None if path is None else Field(path, "slice", name=KIND)
        self._kind = None if kind is None else Reading([kind], in_kafka=in_kafka)
        mine = [Field(join.id, "hashed_id", name=ID), *field_of_event_id(config)]
        self._readings = [Reading([*config.fields, *mine], in_kafka=in_kafka)]
        for one in join.outcomes:
            of_one = [*fields_of_outcome(config, one.value), *mine]
            self._readings.append(Reading(of_one, in_kafka=in_kafka))

    @property
    def paths(self) -> list[str]:
        """The paths into an event that any kind reads."""
        readings = self._readings if self._kind is None else [self._kind, *self._readings]
        return list(dict.fromkeys(path for one in readings for path in one.paths))

    @property
    def beside(self) -> bool:
        """Whether any kind reads the key or headers of a record."""
        readings = self._readings if self._kind is None else [self._kind, *self._readings]
        return any(one.beside is not None for one in readings)

    def read(
        self, opened: Opened, records: Chunk, at: NDArray[np.intp], bad: Bad
    ) -> tuple[NDArray[np.intp], NDArray[np.int8], dict[str, Column], int]:
        """Read the events at the positions `at`. Returns the positions of the good events, intp
        [n], their kinds, int8 [n], their columns, n rows each, with placeholders where a kind has
        no such column, and the number of events of no kind that are not errors. Unreadable events
        are added to `bad`, by position. records: the messages that were split."""
        kinds = self._kinds(opened, records, at, bad)
        is_good = kinds != NEITHER
        parts: list[tuple[NDArray[np.intp], dict[str, Column]]] = []
        for kind, reading in enumerate(self._readings):
            among = np.flatnonzero(kinds == kind)
            if not len(among):
                continue
            columns, unfit = reading.of_some(opened, records, at, among)
            for i, why in unfit.items():
                bad[int(at[among[i]])] = why
                is_good[among[i]] = False
            parts.append((among, columns))
        keep = np.flatnonzero(is_good)
        refused = sum(int(place) in bad for place in at.tolist()) if bad else 0
        merged = _merged(parts, len(at))
        columns = {name: taken(column, keep) for name, column in merged.items()}
        return at[keep], kinds[keep], columns, len(at) - len(keep) - refused

    def _kinds(
        self, opened: Opened, records: Chunk, at: NDArray[np.intp], bad: Bad
    ) -> NDArray[np.int8]:
        """The kind of each event, NEITHER for bad ones too."""
        topic, marks = records.partition.topic, self.join.marks
        here = [(i, m.equals) for i, m in enumerate(marks) if m.topic in (None, topic)]
        by_topic = next((i for i, equals in here if equals is None), NEITHER)
        found = np.full(len(at), by_topic, np.int8)
        dictionary_column: DictionaryColumn | None = None
        if by_topic == NEITHER and self._kind is not None:
            columns, unfit = self._kind.of_some(opened, records, at, np.arange(len(at)))
            column = columns[KIND]
            assert isinstance(column, DictionaryColumn)
            dictionary_column, known = column, {equals: i for i, equals in here}
            kinds = [known.get(_text(value), NEITHER) for value in dictionary_column.values]
            found = np.array(kinds or [NEITHER], np.int8)[dictionary_column.codes]
            for i, why in unfit.items():
                bad[int(at[i])] = why
                found[i] = NEITHER
        if self.join.others == "refuse":
            for i in np.flatnonzero(found == NEITHER).tolist():
                got = f"one of topic {topic}"
                if dictionary_column is not None:
                    got = shown(dictionary_column.values[dictionary_column.codes[i]])
                detail = f"expected an impression or one of {len(marks) - 1} outcomes, got {got}"
                bad.setdefault(int(at[i]), Unfit("unknown_kind", self.join.kind_field, detail))
        return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _merged(parts: list[tuple[NDArray[np.intp], dict[str, Column]]], n: int) -> dict[str, Column]:
    """The columns of all kinds, n rows each."""
    merged: dict[str, Column] = {}
    for positions, columns in parts:
        for name, column in columns.items():
            known = merged.get(name)
            if known is None:
                merged[name] = spread(column, positions, n)
            else:
                assert isinstance(known, np.ndarray) and isinstance(column, np.ndarray)
                known[positions] = column
    return merged
