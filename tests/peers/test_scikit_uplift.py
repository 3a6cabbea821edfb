"""Uplift beside scikit-uplift and causalml, whose areas are other curves' by name."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from streammetrics import ExactUplift
from streammetrics.results.uplift_curve import UpliftCurve
from tests.peers.uplift_process import ENVIRONMENT, Answer, Question, ask
from tests.requirements import absent

pytestmark = [
    pytest.mark.xdist_group("uplift"),  # one worker asks, once
]


def question(n: int, share: float, seed: int, *, ties: bool) -> Question:
    rng = np.random.default_rng(seed)
    scores = rng.integers(-8, 8, n) / 16 if ties else rng.permutation(n) / n - 0.5
    treated = rng.random(n) < share
    labels = rng.random(n) < 0.3 + 0.4 * scores * treated
    columns = (labels.astype(int).tolist(), scores.tolist(), treated.astype(int).tolist())
    return Question(*columns, parts=10, ties=ties)


# Both orders of the perfect gain: more control rows succeed than treated rows fail, and fewer.
QUESTIONS = [
    question(n, share, seed, ties=ties)
    for seed, (n, share, ties) in enumerate(
        [
            (200, 0.5, False),
            (5000, 0.5, False),
            (5000, 0.1, False),
            (300, 0.9, True),
            (5000, 0.1, True),
        ]
    )
]


@cache
def answers() -> list[Answer]:
    """All questions of this file: one process, whose imports take seconds."""
    if not (ENVIRONMENT / ".made").is_file():
        absent("uplift-peers", f"no {ENVIRONMENT}")
    return ask(QUESTIONS)


def curve_of(sample: Question) -> UpliftCurve[float]:
    metric = ExactUplift()
    metric.update(sample.labels, sample.scores, sample.treated)
    return metric.compute()


def test_areas_and_their_shares_of_a_perfect_one_are_those_of_scikit_uplift() -> None:
    for sample, answer in zip(QUESTIONS, answers(), strict=True):
        curve = curve_of(sample)
        for value, name in (
            (curve.qini_radcliffe, "qini_curve"),
            (curve.gain, "uplift_curve"),
            (curve.qini_radcliffe_relative, "qini_auc_score"),
            (curve.gain_relative, "uplift_auc_score"),
        ):
            assert value == pytest.approx(answer[name], rel=1e-9), name
        if not sample.ties:
            parts = curve.uplift_by_part(sample.parts)
            assert list(parts) == pytest.approx(answer["by_percentile"], abs=1e-12)


def test_the_scores_of_causalml_are_means_over_rows() -> None:
    for sample, answer in zip(QUESTIONS, answers(), strict=True):
        if sample.ties:
            continue
        points = curve_of(sample).curve()
        n, rows = len(sample.labels), np.arange(len(sample.labels) + 1)
        with np.errstate(invalid="ignore"):
            control = points.control_successes / points.control
            lift = points.treated_successes / points.treated - control
        qini = points.treated_successes - control * points.treated
        for curve in (lift, qini):
            positions = np.append(0, np.flatnonzero(np.isfinite(curve)))
            curve[0] = 0.0
            curve[:] = np.interp(rows, positions, curve[positions])
        gain = lift * rows
        assert qini.mean() - qini[-1] / 2 == pytest.approx(answer["qini_score"], rel=1e-9), n
        assert gain.mean() / abs(gain[-1]) == pytest.approx(answer["auuc_score"], rel=1e-9), n
