"""What each log of the Open Bandit sample says of the other policy: a table and a picture.

`python docs/off_policy_picture.py FOLDER`; FOLDER has random/men/men.csv and bts/men/men.csv, as
`obp/dataset/obd` of the package obp 0.4.1. Prints the table of docs/how_to/off_policy.md, and draws
docs/pictures/off_policy.svg.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from streammetrics import InputError, OffPolicy, UserGroups
from streammetrics.present import Spec, svg, theme

ITEMS: Final = 34  # of the campaign, which the policy "random" shows with equal probability
POLICIES: Final = ("random", "bts")
WIDTH: Final = 460
VALUES: Final = ("snips", "ips", "clipped")


class Log(NamedTuple):
    """Rows of one policy in the order of time: the user segment of each as a number by its first
    appearance, the probability with which the policy chose, and the clicks."""

    users: Sequence[int]
    logged: Sequence[float]
    clicks: Sequence[int]


class Line(NamedTuple):
    """A value with its interval: of a policy, from a log, by a view."""

    policy: str
    log: str
    view: str
    value: float
    lower: float
    upper: float


Logs: TypeAlias = Mapping[str, Log]


def numbered(users: Sequence[object]) -> list[int]:
    """Each user as the number of different ones before its first appearance."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(user, len(numbers)) for user in users]


def read(folder: Path) -> dict[str, Log]:
    """The log of each policy."""
    logs = {}
    for policy in POLICIES:
        with open(folder / policy / "men" / "men.csv", encoding="utf-8", newline="") as lines:
            rows = sorted(csv.DictReader(lines), key=lambda row: row["timestamp"])
        users = [tuple(row[f"user_feature_{i}"] for i in range(4)) for row in rows]
        logged = [float(row["propensity_score"]) for row in rows]
        logs[policy] = Log(numbered(users), logged, [int(row["click"]) for row in rows])
    return logs


def state(log: Log, target: Sequence[float]) -> UserGroups:
    """The value of a target policy, given its probabilities, from a log."""
    metric = UserGroups(OffPolicy())
    metric.update(log.users, logged=log.logged, target=target, rewards=log.clicks)
    return metric


def lines(logs: Logs) -> Iterator[Line]:
    """Both policies from their own logs, and random from the log of bts."""
    uniform = {policy: [1 / ITEMS] * len(log.clicks) for policy, log in logs.items()}
    metrics = {
        ("random", "random"): state(logs["random"], uniform["random"]),
        ("random", "bts"): state(logs["bts"], uniform["bts"]),
        ("bts", "bts"): state(logs["bts"], logs["bts"].logged),
    }
    for (policy, log), metric in metrics.items():
        result = metric.compute()
        for view in VALUES if policy != log else VALUES[:1]:
            interval = result.interval(view)
            yield Line(policy, log, view, interval.estimate, interval.lower, interval.upper)


def table(logs: Logs) -> str:
    """The lines, and what prevents the other direction."""
    texts = [f"{'value of':8}  {'from log of':11}  {'view':7}  value   95 % CI"]
    for line in lines(logs):
        ends = f"{line.lower:.4f} to {line.upper:.4f}"
        texts.append(f"{line.policy:8}  {line.log:11}  {line.view:7}  {line.value:.4f}  {ends}")
    unknown = np.full(len(logs["random"].clicks), np.nan)
    try:
        state(logs["random"], unknown.tolist())
    except InputError as error:
        texts.append(f"bts       random       refused: {error.where}, {error.expected}")
    return "\n".join(texts) + "\n"


def picture(logs: Logs) -> Spec:
    """The lines, drawn."""
    rows = [
        {
            "name": f"{line.policy}, from its own log"
            if line.policy == line.log
            else f"{line.policy}, from the log of {line.log}: {line.view}",
            "own": line.policy == line.log,
            "value": 100 * line.value,
            "lower": 100 * line.lower,
            "upper": 100 * line.upper,
        }
        for line in lines(logs)
    ]
    y = {
        "field": "name", "type": "nominal", "sort": [row["name"] for row in rows],
        "axis": {"title": None, "labelLimit": 300, "ticks": False},
    }  # fmt: skip
    x = {
        "type": "quantitative", "scale": {"zero": True},
        "axis": {"title": "clicks per 100 rows, with 95 % confidence intervals"},
    }  # fmt: skip
    color = {
        "field": "own", "type": "nominal", "legend": None,
        "scale": {"domain": [True, False], "range": ["#222222", "#30638e"]},
    }  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "config": theme("light"),
        "background": "white",
        "width": WIDTH,
        "height": 170,
        "data": {"values": rows},
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 3},
             "encoding": {"x": {"field": "lower", **x}, "x2": {"field": "upper"}, "y": y,
                          "color": color}},
            {"mark": {"type": "point", "filled": True, "size": 90},
             "encoding": {"x": {"field": "value", **x}, "y": y, "color": color}},
        ],
    }  # fmt: skip


def main() -> None:
    """Print the table, draw the picture and write it."""
    logs = read(Path(sys.argv[1]))
    sys.stdout.write(table(logs))
    path = Path(__file__).parent / "pictures" / "off_policy.svg"
    path.write_text(svg(picture(logs)), encoding="utf-8")


if __name__ == "__main__":
    main()
