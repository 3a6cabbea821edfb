"""Curves and calibration of real data, against values that others computed.

Every case of a curve in the files below is here, but for two: `auc_ties_zero` and `auc_ties_one`
are other definitions of the area, in which a tied pair counts 0 or 1. A view would invite to take
one for the other; of buckets they are `auc.low` and `auc.high`, and here they are checked from the
pairs. Weighted cases are where weights are.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import BinaryConfusion, Bounded, Calibration, ExactAUC, HistogramAUC
from streammetrics.kernels.exact.elementary import log
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.results.rates import BoundedRates, Rates
from streammetrics.results.score_curve import ScoreCurve
from tests.expected import cases_of

Row = Mapping[str, Any]
Case = Mapping[str, Any]
Columns = tuple[NDArray[np.int64], NDArray[np.float64]]

TENTH = Fraction(1, 10)
VIEWS = ("auc", "gini", "ap", "pr_auc_trapezoid", "ks")
RATES = (
    *("accuracy", "error_rate", "recall", "specificity", "fpr", "npv", "jaccard"),
    *("balanced_accuracy", "kappa", "precision", "mcc"),
)
FILES = {
    "obd_men_events": "obd_men_events.jsonl",
    "higgs500": "higgs500.csv",
    "phishing": "phishing.jsonl",
    "digits": "digits.csv",
    "ltr_test": "ltr_test.csv",
}
WHERE: Mapping[str, Callable[[Row, Any], bool]] = {
    "variant": lambda row, value: bool(row["variant"] == value),
    "phase": lambda row, value: bool(row["phase"] == value),
    "seq_at_least": lambda row, value: int(row["seq"]) >= value,
    "ts_date_at_most": lambda row, value: bool(row["ts"][:10] <= value),
    "pooled": lambda row, value: True,
}


def label(row: Row, positive: str) -> int:
    if "rel>=" in positive:
        return int(int(row["rel"]) >= int(positive[5:]))
    return int(row["y"] == positive[2:]) if positive else int(row["label"])


class Curves:
    """The curves of the cases of one file, each made once."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.cases = name, list(cases_of(folder, name))
        text = (folder / FILES[name]).read_text()
        if FILES[name].endswith("csv"):
            self.rows: list[Row] = list(csv.DictReader(text.splitlines()))
        else:
            self.rows = list(map(json.loads, text.splitlines()))
        self._columns: dict[str, Columns] = {}
        self._known: dict[str, tuple[ScoreCurve, ScoreCurve]] = {}

    def columns(self, where: Mapping[str, Any]) -> Columns:
        rest = dict(where)
        score, positive = rest.pop("score_field", "score"), rest.pop("positive", "")
        key = repr(where)
        if key not in self._columns:
            rows = [r for r in self.rows if all(WHERE[name](r, v) for name, v in rest.items())]
            labels = np.array([label(row, positive) for row in rows])
            self._columns[key] = labels, np.array([float(row[score]) for row in rows])
        return self._columns[key]

    def compute(self, case: Case) -> tuple[ScoreCurve, ScoreCurve]:
        """Exact, and from the default buckets."""
        where = case.get("where", {})
        key = repr(where)
        if key not in self._known:
            labels, scores = self.columns(where)
            real = bool((scores < 0).any() or (scores > 1).any())
            exact, buckets = ExactAUC(), HistogramAUC(range="real" if real else "probability")
            exact.update(labels, scores)
            buckets.update(labels, scores)
            self._known[key] = exact.compute(), buckets.compute()
        return self._known[key]

    def cases_of(self, *metrics: str) -> Iterator[Case]:
        for case in self.cases:
            plain = "weighted" not in case["id"] and "group" not in case.get("where", {})
            if case["metric"] in metrics and plain:
                yield case


# The views of Calibration, and how many cases there are of each file at least.
CALIBRATED = {
    **{name: name for name in ("log_loss", "brier", "normalized_entropy", "mean_score", "copc")},
    "ctr": "base_rate",
    "ece_l1_15": "ece",
    "mce_15": "mce",
}
LEAST = {"obd_men_events": 56, "higgs500": 10, "phishing": 24, "digits": 8, "ltr_test": 0}


