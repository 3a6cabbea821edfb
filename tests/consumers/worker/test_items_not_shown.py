"""Known items that were not shown, in the events of a log: the numbers of the library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streammetrics import RankingMetrics
from tests.consumers.impressions import DAY_MS, counted

SHOWN = {"q0": ["a"], "q1": ["x", "b", "a"], "q2": []}
RELEVANT = {"q0": ["a", "b", "c"], "q1": ["b"], "q2": ["d"]}
MEASURES = ["NDCG@3", "R@3", "AP", "MRR", "P@2", "RPrec", "RBP", "HR@1", "PooledHR@3"]


def events() -> list[dict[str, object]]:
    """An event for each known item of each list."""
    return [
        {
            "ts": DAY_MS,
            "variant": "a",
            "query": query,
            "doc": doc,
            "grade": int(doc in RELEVANT[query]),
            "score": 1.0 / (1 + shown.index(doc)) if doc in shown else 0,
            "displayed": doc in shown,
        }
        for query, shown in SHOWN.items()
        for doc in sorted({*shown, *RELEVANT[query]})
    ]


def test_events_of_items_that_were_not_shown_earn_no_recall(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events()))
    metric = (
        f'm = {{ type = "GroupedScores", measures = {json.dumps(MEASURES)},'
        ' inputs = { shown = "displayed" } }'
    )
    found = counted(tmp_path, f'kind = "file"\npath = "{path}"', metric)
    assert (found.rows_read, found.quarantined) == (len(events()), 0)
    lists = RankingMetrics(MEASURES)
    lists.update_ranked(SHOWN.values(), RELEVANT.values())
    expected = lists.compute()
    total = {r.view: r.value for r in found.rows if not r.slice and r.window.start_ms is None}
    assert total == dict(expected)


@pytest.mark.parametrize("wrong", ["1", '"true"', "null"])
def test_an_event_that_does_not_say_whether_its_item_was_shown_is_refused(
    wrong: str, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    lines = [json.dumps(event) for event in events()]
    lines[0] = lines[0].replace('"displayed": true', f'"displayed": {wrong}')
    path.write_text("\n".join(lines) + "\n")
    metric = 'm = { type = "GroupedScores", measures = ["MRR"], inputs = { shown = "displayed" } }'
    found = counted(tmp_path, f'kind = "file"\npath = "{path}"', metric)
    assert (found.rows_read, found.quarantined) == (len(lines), 1)
