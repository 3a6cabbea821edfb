"""Golden states of joins: events with few ids, so that impressions meet their outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from streammetrics import (
    Accumulator,
    Exposed,
    ExposedRows,
    HistogramAUC,
    Joined,
    JoinRows,
    LabelDelays,
    Panel,
    Ratio,
    UnitMean,
    UnitRate,
)

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


def exposures(n: int) -> dict[str, Any]:
    """`n` events of few users, a quarter of them exposures."""
    random = Random(20261130)
    return {
        "units": [f"user {random.randrange(n // 8)}" for _ in range(n)],
        "times_ms": [1_574_553_600_000 + 40 * i - random.randrange(2000) for i in range(n)],
        "experiments": [random.choice(("colour", "size")) for _ in range(n)],
        "arms": [random.choice((None, None, None, "control", "new")) for _ in range(n)],
        "event_ids": [random.choice((None, "a", "b")) for _ in range(n)],
        "price": [math.ldexp(random.random(), random.randrange(-60, 60)) for _ in range(n)],
        "page": [random.choice(("home", "cart", None, 3)) for _ in range(n)],
    }


def exposures_of_one(n: int) -> dict[str, Any]:
    """The same, of one experiment."""
    rows = exposures(n)
    return {name: rows[name] for name in rows if name != "experiments"}


_EVENTS: Final = {"price": "float64", "page": "key"}
_UNITS: Final = Panel({"revenue": UnitMean(), "buyers": UnitRate()})
JOINS: Final[Mapping[str, tuple[Accumulator, Callable[[int], dict[str, Any]]]]] = {
    "join-rows": (JoinRows(_COLUMNS, _OUTCOMES, label_window_ms=3000), events),
    "joined": (Joined(_LABELS, _COLUMNS, _OUTCOMES, label_window_ms=3000), events),
    "joined-last": (
        Joined(_LABELS, _COLUMNS, _OUTCOMES, label_window_ms=3000, attribution="last"),
        events,
    ),
    "exposed": (Exposed(_UNITS, _EVENTS, inputs={"values": "price"}), exposures_of_one),
    "exposed-in-window": (
        Exposed(Ratio(), _EVENTS, ("control", "new"), 9000, inputs={"numerators": "price"}),
        exposures_of_one,
    ),
    "exposed-rows": (ExposedRows(_EVENTS, window_ms=9000), exposures),
    "label-delays": (LabelDelays(("click", "sale"), label_window_ms=60_000), delays),
}
