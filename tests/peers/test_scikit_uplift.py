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


def ours(asked: Question) -> UpliftCurve[float]:
    metric = ExactUplift()
    metric.update(asked.labels, asked.scores, asked.treated)
    return metric.compute()


def test_areas_and_their_shares_of_a_perfect_one_are_those_of_scikit_uplift() -> None:
    for asked, theirs in zip(QUESTIONS, answers(), strict=True):
        found = ours(asked)
        for mine, name in (
            (found.qini_radcliffe, "qini_curve"),
            (found.gain, "uplift_curve"),
            (found.qini_radcliffe_relative, "qini_auc_score"),
            (found.gain_relative, "uplift_auc_score"),
        ):
            assert mine == pytest.approx(theirs[name], rel=1e-9), name
        if not asked.ties:
            parts = found.uplift_by_part(asked.parts)
            assert list(parts) == pytest.approx(theirs["by_percentile"], abs=1e-12)


def test_the_scores_of_causalml_are_means_over_rows() -> None:
    for asked, theirs in zip(QUESTIONS, answers(), strict=True):
        if asked.ties:
            continue
        points = ours(asked).curve()
        n, rows = len(asked.labels), np.arange(len(asked.labels) + 1)
        with np.errstate(invalid="ignore"):
            control = points.control_successes / points.control
            lift = points.treated_successes / points.treated - control
        qini = points.treated_successes - control * points.treated
        for curve in (lift, qini):
            known = np.append(0, np.flatnonzero(np.isfinite(curve)))
            curve[0] = 0.0
            curve[:] = np.interp(rows, known, curve[known])
        gain = lift * rows
        assert qini.mean() - qini[-1] / 2 == pytest.approx(theirs["qini_score"], rel=1e-9), n
        assert gain.mean() / abs(gain[-1]) == pytest.approx(theirs["auuc_score"], rel=1e-9), n
