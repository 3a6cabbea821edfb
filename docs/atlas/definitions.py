"""All definitions of the atlas, and our value of each."""

from __future__ import annotations

import hashlib
import json
import runpy
from functools import cache
from typing import Final

from docs.atlas import of_lists, of_numbers, of_policies, of_rows
from docs.atlas.adapter import OURS
from docs.atlas.definition import Definition

FAMILIES: Final = {
    "Rows with a label": of_rows.DEFINITIONS,
    "Ranked lists": of_lists.DEFINITIONS,
    "Numbers, intervals and tests": of_numbers.DEFINITIONS,
    "Policies and treatments": of_policies.DEFINITIONS,
}
DEFINITIONS: Final = tuple(definition for family in FAMILIES.values() for definition in family)


def rows_digest() -> str:
    """What changes when the rows of a definition change."""
    rows = json.dumps(
        {definition.key: definition.rows for definition in DEFINITIONS}, sort_keys=True
    )
    return hashlib.sha256(rows.encode()).hexdigest()[:16]


@cache
def our_names() -> dict[str, object]:
    """The names in which our calls are written."""
    return runpy.run_path(str(OURS))


def our_value(definition: Definition) -> float:
    """What this library computes today."""
    return float(eval(definition.ours, {**our_names(), **definition.rows}))  # our own text
