"""Weights that are rounded to units: every figure is between its ends, whatever rows weighed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import BinaryConfusion, ExactAUC, HistogramAUC
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.results.bounded import Bounded
from streammetrics.results.figures import counts_of
from tests.depth import tries

FINE = Fraction(1, 120)  # of which all weights here are multiples
AREAS = ("auc", "gini", "ap", "pr_auc_trapezoid", "ks")
RATES = (
    *("accuracy", "error_rate", "precision", "recall", "specificity", "fpr", "fnr", "npv"),
    *("balanced_accuracy", "mcc", "kappa", "jaccard", "f1"),
)
ROUNDING: list[Any] = [
    ExactAUC(round_weights=True),
    HistogramAUC(round_weights=True),
    HistogramAUC(grid="equal", resolution=1, round_weights=True),
]


def rates(found: Any) -> dict[Any, Any]:
    named = {name: getattr(found, name) for name in RATES}
    return {**named, "f2": found.f_beta(2), "f_alpha": found.f_alpha(0.3)}


def views(curve: Any) -> dict[Any, Any]:
    found = {name: getattr(curve, name) for name in AREAS}
    for limit in (0.1, 0.37, 1.0):
        for standardized in (False, True):
            part = curve.partial_auc(limit, standardized=standardized)
            found["partial_auc", limit, standardized] = part
    for k in (3, 4):
        found |= {("gain", k, i): x for i, x in enumerate(curve.gain(k))}
        found |= {("lift", k, i): x for i, x in enumerate(curve.lift(k))}
        found |= {("to", k, i): x for i, x in enumerate(curve.lift(k, cumulative=True))}
    for by in ("youden", "product", "distance", "accuracy"):
        found["best", by] = curve.best(by).value
    found["best", 0.3] = curve.best("accuracy", positives_share=0.3).value
    for t in (0.0, 0.2, 0.5, 0.55, 1.0):
        found |= {("confusion", t, name): x for name, x in rates(curve.confusion(t)).items()}
    return found


def samples(n: int, seed: int) -> Iterator[dict[str, Any]]:
    random = Random(seed)
    for _ in range(n):
        rows, share = random.choice([1, 2, 3, 5, 8, 20, 60]), random.choice([0.1, 0.5, 0.9])
        most, whole = random.choice([60, 400, 5000]), random.choice([0, 0, 0.7])
        weights = [random.randint(0, most) * FINE for _ in range(rows)]
        yield {
            "labels": [random.random() < share for _ in range(rows)],
            "scores": [random.choice([0, 0.1, 0.2, 0.3, 0.5, 0.51, 0.8, 1]) for _ in range(rows)],
            "weights": [Fraction(round(w)) if random.random() < whole else w for w in weights],
        }


def each_is_held(held: dict[Any, Any], true: dict[Any, Any], about: object) -> int:
    """How many figures are defined; each of them must be between its ends."""
    defined = 0
    for name, found in held.items():
        exact = float(true[name])
        assert isinstance(found, Bounded), name
        if not math.isnan(exact):
            defined += 1
            assert found.low <= exact <= found.high, (name, exact, found, about)
    return defined


def held_in(n: int, seed: int) -> None:
    defined = 0
    for rows in samples(n, seed):
        exact, table = ExactAUC(weight_unit=FINE), BinaryConfusion(weight_unit=FINE)
        about = BinaryConfusion(round_weights=True)
        for metric in (exact, table, about):
            metric.update(**rows)
        truth = views(exact.compute())
        for empty in ROUNDING:
            metric = empty.empty()
            metric.update(**rows)
            defined += each_is_held(views(metric.compute()), truth, (metric, rows))
        true, between = table.compute(), about.compute()
        defined += each_is_held(rates(between), rates(true), rows)
        for name in ("tp", "fp", "fn", "tn"):
            count = getattr(between, name)
            assert count.low <= getattr(true, name) * FINE <= count.high
    assert defined > 200 * n


@pytest.mark.slow
def test_every_figure_of_rounded_weights_is_between_its_ends() -> None:
    held_in(60, seed=1)


@pytest.mark.slow
def test_every_figure_of_many_samples_of_rounded_weights_is_between_its_ends() -> None:
    held_in(tries(120, 3000), seed=2)


@pytest.mark.parametrize("empty", [*ROUNDING, BinaryConfusion(round_weights=True)], ids=str)
def test_weights_that_need_no_rounding_leave_no_doubt(empty: Any) -> None:
    rows = {"labels": [0, 1, 1, 0], "scores": [0.1, 0.3, 0.6, 0.7]}
    rounding, strict = empty.empty(), type(empty)(**{**empty.settings(), "round_weights": False})
    for metric in (rounding, strict):
        metric.update(**rows)
        metric.update(**rows, weights=[2, 3, 0, 1])
    found, expected = rounding.compute(), strict.compute()
    assert (found.rows, found.rows_rounded, found.positives) == (7, 0, expected.positives)
    assert counts_of(found)["rows_rounded"] == 0 and "rows_rounded" not in counts_of(expected)
    for name in RATES if isinstance(empty, BinaryConfusion) else AREAS:
        ours, theirs = getattr(found, name), getattr(expected, name)
        low, high = (theirs, theirs) if isinstance(theirs, float) else (theirs.low, theirs.high)
        assert ours.low <= low and high <= ours.high and ours.value == float(theirs)
        assert low - ours.low <= 4 * math.ulp(low) and ours.high - high <= 4 * math.ulp(high)
    with pytest.raises(SettingsError):
        rounding.merge(strict)


def test_the_interval_is_as_narrow_as_the_weights_are_known() -> None:
    random = np.random.default_rng(0)
    labels, scores = random.integers(0, 2, 10_000), random.random(10_000)
    metric = ExactAUC(weight_unit="1/100", round_weights=True)
    metric.update(labels, scores, weights=random.random(10_000))
    found = metric.compute()
    assert found.rows_rounded == 10_000 and 9_900 < found.rows < 10_000  # some weigh no unit
    # Half a hundredth of each row, where a row weighs a half: 1 % of each class, on both sides.
    assert isinstance(found.auc, Bounded) and 0.039 < found.auc.width < 0.041
    assert isinstance(found.ks, Bounded) and found.ks.width < 0.041


def test_a_class_whose_weights_are_all_rounded_to_nothing_may_be_anything() -> None:
    curve = ExactAUC(round_weights=True)
    curve.update([0, 1, 1], [0.1, 0.5, 0.6], weights=[1, 0.25, 0.5])
    found = curve.compute()
    assert (found.rows, found.rows_rounded, found.positives) == (1, 2, 0)
    for figure in (found.auc, found.ap, found.ks, found.best().value, found.partial_auc(0.5)):
        assert isinstance(figure, Bounded) and math.isnan(figure.value) and figure.low == 0
    assert found.gini.low == -1 and found.gini.high == 1  # type: ignore[union-attr]
    assert found.partial_auc(0.5).high == 0.5  # type: ignore[union-attr]
    alone = ExactAUC(round_weights=True)
    alone.update([0, 0], [0.1, 0.5], weights=[0.5, 2])
    assert math.isnan(alone.compute().auc.low)  # type: ignore[union-attr]


def test_rela_impr_of_rounded_weights_is_between_its_ends() -> None:
    held = 0
    for rows in samples(60, seed=3):
        true, about = [], []
        for scores in (rows["scores"], rows["scores"][::-1]):
            for unit, rounding, found in ((FINE, False, true), (1, True, about)):
                metric = ExactAUC(weight_unit=unit, round_weights=rounding)
                metric.update(rows["labels"], scores, weights=rows["weights"])
                found.append(metric.compute())
        exact, between = true[0].rela_impr(true[1]), about[0].rela_impr(about[1])
        assert isinstance(exact, float) and isinstance(between, Bounded)
        if not math.isnan(exact) and not math.isnan(between.low):
            held += 1
            assert between.low <= exact <= between.high
    assert held > 15


def test_round_weights_is_true_or_false_and_without_it_weights_are_refused() -> None:
    for kind in (BinaryConfusion, HistogramAUC, ExactAUC):
        with pytest.raises(SettingsError, match=rf"{kind.__name__}\.round_weights.*True or False"):
            kind(round_weights=1)
        with pytest.raises(InputError, match="round_weights=True"):
            kind().update([0, 1], [0.1, 0.2], weights=[1, math.pi])
        metric = kind(round_weights=True)
        with pytest.raises(InputError, match="at least 0"):
            metric.update([0, 1], [0.1, 0.2], weights=[1, -0.25])
        assert metric == kind(round_weights=True)
