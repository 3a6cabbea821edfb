"""The arms of an experiment: the field of the arm, its values, and which of them are one arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from streammetrics import SettingsError, experiments
from streammetrics_consumers.config.event import MAX_VARIANTS, EventConfig, is_variant
from streammetrics_consumers.config.keys import ValueKind, read_keys, state_key
from streammetrics_consumers.config.kinds import Choice, FieldPath
from streammetrics_consumers.config.section import Section

UnitView = Literal["so_far", "closed"]

_EXPECTED: Final = (
    f"a list of 2 to {MAX_VARIANTS} different texts, or a table of arms with the values of each"
)
_HINT: Final = 'write ["control", "new"], or { control = ["a"], new = ["v1", "v2"] }'


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsConfig:
    """The keys that [experiments.NAME] has besides those of [experiment]."""

    variant: str | None = state_key(
        FieldPath(),
        None,
        "the field of the arm, by default the field NAME of `event.assignments`, or "
        "`event.variant`; an event without it, or with a value that is no text or whole number, is "
        "no event of this experiment. With `[exposures]` an experiment without this key and "
        "without `event.assignments` takes its arms from exposures",
    )
    variants: Sequence[str] | Mapping[str, Sequence[str]] | None = state_key(
        ValueKind(f"list of 2 to {MAX_VARIANTS:,} texts, or a table of lists"),
        None,
        'the arms, by default `event.variants`; `{ control = ["a"], both = ["v1", "v2"] }` '
        "reads several values of the field as one arm. Events of an arm that is not declared are "
        "left out of its comparisons, and reported",
    )
    units: UnitView = state_key(
        Choice(get_args(UnitView)),
        "so_far",
        "with `[exposures]`: of which units a `UnitMean` or `UnitRate` is that the plan compares. "
        "`so_far`: all exposed ones, each with what it did until now; where an arm only delays "
        "what units do, such an effect is not the final one. `closed`: those whose "
        "`exposures.window_s` is over, by days of exposure; then only these metrics may decide. "
        "The others are shown beside, without a verdict",
    )


@dataclass(frozen=True, slots=True)
class DeclaredArms:
    """path: the field of the arm. names: the arms in the order of the config. merged: the values of
    each, if any has several or another name than its value. is_named: whether it is of an entry of
    [experiments], whose events need not have an arm. is_exposed: whether arms are those of
    exposures; the path is then ""; units: of which of the exposed units."""

    path: str = ""
    names: tuple[str, ...] = ()
    merged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_named: bool = False
    is_exposed: bool = False
    units: UnitView = "so_far"

    @property
    def values(self) -> tuple[str, ...]:
        """The declared values of the field."""
        return tuple(value for values in self.merged.values() for value in values) or self.names


NO_ARMS: Final = DeclaredArms()


def event_arms(section: Section, event: EventConfig) -> DeclaredArms:
    """The arms of [experiment]: those of [event]."""
    if len(event.variants or ()) < 2:
        expected = "at least two variants, since there is an [experiment]"
        hint = 'declare them, such as ["control", "new"]'
        section.problem("[event] variants", expected, event.variants, hint)
    _require_names_of_a_plan(section, "[event] variants", event.variants or ())
    return DeclaredArms(event.variant or "", event.variants or ())


def read_arms(
    section: Section, event: EventConfig, name: str, *, has_exposures: bool = False
) -> DeclaredArms:
    """Read the arms of an entry of [experiments]. has_exposures: whether there are [exposures]."""
    keys = read_keys(section, ArmsConfig)
    path = keys.variant or event.variant or ""
    if keys.variant is None and event.assignments is not None:
        path = f"{event.assignments}.{name}"
    is_exposed = has_exposures and section.raw("variant") is None and event.assignments is None
    if is_exposed:
        path = ""
    elif not path and section.raw("variant") is None:
        section.bad("variant", "the field of the arm", "name it here, or [event] assignments")
    merged = _read_values(section)
    names = tuple(merged) or event.variants or ()
    if section.raw("variants") is None and len(names) < 2:
        section.bad("variants", _EXPECTED, _HINT)
    _require_names_of_a_plan(section, section.where("variants"), names)
    if all(values == (arm,) for arm, values in merged.items()):
        merged = {}
    if keys.units == "closed" and not is_exposed:
        expected = '"so_far", since its arms are not those of exposures'
        section.bad("units", expected, "leave it out, or take the arms from [exposures]")
    return DeclaredArms(path, names, merged, True, is_exposed, keys.units)


def _require_names_of_a_plan(section: Section, where: str, names: Sequence[str]) -> None:
    if len(names) < 2:
        return  # refused already
    try:
        experiments.Plan(control=names[0], variants=tuple(names), decision=("any",))
    except SettingsError as error:
        section.problem(where, error.expected, list(names), error.hint)


def _read_values(section: Section) -> dict[str, tuple[str, ...]]:
    """The values of each arm; empty if they are not declared, or refused."""
    raw = section.raw("variants")
    if raw is None:
        return {}
    arms: Mapping[object, object] = {}
    if isinstance(raw, Mapping):
        arms = raw
    elif isinstance(raw, list) and all(map(is_variant, raw)) and len(set(raw)) == len(raw):
        arms = {value: [value] for value in raw}
    values = [value for part in arms.values() if isinstance(part, list) for value in part]
    if (
        len(arms) < 2
        or not all(map(is_variant, [*arms, *values]))
        or not all(isinstance(part, list) and part for part in arms.values())
        or not len(set(values)) == len(values) <= MAX_VARIANTS
    ):
        section.bad("variants", _EXPECTED, _HINT)
        return {}
    return {str(arm): tuple(map(str, part)) for arm, part in arms.items() if isinstance(part, list)}
