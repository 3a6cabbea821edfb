"""The mark of a kind of events: how an event is recognized as an impression, an outcome or an
exposure, by a field and its text, by the topic of its record, or by both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from streammetrics_consumers.config.keys import keys_of, read_keys, state_key
from streammetrics_consumers.config.kinds import A_PATH, FieldPath, Single
from streammetrics_consumers.config.section import RefusedSetting, Section
from streammetrics_consumers.config.source import SourceConfig

A_MARK: Final = (
    "a table with `field` and `equals`, or `topic`",
    'write for example { field = "kind", equals = "click" } or { topic = "clicks" }',
)


def _as_equals(value: object) -> str | None:
    text = str(value) if isinstance(value, str | int) else None
    return text.lower() if text is not None and isinstance(value, bool) else text


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a kind of events: a field and its text, the topic of the record, or both."""

    field: str | None = state_key(
        FieldPath(A_PATH), None, "the field that identifies these events; used with `equals`"
    )
    equals: str | None = state_key(
        Single(
            "text, whole number, true or false",
            _as_equals,
            "a text, a whole number, true or false",
            "write the value that the field has in these events",
        ),
        None,
        "the value of the field",
    )
    topic: str | None = state_key(
        Single(
            "one of `source.topic`",
            lambda value: value if isinstance(value, str) else None,
            "the name of a topic",
            "put it in quotes",
        ),
        None,
        "the topic of these events",
    )

    def excludes(self, other: Mark) -> bool:
        """Whether no event can have both marks."""
        by_topic = None not in (self.topic, other.topic) and self.topic != other.topic
        by_field = self.field is not None and self.field == other.field
        return by_topic or (by_field and self.equals != other.equals)

    @property
    def plain(self) -> dict[str, str]:
        """What the mark consists of, by key."""
        values = {"field": self.field, "equals": self.equals, "topic": self.topic}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def declared(self) -> list[str | None]:
        """The mark in plain values, for fingerprints: field, its text, and topic."""
        return [self.field, self.equals, self.topic]


def mark_entry(section: Section, name: str, keys: Iterable[str]) -> Section:
    """The table under a key, which has a mark and further keys; another value is refused."""
    expected, hint = A_MARK
    entry = section.entry(name, hint, expected)
    if not entry.table.keys() & {"field", "topic"}:
        section.refuse(name, expected, hint)
    entry.asked += keys
    entry.done()
    return entry


def read_mark(entry: Section) -> Mark:
    """The mark in a table, which may have other keys too; a bad one is refused."""
    mark = read_keys(entry, Mark)
    if (entry.raw("field") is None) != (entry.raw("equals") is None):
        expected = "both `field` and `equals`, or neither"
        got = {name: entry.raw(name) for name in keys_of(Mark) if entry.raw(name) is not None}
        entry.problem(entry.title, expected, got, "add the other")
        raise RefusedSetting
    entry.require_good(*keys_of(Mark))
    return mark


def require_distinct(section: Section, marks: Mapping[str, Mark], source: SourceConfig) -> None:
    """Record a problem for marks that one event may have both, and for topics that are not read.

    marks: by the setting that has them."""
    for (where, mark), (other_where, other_mark) in combinations(marks.items(), 2):
        if mark.excludes(other_mark):
            continue
        if mark.field and other_mark.field and mark.field != other_mark.field:
            expected = f"the field {mark.field!r} of the other marks"
            hint = "use one field for all marks, or tell them apart by their topics"
            section.problem(other_where, expected, other_mark.field, hint)
            continue
        expected = f"a mark that excludes that of {where}"
        section.problem(other_where, expected, other_mark.plain, "no event may match both")
    for where, mark in marks.items():
        if mark.topic is not None and mark.topic not in source.topics:
            hint = "read that topic too, or identify these events by a field"
            section.problem(where, "a topic of [source]", mark.topic, hint)
