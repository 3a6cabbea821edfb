"""ExactAUC: worked values, every small sample, splits, and real clicks."""

from __future__ import annotations

import json
import math
from itertools import permutations
from pathlib import Path
from random import Random

import numpy as np
import pytest

from streammetrics.classification import ExactAUC
from streammetrics.core.errors import InputError, SettingsError, StateError
from tests.expected import cases_of
from tests.oracles import binary

SCORE_TYPES = pytest.mark.parametrize("score_type", ["float32", "float64"])


def fed(rows: list[binary.Row], score_type: str = "float64") -> ExactAUC:
    metric = ExactAUC(score_type=score_type)
    metric.update([y for y, _ in rows], [s for _, s in rows])
    return metric


@SCORE_TYPES
@pytest.mark.parametrize(
    ("labels", "scores", "expected"),
    [
        ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], 0.75),
        ([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], 0.875),
        ([0, 1, 1, 0, 0, 1, 1], [0.3, 0.5, 0.5, 0.5, 0.5, 0.7, 0.8], 10 / 12),
        ([1, 0, 1, 0], [0.3, 0.3, 0.3, 0.3], 0.5),
        ([1, 0, 0], [0.5, 0.5, 1.0], 0.25),
        ([1, 0, 0], [1e-10, 0.0, 0.0], 1.0),
        ([0, 0, 1, 1], [-90.0, 80.0, 1000.0, 2000.0], 1.0),
        ([0, 1, 0, 1, 1], [1, 2, 3, 4, 5], 5 / 6),
        ([0, 1, 1, 0, 1], [1, 2, 3, 4, 5], 2 / 3),
        ([0, 1, 1], [-math.inf, math.inf, 1e38], 1.0),
        ([0, 1], [0.0, -0.0], 0.5),
    ],
)
def test_worked_values(
    labels: list[int], scores: list[float], expected: float, score_type: str
) -> None:
    for order in permutations(range(len(labels))) if len(labels) < 6 else [range(len(labels))]:
        result = fed([(labels[i], scores[i]) for i in order], score_type).compute()
        assert result.auc == expected
        assert result.gini == 2 * expected - 1 or len(labels) in (5, 7)
        assert (result.rows, result.positives) == (len(labels), sum(labels))


@pytest.mark.slow
@SCORE_TYPES
def test_every_small_sample_however_split(score_type: str) -> None:
    random = Random(13)
    for rows in binary.small_samples((-0.5, 0.25, 0.5), 6):
        shards: list[list[binary.Row]] = [[], [], []]
        for row in random.sample(rows, len(rows)):
            random.choice(shards).append(row)
        whole = fed(rows, score_type)
        merged = sum((fed(shard, score_type) for shard in shards), ExactAUC(score_type=score_type))
        assert merged == whole and merged.digest() == whole.digest()
        exact = binary.area(rows)
        auc = merged.compute().auc
        assert math.isnan(float(auc)) if exact is None else auc == float(exact)


@SCORE_TYPES
def test_batches_of_any_size_give_the_same_state(score_type: str) -> None:
    rng = np.random.default_rng(14)
    n = 30_000
    labels = (rng.random(n) < 0.1).astype(np.uint8)
    scores = np.round(rng.normal(size=n), 3)
    whole = ExactAUC(score_type=score_type)
    whole.update(labels, scores)
    for size in (7, 1_000, 9_000):
        streamed = ExactAUC(score_type=score_type)
        for i in range(0, n, size):
            streamed.update(labels[i : i + size], scores[i : i + size])
        assert streamed == whole and streamed.compute() == whole.compute()
    order = np.argsort(scores, kind="stable")
    values = scores[order]
    ranks = (np.searchsorted(values, scores, "left") + np.searchsorted(values, scores, "right")) / 2
    p = int(labels.sum())
    u = ranks[labels == 1].sum() - p * p / 2
    if score_type == "float64":
        assert whole.compute().auc == u / (p * (n - p))


def test_float32_makes_ties_of_what_it_cannot_tell_apart() -> None:
    rows = [(0, 0.1), (1, 0.1 + 1e-12)]
    assert fed(rows, "float64").compute().auc == 1.0
    assert fed(rows, "float32").compute().auc == 0.5


def test_a_double_beyond_float32_is_infinite_there() -> None:
    assert fed([(0, 1e300), (1, 1e301)], "float32").compute().auc == 0.5
    assert fed([(0, -1e300), (1, 3e38)], "float32").compute().auc == 1.0


