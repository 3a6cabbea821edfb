"""A plugin of pytest that notes which expected values of the shared data a run reads.

It leaves out the tests without the fixture `data`. `tests/test_every_real_case.py` runs pytest with
it, and asks for every value that no test reads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NOTES = "STREAMMETRICS_NOTED_CASES"  # the file that the ids are written to
VALUES = {"value", "exact", "points"}

read: set[str] = set()
loads: Callable[..., Any] = json.loads


class Noted(dict[str, Any]):
    """A case or a worked example that notes its id when its value is read."""

    def __getitem__(self, key: str) -> Any:
        if key in VALUES:
            read.add(dict.__getitem__(self, "id"))
        return dict.__getitem__(self, key)


def noted(found: dict[str, Any]) -> dict[str, Any]:
    """The same, noted where it is a case."""
    return Noted(found) if {"id", "metric", "value"} <= found.keys() else found


def pytest_configure() -> None:
    """Read JSON so from here on."""
    json.loads = lambda *args, **named: loads(*args, **{"object_hook": noted, **named})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep what uses the data."""
    items[:] = [item for item in items if "data" in getattr(item, "fixturenames", ())]


def pytest_sessionfinish() -> None:
    """Write what was read."""
    Path(os.environ[NOTES]).write_text("\n".join(sorted(read)), encoding="utf-8")
