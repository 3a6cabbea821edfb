"""Cases of exposures: few units, times and arms, so that events meet, repeat and contradict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from streammetrics import (
    Accumulator,
    Exposed,
    ExposedRows,
    Panel,
    Ratio,
    UnitMean,
    UnitRate,
    Units,
    Windows,
)
from streammetrics.testing import Case, strategies
from tests.oracles import exposed
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


# -- a metric by arm: rows (unit, time, arm, event id, price, page) --------------------------------
Counted = list[tuple[int, int, float]]  # unit, time of the exposure, price
ONE_OF_ONE = (ONE_EVENT[0], ONE_EVENT[1], *ONE_EVENT[3:])
OF_ONE = EVENT.map(lambda row: (*row[:2], *row[3:]))
ONE_NAMES = tuple(name for name in NAMES if name != "experiments")


def by_arm(
    rows: Sequence[Any], window: int | None, of_arm: Callable[[list[int], Counted], Any]
) -> Mapping[str, Any]:
    """What `Exposed` has of these rows. of_arm: the metric's values, of the units of an arm and its
    events."""
    events = parsed([(unit, time, "", *rest) for unit, time, *rest in rows])
    out = exposed.closed(events, 1 << 62, window)
    arms = {exposure.arm for exposure, _ in out.exposures}
    units = {arm: [e.unit for e, first in out.exposures if first and e.arm == arm] for arm in arms}
    counted: dict[str, Counted] = {arm: [] for arm in arms}
    for event, attributed in out.rows:
        if arm := attributed.get(""):
            counted[arm[0]].append((event.unit, arm[1], event.content[0]))  # type: ignore[arg-type]
    n = sum(map(len, counted.values()))
    return {
        "exposed": {arm: len(units[arm]) for arm in arms},
        "in_several": len({e.unit for e, first in out.exposures if not first}),
        "counted": n,
        "others": len(out.rows) - n,
        "pending": len(out.rows),
        "late_events": 0,
        "late_exposures": 0,
        **{arm: of_arm(units[arm], counted[arm]) for arm in arms},
    }


def of_units(units: list[int], events: Counted) -> Any:
    """Revenue and buyers per exposed unit."""
    total = sum((Fraction(price) for _, _, price in events), Fraction())
    buyers = {unit for unit, _, price in events if price > 0}
    return {
        "revenue": {"mean": total / len(units) if units else None, "units": len(units)},
        "buyers": {"units_above_0": len(buyers), "units": len(units)},
    }


def of_rows(units: list[int], events: Counted) -> Any:
    """The price of an event."""
    total = sum((Fraction(price) for _, _, price in events), Fraction())
    return {"numerator": total, "denominator": len(events)}


def by_day(units: list[int], events: Counted) -> Any:
    """The units by the window of their exposure."""
    return {}


def case_of(
    name: str, metric: Exposed, of_arm: Callable[[list[int], Counted], Any], *others: Accumulator
) -> Case[Any]:
    def without(columns: dict[str, Any]) -> dict[str, Any]:
        return {key: column for key, column in columns.items() if key != "experiments"}

    refused = [
        without(columns)
        for columns in REFUSED
        if "experiments" not in columns or columns["experiments"] == _good(2)["experiments"]
    ]
    return Case(
        metric,
        OF_ONE,
        strategies.columns(*ONE_NAMES),
        refused=refused,
        others=others,
        oracle=lambda rows: by_arm(rows, metric.window_ms, of_arm),
        name=name,
    )


UNIT_METRICS = Panel({"revenue": UnitMean(), "buyers": UnitRate()})
PRICES = {"values": "price"}
PRICE = {"numerators": "price"}

EXPOSURES: list[Case[Any]] = [
    exposed_rows(None),
    exposed_rows(5),
    case_of(
        "Exposed(units)",
        Exposed(UNIT_METRICS, COLUMNS, ARMS, inputs=PRICES),
        of_units,
        Exposed(UNIT_METRICS, COLUMNS, ("a", "b"), inputs=PRICES),
        Exposed(UNIT_METRICS, COLUMNS, None, 5, inputs=PRICES),
    ),
    case_of(
        "Exposed(rows, 5)",
        Exposed(Ratio(), COLUMNS, None, 5, inputs=PRICE),
        of_rows,
        Exposed(Ratio(), COLUMNS, None, 6, inputs=PRICE),
        ExposedRows(COLUMNS, 5),
    ),
    case_of(
        "Exposed(units by window)",
        Exposed(Windows(Units(), 0.005), COLUMNS, inputs={"times_ms": "exposed_ms"}),
        by_day,
        Exposed(Windows(Units(), 0.005), COLUMNS),
    ),
]