@SCORE_TYPES
def test_the_curve_has_every_score_with_its_counts(score_type: str) -> None:
    metric = fed([(1, 0.5), (0, 0.5), (0, -2.0), (1, 0.5), (1, math.inf)], score_type)
    curve = metric.compute()
    metric.update([0], [9.0])  # a result is what was known when it was computed
    assert curve.scores.tolist() == [-2.0, 0.5, math.inf]
    assert curve.scores.dtype == score_type
    assert curve.counts.tolist() == [[1, 1, 0], [0, 2, 1]]
    assert curve.exact and curve == curve and curve != metric.compute()


@SCORE_TYPES
def test_pairs_beyond_int64_are_exact(score_type: str) -> None:
    metric = fed([(0, 0.25), (1, 0.5), (0, 0.5), (1, -1.0), (1, 2.0)], score_type)
    for _ in range(40):
        metric.merge(metric)
    metric.update([1, 0], [0.5, 3.0])
    k = 2**40
    wins = k * (k + 1) + k * 2 * k  # 0.5 above 0.25; 2.0 above 0.25 and 0.5
    ties = (k + 1) * k
    p, n = 3 * k + 1, 2 * k + 1
    result = metric.compute()
    assert result.auc == (2 * wins + ties) / (2 * p * n)
    assert (result.rows, result.positives) == (p + n, p)
    assert ExactAUC.from_bytes(metric.to_bytes()) == metric


def test_an_empty_state_is_undefined() -> None:
    result = ExactAUC().compute()
    assert math.isnan(float(result.auc)) and (result.rows, result.positives) == (0, 0)
    assert result.scores.tolist() == [] and result.counts.shape == (2, 0)


@SCORE_TYPES
def test_past_max_rows_a_state_says_so(score_type: str) -> None:
    limited = ExactAUC(score_type=score_type, max_rows=4)
    limited.update([0, 1], [0.1, 0.2])
    full = limited + limited
    assert full.compute().auc == 1.0
    full.update([0], [0.5])
    result = full.compute()
    assert math.isnan(float(result.auc)) and result.rows == 5 and result.positives is None
    assert result.reason == "5 rows are more than max_rows=4"
    other = limited + limited.copy()
    other.merge(limited)
    assert other.compute().rows == 6
    assert ExactAUC.from_bytes(full.to_bytes()) == full
    one = ExactAUC(score_type=score_type, max_rows=4)
    one.update([1, 0, 0, 0, 1], [0.0, 9.0, 9.0, 8.0, 1.0])
    assert one == full  # the number of rows is all that is left


@pytest.mark.parametrize(
    "settings", [{"score_type": "float16"}, {"max_rows": 0}, {"max_rows": 1.5}, {"max_rows": True}]
)
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="ExactAUC"):
        ExactAUC(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("labels", "scores", "where"),
    [
        ([0, 1], [0.1, math.nan], r"scores\[1\]"),
        ([0, 2], [0.1, 0.2], r"labels\[1\]"),
        ([0.73, 1], [0.1, 0.2], "swapped"),
        ([0, 1], [0.1], "scores"),
    ],
)
def test_bad_rows_change_nothing(labels: list[float], scores: list[float], where: str) -> None:
    metric = fed([(0, 0.1), (1, 0.2)])
    before = metric.digest()
    with pytest.raises(InputError, match=where):
        metric.update(labels, scores)
    assert metric.digest() == before


def test_a_state_that_claims_to_be_huge_is_refused_at_once() -> None:
    data = bytearray(fed([(0, 0.1), (1, 0.2)]).to_bytes())
    with pytest.raises(StateError):
        ExactAUC.from_bytes(bytes(data[:-9]))


@pytest.mark.slow
def test_real_clicks_have_the_area_that_others_computed(data: Path) -> None:
    lines = (data / "obd_men_events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    cases = [one for one in cases_of(data, "obd_men_events") if one["metric"] == "auc"]
    assert len(cases) >= 6
    for case in cases:
        where = dict(case.get("where", {}))
        field, last = where.pop("score_field", "score"), where.pop("ts_date_at_most", "9")
        kept = [
            event
            for event in events
            if event["ts"][:10] <= last and all(event[k] == v for k, v in where.items())
        ]
        metric = ExactAUC()
        metric.update([e["label"] for e in kept], [e[field] for e in kept])
        assert metric.compute().auc == case["value"], case["id"]