@pytest.fixture(scope="module", params=[*reversed(FILES)])
def curves(request: pytest.FixtureRequest, data: Path) -> Curves:
    return Curves(data, request.param)


def within(bounds: float | Bounded, value: float) -> bool:
    assert isinstance(bounds, Bounded)
    return bounds.low <= value <= bounds.high and bounds.low <= bounds.value <= bounds.high


def test_areas_and_distances(curves: Curves) -> None:
    cases = list(curves.cases_of(*VIEWS))
    assert {case["metric"] for case in cases} == set(VIEWS)
    for case in cases:
        exact, buckets = (getattr(curve, case["metric"]) for curve in curves.compute(case))
        assert exact == case["value"], case["id"]
        assert within(buckets, case["value"]), case["id"]


def test_rows_of_both_classes_and_different_scores(curves: Curves) -> None:
    cases = list(curves.cases_of("n"))
    assert cases
    for case in cases:
        exact, _ = curves.compute(case)
        assert exact.rows == case["value"], case["id"]
        negatives, positives = exact.counts.sum(axis=1).tolist()
        assert (negatives, positives) == (case["n_neg"], case["n_pos"]), case["id"]
        assert len(exact.scores) == case["distinct_scores"], case["id"]


def test_areas_with_tied_pairs_lost_and_won(curves: Curves) -> None:
    for case in curves.cases_of("auc_ties_zero", "auc_ties_one"):
        pairs = curves.compute(case)[0]._pairs
        won = pairs.wins + (pairs.ties if case["metric"] == "auc_ties_one" else 0)
        assert ratio(won, pairs.all) == case["value"], case["id"]


def test_areas_of_equal_buckets_and_their_bounds(curves: Curves) -> None:
    sides = {"bucket_auc_mid": "value", "bucket_auc_lower": "low", "bucket_auc_upper": "high"}
    for case in curves.cases_of(*sides):
        bits = int(case["params"]["B"]).bit_length() - 1
        metric = HistogramAUC(grid="equal", resolution=bits)
        metric.update(*curves.columns(case.get("where", {})))
        area = metric.compute().auc
        assert isinstance(area, Bounded)
        end = getattr(area, sides[case["metric"]])
        assert abs(end - case["value"]) <= math.ulp(case["value"]), case["id"]
        assert area.low <= Fraction(case["exact"]) <= area.high or sides[case["metric"]] != "value"


def test_confusions_and_rates_at_thresholds(curves: Curves) -> None:
    for case in curves.cases_of("confusion", "f_beta", *RATES):
        exact, buckets = (c.confusion(case["params"]["threshold"]) for c in curves.compute(case))
        assert isinstance(exact, Rates)
        if case["metric"] == "confusion":
            counted = BinaryConfusion(threshold=case["params"]["threshold"])
            counted.update(*curves.columns(case.get("where", {})))
            assert counted.compute() == exact
            expected = (*(case[name] for name in ("tn", "fp", "fn")), case["value"])
            assert (exact.tn, exact.fp, exact.fn, exact.tp) == expected, case["id"]
            for name in ("tn", "fp", "fn", "tp"):
                count = getattr(buckets, name)
                bounds = count if isinstance(count, Bounded) else Bounded(count, count, count)
                assert bounds.low <= getattr(exact, name) <= bounds.high, case["id"]
            continue
        beta = case["params"].get("beta")
        value = exact.f_beta(beta) if beta else getattr(exact, case["metric"])
        rough = buckets.f_beta(beta) if beta else getattr(buckets, case["metric"])
        if case["value"] is None:
            assert math.isnan(value), case["id"]
            continue
        assert value == case["value"], case["id"]
        if isinstance(buckets, BoundedRates):
            assert isinstance(rough, Bounded)
            assert rough.low <= value <= rough.high, case["id"]
        else:
            assert rough == value, case["id"]


