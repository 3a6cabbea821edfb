"""The skewness number of the values of a mean is that of its rows, by brute force in fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    MRR,
    NDCG,
    Accumulator,
    Calibration,
    GroupedScores,
    IntraListSimilarity,
    PerKey,
    PooledHR,
    RankingMetrics,
    Regression,
)
from streammetrics.classification.mean import Mean
from streammetrics.combine.sealed import Sealing, seal
from streammetrics.core.batch import Batch
from streammetrics.core.inputs import Inputs, Real, Weights
from streammetrics.present.estimand import estimand_of
from streammetrics.results import views_of

RNG = np.random.default_rng(7)
LABELS = RNG.integers(0, 2, 40)
SCORES = np.round(RNG.beta(0.4, 2.0, 40), 3) / 2 + 0.1
ERRORS = np.round(RNG.lognormal(0.0, 1.5, 40), 3)
GRADES = (RNG.random((40, 6)) < 0.2).astype(int)
RANKED = np.tile(np.arange(6.0, 0.0, -1.0), (40, 1))
SHOWN = RNG.integers(0, 9, (40, 4)) + np.arange(4) * 9


class Signed(Mean, schema="test-signed/1"):
    """The error with its sign."""

    inputs = Inputs(labels=Real(), scores=Real(), weights=Weights())

    def value(self, batch: Batch) -> Any:
        return batch.labels - batch.scores


def brute(values: Sequence[Fraction], weights: Sequence[Fraction] | None = None) -> float:
    """(Σ d²)³ / (Σ d³)², d = v - (Σ v / Σ w) w."""
    row_weights = weights or [Fraction(1)] * len(values)
    mean = sum(values) / sum(row_weights)
    apart = [v - mean * w for v, w in zip(values, row_weights, strict=True)]
    third = sum(d**3 for d in apart)
    return float(sum(d * d for d in apart) ** 3 / third**2) if third else math.inf


def fractions(values: Any) -> list[Fraction]:
    return [Fraction(value) for value in np.asarray(values).tolist()]


def counted(empty: Accumulator, *columns: Any, **named_columns: Any) -> Accumulator:
    """The rows in three pieces, of which one is read from bytes, merged out of order."""
    pieces = []
    for rows in (slice(20, 40), slice(0, 5), slice(5, 20)):
        state = empty.empty()
        state.update(
            *(column[rows] for column in columns), **{k: v[rows] for k, v in named_columns.items()}
        )
        pieces.append(type(empty).from_bytes(state.to_bytes()))
    total = empty.empty()
    total.merge(pieces)
    return total


def one_by_one(empty: Accumulator, view: str, *columns: Any) -> list[Fraction]:
    """The values of rows that are counted alone."""
    values = []
    for i in range(40):
        state = empty.empty()
        state.update(*(column[i : i + 1] for column in columns))
        value = float(views_of(state.compute())[view])  # type: ignore[arg-type]
        if not math.isnan(value):
            values.append(Fraction(value))
    return values


LOSSES = [Fraction(-math.log(p if y else 1 - p)) for y, p in zip(LABELS, SCORES, strict=True)]
BRIERS = [(Fraction(p) - int(y)) ** 2 for y, p in zip(LABELS, SCORES, strict=True)]
SIMILAR = IntraListSimilarity(RNG.normal(size=(36, 3)))
RANKING = RankingMetrics([MRR, NDCG @ 3, PooledHR @ 2], complete_lists=True)


Skewed = tuple[Accumulator, str, list[Fraction]]


@pytest.mark.parametrize(
    "case",
    [
        lambda: (counted(Regression(), LABELS, LABELS + ERRORS), "mae", fractions(ERRORS)),
        lambda: (
            counted(Signed(), LABELS, LABELS + ERRORS),
            "mean",
            [-x for x in fractions(ERRORS)],
        ),
        lambda: (counted(Calibration(), LABELS, SCORES), "log_loss", LOSSES),
        lambda: (counted(Calibration(), LABELS, SCORES), "brier", BRIERS),
        lambda: of_lists(RANKING, "MRR", GRADES, RANKED),
        lambda: of_lists(RANKING, "NDCG@3", GRADES, RANKED),
        lambda: of_lists(SIMILAR, "ils", SHOWN),
    ],
    ids=["mae", "mean", "log_loss", "brier", "MRR", "NDCG@3", "ils"],
)
def test_it_is_that_of_the_rows(case: Callable[[], Skewed]) -> None:
    state, view, values = case()
    assert estimand_of(state.compute(), view).skewness_number == pytest.approx(
        brute(values), rel=1e-9
    )


def of_lists(empty: Accumulator, view: str, *columns: Any) -> Skewed:
    return counted(empty, *columns), view, one_by_one(empty, view, *columns)


def test_that_of_a_ratio_over_all_lists_is_of_what_each_adds_to_it() -> None:
    state = counted(RANKING, GRADES, RANKED)
    hits, totals = GRADES[:, :2].sum(axis=1), GRADES.sum(axis=1)
    expected = brute(fractions(hits[totals > 0]), fractions(totals[totals > 0]))
    assert estimand_of(state.compute(), "PooledHR@2").skewness_number == pytest.approx(
        expected, rel=1e-9
    )


def test_lists_by_rows_and_sealed_ones_have_that_of_lists() -> None:
    users = GroupedScores([MRR, NDCG @ 3])
    users.update(GRADES.ravel(), RANKED.ravel(), groups=np.repeat(np.arange(40), 6))
    sealed = seal(users, Sealing("user", 1, "hash", "today"))
    duplicate = type(sealed).from_file_bytes(sealed.to_file_bytes())
    for view in ("MRR", "NDCG@3"):
        expected = estimand_of(counted(RANKING, GRADES, RANKED).compute(), view).skewness_number
        for state in (users, sealed, duplicate):
            assert estimand_of(state.compute(), view).skewness_number == expected


def test_each_key_has_its_own() -> None:
    keyed = PerKey(Regression())
    keyed.update(labels=LABELS, scores=LABELS + ERRORS, keys=np.arange(40) % 2)
    for key in (0, 1):
        expected = brute(fractions(ERRORS[key::2]))
        assert estimand_of(keyed.compute()[key], "mae").skewness_number == pytest.approx(
            expected, rel=1e-9
        )


@pytest.mark.parametrize(
    ("make", "view"),
    [(Regression, "mae"), (Signed, "mean"), (Calibration, "brier"), (Calibration, "log_loss")],
)
def test_rows_of_weight_1_have_one_and_others_have_none(
    make: Callable[[], Accumulator], view: str
) -> None:
    plain, same, heavy = make(), make(), make()
    plain.update(LABELS, SCORES)
    same.update(LABELS, SCORES, weights=np.ones(40))
    heavy.update(LABELS, SCORES, weights=np.arange(40) % 2 + 1)
    assert (
        estimand_of(same.compute(), view).skewness_number
        == estimand_of(plain.compute(), view).skewness_number
    )
    assert math.isnan(estimand_of(heavy.compute(), view).skewness_number)


def test_it_is_unknown_where_cubes_are_beyond_the_floats() -> None:
    for size in (1e-200, 1e200, math.inf):
        state = Regression()
        state.update(np.zeros(30), np.arange(30) * size if size < math.inf else np.full(30, size))
        assert math.isnan(estimand_of(state.compute(), "mae").skewness_number)
        assert Regression.from_bytes(state.to_bytes()) == state
        signed = Signed()
        if size < math.inf:
            signed.update(np.zeros(30), (np.arange(30) - 9) * size)
            assert math.isnan(estimand_of(signed.compute(), "mean").skewness_number)
            assert Signed.from_bytes(signed.to_bytes()) == signed
    wrong = Calibration()
    wrong.update([1, 0, 0], [0.0, 0.5, 0.25])
    assert math.isnan(estimand_of(wrong.compute(), "log_loss").skewness_number)
    assert estimand_of(wrong.compute(), "brier").skewness_number == pytest.approx(
        brute([Fraction(1), Fraction(1, 4), Fraction(1, 16)])
    )
    assert Calibration.from_bytes(wrong.to_bytes()) == wrong
