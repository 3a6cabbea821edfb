"""One definition of the atlas, and the rows that all libraries are asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Rows: TypeAlias = Mapping[str, object]


@dataclass(frozen=True)
class Definition:
    """A value that libraries compute.

    key: its name in the adapters. title: its name on the page. text: the definition here, and what
    is special about the rows. rows: the rows, by name. ours: the call that gives our value, in the
    names of adapters/streammetrics.py. reasons: why the value of a library differs, by its name.
    """

    key: str
    title: str
    text: str
    rows: Rows
    ours: str
    reasons: Mapping[str, str] = field(default_factory=dict)
