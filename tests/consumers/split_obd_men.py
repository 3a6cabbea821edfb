"""The real events of obd_men as they come in production: an impression is one event, and its click
another one, later. Some events come twice, some clicks are lost, and all are a little out of order.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

LABEL_WINDOW_S = 1800
LATENESS_S = 600

Event = dict[str, Any]

TOML = """\
[source]
{source}
[event]
time = "ts_ms"
time_unit = "ms"
variant = "variant"
variants = ["random", "bts"]
user = "user"
{label}
score = "score"
[windows]
size_s = 86400
lateness_s = 600
retention_s = 2592000
[slices]
by = [[], ["variant"], ["phase"], ["variant", "phase"]]
[metrics]
auc = {{ type = "HistogramAUC" }}
propensity_auc = {{ type = "ExactAUC", inputs = {{ scores = "propensity" }} }}
gauc = {{ type = "GroupedAUC", weight = "impressions" }}
ctr = {{ type = "Ratio" }}
[store]
url = "{store}"
commit_interval_s = {interval_s}
{rest}
"""
JOIN = """\
[join]
id = "event_id"
impression = { field = "kind", equals = "impression" }
label_window_s = 1800
[join.outcomes]
click = { field = "kind", equals = "click" }
"""


def split(events: Sequence[Event], seed: int) -> tuple[list[Event], list[Event]]:
    """The events with the labels that are left when some clicks are lost, and the same as
    impressions and clicks, in the order in which they come."""
    rng = random.Random(seed)
    whole, parts = [], []
    for event in events:
        label = event["label"] if rng.random() < 0.9 else 0
        whole.append({**event, "label": label})
        impression = {**event, "kind": "impression"}
        del impression["label"]
        parts += [impression] * rng.choice((1, 1, 1, 2))
        if label:
            delay_ms = rng.randrange(LABEL_WINDOW_S * 1000)
            click = {"kind": "click", "event_id": event["event_id"],
                     "ts_ms": event["ts_ms"] + delay_ms}  # fmt: skip
            parts += [click] * rng.choice((1, 1, 2, 3))
    jitter_ms = LATENESS_S * 1000 // 2
    got = sorted(parts, key=lambda one: one["ts_ms"] + rng.randrange(jitter_ms))
    return whole, got


def as_lines(events: Sequence[Event]) -> bytes:
    """One JSON object a line."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)
