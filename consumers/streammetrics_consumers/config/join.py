"""[join]: an impression is one event, and each of its outcomes (a click, a purchase) another one.

They share an id. An impression is counted when its label window has closed, with the labels from
its outcomes, and 0 without an outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, cast

import numpy as np

from streammetrics import Accumulator, InputError, hash_ids
from streammetrics_consumers.config.entries import ENTRIES
from streammetrics_consumers.config.event import ARGUMENT_ROLES, ROLE_ARGUMENTS, Field
from streammetrics_consumers.config.section import Problem, Section, shown
from streammetrics_consumers.config.tables import SourceConfig, WindowsConfig

Counts = Literal["once", "count", "sum"]
Attribution = Literal["one", "last", "every"]

COUNTS: Final = ("once", "count", "sum")
MAX_OUTCOMES: Final = 16
PANES: Final = 8  # per label window: pending rows are stored by these panes of event time
_ONE: Final = np.ones(1)


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a kind of events: a field and its text, the topic of the record, or both."""

    field: str | None = None
    equals: str | None = None
    topic: str | None = None

    def excludes(self, other: Mark) -> bool:
        """Whether no event can have both marks."""
        pairs = ((self.equals, other.equals), (self.topic, other.topic))
        return any(a is not None and b is not None and a != b for a, b in pairs)


@dataclass(frozen=True, slots=True)
class OutcomeConfig:
    """One entry of [join.outcomes]. counts: whether an impression has the outcome ("once", 0 or 1),
    how often ("count"), or the sum of the numbers in the field `value` ("sum")."""

    name: str
    mark: Mark
    counts: Counts = "once"
    value: str | None = None


