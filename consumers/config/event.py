"""[event]: which field of an event plays which role.

Roles to arguments of metrics: label -> labels, numerators; score -> scores, and predictions as an
array of scores; user -> groups, users; list -> lists; item -> items; weight -> weights; time ->
times_ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from consumers.config.schema import Section
from consumers.config.where import Condition, read_where

Kind = Literal[
    "label", "real", "flag", "count", "text_id", "hashed_id", "int_id",
    "label_list", "real_list", "flag_list", "int_list",  # arrays of any length
    "label_row", "real_row",  # arrays of `Field.width` values
    "label_or_row", "real_or_row",  # one value, or such an array
    "outcome",  # of [join]: no field of an event
]  # fmt: skip

ROLE_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "label": ("labels", "numerators"),
    "score": ("scores", "predictions"),
    "user": ("groups", "users"),
    "list": ("lists",),
    "item": ("items",),
    "weight": ("weights",),
}
ARGUMENT_ROLES: Final = {a: role for role, names in ROLE_ARGUMENTS.items() for a in names}
ROLES: Final = ("time", "variant", "epoch", *ROLE_ARGUMENTS)
MAX_VARIANTS: Final = 1000


@dataclass(frozen=True, slots=True)
class EventConfig:
    """[event]: dotted paths by role. Only fields that something reads must be in an event.

    where: the conditions that an event must meet; others are skipped.
    """

    time: str
    time_unit: Literal["s", "ms"] | None = None
    variant: str | None = None
    variants: tuple[str, ...] | None = None
    user: str | None = None
    label: str | None = None
    score: str | None = None
    list: str | None = None
    item: str | None = None
    weight: str | None = None
    epoch: str | None = None
    where: tuple[Condition, ...] = ()

    def path(self, name: str) -> str:
        """The path of a role, or `name` itself, which is a path then."""
        found = getattr(self, name) if name in ROLES else None
        return found if isinstance(found, str) else name


@dataclass(frozen=True, slots=True, order=True)
class Field:
    """One field of an event, and what it is read as. width: how many values an array has that is
    a row of a table, else 0."""

    path: str
    kind: Kind
    width: int = 0

    @property
    def column(self) -> str:
        """The name of its column in a panel."""
        return f"{self.path}:{self.kind}"


def offsets_column(path: str) -> str:
    """The name of the column that says where each list of a field begins."""
    return f"{path}:offsets"


def read_event(section: Section) -> EventConfig:
    """[event]."""
    paths = {role: section.path(role) for role in ROLES}
    unit = section.raw("time_unit")
    if unit is not None:
        unit = section.choice("time_unit", "ms", ("s", "ms"))
    variants = _read_variants(section)
    where = read_where(section, paths)
    section.done()
    if section.raw("time") is None:
        section.bad("time", "a dotted path", 'name the field of the event time, such as "ts"')
    if variants is not None and paths["variant"] is None:
        section.bad("variants", "nothing, since there is no variant", "name the variant's field")
    time = paths.pop("time") or "time"
    return EventConfig(
        time, cast('Literal["s", "ms"] | None', unit), variants=variants, where=where, **paths
    )


def _read_variants(section: Section) -> tuple[str, ...] | None:
    value = section.raw("variants")
    if value is None:
        return None
    if (
        isinstance(value, list)
        and 0 < len(value) <= MAX_VARIANTS
        and all(isinstance(v, str) and 0 < len(v) <= 200 for v in value)
        and len(set(value)) == len(value)
    ):
        return tuple(value)
    section.bad(
        "variants", f"a list of 1 to {MAX_VARIANTS} different texts", 'write ["control", "new"]'
    )
    return None
