"""Two models on the same rows are no independent arms: `compare` says where they may be such."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ConfidenceSequence,
    ExactAUC,
    GroupedAUC,
    GroupedScores,
    MulticlassConfusion,
    Paired,
    RankingMetrics,
    Ratio,
    Regression,
    SettingsError,
    Units,
    UserGroups,
)
from streammetrics.experiments import Covariate, Experiment, Plan, compare
from streammetrics.kernels.inference.t_interval import critical

N = 400
RNG = np.random.default_rng(9)
LABELS = RNG.integers(0, 2, N)
USERS = RNG.integers(0, 50, N)
MODELS = [np.clip(RNG.normal(0.4 + 0.2 * LABELS, 0.2), 0, 1) for _ in range(2)]


def fed(empty: Any, **columns: Any) -> Any:
    state = empty.empty()
    state.update(**columns)
    return state


# What both states have equally many of, and a state of labels, scores and users.
METRICS: dict[str, tuple[str, Callable[[Any, Any, Any], Any]]] = {
    "confusion": ("positives", lambda y, s, u: fed(BinaryConfusion(), labels=y, scores=s)),
    "exact": ("positives", lambda y, s, u: fed(ExactAUC(), labels=y, scores=s)),
    "calibration": ("positives", lambda y, s, u: fed(Calibration(), labels=y, scores=s)),
    "groups": ("groups", lambda y, s, u: fed(GroupedAUC(), labels=y, scores=s, groups=u)),
    "lists": (
        "lists with", lambda y, s, u: fed(GroupedScores(["MRR"]), labels=y, scores=s, groups=u),
    ),
    "whole lists": (
        "lists with a relevant item",
        lambda y, s, u: fed(
            RankingMetrics(["MRR"]), labels=y.reshape(-1, 4), scores=s.reshape(-1, 4)
        ),
    ),
    "classes": (
        "rows of each class",
        lambda y, s, u: fed(MulticlassConfusion(3), labels=y, predictions=(s > 0.5).astype(int)),
    ),
    "regression": ("sum of labels", lambda y, s, u: fed(Regression(), labels=y, scores=s)),
    "users": (
        "groups of users", lambda y, s, u: fed(UserGroups(Ratio()), numerators=s, groups=u),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_two_models_on_the_same_rows_are_not_compared_in_silence(name: str) -> None:
    subject, feed = METRICS[name]
    a, b = (feed(LABELS, scores, USERS) for scores in MODELS)
    with pytest.warns(
        UserWarning, match=f"{subject}.*if these are the same.*not independent"
    ) as records:
        compare(a, b)
    assert len(records) == 1 and records[0].filename == __file__
    labels = np.where((np.arange(N) < 100) | (USERS < 10), 0, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(a, feed(labels, MODELS[1], USERS + 50))


def test_rates_of_equally_many_rows_are_those_of_an_experiment() -> None:
    arms = [fed(Ratio(), numerators=[1] * 30 + [0] * 470) for _ in range(2)]
    few = [fed(ExactAUC(), labels=[0, 1], scores=[0.1, 0.2]) for _ in range(2)]
    one_group = [
        fed(UserGroups(Ratio()), groups=["ann"] * 50, numerators=[1] * 50) for _ in range(2)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for pair in (arms, few, one_group):
            compare(*pair)


def test_provenance_says_for_certain_that_rows_are_shared() -> None:
    a, b, c = (fed(Ratio(), numerators=[1] * n + [0] * 500) for n in (30, 40, 40))
    a.provenance.add("clicks/0", 0, 500, "week 1")
    b.provenance.add("clicks/0", 400, 900, "week 1")
    c.provenance.add("clicks/0", 0, 500, "week 2")
    expected = (
        r"by their provenance, both states counted \[400, 500\) of clicks/0, week 1, so the arms"
    )
    with pytest.warns(UserWarning, match=expected):
        compare(a, b)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(a, c)


@pytest.mark.parametrize("metric", [Ratio(), ExactAUC()], ids=["ratio", "exact"])
def test_arms_that_share_their_users_are_not_compared_in_silence(metric: Any) -> None:
    random = np.random.default_rng(7)
    who = np.repeat(np.arange(600), random.geometric(0.1, 600))
    arm = random.random(len(who)) < 0.4  # each row, not each user, has an arm
    labels = random.integers(0, 2, len(who))

    def state(users: Any, rows: Any) -> Any:
        candidates = {"numerators": labels[rows], "labels": labels[rows], "scores": users % 7}
        takes = metric.arguments()
        columns = {name: column for name, column in candidates.items() if name in takes}
        return fed(UserGroups(metric), groups=users, **columns)

    shared = state(who[arm], arm), state(who[~arm], ~arm)
    message = (
        r"rank correlation of 0\.9\d .*if both have the same users, the arms are not independent"
    )
    with pytest.warns(UserWarning, match=message):
        compare(*shared)
    first, second = who < 300, who >= 300
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(state(who[first], first), state(who[second], second))
        half = arm & (who < 12)  # users of fewer groups than say something
        control = ~arm & (who < 12)
        compare(state(who[half], half), state(who[control], control))


def test_users_of_both_arms_leave_both_together() -> None:
    of_users: UserGroups[Any] = UserGroups(ExactAUC(), distinct_scores=1024)  # as in pairs
    models = [fed(of_users, groups=USERS, labels=LABELS, scores=scores) for scores in MODELS]
    state = Paired(UserGroups(ExactAUC()))
    state.update(groups=USERS, labels=LABELS, scores_a=MODELS[1], scores_b=MODELS[0])
    result = state.compute()
    expected = result.interval(level=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparison = compare(*models, paired=True, level=0.9)
    ends = comparison.effect_size_ci_lower, comparison.effect_size_ci_upper
    off = comparison.resolution  # an arm has coarse groups
    half = critical(0.9, comparison.df) * expected.se + off
    middle = expected.estimate
    assert ends == pytest.approx((middle - half, middle + half), rel=1e-9)
    # Those of the arms, each less 1 than its groups or their effective number.
    assert comparison.method == "paired" and expected.df - 1e-9 <= comparison.df <= 63
    assert comparison.std_error == pytest.approx(expected.se, rel=1e-9)
    a, b = (np.array(model.compute().replicates()) for model in models)
    lifts = (b - 0.5) / (a - 0.5)
    lifts = lifts[~np.isnan(lifts)]
    of_lifts = compare(*models, paired=True, relative=True)
    assert of_lifts.std_error == pytest.approx(math.sqrt((len(lifts) - 1) * lifts.var()), rel=1e-9)
    assert of_lifts.effect_size == comparison.rel_effect_size
    look = ConfidenceSequence(v_opt=1 / comparison.std_error**2).at(comparison)
    assert (
        look.lower < comparison.effect_size_ci_lower < comparison.effect_size_ci_upper < look.upper
    )


def test_users_of_one_arm_leave_that_arm_alone() -> None:
    users = UserGroups(Ratio(), buckets=4096)
    a = fed(users, groups=np.arange(60), numerators=np.arange(60) % 3 == 0)
    b = fed(users, groups=np.arange(900, 970), numerators=np.arange(70) % 2)
    apart, together = compare(a, b), compare(a, b, paired=True)
    assert together.effect_size == apart.effect_size
    assert together.std_error == pytest.approx(apart.std_error, rel=0.01)  # (K - 1) / K


def test_independent_rows_are_paired_only_where_both_models_are_counted() -> None:
    a, b = (fed(ExactAUC(), labels=LABELS, scores=scores) for scores in MODELS)
    with pytest.raises(SettingsError, match=r"UserGroups.*count both models in one Paired"):
        compare(a, b, paired=True)
    with pytest.raises(SettingsError, match="users who are in both arms are their own covariate"):
        compare(
            a,
            b,
            paired=True,
            covariate=Covariate(control=a, treatment=b),
        )


def test_an_experiment_without_units_notes_arms_of_the_same_rows_and_users() -> None:
    a, b = (fed(BinaryConfusion(), labels=LABELS, scores=scores) for scores in MODELS)
    plan = Plan(control="a", variants=("a", "b"), decision=("rates",))
    states: Any = {"": {"a": {"rates": a}, "b": {"rates": b}}}
    [note] = [text for text in Experiment(plan, states).report().notes if "Paired" in text]
    assert note.startswith("rates of a and b: both states have 400 rows")
    units: Any = {"": {name: fed(Units(), units=USERS + n) for n, name in enumerate("ab")}}
    counted = Experiment(plan, states, units).report()
    assert not any("Paired" in text for text in counted.notes)
    assert counted.contamination is not None and counted.contamination.warning
