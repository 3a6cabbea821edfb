"""The real events of obd_men as lists: the first five different items that a user was shown."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.expected import cases_of

FEATURES = ("item_feature_1", "item_feature_2", "item_feature_3")
EVENTS, ITEMS = "obd_men_events", "obd_men_items.csv"


def ils_cases(data: Path) -> dict[str, dict[str, Any]]:
    """By variant, what others computed: `exact` and `per_query`."""
    cases = cases_of(data, EVENTS)
    return {case["where"]["variant"]: case for case in cases if case["metric"] == "ils"}


def first_items(data: Path, variant: str, n: int = 5) -> dict[str, list[int]]:
    """The first n different items of each user of a variant, in event-time order; users who were
    shown fewer are left out."""
    rows = [json.loads(line) for line in (data / f"{EVENTS}.jsonl").read_text().splitlines()]
    items_by_user: dict[str, dict[int, None]] = defaultdict(dict)
    for row in sorted(rows, key=lambda row: row["ts_ms"]):
        if row["variant"] == variant:
            items_by_user[row["user"]].setdefault(row["item"])
    return {user: list(items)[:n] for user, items in items_by_user.items() if len(items) >= n}
