"""Golden states of joins: events with few ids, so that impressions meet their outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from streammetrics import Accumulator, HistogramAUC, Joined, JoinRows, LabelDelays, Panel, Ratio

_COLUMNS: Final = {"scores": "float32", "user": "hashed", "variant": "key"}
_OUTCOMES: Final = {"click": "once", "sale": "sum"}
_LABELS: Final = Panel(
    {"auc": HistogramAUC(resolution=4), "revenue": Ratio()},
    inputs={"auc": {"labels": "click"}, "revenue": {"numerators": "sale"}},
)


def events(n: int) -> dict[str, Any]:
    """`n` events, the same on every machine: two impressions for each outcome."""
    random = Random(20191124)
    return {
        "kinds": [random.choice(("impression",) * 4 + ("click", "sale")) for _ in range(n)],
        "ids": [f"request {random.randrange(n // 2)}" for _ in range(n)],
        "times_ms": [1_574_553_600_000 + 40 * i - random.randrange(2000) for i in range(n)],
        "values": [math.ldexp(random.random(), random.randrange(-60, 60)) for _ in range(n)],
        "event_ids": [random.choice((None, "a", "b")) for _ in range(n)],
        "scores": [random.random() * random.random() for _ in range(n)],
        "user": [f"user {random.randrange(50)}" for _ in range(n)],
        "variant": [random.choice(("bts", "random", None, 3)) for _ in range(n)],
    }


def delays(n: int) -> dict[str, Any]:
    """`n` outcomes with delays of all sizes, some unknown."""
    random = Random(20191124)
    return {
        "outcomes": [random.choice(("click", "sale")) for _ in range(n)],
        "delays_ms": [random.randrange(1 << random.randrange(1, 40)) - 1 for _ in range(n)],
    }


JOINS: Final[Mapping[str, tuple[Accumulator, Callable[[int], dict[str, Any]]]]] = {
    "join-rows": (JoinRows(_COLUMNS, _OUTCOMES, label_window_ms=3000), events),
    "joined": (Joined(_LABELS, _COLUMNS, _OUTCOMES, label_window_ms=3000), events),
    "joined-last": (
        Joined(_LABELS, _COLUMNS, _OUTCOMES, label_window_ms=3000, attribution="last"),
        events,
    ),
    "label-delays": (LabelDelays(("click", "sale"), label_window_ms=60_000), delays),
}
