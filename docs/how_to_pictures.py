"""Draw the pictures of three how-to pages: `python -m docs.how_to_pictures`.

`docs/interleaving.svg`: a team draft, and the preference at every look. `docs/thresholds.svg`: a
precision-recall curve with the thresholds that the page chooses. Both use the rows of their pages.
`docs/moments.svg`: the error of the variance of numbers with an offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from streammetrics import HistogramAUC, Interleaving, Moments, UserGroups, team_draft
from streammetrics.experiments import ConfidenceSequence, Horizon, compare
from streammetrics.present import Spec, svg, theme

HERE: Final = Path(__file__).parent
WIDTH: Final = 620
TEAMS: Final = {"A": "#f0c987", "B": "#9db4c0"}
LINE, DARK, RED = "#30638e", "#222222", "#a3260c"
Data: TypeAlias = Sequence[Mapping[str, object]]


def draft() -> Spec:
    """Both rankings, the list that they drafted, and a click."""
    old, new = ["d1", "d2", "d3", "d4"], ["d2", "d5", "d1", "d6"]
    drafted = team_draft(old, new, "request 12", k=4)
    shown = {
        "ranking of A": [(item, "A") for item in old],
        "shown list": [
            (item, "AB"[team]) for item, team in zip(drafted.items, drafted.teams, strict=True)
        ],
        "ranking of B": [(item, "B") for item in new],
    }
    cells = [
        {"column": column, "rank": rank, "item": item, "team": f"team {team}"}
        for column, items in shown.items()
        for rank, (item, team) in enumerate(items, 1)
    ]
    x = {
        "field": "column", "type": "nominal", "sort": list(shown), "scale": {"paddingInner": 0.5},
        "axis": {"title": None, "orient": "top", "labelAngle": 0, "ticks": False, "domain": False},
    }  # fmt: skip
    y = {
        "field": "rank", "type": "ordinal", "scale": {"paddingInner": 0.15},
        "axis": {"title": "rank", "ticks": False, "domain": False},
    }  # fmt: skip
    color = {
        "field": "team", "type": "nominal", "legend": {"title": None, "orient": "right"},
        "scale": {"domain": [f"team {team}" for team in TEAMS], "range": [*TEAMS.values()]},
    }  # fmt: skip
    clicked = [cell for cell in cells if (cell["column"], cell["item"]) == ("shown list", "d5")]
    return {
        "width": WIDTH - 80,
        "height": 130,
        "data": {"values": cells},
        "layer": [
            {"mark": {"type": "rect", "cornerRadius": 3},
             "encoding": {"x": x, "y": y, "color": color}},
            {"mark": {"type": "text", "fontSize": 12, "color": DARK},
             "encoding": {"x": x, "y": y, "text": {"field": "item"}}},
            {"data": {"values": clicked},
             "mark": {"type": "text", "fontSize": 11, "dx": 48, "align": "left", "color": RED,
                      "text": "clicked"},
             "encoding": {"x": x, "y": y}},
        ],
    }  # fmt: skip


def looks() -> Data:
    """The preference and both intervals after every hundredth list of the page."""
    rng = np.random.default_rng(1)
    users = rng.integers(0, 1_500, 6_000)
    clicks = {"clicks_a": rng.poisson(0.35, 6_000), "clicks_b": rng.poisson(0.43, 6_000)}
    state = UserGroups(Interleaving())
    sequence = ConfidenceSequence(v_opt=Horizon(mde=0.03).v_opt, min_count=100)
    points = []
    for start in range(0, len(users), 100):
        span = slice(start, start + 100)
        state.update(users[span], **{name: column[span] for name, column in clicks.items()})
        at_once, always = compare(state), sequence.at(compare(state))
        if not always.gated:
            points.append({
                "lists": start + 100, "preference": at_once.effect_size,
                "lower": always.lower, "upper": always.upper,
                "one_lower": at_once.effect_size_ci_lower,
                "one_upper": at_once.effect_size_ci_upper,
            })  # fmt: skip
    return points


def preference() -> Spec:
    """The preference against the number of lists."""
    x = {
        "field": "lists", "type": "quantitative",
        "axis": {"title": "shown lists", "grid": False, "values": [0, 2_000, 4_000, 6_000],
                 "format": ",d"},
        "scale": {"domain": [0, 6_000], "nice": False},
    }  # fmt: skip

    def y(field: str) -> Mapping[str, object]:
        return {
            "field": field, "type": "quantitative",
            "scale": {"domain": [-0.15, 0.25], "clamp": True},
            "axis": {"title": "preference of B over A", "values": [-0.1, 0, 0.1, 0.2]},
        }  # fmt: skip

    dashed = {"type": "line", "strokeDash": [3, 3], "color": "#555555", "strokeWidth": 1}
    return {
        "width": WIDTH,
        "height": 240,
        "data": {"values": looks()},
        "layer": [
            {"mark": {"type": "area", "color": LINE, "opacity": 0.2},
             "encoding": {"x": x, "y": y("lower"), "y2": {"field": "upper"}}},
            *({"mark": dashed, "encoding": {"x": x, "y": y(field)}}
              for field in ("one_lower", "one_upper")),
            {"mark": {"type": "line", "color": LINE, "strokeWidth": 2},
             "encoding": {"x": x, "y": y("preference")}},
            {"mark": {"type": "rule", "color": DARK}, "encoding": {"y": {"datum": 0}}},
            *_texts([(1_200, 0.14, "always-valid 95 % interval"),
                     (1_200, -0.08, "dashed: interval of one look")], x, y("at")),
        ],
    }  # fmt: skip


def _texts(
    names: Sequence[tuple[float, float, str]], x: Mapping[str, object], y: Mapping[str, object]
) -> Iterator[Spec]:
    """Texts beside the lines that they name."""
    rows: Data = [{"x": left, "at": height, "text": text} for left, height, text in names]
    yield {"data": {"values": rows}, "mark": {"type": "text", "align": "left", "color": DARK},
           "encoding": {"x": {**x, "field": "x"}, "y": y, "text": {"field": "text"}}}  # fmt: skip


def thresholds() -> Spec:
    """The precision-recall curve of the page, with the points that it chooses."""
    rng = np.random.default_rng(1)
    rng.integers(0, 2_000, 20_000)  # the users of the page
    scores = rng.beta(1, 4, 20_000)
    metric = HistogramAUC()
    metric.update(rng.random(20_000) < scores, scores)
    curve = metric.compute()
    pr = curve.pr()
    points: Data = [
        {"recall": float(r), "precision": float(p), "order": i}
        for i, (r, p) in enumerate(zip(pr.recall, pr.precision, strict=True))
        if p == p
    ]
    best = curve.best("precision", recall_at_least=0.8).points[0]
    f_1, budget = (
        curve.best("f_beta", beta=1).points[0],
        curve.threshold_for(predicted_positive=0.05),
    )
    chosen: Data = [
        {"recall": float(rates.recall), "precision": float(rates.precision),
         "text": f"{text}: threshold {threshold:.3f}"}
        for rates, threshold, text in (
            (best.rates, best.threshold, "best precision at recall 0.8"),
            (f_1.rates, f_1.threshold, "best F1"),
            (budget.rates, budget.threshold, "budget of 5 % of the rows"),
        )
    ]  # fmt: skip
    x = {
        "field": "recall", "type": "quantitative", "scale": {"domain": [0, 1]},
        "axis": {"title": "recall", "grid": False},
    }  # fmt: skip
    y = {
        "field": "precision", "type": "quantitative", "scale": {"domain": [0, 1]},
        "axis": {"title": "precision"},
    }  # fmt: skip
    allowed: Data = [{"from": 0.8, "to": 1}]
    return {
        "width": WIDTH,
        "height": 320,
        "layer": [
            {"data": {"values": allowed},
             "mark": {"type": "rect", "color": "#f0c987", "opacity": 0.35},
             "encoding": {"x": {**x, "field": "from"}, "x2": {"field": "to"}}},
            {"data": {"values": points}, "mark": {"type": "line", "color": LINE},
             "encoding": {"x": x, "y": y, "order": {"field": "order"}}},
            {"data": {"values": chosen},
             "mark": {"type": "point", "filled": True, "size": 90, "color": RED, "opacity": 1},
             "encoding": {"x": x, "y": y}},
            *({"data": {"values": [point]},
               "mark": {"type": "text", "align": align, "dx": dx, "dy": dy, "color": DARK},
               "encoding": {"x": x, "y": y, "text": {"field": "text"}}}
              for point, (align, dx, dy) in zip(
                  chosen, (("right", -8, 14), ("left", 8, -12), ("left", 8, -12)), strict=True)),
            *_texts([(0.81, 0.95, "recall at least 0.8")], x, {**y, "field": "at"}),
        ],
    }  # fmt: skip


def errors() -> Data:
    """The relative error of the variance of 10,000 numbers, by the offset that is added to them."""
    plain = np.random.default_rng(1).gamma(2.0, 3.0, 10_000)
    points = []
    for power in range(11):
        x = plain + 10.0**power
        exact = Moments()
        exact.update(x)
        variance = Fraction(exact.compute().variance)
        squares = float(np.sum(x * x)) - float(np.sum(x)) ** 2 / len(x)
        ways = {
            "sum of squares": squares / (len(x) - 1),
            "100 parts, Chan": _merged(x.reshape(100, -1)),
            "numpy": float(np.var(x, ddof=1)),
        }
        for way, value in ways.items():
            error = float(abs(Fraction(value) - variance) / variance)
            points.append({"offset": 10**power, "error": max(error, 1e-17), "way": way})
        points.append({"offset": 10**power, "error": 1e-17, "way": "Moments"})
    return points


def _merged(parts: np.ndarray) -> float:
    """The variance of parts that are merged in turn, as Chan et al. (1979) do, in floats."""
    n, mean, apart = 0, 0.0, 0.0
    for part in parts:
        m, part_mean = len(part), float(np.mean(part))
        delta = part_mean - mean
        apart += float(np.sum((part - part_mean) ** 2)) + delta * delta * n * m / (n + m)
        mean += delta * m / (n + m)
        n += m
    return apart / (n - 1)


def moments() -> Spec:
    """The errors by offset, both on logarithmic scales."""
    x = {
        "field": "offset", "type": "quantitative", "scale": {"type": "log"},
        "axis": {"title": "offset of the numbers", "grid": False, "format": ".0e"},
    }  # fmt: skip
    y = {
        "field": "error", "type": "quantitative", "scale": {"type": "log", "domain": [1e-17, 1e4]},
        "axis": {"title": "relative error of the variance (0 is drawn at 1e-17)", "format": ".0e",
                 "tickCount": 7},
    }  # fmt: skip
    color = {
        "field": "way", "type": "nominal",
        "legend": {"title": None, "orient": "right", "columns": 1, "padding": 12},
        "scale": {"domain": ["sum of squares", "100 parts, Chan", "numpy", "Moments"],
                  "range": [RED, "#d98c1f", "#7a8b99", LINE]},
    }  # fmt: skip
    return {
        "width": WIDTH - 140,
        "height": 300,
        "data": {"values": errors()},
        "mark": {"type": "line", "point": True},
        "encoding": {"x": x, "y": y, "color": color},
    }


def main() -> None:
    """Draw and write."""
    pictures = {"interleaving": [draft(), preference()], "thresholds": [thresholds()]}
    pictures["moments"] = [moments()]
    for name, parts in pictures.items():
        spec = {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "config": theme("light"),
            "background": "white",
            "vconcat": parts,
            "spacing": 40,
            "resolve": {"scale": {"x": "independent", "y": "independent"}},
        }
        (HERE / f"{name}.svg").write_text(svg(spec), encoding="utf-8")


if __name__ == "__main__":
    main()
