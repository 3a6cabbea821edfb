"""All definitions of the atlas, and our value of each."""

from __future__ import annotations

import runpy
from functools import cache
from typing import Final

from docs.atlas import of_lists, of_numbers, of_rows
from docs.atlas.adapter import OURS
from docs.atlas.definition import Definition

FAMILIES: Final = {
    "Rows with a label": of_rows.DEFINITIONS,
    "Ranked lists": of_lists.DEFINITIONS,
    "Numbers, intervals and tests": of_numbers.DEFINITIONS,
}
DEFINITIONS: Final = tuple(one for family in FAMILIES.values() for one in family)


@cache
def our_names() -> dict[str, object]:
    """The names in which our calls are written."""
    return runpy.run_path(str(OURS))


def our_value(definition: Definition) -> float:
    """What this library computes today."""
    return float(eval(definition.ours, {**our_names(), **definition.rows}))  # our own text
