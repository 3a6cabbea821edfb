"""[join]: an impression is one event, and each of its outcomes (a click, a purchase) another one.

They share an id. An impression is counted when its label window has closed, with the labels from
its outcomes, and 0 without an outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from streammetrics import Accumulator, InputError, hash_ids
from streammetrics_consumers.config.event import ARGUMENT_ROLES, ROLE_ARGUMENTS, EventConfig, Field
from streammetrics_consumers.config.keys import (
    Required,
    ValueKind,
    is_complete,
    key,
    keys_of,
    read,
    read_keys,
    state_key,
)
from streammetrics_consumers.config.kinds import (
    A_PATH,
    YEAR_S,
    Choice,
    FieldPath,
    Real,
    Seconds,
)
from streammetrics_consumers.config.marks import (
    A_MARK,
    Mark,
    mark_entry,
    read_mark,
    require_distinct,
)
from streammetrics_consumers.config.section import RefusedSetting, Section
from streammetrics_consumers.config.source import SourceConfig, require_order
from streammetrics_consumers.config.tables import WindowsConfig

Counts = Literal["once", "count", "sum"]
Attribution = Literal["one", "last", "every"]
Others = Literal["refuse", "skip"]

MAX_OUTCOMES: Final = 16
PANES: Final = 8  # per label window: pending rows are stored by these panes of event time
_ONE: Final = np.ones(1)
_NO_OUTCOMES: Final = (
    f"a table [join.outcomes] of 1 to {MAX_OUTCOMES} outcomes",
    'write click = { field = "kind", equals = "click" } in it',
)


@dataclass(frozen=True, slots=True)
class OutcomeConfig:
    """One entry of [join.outcomes]; the keys of its mark stand beside these."""

    name: str
    mark: Mark
    counts: Counts = key(
        Choice(get_args(Counts), '"once", "count" or "sum"'),
        "once",
        "`once`: whether an impression had it (0 or 1); `count`: how often; `sum`: the sum of "
        "`value`",
    )
    value: str | None = key(FieldPath(A_PATH), None, "the field to sum; used with `sum`")


def _impression(section: Section, name: str, value: object) -> Mark:
    return read_mark(mark_entry(section, name, keys_of(Mark)))


def _outcomes(section: Section, name: str, value: object) -> tuple[OutcomeConfig, ...]:
    if not isinstance(value, dict) or not 0 < len(value) <= MAX_OUTCOMES:
        section.refuse(name, *_NO_OUTCOMES)
    outcomes = tuple(section.inner("[join.outcomes]", value, between=" ").each(_outcome))
    if not outcomes:
        raise RefusedSetting
    return outcomes


def _outcome(section: Section, name: str) -> OutcomeConfig:
    if not name.isidentifier() or len(name) > 64:
        expected = "a name of up to 64 letters, digits or `_`"
        section.problem(section.where(name), expected, name, "rename it")
    entry = mark_entry(section, name, [*keys_of(Mark), *keys_of(OutcomeConfig)])
    outcome = read_keys(entry, OutcomeConfig, name=name, mark=read_mark(entry))
    entry.require_good("counts")
    if (outcome.counts == "sum") != (entry.raw("value") is not None):
        expected = "a field to sum" if outcome.counts == "sum" else "nothing"
        entry.refuse("value", expected, 'use `value` and counts = "sum" together')
    entry.require_good("value")
    return outcome


@dataclass(frozen=True, slots=True)
class JoinConfig:
    """[join]. An outcome of an impression at t has its time in [t, t + label_window_s)."""

    id: str = state_key(
        FieldPath(),
        Required(
            "a dotted path",
            'name the field that an impression and its outcomes share, such as "request_id"',
        ),
        "the id that an impression and its outcomes share: a text or a whole number",
    )
    impression: Mark = state_key(
        ValueKind("table", _impression),
        Required(*A_MARK),
        'how impressions are recognized: `{ field = "kind", equals = "impression" }`, `{ topic = '
        '"impressions" }`, or both',
    )
    outcomes: tuple[OutcomeConfig, ...] = state_key(
        ValueKind("table of 1 to 16 tables", _outcomes),
        Required(*_NO_OUTCOMES),
        "by name, how outcomes are recognized and counted",
    )
    label_window_s: int = state_key(
        Seconds(1, YEAR_S),
        Required(
            "a whole number of seconds", "say how long after an impression its outcomes count"
        ),
        "an impression at t has the outcomes in [t, t + this)",
    )
    reopen_s: int = state_key(
        Seconds(0, YEAR_S),
        0,
        "events up to this much later than `lateness_s` are still joined; impressions are "
        "counted later by this time",
    )
    attribution: Attribution = state_key(
        Choice(get_args(Attribution)),
        "one",
        "`one`: an id is one impression, and others with different content are conflicts; "
        "`last`: an outcome belongs to the last impression of its id before it; `every`: to each "
        "of them",
    )
    idle_s: int | None = key(
        Seconds(1, YEAR_S),
        None,
        "a partition without events, or whose newest event is this much older than the newest of "
        "all, keeps no label window open; by default every partition does",
    )
    others: Others = key(
        Choice(get_args(Others)),
        "refuse",
        "events that are no impressions, outcomes or exposures: `refuse` sends them to quarantine, "
        "`skip` only counts them as `skipped`",
    )
    warn_cut: float = key(
        Real(0, 1),
        0.01,
        "warn if more than this share of an outcome comes after the label window, or in its last "
        "tenth",
    )

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The mark of the impression, and those of the outcomes in order."""
        return (self.impression, *(outcome.mark for outcome in self.outcomes))

    @property
    def named_marks(self) -> dict[str, Mark]:
        """The marks by the setting that has them."""
        names = (f"[join.outcomes] {outcome.name}" for outcome in self.outcomes)
        return dict(zip(("[join] impression", *names), self.marks, strict=True))

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
            "marks": [mark.declared for mark in self.marks],
            "outcomes": [
                [outcome.name, outcome.counts, outcome.value] for outcome in self.outcomes
            ],
            "label_window_s": self.label_window_s,
            "late_after_s": windows.lateness_s + self.reopen_s,
            "late": "to quarantine",
            "attribution": self.attribution,
        }


