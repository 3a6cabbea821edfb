"""Draw `docs/labels.svg`, the pictures of docs/labels.md: `python docs/labels_picture.py`.

Above, four impressions and their label windows, made up. Below, the stream of `streammetrics
simulate --join`: the click rate of impressions by their age, when it is read off at each half hour.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from streammetrics_consumers.simulate.joined_simulation import JoinedSimulation, share_within
from streammetrics_consumers.simulate.stream import VARIANTS, Simulation

from streammetrics.present import Spec, svg, theme

EVENTS: Final = 200_000
WINDOW: Final = 30  # minutes
AGES: Final = 45  # minutes that are shown
WIDTH: Final = 620
NOW: Final = 50  # of the upper picture, in minutes
LATENESS: Final = 10
Data: TypeAlias = list[Mapping[str, object]]

SHOWN: Final = (  # name, when it was shown, when it was clicked, what becomes of it
    ("a", 2, 11, "closed: a click"),
    ("b", 6, None, "closed: no click"),
    ("c", 9, 47, "closed: no click; this one is unattributed"),
    ("d", 33, 38, "pending"),
)


def read() -> tuple[dict[str, float], list[tuple[float, str]]]:
    """The stream, in minutes: when each impression was shown, and clicks in their order."""
    shown: dict[str, float] = {}
    clicks = []
    for batch in JoinedSimulation(Simulation(EVENTS)).batches():
        for line in batch:
            try:
                event = json.loads(line)
                minute = datetime.fromisoformat(event["ts"]).timestamp() / 60
                if event["kind"] == "impression":
                    shown[event["request_id"]] = minute
                elif event["kind"] == "click":
                    clicks.append((minute, event["request_id"]))
            except (ValueError, KeyError, TypeError):
                continue  # broken, as some are
    return shown, sorted(set(clicks))


def by_age() -> Data:
    """The click rate by age, in minutes: impressions of all moments together."""
    shown, clicks = read()
    times = sorted(shown.values())
    counted, clicked = [0] * AGES, [0] * AGES
    for now in range(int(times[0]) + 60, int(times[-1]), 30):
        for age in range(AGES):
            ends = now - age - 1, now - age
            counted[age] += bisect_left(times, ends[1]) - bisect_left(times, ends[0])
        first = bisect_left(clicks, (now - AGES, ""))
        for _, id_ in clicks[first : bisect_right(clicks, (now, ""))]:
            age = int(now - shown.get(id_, now - AGES))
            clicked[age if age < AGES else -1] += age < AGES
    return [
        {"age": age + 0.5, "rate": 100 * clicked[age] / counted[age]}
        for age in range(AGES)
        if counted[age]
    ]


def expected() -> Data:
    """What infinitely many impressions would show, and what they show in the end."""
    truth = Simulation(EVENTS).truth()
    rate = sum(float(truth[name].ctr) for name in VARIANTS) / len(VARIANTS)
    return [
        {"age": second / 60, "rate": 100 * rate * float(share_within(second))}
        for second in range(0, 60 * AGES + 1, 15)
    ]


def timeline() -> Spec:
    """The upper picture."""
    rows = [
        {"name": name, "start": minute, "end": minute + WINDOW, "fate": fate, "click": click,
         "state": "pending" if minute + WINDOW > NOW - LATENESS else "closed"}
        for name, minute, click, fate in SHOWN
    ]  # fmt: skip
    y = {"field": "name", "type": "nominal", "axis": {"title": "impression", "ticks": False}}
    minutes = {
        "type": "quantitative",
        "scale": {"domain": [0, 90], "nice": False},
        "axis": {"title": "event time, minutes", "grid": False},
    }
    start = {"field": "start", **minutes}
    state = {
        "field": "state", "type": "nominal", "legend": None,
        "scale": {"domain": ["closed", "pending"], "range": ["#9db4c0", "#f0c987"]},
    }  # fmt: skip
    return {
        "width": WIDTH,
        "height": 150,
        "data": {"values": rows},
        "layer": [
            {"mark": {"type": "bar", "height": 16},
             "encoding": {"x": start, "x2": {"field": "end"}, "y": y, "color": state}},
            {"mark": {"type": "point", "filled": True, "size": 70, "color": "#222222"},
             "encoding": {"x": start, "y": y}},
            {"transform": [{"filter": "datum.click !== null"}],
             "mark": {"type": "point", "shape": "cross", "filled": True, "size": 130,
                      "color": "#a3260c"},
             "encoding": {"x": {"field": "click", **minutes}, "y": y}},
            {"transform": [{"calculate": f"max(datum.end, {NOW}) + 2", "as": "beside"}],
             "mark": {"type": "text", "align": "left", "fontSize": 11},
             "encoding": {"x": {"field": "beside", **minutes}, "y": y, "text": {"field": "fate"}}},
            *_rule(NOW, "newest event", "left", minutes),
            *_rule(NOW - LATENESS, "what is older is late", "right", minutes),
        ],
    }  # fmt: skip


def rates() -> Spec:
    """The lower picture."""
    age = {
        "field": "age", "type": "quantitative",
        "scale": {"domain": [0, AGES], "nice": False},
        "axis": {"title": "age of the impression, minutes", "grid": False},
    }  # fmt: skip
    rate = {
        "field": "rate", "type": "quantitative",
        "scale": {"zero": True}, "axis": {"title": "% with a click so far"},
    }  # fmt: skip
    pending: Data = [{"from": 0, "to": WINDOW}]
    span = {"x": {**age, "field": "from"}, "x2": {"field": "to"}}
    return {
        "width": WIDTH,
        "height": 260,
        "layer": [
            {"data": {"values": pending},
             "mark": {"type": "rect", "color": "#f0c987", "opacity": 0.35}, "encoding": span},
            {"data": {"values": expected()},
             "mark": {"type": "line", "color": "#30638e"}, "encoding": {"x": age, "y": rate}},
            {"data": {"values": by_age()},
             "mark": {"type": "point", "filled": True, "size": 25, "color": "#222222"},
             "encoding": {"x": age, "y": rate}},
            *_rule(WINDOW, "the label window closes", "left", age),
        ],
    }  # fmt: skip


def _rule(position: float, text: str, align: str, x: Mapping[str, object]) -> Iterator[Spec]:
    data: Mapping[str, object] = {"values": [{"at": position, "text": text}]}
    encoding = {"x": {**x, "field": "at"}}
    yield {"data": data, "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#555555"},
           "encoding": encoding}  # fmt: skip
    yield {"data": data, "mark": {"type": "text", "align": align, "y": -8, "dx": 0},
           "encoding": {**encoding, "text": {"field": "text"}}}  # fmt: skip


def main() -> None:
    """Draw and write."""
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "config": theme("light"),
        "background": "white",
        "vconcat": [timeline(), rates()],
        "spacing": 40,
    }
    Path(__file__).with_name("labels.svg").write_text(svg(spec), encoding="utf-8")


if __name__ == "__main__":
    main()
