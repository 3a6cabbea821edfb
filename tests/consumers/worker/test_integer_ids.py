"""Integer ids of events are what the library makes of the same integers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from streammetrics import GroupedScores
from tests.consumers.impressions import DAY_MS, counted

ROWS = [(7, 5, 1, 0.5), (7, 6, 0, 0.75), (-8, 5, 1, 0.25), (-8, 2**53 + 1, 0, 0.1)]


def test_integer_items_and_lists_have_the_state_of_the_library(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    names = ("query", "doc", "grade", "score")
    events = [{"ts": DAY_MS, "variant": "a", **dict(zip(names, row, strict=True))} for row in ROWS]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    found = counted(
        tmp_path,
        f'kind = "file"\npath = "{path}"',
        'm = { type = "GroupedScores", measures = ["MRR"] }',
    )
    assert found.quarantined == 0
    state = GroupedScores(
        ["MRR"], ids="hashed", item_ids="hashed", duplicates="conflict", max_rows=10_000_000
    )
    lists, items, grades, scores = map(np.array, zip(*ROWS, strict=True))
    state.update(grades, scores, lists=lists, items=items)
    assert {row.digest for row in found.rows} == {state.digest()}
