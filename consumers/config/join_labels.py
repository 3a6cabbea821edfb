"""What metrics take from [join]: a label is no field of an event, but what its outcomes say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from consumers.config.event import ROLE_ARGUMENTS, Field
from consumers.config.schema import Section, did_you_mean
from streammetrics import Accumulator, InputError, hash_ids

if TYPE_CHECKING:
    from consumers.config.join import JoinConfig, OutcomeConfig

_ONE: Final = np.ones(1)


def labels_of_join(
    section: Section,
    where: str,
    given: Mapping[str, object],
    join: JoinConfig,
    empty: Accumulator,
) -> tuple[dict[str, object], dict[str, Field]]:
    """The inputs that are fields of an event, and those that are labels: of the outcome that the
    config names, else of the first one."""
    left, found = dict(given), dict[str, Field]()
    names = [one.name for one in join.outcomes]
    for argument in ROLE_ARGUMENTS["label"]:
        if argument not in empty.arguments():
            continue
        name = left.pop(argument, names[0])
        if name not in names:
            section.problem(f"{where}.inputs.{argument}", "an outcome of [join.outcomes]", name,
                            did_you_mean(str(name), names))  # fmt: skip
            name = names[0]
        outcome = join.outcomes[names.index(str(name))]
        if outcome.counts != "once" and _takes_only_once(empty, argument):
            section.problem(f"{where}.inputs.{argument}", 'an outcome with counts = "once"',
                            f"{outcome.name} ({outcome.counts})",
                            "name another outcome; this metric takes labels 0 and 1")  # fmt: skip
        found[argument] = outcome_field(outcome)
    return left, found


def outcome_field(outcome: OutcomeConfig) -> Field:
    """What stands for the label of an outcome among the fields of a metric."""
    return Field(outcome.name, "outcome")


def refuse_arrays(section: Section, where: str, inputs: Mapping[str, Field]) -> None:
    """What waits for its label has columns of one value."""
    for argument, field in inputs.items():
        if field.width or field.kind.endswith("_list"):
            section.problem(f"{where}.inputs.{argument}", "a field of one value, since there is a "
                            "[join]", field.path, "leave the metric out, or count it by a config "
                            "of its own without [join]")  # fmt: skip


def _takes_only_once(empty: Accumulator, argument: str) -> bool:
    """Whether it takes a label 1 and no label 2.5."""
    columns: dict[str, object] = dict.fromkeys(("scores", "predictions"), _ONE / 2)
    columns |= {name: hash_ids(["a"]) for name in ("groups", "users", "lists", "items")}
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
