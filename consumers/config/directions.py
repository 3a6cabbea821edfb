"""In which direction a metric is better: `better` beside a metric, and `lower_is_better`.

A view of a result declares its own direction, and what stands here goes before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from consumers.config.schema import Section, did_you_mean
from streammetrics.results import Direction, direction_of

if TYPE_CHECKING:
    from consumers.config.metrics import MetricConfig

Better: TypeAlias = str | float

WORDS: Final = ("higher", "lower", "none")
_EXPECTED: Final = '"higher", "lower", "none", or a number that it should be near to'


def read_better(section: Section, where: str, table: Mapping[str, object]) -> Better | None:
    """`better` of an entry of [metrics]; None where it is not there, or wrong."""
    said = table.get("better")
    if said is None:
        return None
    if isinstance(said, str) and said in WORDS:
        return said
    if isinstance(said, (int, float)) and not isinstance(said, bool) and math.isfinite(said):
        return float(said)
    todo = did_you_mean(said, WORDS) if isinstance(said, str) else 'write for example "lower"'
    section.problem(f"{where}.better", _EXPECTED, said, todo)
    return None


def read_directions(
    section: Section, watched: Mapping[str, tuple[MetricConfig, str | None]]
) -> dict[str, Better]:
    """By name in the decision or the guardrails, what the config says; watched: these names with
    their metric and view."""
    found = {name: one.better for name, (one, _) in watched.items() if one.better is not None}
    names = section.raw("lower_is_better")
    if names is None:
        return found
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        section.bad("lower_is_better", "a list of metrics of decision or guardrails",
                    'write for example ["bounce"]')  # fmt: skip
        return found
    for i, name in enumerate(names):
        where = f"[experiment] lower_is_better[{i}]"
        if name not in watched:
            section.problem(where, "a name as in decision or guardrails", name,
                            did_you_mean(name, list(watched)))  # fmt: skip
        elif found.get(name, "lower") != "lower":
            section.problem(where, f"another metric, since {name} says better = {found[name]!r}",
                            name, "remove one of the two")  # fmt: skip
        else:
            found[name] = "lower"
    return found


def higher_is_better(
    section: Section,
    where: str,
    given: bool | None,
    said: Better | None,
    of: tuple[MetricConfig, str | None],
) -> bool:
    """Of a guardrail: as it says, else as the config says of the metric, else as its view declares;
    True where nobody does."""
    if given is not None:
        if said in ("higher", "lower") and given is not (said == "higher"):
            expected = f"{'true' if said == 'higher' else 'false'}, since {said} is better"
            section.problem(f"[experiment] {where}higher_is_better", expected, given,
                            "remove one of the two")  # fmt: skip
        return given
    own = direction_of(of[0].empty.compute(), of[1])
    if isinstance(said, float):
        own = Direction("target", said)
    elif said is not None:
        return said != "lower"
    if own.better == "target":
        section.problem(f"[experiment] {where}higher_is_better",
                        f"true or false, since {of[0].name} should be near to {own.target:g}", None,
                        "write false where it is harm that it rises, else true")  # fmt: skip
    return own.better != "lower"
