"""[event]: the roles of an event's fields, and the conditions on events.

From roles to arguments of metrics: label -> labels, numerators; score -> scores, and predictions as
an array of scores; user -> groups, users, units; list -> lists; item -> items; weight -> weights;
subtopics -> subtopics; time -> times_ms.

    where = { "exps.e00" = "present", country = ["de", "at"], bot = false }

Each entry of `where` names a field, as `[slices] by` does: a role of [event] that has a path, else
a dotted path. An event must meet all conditions; others are skipped, and counted as skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

from streammetrics_consumers.config.keys import Required, ValueKind, key, read, state_key
from streammetrics_consumers.config.kinds import Choice, FieldPath, Several
from streammetrics_consumers.config.section import Section

Kind = Literal[
    "time_iso",
    "time_s",
    "time_ms",
    "variant",
    "arm",  # of an experiment: a text, or None
    "slice",
    "name",  # of an experiment or an arm, in an exposure: a text
    "label",
    "real",
    "flag",
    "count",
    "text_id",
    "hashed_id",
    "int_id",
    "label_list",
    "real_list",
    "flag_list",
    "int_list",  # arrays of any length
    "id_list",  # arrays of ids
    "ids_list",  # arrays of any length, of arrays of ids
    "label_row",
    "real_row",  # arrays of `Field.width` values
    "label_or_row",
    "real_or_row",  # one value, or such an array
    "has_id",  # whether the field can be read as an id
    "condition",  # whether the field meets a condition
    "number",  # of an expression: a whole number or a float, exactly
    "truth",  # of an expression: true or false
    "plain_text",  # of an expression: a text alone
    "plain",  # of an expression: one of these three
    "outcome",  # this and the next are no fields of an event: see DERIVED
    "exposed_arm",
    "exposed_on",
    "since",
]

TimeUnit = Literal["s", "ms"]
# Of columns that closing adds to an event: the label of an impression by [join]; and by [exposures]
# the arm of its unit, the day of the first exposure, and the time since then.
DERIVED: Final = ("outcome", "exposed_arm", "exposed_on", "since")
ROLE_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "label": ("labels", "numerators"),
    "score": ("scores", "predictions"),
    "user": ("groups", "users", "units"),
    "list": ("lists",),
    "item": ("items",),
    "weight": ("weights",),
    "subtopics": ("subtopics",),
}
ARGUMENT_ROLES: Final = {a: role for role, names in ROLE_ARGUMENTS.items() for a in names}
ROLES: Final = ("time", "variant", "epoch", *ROLE_ARGUMENTS)
MAX_VARIANTS: Final = 1000
MAX_TEXT: Final = 1024  # characters of an id, or of a value in `where`
_INT64: Final = 1 << 63

PRESENT: Final = "present"
ABSENT: Final = "absent"
MAX_CONDITIONS: Final = 32
MAX_VALUES: Final = 1000  # per field
_EXPECTED: Final = '"present", "absent", a text, a whole number, true or false, or a list of these'
_HINT: Final = (
    'write for example { "exps.e00" = "present", country = ["de", "at"] }; in a list, "present" '
    'and "absent" are values like any other'
)


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition on one field of an event.

    name: the field as the config names it; path: its path. present: whether it must be present and
    not null. values: the accepted texts, in order; None for any value.
    """

    name: str
    path: str
    present: bool
    values: tuple[str, ...] | None = None

    @property
    def plain(self) -> list[object]:
        """The condition in plain values, for fingerprints: name, path, and expected value."""
        word = PRESENT if self.present else ABSENT
        return [self.name, self.path, word if self.values is None else list(self.values)]


def _role(doc: str) -> str | None:
    return state_key(FieldPath(), None, doc)


def is_variant(value: object) -> bool:
    """Whether this may be the name of a variant."""
    return isinstance(value, str) and 0 < len(value) <= 200 and "\0" not in value


@dataclass(frozen=True, slots=True)
class EventConfig:
    """[event]: dotted paths by role. An event needs only the fields that are read."""

    time: str = state_key(
        FieldPath(),
        Required("a dotted path", 'name the field of the event time, such as "ts"', "time"),
        "the event time: ISO with a zone, or an integer with `time_unit`; with `ms`, a number "
        "that would be a time of 1995 to 2052 in seconds is refused",
    )
    time_unit: TimeUnit | None = state_key(
        Choice(get_args(TimeUnit)), None, "the unit of integers in `time`"
    )
    variant: str | None = _role("the role of the variant that an event belongs to")
    variants: tuple[str, ...] | None = state_key(
        Several(
            f"list of 1 to {MAX_VARIANTS:,} texts",
            is_variant,
            f"a list of 1 to {MAX_VARIANTS} different texts",
            'write ["control", "new"]',
            most=MAX_VARIANTS,
        ),
        None,
        "events of other variants go to quarantine; without it every variant is counted, up to "
        "`max_keys`. Also the column order of tables, control first. More may be added later",
    )
    assignments: str | None = key(
        FieldPath(),
        None,
        "an object that has the arm of each experiment by its name: the default `variant` of an "
        "experiment NAME is its field NAME",
    )
    user: str | None = _role("the role `user`, see below")
    label: str | None = _role("the role `label`, see below")
    score: str | None = _role("the role `score`, see below")
    list: str | None = _role("the role `list`, see below")
    item: str | None = _role("the role `item`, see below")
    weight: str | None = _role("the role `weight`, see below")
    subtopics: str | None = _role("the role `subtopics`, see below")
    epoch: str | None = _role(
        "for an experiment: the allocation epoch of the event, a text; required in each event"
    )
    where: tuple[Condition, ...] = state_key(
        ValueKind("table"),
        (),
        "the conditions that an event must meet, by role or dotted path, see *Which events "
        "are counted*; other events are skipped",
        shown="`{}`",
    )

    def path(self, name: str) -> str:
        """The path of a role, or `name` itself, which is then a path."""
        role_path = getattr(self, name) if name in ROLES else None
        return role_path if isinstance(role_path, str) else name


