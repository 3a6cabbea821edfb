"""Weights of rows of many classes that are rounded to units: every figure is between its ends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import MulticlassAUC, MulticlassConfusion, MultilabelConfusion
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.results.bounded import Bounded
from streammetrics.results.figures import counts_of, views_of
from tests.classification.test_rounded_weights import FINE, RATES, each_is_held
from tests.depth import tries

TERMS = ("precision", "recall", "specificity", "f1", "jaccard")
CLASSES = 3
ROUNDING: list[Any] = [
    MulticlassConfusion(CLASSES, top_k=(1, 2), round_weights=True),
    MulticlassConfusion(CLASSES, top_k=(1, 2), weight_unit=3, round_weights=True),
    MultilabelConfusion(CLASSES, round_weights=True),
    MultilabelConfusion(CLASSES, weight_unit="1/7", round_weights=True),
    MulticlassAUC(CLASSES, exact=True, round_weights=True),
    MulticlassAUC(CLASSES, grid="equal", resolution=1, round_weights=True),
    MulticlassAUC(CLASSES, weight_unit=2, round_weights=True),
]
each_metric = pytest.mark.parametrize("empty", ROUNDING, ids=str)


def averages(found: Any, kinds: tuple[str, ...]) -> dict[Any, Any]:
    every: dict[Any, Any] = {}
    for average in (*kinds, None):
        for zero in (math.nan, 0, 1):
            how = {"average": average, "zero_division": zero}
            here = {name: getattr(found, name)(**how) for name in TERMS}
            here["f_2"], here["f_alpha"] = found.f_beta(2, **how), found.f_alpha(0.3, **how)
            every |= {(name, average, zero): value for name, value in here.items()}
    return every


def figures(found: Any, empty: Any) -> dict[Any, Any]:
    """Every figure of a result by name."""
    if isinstance(empty, MulticlassAUC):
        named = {"macro_auc": found.macro_auc, "map": found.map}
        for average in ("macro", "weighted", "micro", None):
            named |= {("auc", average): found.auc(average), ("ap", average): found.ap(average)}
        return _flat(named)
    if isinstance(empty, MulticlassConfusion):
        named = averages(found, ("macro", "micro", "weighted"))
        named |= {kind: found.weighted_kappa(kind) for kind in ("linear", "quadratic")}
        named |= {("top", k): found.top_k_accuracy(k) for k in (1, 2)}
    else:
        named = averages(found, ("macro", "micro", "weighted", "samples"))
        named |= {name: getattr(found, name) for name in ("hamming_loss", "subset_accuracy")}
    for name in ("accuracy", "error_rate", "balanced_accuracy", "mcc", "kappa", "macro_f1"):
        named[name] = getattr(found, name)
    for number in range(CLASSES):
        rates = found.rates(number)
        named |= {(number, name): getattr(rates, name) for name in RATES}
    return _flat(named)


def _flat(named: dict[Any, Any]) -> dict[Any, Any]:
    flat = {}
    for name, value in named.items():
        if isinstance(value, float | Bounded):
            flat[name] = value
        else:
            flat |= {(name, i): one for i, one in enumerate(value)}
    return flat


def samples(n: int, seed: int) -> Iterator[dict[str, Any]]:
    """Rows of classes, of labels and of scores, with the weights that they have."""
    random = Random(seed)
    for _ in range(n):
        rows, most = random.choice([1, 2, 3, 5, 8, 20, 60]), random.choice([60, 400, 5000])
        whole, right = random.choice([0, 0, 0.7]), random.choice([0, 0.5, 0.9])
        kinds = random.choice([(0, 1, 2), (0, 2), (1,)])
        scores, truth = [], []
        for _ in range(rows):
            scores.append([random.choice((0, 0.1, 0.3, 0.5, 0.51, 0.8, 1)) for _ in range(CLASSES)])
            said = max(range(CLASSES), key=scores[-1].__getitem__)
            truth.append(said if random.random() < right else random.choice(kinds))
        weights = [random.randint(0, most) * FINE for _ in range(rows)]
        yield {
            "classes": truth,
            "flags": [[int(random.random() < 0.4) for _ in range(CLASSES)] for _ in range(rows)],
            "scores": scores,
            "weights": [Fraction(round(w)) if random.random() < whole else w for w in weights],
        }


def fed(empty: Any, rows: dict[str, Any], weights: object = None) -> Any:
    metric = empty.empty()
    given = {"weights": rows["weights"] if weights is None else weights}
    if isinstance(empty, MulticlassConfusion):
        metric.update(rows["classes"], rows["scores"], **given)
    elif isinstance(empty, MultilabelConfusion) or len(rows["weights"]) % 2:
        metric.update(rows["flags"], rows["scores"], **given)
    else:
        metric.update(rows["classes"], rows["scores"], **given)
    return metric


def strict(empty: Any, **settings: Any) -> Any:
    return type(empty)(**{**empty.settings(), "round_weights": False, **settings})


def held_in(empty: Any, n: int, seed: int) -> None:
    defined = 0
    of_truth = strict(empty, weight_unit=FINE)
    if isinstance(empty, MulticlassAUC):
        of_truth = MulticlassAUC(CLASSES, exact=True, weight_unit=FINE)
    for rows in samples(n, seed):
        true, about = fed(of_truth, rows).compute(), fed(empty, rows).compute()
        defined += each_is_held(figures(about, empty), figures(true, empty), rows)
        if isinstance(empty, MulticlassConfusion):
            found, exact = about.top_k_ties(2), true.top_k_ties(2) * FINE / about.weight_unit
            assert found.low <= exact <= found.high
    assert defined > 4 * n


@pytest.mark.slow
@each_metric
def test_every_figure_of_rounded_weights_is_between_its_ends(empty: Any) -> None:
    held_in(empty, 40, seed=1)


@pytest.mark.slow
@each_metric
def test_every_figure_of_many_samples_is_between_its_ends(empty: Any) -> None:
    held_in(empty, tries(50, 1500), seed=2)


@pytest.mark.slow
@each_metric
def test_weights_that_need_no_rounding_leave_no_doubt(empty: Any) -> None:
    for rows in samples(20, seed=3):
        whole = [round(w) * Fraction(empty.weight_unit) for w in rows["weights"]]
        found, expected = fed(empty, rows, whole), fed(strict(empty), rows, whole)
        with pytest.raises(SettingsError):
            found.merge(expected)
        held, exact = found.compute(), expected.compute()
        assert (held.rows, held.rows_rounded, held.weight) == (exact.rows, 0, exact.weight)
        assert np.array_equal(held.support, exact.support)
        of_held = figures(held, empty)
        for name, figure in figures(exact, empty).items():
            ours = of_held[name]
            low, high = (figure, figure) if isinstance(figure, float) else (figure.low, figure.high)
            if math.isnan(float(figure)):
                assert math.isnan(ours.value)
                continue
            assert ours.value == float(figure), name
            assert low - 4 * math.ulp(1) <= ours.low <= low, name
            assert high <= ours.high <= high + 4 * math.ulp(1), name


def test_the_intervals_are_as_narrow_as_the_weights_are_known() -> None:
    random, n = np.random.default_rng(0), 10_000
    weights, classes = random.random(n), random.integers(0, CLASSES, n)
    scores, flags = random.random((n, CLASSES)), random.integers(0, 2, (n, CLASSES))
    confusion = MulticlassConfusion(CLASSES, weight_unit="1/100", round_weights=True)
    labels = MultilabelConfusion(CLASSES, weight_unit="1/100", round_weights=True)
    areas = MulticlassAUC(CLASSES, exact=True, weight_unit="1/100", round_weights=True)
    confusion.update(classes, scores, weights=weights)
    labels.update(flags, scores, weights=weights)
    areas.update(classes, scores, weights=weights)
    found = confusion.compute()
    assert (found.rows_rounded, found.rows) == (n, areas.compute().rows)
    # Half a hundredth of each row, where a row weighs a half: 1 % of each class, on both sides.
    narrow = {
        "accuracy": (found.accuracy, 0.01),
        "recall": (found.recall(), 0.01),
        "f1": (found.f1(), 0.01),
        "f1 of all": (found.f1("micro"), 0.01),
        "f1 by rows": (found.f1("weighted"), 0.015),
        "kappa": (found.kappa, 0.025),
        "linear": (found.weighted_kappa("linear"), 0.04),
        "quadratic": (found.weighted_kappa("quadratic"), 0.06),
        "mcc": (found.mcc, 0.025),
        "subset": (labels.compute().subset_accuracy, 0.005),
        "hamming": (labels.compute().hamming_loss, 0.0105),
        "samples": (labels.compute().f1("samples"), 0.01),
        "auc": (areas.compute().macro_auc, 0.041),
        "by rows": (areas.compute().auc("weighted"), 0.041),
        "map": (areas.compute().map, 0.08),
    }
    for name, (figure, width) in narrow.items():
        assert isinstance(figure, Bounded) and 0 < figure.width < width, (name, figure)


def test_a_class_whose_weights_are_all_rounded_to_nothing_may_be_anything() -> None:
    metric = MulticlassConfusion(CLASSES, round_weights=True)
    metric.update([0, 0, 1], [0, 1, 0], weights=[1, 1, 0.25])
    found = metric.compute()
    assert (found.rows, found.rows_rounded, found.support.tolist()) == (2, 1, [2, 0, 0])
    # Class 1, if it weighs anything, has a recall of 0, and then is in the mean.
    assert found.recall("macro") == Bounded(0.5, 0.25, 0.5)
    first, second, third = found.recall(None)
    assert first == Bounded(0.5, 0.5, 0.5)
    assert math.isnan(second.value) and (second.low, second.high) == (0, 0)
    assert math.isnan(third.low) and math.isnan(third.high)
    assert found.recall(None, zero_division=1)[1] == Bounded(1.0, 0.0, 1.0)
    nothing = MulticlassConfusion(CLASSES, round_weights=True)
    nothing.update([0, 2], [0, 1], weights=[0.5, 0.25])
    for name in ("accuracy", "recall", "kappa", "mcc"):
        figure = getattr(nothing.compute(), name)
        figure = figure() if callable(figure) else figure
        least = -1 if name in ("kappa", "mcc") else 0
        assert math.isnan(figure.value) and (figure.low, figure.high) == (least, 1), name


def test_a_mean_of_areas_is_of_the_classes_that_may_have_one() -> None:
    metric = MulticlassAUC(CLASSES, exact=True, round_weights=True)
    scores = [[0.9, 0.1, 0.2], [0.1, 0.8, 0.2], [0.2, 0.1, 0.9]]
    metric.update([0, 1, 2], scores, weights=[1, 2, 0.25])
    found = metric.compute()
    assert found.auc("macro").value == 1.0 and found.support == (1, 2, 0)
    # The third class has an area if its row weighs anything: then 2/3 is the least mean.
    # The others have at least 3/4 and 1/2, since a half, or all, of the rest may be that row.
    assert found.auc(None)[:2] == (Bounded(1.0, 0.75, 1.0), Bounded(1.0, 0.5, 1.0))
    assert found.auc("macro") == Bounded(1.0, math.nextafter(5 / 12, 0), 1.0)
    # By rows it weighs a half at most: (3/4 + 2/2 + 0/2) / (1 + 2 + 1/2).
    assert found.auc("weighted") == Bounded(1.0, 0.5, 1.0)
    metric = MulticlassAUC(CLASSES, exact=True, round_weights=True, max_rows=2)
    metric.update([0, 1, 2], scores, weights=[1, 2, 0.25])
    metric.update([0, 1, 2], scores)
    assert metric.compute().reason and math.isnan(metric.compute().macro_auc.low)


@each_metric
def test_views_and_counts_have_the_names_of_exact_results(empty: Any) -> None:
    rows = next(samples(1, seed=5))
    found, exact = fed(empty, rows, [1] * len(rows["weights"])), strict(empty)
    ours, theirs = found.compute(), exact.compute()
    assert list(views_of(ours)) == list(views_of(theirs))
    assert set(counts_of(ours)) >= (set(counts_of(theirs)) - {"weight_units"}) | {"rows_rounded"}
    public = {name for name in dir(theirs) if not name.startswith("_")}
    assert public <= {name for name in dir(ours) if not name.startswith("_")}
    assert ours == fed(empty, rows, [1] * len(rows["weights"])).compute()
    assert ours != empty.compute() and "rows_rounded" in repr(ours) + repr(counts_of(ours))


def test_round_weights_is_true_or_false_and_without_it_weights_are_refused() -> None:
    rows = {"classes": [0, 1], "flags": [[0, 1, 1]] * 2, "scores": [[0.1, 0.2, 0.3]] * 2}
    for empty in ROUNDING:
        kind = type(empty)
        with pytest.raises(SettingsError, match=rf"{kind.__name__}\.round_weights.*True or False"):
            kind(CLASSES, round_weights=1)
        with pytest.raises(InputError, match="round_weights=True"):
            fed(strict(empty), {**rows, "weights": [0, math.pi]})
        with pytest.raises(InputError, match="at least 0"):
            fed(empty, {**rows, "weights": [1, -0.25]})
