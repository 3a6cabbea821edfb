"""Cases of joins: few ids and times, so that events meet, repeat, contradict and come too late."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from streammetrics import Joined, JoinRows, LabelDelays, Panel, Ratio, Windows
from streammetrics.join.join_events import ATTRIBUTIONS
from streammetrics.testing import Case, strategies
from tests.oracles import joins
from tests.oracles.joins import Outcome, Shown, Terms

WINDOW = 5
KINDS = ("impression", "click", "sale")
COUNTS = {"click": "once", "sale": "sum"}
COLUMNS = {"score": "float32", "variant": "key"}
NAN = float("nan")
SCORES = st.sampled_from((0.0, 0.25, 0.5, 1.0))
VARIANTS = st.sampled_from(("bts", "random", "c"))
EVENT = st.tuples(
    st.sampled_from(KINDS),
    st.integers(0, 3),  # id
    st.integers(-4, 25),  # time
    st.sampled_from((0.1, 1e16, -1e16, 0.5)),
    st.sampled_from((None, 7, 8)),  # event id
    SCORES,
    VARIANTS,
)
ONE_EVENT = ("impression", 1, 0, 0.0, None, 0.5, "a")
NAMES = ("kinds", "ids", "times_ms", "values", "event_ids", "score", "variant")


def parsed(rows: Sequence[Any]) -> list[Shown | Outcome]:
    """The events as the oracle takes them."""
    events: list[Shown | Outcome] = []
    for kind, id_, time, value, event, *content in rows:
        if kind == "impression":
            events.append(Shown(id_, time, tuple(content)))
        else:
            events.append(Outcome(kind, id_, time, value * (kind == "sale"), event))
    return events


def pending(rows: Sequence[Any]) -> Mapping[str, Any]:
    """What `JoinRows` has of these events before it is closed."""
    events = set(parsed(rows))
    outcomes = [event for event in events if isinstance(event, Outcome)]
    return {
        "impressions": len(events) - len(outcomes),
        "outcomes": {kind: sum(o.kind == kind for o in outcomes) for kind in COUNTS},
        "remembered": 0,
    }


def _good(n: int) -> dict[str, Any]:
    rows = [("impression", i, i, 0.5, None, 0.25, "a") for i in range(n)]
    return dict(strategies.columns(*NAMES)(rows))


REFUSED: list[Any] = [
    {**_good(2), "kinds": ["impression", "tap"]},
    {**_good(2), "kinds": ["impression"]},
    {**_good(2), "ids": [1, "a"]},
    {**_good(2), "ids": [1.5, 2.5]},
    {**_good(2), "times_ms": [0, 1 << 62]},
    {**_good(2), "times_ms": [0, 0.5]},
    {**_good(2), "score": [0.5, NAN]},
    {**_good(2), "score": [0.5]},
    {**_good(2), "variant": ["a", 0.5]},
    {**_good(2), "score": None},
    {**_good(2), "colour": [1, 2]},
    {**_good(2), "kinds": ["impression", "sale"], "values": [0.0, math.inf]},
    {**_good(2), "kinds": ["impression", "sale"], "values": [0.0, NAN]},
    {**_good(2), "kinds": ["impression", "sale"], "values": None},
    {**_good(2), "kinds": ["click", "click"], "event_ids": [1.5, None]},
]


def join_rows(attribution: str) -> Case[Any]:
    return Case(
        JoinRows(COLUMNS, COUNTS, WINDOW, attribution),
        EVENT,
        strategies.columns(*NAMES),
        refused=REFUSED,
        others=(
            JoinRows(COLUMNS, COUNTS, WINDOW + 1, attribution),
            JoinRows({"score": "float64", "variant": "key"}, COUNTS, WINDOW, attribution),
            JoinRows(COLUMNS, {"click": "once", "sale": "count"}, WINDOW, attribution),
            Ratio(),
        ),
        oracle=pending,
        name=f"JoinRows({attribution})",
    )


def joined(attribution: str) -> Case[Any]:
    """Click rates and revenue for each window of five milliseconds."""
    metric = Panel(
        {"ctr": Ratio(), "revenue": Ratio()},
        inputs={"ctr": {"numerators": "click"}, "revenue": {"numerators": "sale"}},
    )
    state = Joined(Windows(metric, 0.005), COLUMNS, COUNTS, WINDOW, attribution, 9)
    terms = Terms(COUNTS, WINDOW, attribution, 9)

    def oracle(rows: Sequence[Any]) -> Mapping[str, Any]:
        events = parsed(rows)
        if not events:
            return {"closed": 0, "pending": 0, "share_pending": None, "conflicts": 0}
        before = max(event.time for event in events) - WINDOW
        out = joins.closed(events, terms, before)
        spans = {impression.time // 5 * 5 for impression, _ in out.rows}
        open_ = {e for e in events if isinstance(e, Shown) and e.time >= before}
        all_ = len(out.rows) + len(open_)
        attributed = sum(kind == "click" and 0 <= d < WINDOW for kind, d in out.left)
        return {
            "closed": len(out.rows),
            "pending": len(open_),
            "share_pending": Fraction(len(open_), all_) if all_ else None,
            "conflicts": out.conflicts,
            "late_impressions": 0,
            "late_outcomes": 0,
            "closed_before_ms": before,
            "delays": {"click": {"attributed": attributed}},
            "result": {
                (start, start + 5): {
                    name: {"numerator": sum(Fraction(la[outcome]) for la in labels)}
                    for name, outcome in (("ctr", "click"), ("revenue", "sale"))
                }
                for start in spans
                for labels in [
                    [la for impression, la in out.rows if impression.time // 5 * 5 == start]
                ]
            },
        }

    return Case(
        state,
        EVENT,
        strategies.columns(*NAMES),
        refused=REFUSED,
        others=(
            Joined(Windows(metric, 0.005), COLUMNS, COUNTS, WINDOW, attribution, 8),
            Joined(metric, COLUMNS, COUNTS, WINDOW, attribution, 9),
        ),
        oracle=oracle,
        name=f"Joined({attribution})",
    )


def delays() -> Case[Any]:
    """Rows (outcome, delay)."""

    def oracle(rows: Sequence[Any]) -> Mapping[str, Any]:
        figures = {}
        for name in ("click", "sale"):
            outcome_delays = [delay for kind, delay in rows if kind == name]
            within = [d for d in outcome_delays if 0 <= d < 5000]
            cut = sum(d >= 4500 for d in within)
            figures[name] = {
                "attributed": len(within),
                "unattributed": len(outcome_delays) - len(within),
                "unknown": outcome_delays.count(-1),
                "share_cut": Fraction(cut, len(within)) if within else None,
                "delays": {(4, 8): n} if (n := sum(d >= 4000 for d in within)) else {},
            }
        return figures

    values = (-1, 0, 999, 1000, 3999, 4000, 4499, 4500, 4999, 5000, 1 << 52)
    return Case(
        LabelDelays(("sale", "click"), 5000),
        st.tuples(st.sampled_from(("click", "sale")), st.sampled_from(values)),
        strategies.columns("outcomes", "delays_ms"),
        refused=[
            {"outcomes": ["tap"], "delays_ms": [1]},
            {"outcomes": ["click"], "delays_ms": [-2]},
            {"outcomes": ["click"], "delays_ms": [1, 2]},
            {"outcomes": ["click", "click"], "delays_ms": [1]},
            {"outcomes": ["click"], "delays_ms": [0.5]},
        ],
        others=(LabelDelays(("click",), 5000), LabelDelays(("sale", "click"), 5001)),
        oracle=oracle,
    )


JOINS: list[Case[Any]] = [
    *map(join_rows, ATTRIBUTIONS),
    *map(joined, ATTRIBUTIONS),
    delays(),
]
