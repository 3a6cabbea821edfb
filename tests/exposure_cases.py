"""Cases of exposures: few units, times and arms, so that events meet, repeat and contradict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from streammetrics import ExposedRows, Ratio
from streammetrics.testing import Case, strategies
from tests.oracles.exposed import Event, Exposure

COLUMNS = {"price": "float64", "page": "key"}
NAMES = ("units", "times_ms", "experiments", "arms", "event_ids", "price", "page")
EXPERIMENTS = ("checkout", "colour")
ARMS = ("a", "b", "a b")  # "a b" is before "a" by its bytes in a state, and after it by name
EVENT = st.tuples(
    st.integers(0, 3),  # unit
    st.integers(-4, 25),  # time
    st.sampled_from(EXPERIMENTS),
    st.sampled_from((None, None, *ARMS)),
    st.sampled_from((None, 7, 8)),  # event id
    st.sampled_from((0.1, 1e16, -1e16, 0.5)),
    st.sampled_from(("home", "cart")),
)
ONE_EVENT = (1, 0, "checkout", None, None, 0.5, "home")


def parsed(rows: Sequence[Any]) -> list[Event | Exposure]:
    """The events as the oracle takes them."""
    return [
        Event(unit, time, tuple(content), event)
        if arm is None
        else Exposure(unit, time, experiment, arm)
        for unit, time, experiment, arm, event, *content in rows
    ]


def pending(rows: Sequence[Any]) -> Mapping[str, Any]:
    """What `ExposedRows` has of these events before it is closed."""
    events = parsed(rows)
    exposures = {e for e in events if isinstance(e, Exposure)}
    names = {e.experiment for e in exposures}
    return {
        "events": len({e for e in events if isinstance(e, Event)}),
        "exposures": {name: sum(e.experiment == name for e in exposures) for name in names},
        "known": {},
    }


def _good(n: int) -> dict[str, Any]:
    rows = [(i, i, "checkout", None, None, 0.5, "home") for i in range(n)]
    return dict(strategies.columns(*NAMES)(rows))


NAN = float("nan")
REFUSED: list[Any] = [
    {**_good(2), "units": [1, "a"]},
    {**_good(2), "units": [1.5, 2.5]},
    {**_good(2), "times_ms": [0, 1 << 62]},
    {**_good(2), "times_ms": [0, 0.5]},
    {**_good(2), "times_ms": [0]},
    {**_good(2), "arms": ["a"]},
    {**_good(2), "arms": ["a", ("b", 1)]},
    {**_good(2), "arms": ["a", 0.5]},
    {**_good(2), "arms": [None, "a"], "experiments": ["checkout", None]},
    {**_good(2), "experiments": ["checkout"]},
    {**_good(2), "price": [0.5, NAN]},
    {**_good(2), "price": [0.5]},
    {**_good(2), "price": None},
    {**_good(2), "page": ["home", 0.5]},
    {**_good(2), "colour": [1, 2]},
    {**_good(2), "event_ids": [1.5, None]},
]


def exposed_rows(window: int | None) -> Case[Any]:
    return Case(
        ExposedRows(COLUMNS, window),
        EVENT,
        strategies.columns(*NAMES),
        refused=REFUSED,
        others=(
            ExposedRows(COLUMNS, 6),
            ExposedRows({"price": "float32", "page": "key"}, window),
            Ratio(),
        ),
        oracle=pending,
        name=f"ExposedRows({window})",
    )


EXPOSURES: list[Case[Any]] = [exposed_rows(None), exposed_rows(5)]