def test_best_operating_points(curves: Curves) -> None:
    names = [f"best_{criterion}" for criterion in ("youden", "product", "distance", "accuracy")]
    cases = list(curves.cases_of(*names))
    assert {case["metric"] for case in cases} == set(names)
    for case in cases:
        exact, buckets = (c.best(case["metric"][5:]) for c in curves.compute(case))
        assert exact.value == case["value"], case["id"]
        highest = exact.points[0]
        threshold = math.inf if case["threshold"] is None else case["threshold"]
        assert highest.threshold == threshold, case["id"]
        assert (highest.rates.tp, highest.rates.fp) == (case["tp"], case["fp"]), case["id"]
        assert within(buckets.value, case["value"]), case["id"]


def test_every_point_of_a_roc_curve(data: Path) -> None:
    curves = Curves(data, "higgs500")
    [case] = curves.cases_of("roc_points")
    exact, buckets = curves.compute(case)
    points = exact.roc()
    rows = zip(points.thresholds, points.tp, points.fp, strict=True)
    assert [list(map(float, row)) for row in rows] == [[math.inf, 0, 0], *case["points"]]
    pairs = set(zip(points.fp.tolist(), points.tp.tolist(), strict=True))
    rough = buckets.roc()
    assert set(zip(rough.fp.tolist(), rough.tp.tolist(), strict=True)) <= pairs


def test_areas_of_200_thresholds_join_200_points_of_the_exact_curve(data: Path) -> None:
    """They are torchmetrics's, rounded to float32; of clicks they are off by up to 0.018."""
    off = {}
    for name in FILES:
        curves = Curves(data, name)
        for case in curves.cases_of("auc_thresholds_200"):
            exact, _ = curves.compute(case)
            points = [exact.confusion(t) for t in np.linspace(1, 0, 200).tolist()]
            area = sum(
                Fraction((b.fp - a.fp) * (a.tp + b.tp), 2 * (b.tp + b.fn) * (b.fp + b.tn))
                for a, b in pairwise(points)
            )
            assert abs(float(area) - case["value"]) <= 2**-22, case["id"]
            off[case["id"]] = round(case["value"] - exact.auc, 4)
    assert len(off) == 12
    assert (off["all/auc_thresholds_200"], min(off.values())) == (-0.0121, -0.0179)


def test_what_river_counted_over_the_stream(data: Path) -> None:
    curves = Curves(data, "phishing")
    cases = {case["id"].rpartition("/")[2]: case for case in curves.cases_of("river_streaming")}
    rates = curves.compute(cases["F1"])[0].confusion(0.5)
    assert rates.accuracy == cases["Accuracy"]["value"]
    assert rates.f1 == math.nextafter(cases["F1"]["value"], 1)  # it rounds P and R, then F
    assert cases.keys() == {"Accuracy", "F1", "ROCAUC200"}  # the last: test_sliding_auc.py


# -- calibration, every value to its last bit


def test_calibration_to_the_last_bit(curves: Curves) -> None:
    cases = [case for case in curves.cases if case["metric"] in CALIBRATED]
    assert len(cases) >= LEAST[curves.name]
    for case in cases:
        labels, scores = curves.columns(case.get("where", {}))
        metric, weights = Calibration(weight_unit=TENTH), None
        if "weight" in case.get("params", {}):
            weights = [float(row["weight"]) for row in curves.rows]
        metric.update(labels, scores, weights=weights)
        value = getattr(metric.compute(), CALIBRATED[case["metric"]])
        assert value == case["value"], case["id"]


def test_the_log_loss_of_ten_classes_is_a_mean_of_our_logarithms(data: Path) -> None:
    """There is no class for it: the loss of a row is that of one probability."""
    rows = Curves(data, "digits").rows
    chosen: NDArray[np.float64] = np.array([float(row[f"p{row['y']}"]) for row in rows])
    high, low = log(chosen)
    mean = -sum(map(Fraction, (*high.tolist(), *low.tolist()))) / len(rows)
    cases = cases_of(data, "digits")
    [expected] = [case["value"] for case in cases if case["metric"] == "mc_log_loss"]
    assert float(mean) == expected
    metric = Calibration()
    metric.update(np.ones(len(rows)), chosen)
    assert metric.compute().log_loss == expected
    assert math.isnan(metric.compute().normalized_entropy)