@dataclass(frozen=True, slots=True)
class JoinConfig:
    """[join]. An outcome belongs to an impression at t if its time is in [t, t + label_window_s).

    reopen_s: how much later than the allowed lateness events are still joined. idle_s: partitions
    without events, or whose newest event is this much older than the newest of all, do not keep
    windows open; None: all do. others: the treatment of events that are neither. warn_cut: the
    share of label delays in the last tenth of the window above which a warning says that the window
    cuts off outcomes.
    """

    id: str
    impression: Mark
    outcomes: tuple[OutcomeConfig, ...]
    label_window_s: int
    reopen_s: int = 0
    attribution: Attribution = "one"
    idle_s: int | None = None
    others: Literal["refuse", "skip"] = "refuse"
    warn_cut: float = 0.01

    @property
    def kind_field(self) -> str | None:
        """The field that distinguishes the kinds of events, if there is one."""
        return next((mark.field for mark in self.marks if mark.field is not None), None)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The mark of the impression, and those of the outcomes in order."""
        return (self.impression, *(one.mark for one in self.outcomes))

    @property
    def label_window_ms(self) -> int:
        """The length of the label window."""
        return self.label_window_s * 1000

    @property
    def pane_ms(self) -> int:
        """The length of the panes of event time by which pending rows are stored and closed."""
        return max(self.label_window_ms // PANES, 1000)

    def plan(self, windows: WindowsConfig) -> dict[str, object]:
        """The settings that determine which impressions are counted with which labels, in plain
        values. Lateness is one, since late events are not joined. (Older versions dropped them.)
        """
        return {
            "id": self.id,
            "marks": [[mark.field, mark.equals, mark.topic] for mark in self.marks],
            "outcomes": [[one.name, one.counts, one.value] for one in self.outcomes],
            "label_window_s": self.label_window_s,
            "late_after_s": windows.lateness_s + self.reopen_s,
            "late": "to quarantine",
            "attribution": self.attribution,
        }


def read_join(section: Section, source: SourceConfig, windows: WindowsConfig) -> JoinConfig | None:
    """Read [join]; None if it is unusable, after recording a problem."""
    id_path = section.path("id")
    marked = ENTRIES["join.impression"]
    impression = _read_mark(section, "[join] impression", section.raw("impression"), marked)
    outcomes = _read_outcomes(section)
    window = section.whole("label_window_s", 0)
    reopen = section.whole("reopen_s")
    attribution = cast("Attribution", section.choice("attribution"))
    idle = section.optional_whole("idle_s")
    others = cast('Literal["refuse", "skip"]', section.choice("others"))
    warn = section.number("warn_cut")
    section.done()
    if id_path is None or impression is None or not outcomes or not window:
        return None
    found = JoinConfig(
        id_path, impression, outcomes, window, reopen, attribution, idle, others, warn
    )
    _check_marks(section, found, source)
    least = windows.size_s + window + windows.lateness_s + reopen
    if windows.retention_s < least:
        expected = f"at least {least}: size_s, label_window_s, lateness_s and reopen_s together"
        hint = "keep windows until the impressions in them are counted"
        section.problem("[windows] retention_s", expected, windows.retention_s, hint)
    return found


def _read_outcomes(section: Section) -> tuple[OutcomeConfig, ...]:
    table = section.raw("outcomes")
    if not isinstance(table, dict) or not 0 < len(table) <= MAX_OUTCOMES:
        hint = 'write click = { field = "kind", equals = "click" } in it'
        section.bad("outcomes", f"a table [join.outcomes] of 1 to {MAX_OUTCOMES} outcomes", hint)
        return ()
    found = []
    for name, given in table.items():
        where = f"[join.outcomes] {name}"
        if not name.isidentifier() or len(name) > 64:
            section.problem(where, "a name of up to 64 letters, digits or `_`", name, "rename it")
        mark = _read_mark(section, where, given, ENTRIES["join.outcomes.NAME"])
        if mark is None:
            continue
        counts, value = given.get("counts", "once"), given.get("value")
        if counts not in COUNTS:
            section.unknown(f"{where}.counts", '"once", "count" or "sum"', counts, COUNTS)
        elif (counts == "sum") != (value is not None):
            hint = 'use `value` and counts = "sum" together'
            section.problem(
                f"{where}.value", "a field to sum" if counts == "sum" else "nothing", value, hint
            )
        elif value is None or section.takes_path(f"{where}.value", value):
            found.append(OutcomeConfig(name, mark, counts, value))
    return tuple(found)


def _read_mark(section: Section, where: str, given: object, keys: Collection[str]) -> Mark | None:
    known = tuple(keys)
    if not isinstance(given, dict) or not given.keys() & {"field", "topic"}:
        hint = 'write for example { field = "kind", equals = "click" } or { topic = "clicks" }'
        section.problem(where, "a table with `field` and `equals`, or `topic`", given, hint)
        return None
    for key in given.keys() - set(known):
        section.unknown(f"{where}.{key}", "a known key", key, known)
    path, equals, topic = given.get("field"), given.get("equals"), given.get("topic")
    if (path is None) != (equals is None):
        section.problem(where, "both `field` and `equals`, or neither", given, "add the other")
        return None
    if path is not None and not section.takes_path(f"{where}.field", path):
        return None
    if equals is not None and not isinstance(equals, str | int):
        hint = "write the value that the field has in these events"
        section.problem(f"{where}.equals", "a text, a whole number, true or false", equals, hint)
        return None
    if topic is not None and not isinstance(topic, str):
        section.problem(f"{where}.topic", "the name of a topic", topic, "put it in quotes")
        return None
    text = str(equals).lower() if isinstance(equals, bool) else equals
    return Mark(path, None if text is None else str(text), topic)


def _check_marks(section: Section, join: JoinConfig, source: SourceConfig) -> None:
    names = ["[join] impression", *(f"[join.outcomes] {one.name}" for one in join.outcomes)]
    marked = list(zip(names, join.marks, strict=True))
    for (where, mark), (other, theirs) in combinations(marked, 2):
        if not mark.excludes(theirs):
            section.problem(
                other,
                f"a mark that excludes that of {where}",
                _said(theirs),
                "no event may match both",
            )
    for where, mark in marked:
        if mark.field not in (None, join.kind_field):
            hint = "use one field for all marks"
            section.problem(
                where, f"the field {join.kind_field!r} of the other marks", mark.field, hint
            )
        if mark.topic is not None and mark.topic not in source.topics:
            hint = "read that topic too, or identify these events by a field"
            section.problem(where, "a topic of [source]", mark.topic, hint)


def _said(mark: Mark) -> Mapping[str, str]:
    pairs = {"field": mark.field, "equals": mark.equals, "topic": mark.topic}
    return {name: value for name, value in pairs.items() if value is not None}


def of_no_order(table: str) -> Problem:
    """The problem of [join] or [dedup] with a source whose events have no order."""
    return Problem(
        f"[{table}]",
        'nothing, since kind is "spark"',
        "a table",
        "remove it: only the order of a log defines which events are late or repeated",
    )


def refuse_label(path: object) -> Problem:
    """The problem of [event] label beside [join], which takes labels from outcomes."""
    return Problem(
        "[event] label",
        "nothing, since [join] makes labels from outcomes",
        shown(path),
        "remove it; a metric's inputs = { labels = ... } names an outcome",
    )


def labels_of_join(
    section: Section,
    where: str,
    given: Mapping[str, object],
    join: JoinConfig,
    empty: Accumulator,
) -> tuple[dict[str, object], dict[str, Field]]:
    """The inputs that are fields of an event, and those that are outcomes: labels, from the outcome
    that the config names, else from the first one; and arguments without a role that name one."""
    left, found = dict(given), dict[str, Field]()
    names = [one.name for one in join.outcomes]
    for argument in empty.arguments():
        of_label = argument in ROLE_ARGUMENTS["label"]
        if not of_label and (argument in ARGUMENT_ROLES or left.get(argument) not in names):
            continue
        name = left.pop(argument, names[0])
        if name not in names:
            section.unknown(
                f"{where}.inputs.{argument}", "an outcome of [join.outcomes]", name, names
            )
            name = names[0]
        outcome = join.outcomes[names.index(str(name))]
        if outcome.counts != "once" and _takes_only_once(empty, argument):
            expected = 'an outcome with counts = "once"'
            hint = "name another outcome; this metric takes labels 0 and 1"
            section.problem(
                f"{where}.inputs.{argument}", expected, f"{outcome.name} ({outcome.counts})", hint
            )
        found[argument] = outcome_field(outcome)
    return left, found


def outcome_field(outcome: OutcomeConfig) -> Field:
    """The field that represents an outcome's label among the fields of a metric."""
    return Field(outcome.name, "outcome")


def refuse_arrays(section: Section, where: str, inputs: Mapping[str, Field]) -> None:
    """Record a problem for array fields: pending rows have columns of one value."""
    for argument, field in inputs.items():
        if field.width or field.kind.endswith("_list"):
            expected = "a field of one value, since there is a [join]"
            hint = "leave the metric out, or count it with a separate config without [join]"
            section.problem(f"{where}.inputs.{argument}", expected, field.path, hint)


def _takes_only_once(empty: Accumulator, argument: str) -> bool:
    """Whether the metric accepts a label 1 and refuses 2.5."""
    columns: dict[str, object] = dict.fromkeys(("scores", "predictions"), _ONE / 2)
    columns |= {name: hash_ids(["a"]) for name in ("groups", "users", "items")}
    columns["weights"] = _ONE
    wanted = [name for name, needed in empty.arguments().items() if needed and name != argument]
    some = {name: columns[name] for name in wanted if name in columns}

    def takes(label: float) -> bool:
        try:
            empty.check(**some, **{argument: _ONE * label})
        except (InputError, TypeError):
            return False
        return True

    return takes(1.0) and not takes(2.5)