def read_join(
    section: Section, source: SourceConfig, event: EventConfig, windows: WindowsConfig
) -> JoinConfig | None:
    """Read [join]; None if it is unusable, after recording a problem."""
    if event.label is not None:
        expected = "nothing, since [join] makes labels from outcomes"
        hint = "remove it; a metric's inputs = { labels = ... } names an outcome"
        section.problem("[event] label", expected, event.label, hint)
    join = read(section, JoinConfig)
    if not is_complete(section, JoinConfig):
        return None
    require_order(section, source)
    require_distinct(section, join.named_marks, source)
    least = windows.size_s + join.label_window_s + windows.lateness_s + join.reopen_s
    if windows.retention_s < least:
        expected = f"at least {least}: size_s, label_window_s, lateness_s and reopen_s together"
        hint = "keep windows until the impressions in them are counted"
        section.problem("[windows] retention_s", expected, windows.retention_s, hint)
    return join


def read_labels(
    inputs: Section, join: JoinConfig, empty: Accumulator
) -> tuple[dict[str, object], dict[str, Field]]:
    """The inputs that are fields of an event, and those that are outcomes: labels, from the outcome
    that the config names, else from the first one; and arguments without a role that name one."""
    paths, labels = dict(inputs.table), dict[str, Field]()
    outcomes = {outcome.name: outcome for outcome in join.outcomes}
    for argument in empty.arguments():
        is_label = argument in ROLE_ARGUMENTS["label"]
        if not is_label and (argument in ARGUMENT_ROLES or paths.get(argument) not in outcomes):
            continue
        name = paths.pop(argument, join.outcomes[0].name)
        outcome = outcomes.get(str(name))
        if outcome is None:
            outcome_names, expected = list(outcomes), "an outcome of [join.outcomes]"
            inputs.unknown(inputs.where(argument), expected, name, outcome_names)
            outcome = join.outcomes[0]
        if outcome.counts != "once" and _takes_only_once(empty, argument):
            expected, got = 'an outcome with counts = "once"', f"{outcome.name} ({outcome.counts})"
            hint = "name another outcome; this metric takes labels 0 and 1"
            inputs.problem(inputs.where(argument), expected, got, hint)
        labels[argument] = outcome_field(outcome)
    return paths, labels


def outcome_field(outcome: OutcomeConfig) -> Field:
    """The field that represents an outcome's label among the fields of a metric."""
    return Field(outcome.name, "outcome")


def refuse_arrays(entry: Section, inputs: Mapping[str, Field], waiting: str) -> None:
    """Record a problem for array fields: rows that wait have columns of one value. waiting: the
    table that makes them wait, see `read_windows`."""
    for argument, field in inputs.items():
        if field.width or field.kind.endswith("_list"):
            expected = f"a field of one value, since there is {waiting}"
            hint = "leave the metric out, or count it with a separate config without this table"
            entry.problem(f"{entry.where('inputs')}.{argument}", expected, field.path, hint)


def _takes_only_once(empty: Accumulator, argument: str) -> bool:
    """Whether the metric accepts a label 1 and refuses 2.5."""
    columns: dict[str, object] = dict.fromkeys(("scores", "predictions"), _ONE / 2)
    columns |= {name: hash_ids(["a"]) for name in ("groups", "users", "items")}
    columns["weights"] = _ONE
    names = [name for name, needed in empty.arguments().items() if needed and name != argument]
    inputs = {name: columns[name] for name in names if name in columns}

    def takes(label: float) -> bool:
        try:
            empty.check(**inputs, **{argument: _ONE * label})
        except (InputError, TypeError):
            return False
        return True

    return takes(1.0) and not takes(2.5)