@dataclass(frozen=True, slots=True)
class FieldExpression:
    """An expression of which a column is computed.

    digest: of all that determines the values, by which two are compared. text: its canonical form.
    fields: the field of each name in it. where: the setting that has it, for errors.
    """

    digest: str
    text: str = field(compare=False)
    fields: Mapping[str, Field] = field(compare=False)
    where: str = field(compare=False)

    @property
    def plain(self) -> list[object]:
        """The expression in plain values, for fingerprints: its text, and the path of each name, or
        the expression of a name that is computed too."""
        paths: dict[str, object] = {}
        for name, operand in sorted(self.fields.items()):
            paths[name] = operand.path if operand.computed is None else operand.computed.digest
        return [self.text, paths]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an event, the kind that it is read as, and its column.

    width: the number of values of an array that is a table row, else 0. name: the name of the
    column, if path and kind do not determine it. texts: the accepted variants, None for any.
    optional: whether an event without it, or with a value of another kind, is good. condition: of
    a column of flags, the condition on the field.

    computed: the expression of which the column is computed, if it is no field of the event itself;
    its path is then the name of the expression. needed_where: columns of flags; an event needs the
    field only if one of these is true; if there are none, always.
    """

    path: str
    kind: Kind
    width: int = 0
    name: str | None = None
    texts: tuple[str, ...] | None = None
    optional: bool = False
    condition: Condition | None = None
    computed: FieldExpression | None = None
    needed_where: tuple[str, ...] = ()

    @property
    def column(self) -> str:
        """The name of its column."""
        return self.name or f"{self.path}:{self.kind}"

    @property
    def is_key(self) -> bool:
        """Whether rows are sliced by it, rather than measured."""
        return self.kind in ("variant", "arm", "slice", "name")


def offsets_column(path: str) -> str:
    """The name of the column with the offsets of a field's lists."""
    return f"{path}:offsets"


def read_event(section: Section) -> EventConfig:
    """Read [event]."""
    event = read(section, EventConfig)
    event = replace(event, where=read_where(section, event))
    if event.variants is not None and event.variant is None:
        section.bad("variants", "nothing, since there is no variant", "name the variant's field")
    return event


def read_where(section: Section, event: EventConfig) -> tuple[Condition, ...]:
    """The conditions under the key `where`, sorted by path."""
    expected = "a table of fields and their required values"
    conditions: dict[str, Condition] = {}
    for name, value in _dotted_entries(section.entries("where", expected, _HINT).table):
        where, path, values = f"{section.place}where.{name}", event.path(name), _values(value)
        if not section.takes_path(where, name, "a role of [event] or a dotted path"):
            continue
        if values is None:
            section.problem(where, _EXPECTED, value, _HINT)
            continue
        if path in conditions:
            section.problem(where, "one entry for each field", path, "keep one of them")
        is_any = value in (PRESENT, ABSENT)
        conditions[path] = Condition(name, path, value != ABSENT, None if is_any else values)
    if len(conditions) > MAX_CONDITIONS:
        section.bad("where", f"at most {MAX_CONDITIONS} fields", "leave some out")
    return tuple(conditions[path] for path in sorted(conditions))


def condition_field(condition: Condition) -> Field:
    """The column of flags that says whether events meet a condition."""
    name = f"{condition.path}:where {json.dumps(condition.plain[2])}"
    return Field(condition.path, "condition", name=name, optional=True, condition=condition)


def conditions_of(plain: Iterable[Mapping[str, object]]) -> tuple[Condition, ...]:
    """Conditions from their fields in JSON."""
    return tuple(
        Condition(
            str(entry["name"]),
            str(entry["path"]),
            bool(entry["present"]),
            tuple(map(str, values)) if isinstance(values := entry["values"], list) else None,
        )
        for entry in plain
    )


def _dotted_entries(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The entries by dotted path: unquoted `exps.e00 = ...` is a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _dotted_entries(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _values(value: object) -> tuple[str, ...] | None:
    """The texts of a value or of a list of values; None if one of them is not valid."""
    elements = value if isinstance(value, list) else [value]
    texts = [None if isinstance(element, float) else plain_text(element) for element in elements]
    valid = {text for text in texts if text is not None and len(text) <= MAX_TEXT}
    is_good = 0 < len(elements) <= MAX_VALUES and valid == set(texts)
    return tuple(sorted(valid)) if is_good else None


def plain_text(value: object) -> str | None:
    """A text, whole number or boolean as the text that slices show; None for other values.

    >>> plain_text("de"), plain_text(7.0), plain_text(True), plain_text(0.5)
    ('de', '7', 'true', None)
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() if -_INT64 <= value < _INT64:
            return str(value)
        case float() if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
    return None
