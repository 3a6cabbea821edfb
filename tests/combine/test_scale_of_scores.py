"""The scale of scores does not matter: what a ranking is worth depends on their order alone.

An increasing transformation of the scores changes no value of a rank view of an exact metric, and
its interval over users by little, since groups of users know at most 256 scores apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import (
    ExactAUC,
    ExactUplift,
    GroupedAUC,
    HistogramAUC,
    MulticlassAUC,
    Paired,
    Panel,
    PerKey,
    Quantiles,
    Ratio,
    UserGroups,
    Windows,
    compare,
    drift,
    load,
)
from streammetrics.combine.clustered import AGREE, COARSE_GROUPS
from streammetrics.combine.paired_result import PairedResult
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError
from streammetrics.present.view import declared_views
from streammetrics.results import value_of, views_of

Floats = NDArray[np.float64]


def probability(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-z))


# Scores of a standard size, on the scales that scores have.
SCALES: Final[dict[str, Callable[[Floats], Floats]]] = {
    "log odds": lambda z: z,
    "affine": lambda z: 3 * z - 100,
    "Elo": lambda z: 1500 + 30 * z,
    "shifted by 10,000": lambda z: z + 1e4,
    "probability": probability,
    "percent": lambda z: 100 * probability(z),
    "from .9 to .93": lambda z: 0.9 + 0.03 * probability(z),
    "toward 1": lambda z: probability(z + 5),
    "far toward 1": lambda z: 1 - np.exp(-3 * z - 15),
    "toward 0": lambda z: np.exp(2 * z - 30),
    "exp": np.exp,
    "exp, steeper": lambda z: np.exp(3 * z - 12),
    "cube": lambda z: z**3,
    "cosine": lambda z: np.tanh(z / 3),
}
# How much the interval of a view may change; of an area 1 %.
MAY_CHANGE: Final = {
    **dict.fromkeys(("ap", "pr_auc_trapezoid", "map", "partial_auc"), 0.02),
    "ks": 0.07,
    **dict.fromkeys(
        ("precision_at_recall", "recall_at_precision", "precision_at_budget", "recall_at_budget",
         "best_f_beta", "uplift_in_part"), 0.15),
}  # fmt: skip
ARGUMENTS: Final = {
    "partial_auc": "(0.1)",
    "precision_at_recall": "(0.8)",
    "recall_at_precision": "(0.5)",
    "best_f_beta": "(1)",
    "precision_at_budget": "(0.05)",
    "recall_at_budget": "(0.2)",
    "uplift_in_part": "(1)",
}


def rows(n: int = 18_000, users: int = 300, seed: int = 1) -> dict[str, Any]:
    """Users whose labels and scores are correlated; scores are z, of six digits."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, users, n)
    effect = rng.normal(size=users)[who]
    labels = (rng.normal(size=n) + effect > 1).astype(np.uint8)
    z = np.round(rng.normal(size=n) + 0.8 * labels + 0.5 * effect, 6)
    second_z = np.round(z + rng.normal(size=n), 6)
    treated = rng.integers(0, 2, n)
    return {"groups": who, "labels": labels, "z": z, "other": second_z, "treated": treated}


def counted(metric: Accumulator, scale: Callable[[Floats], Floats], sample: dict[str, Any]) -> Any:
    """UserGroups of a metric, or Paired of these, on a scale."""
    columns = {"groups": sample["groups"], "labels": sample["labels"], "scores": scale(sample["z"])}
    state: Any = metric.empty() if isinstance(metric, Paired) else UserGroups(metric)
    if isinstance(metric, ExactUplift):
        columns["treated"] = sample["treated"]
    if isinstance(metric, GroupedAUC):
        columns["users"] = columns["groups"]
    if isinstance(metric, MulticlassAUC):
        z = sample["z"]
        columns["labels"] = (sample["labels"] + sample["treated"]).astype(np.int64)
        columns["scores"] = scale(np.stack([-z, sample["other"] / 2, z], axis=1))
    if isinstance(metric, Paired):
        columns = {"groups": sample["groups"], "labels": sample["labels"]}
        columns |= {"scores_a": scale(sample["z"]), "scores_b": scale(sample["other"])}
    state.update(**columns)
    return state.compute()


def rank_views(result: Any) -> Iterator[str]:
    """The views of a result, all of which depend on the order of the scores alone."""
    value = result.value_a.value if isinstance(result, PairedResult) else result.value
    declared = declared_views(type(value)).items()
    of_points = {name for name, view in declared if view.estimator.of_points}
    names = {*views_of(value), *(of_points & {*ARGUMENTS})}
    for name in sorted(names - {"estimate"}):
        yield name + ARGUMENTS.get(name, "")


METRICS: Final[list[tuple[Accumulator, list[str]]]] = [
    (ExactAUC(), ["Elo", "percent", "from .9 to .93", "far toward 1", "toward 0", "cube"]),
    (GroupedAUC(), ["Elo", "far toward 1"]),
    (ExactUplift(), ["Elo", "toward 0", "far toward 1"]),
    (MulticlassAUC(3, exact=True), ["Elo", "toward 0"]),
    (Paired(UserGroups(ExactAUC())), ["Elo", "toward 0", "exp"]),
]


def first_and_other_scales() -> Iterator[Any]:
    """The first metric with its first scale, and in `make test` all with all scales."""
    first, (scale, *remaining_scales) = METRICS[0]
    yield pytest.param(first, [scale], id="one scale")
    for metric, scales in [(first, remaining_scales), *METRICS[1:]]:
        yield pytest.param(metric, scales, id=type(metric).__name__)


@pytest.mark.parametrize(("metric", "scales"), [*first_and_other_scales()])
def test_an_increasing_transformation_of_the_scores_changes_no_value_and_hardly_an_interval(
    metric: Accumulator, scales: list[str]
) -> None:
    sample = rows()
    plain = counted(metric, SCALES["log odds"], sample)
    views = list(rank_views(plain))
    assert len(views) >= {GroupedAUC: 1, MulticlassAUC: 2}.get(type(metric), 8)
    for scale in scales:
        result = counted(metric, SCALES[scale], sample)
        for view in views:
            expected, interval = plain.interval(view), result.interval(view)
            assert expected.estimate == interval.estimate or math.isnan(expected.estimate), (
                scale,
                view,
            )
            assert expected.defined == interval.defined, (scale, view)
            if not expected.defined or not expected.se:
                continue
            most = MAY_CHANGE.get(view.partition("(")[0], 0.01)
            if isinstance(metric, Paired) and most > 0.01:  # it varies less than either model
                most = 0.15
            assert abs(interval.width / expected.width - 1) <= most, (
                scale,
                view,
                interval.width / expected.width,
            )
            assert expected.reason == interval.reason


@pytest.mark.parametrize("correlation", [0.95, 0.9, 0.5])
def test_two_models_that_are_much_alike_have_one_interval_on_any_scale(correlation: float) -> None:
    """With 256 scores in the groups of each the interval changed by up to 4 %."""
    sample = rows(9000, users=150)
    noise = np.random.default_rng(2).normal(size=len(sample["z"])) * sample["z"].std()
    z = correlation * sample["z"] + math.sqrt(1 - correlation**2) * noise
    sample["other"] = np.round(z, 6)
    pair = Paired(UserGroups(ExactAUC()))
    widths = {name: counted(pair, scale, sample).interval().width for name, scale in SCALES.items()}
    assert max(widths.values()) <= 1.01 * min(widths.values()), widths


def test_a_model_of_a_pair_is_the_state_of_that_model_alone() -> None:
    sample = rows(4000)
    pair = Paired(UserGroups(ExactAUC()))
    pair.update(groups=sample["groups"], labels=sample["labels"], scores_a=sample["z"],
                scores_b=sample["other"])  # fmt: skip
    for name, scores in (("a", sample["z"]), ("b", sample["other"])):
        state = UserGroups(ExactAUC())
        state.update(sample["groups"], labels=sample["labels"], scores=scores)
        assert pair.model(name) == state and pair.model(name).to_bytes() == state.to_bytes()


def test_pairs_that_told_256_scores_apart_are_read_and_added_up() -> None:
    sample = rows(4000)
    columns = {"groups": sample["groups"], "labels": sample["labels"], "scores_a": sample["z"],
               "scores_b": sample["other"]}  # fmt: skip
    coarse, former = (
        Paired(UserGroups(ExactAUC(), distinct_scores=256)),
        Paired(UserGroups(ExactAUC())),
    )
    coarse.update(**columns)
    coarse._flush()
    for name, model in former.models.by_name.items():
        coarse_model = coarse.models.by_name[name]
        for part in model._parts:
            model.__dict__[part].merge(coarse_model.__dict__[part], np.zeros(1, np.intp))
    read: Any = load(former.to_bytes())
    assert read == former and read.compute().interval() == coarse.compute().interval()
    second = former.empty()
    second.update(**columns)
    total, reverse_total = read.copy(), second.copy()
    total.merge(second)
    reverse_total.merge(read)
    assert total == reverse_total == load(total.to_bytes()) and total.compute().rows == 8000


@pytest.mark.parametrize("most", [255, 300, 8192, 512.0, True])
def test_a_number_of_scores_that_groups_cannot_have_is_refused(most: Any) -> None:
    with pytest.raises(SettingsError, match="a power of two from 256 to 4096"):
        UserGroups(ExactAUC(), distinct_scores=most)
    with pytest.raises(SettingsError, match="Ratio keeps no scores"):
        UserGroups(Ratio(), distinct_scores=512)


def test_more_scores_in_groups_are_asked_for_and_are_no_other_state_by_default() -> None:
    sample = rows(4000)
    plain, fine = UserGroups(ExactAUC()), UserGroups(ExactAUC(), distinct_scores=4096)
    panel = UserGroups(Panel({"auc": ExactAUC(), "rate": Ratio()}), distinct_scores=4096)
    for state in (plain, fine):
        state.update(sample["groups"], labels=sample["labels"], scores=sample["z"])
    panel.update(groups=sample["groups"], labels=sample["labels"], scores=sample["z"],
                 numerators=sample["labels"])  # fmt: skip
    assert panel.project("auc") == fine != plain and load(fine.to_bytes()) == fine
    assert panel.project("rate").distinct_scores is None
    off = [
        abs(groups.compute().group_estimate("auc") - plain.compute().auc)
        for groups in (plain, fine)
    ]
    assert off[1] < off[0] and "distinct_scores" not in repr(plain)


def test_the_example_of_four_scales_has_one_interval() -> None:
    sample = rows(seed=8)
    scales = (SCALES["log odds"], SCALES["percent"], SCALES["Elo"], SCALES["from .9 to .93"])
    intervals = [counted(ExactAUC(), scale, sample).interval() for scale in scales]
    for interval in intervals:
        assert interval.estimate == intervals[0].estimate
        assert (interval.lower, interval.upper) == pytest.approx(
            (intervals[0].lower, intervals[0].upper), abs=2e-4
        )
        assert interval.deff > 2 and not interval.reason


@pytest.mark.parametrize("scale", [*SCALES])
def test_the_variance_is_that_of_all_scores(scale: str) -> None:
    sample = rows(9000)
    result = counted(ExactAUC(), SCALES[scale], sample)
    state = UserGroups(ExactAUC())
    state.update(sample["groups"], labels=sample["labels"], scores=SCALES[scale](sample["z"]))
    metric_state = []
    order = np.argsort(sample["groups"], kind="stable")
    users = sample["groups"][order]
    for user in np.split(order, np.flatnonzero(np.diff(users)) + 1):
        user_state = UserGroups(ExactAUC())
        user_state.update(sample["groups"][user], labels=sample["labels"][user],
                     scores=SCALES[scale](sample["z"])[user])  # fmt: skip
        metric_state.append((user_state.rows_of_groups(), user))
    group = {int(np.flatnonzero(sizes)[0]) for sizes, _ in metric_state}
    assert len(group) > 50
    of_group = np.empty(len(order), np.intp)
    for sizes, user in metric_state:
        of_group[user] = np.flatnonzero(sizes)[0]
    areas = []
    for g in sorted(group):
        rest = ExactAUC()
        rest.update(sample["labels"][of_group != g], sample["z"][of_group != g])
        areas.append(float(rest.compute().auc))
    k, mean = len(areas), math.fsum(areas) / len(areas)
    se = math.sqrt((k - 1) / k * math.fsum((area - mean) ** 2 for area in areas))
    assert result.variance_of("auc").se == pytest.approx(se, rel=0.012)


def test_up_to_256_different_scores_are_known_exactly() -> None:
    sample = rows(4000)
    for scale in SCALES.values():
        levels = scale(np.round(sample["z"] * 20) / 20)
        assert 100 < len(np.unique(levels)) <= 256
        state = UserGroups(ExactAUC(), buckets=8)
        state.update(sample["groups"], labels=sample["labels"], scores=levels)
        result = state.compute()
        assert result.group_estimate("auc") == result.auc
        assert result.group_estimate("gini") == result.gini


def test_states_of_all_kinds_hold_scores_on_any_scale() -> None:
    """Slots, merges in any order, bytes: of keys, windows and panels."""
    sample, minute = rows(6000), np.arange(6000) * 1000
    columns = {"groups": sample["groups"], "labels": sample["labels"]}
    panel = Panel({"auc": ExactAUC(), "grid": HistogramAUC(range="real"), "one": GroupedAUC()},
                  {"one": {"groups": "who"}})  # fmt: skip
    scores = SCALES["Elo"](sample["z"])
    for metric, extra_columns in (
        (UserGroups(ExactAUC(), 8), {}),
        (UserGroups(panel, 8), {"who": sample["groups"]}),
        (PerKey(UserGroups(ExactAUC(), 8)), {"keys": sample["treated"]}),
        (PerKey(UserGroups(ExactAUC(), 8), max_keys=3), {"keys": minute // 200_000}),
        (Windows(UserGroups(HistogramAUC(range="real"), 8), size_s=600), {"times_ms": minute}),
        (Paired(UserGroups(ExactAUC(), 8)), {}),
    ):
        state: Any = metric
        given_columns = {**columns, "scores": scores, **extra_columns}
        if isinstance(metric, Paired):
            given_columns |= {"scores_a": scores, "scores_b": sample["other"]}
            del given_columns["scores"]
        whole, parts = state.empty(), []
        whole.update(**given_columns)
        for indices in np.array_split(np.random.default_rng(3).permutation(6000), 7):
            part = state.empty()
            part.update(**{name: column[indices] for name, column in given_columns.items()})
            parts.append(load(part.to_bytes()))
        total = parts[3]
        for part in (*parts[4:], *parts[:3]):
            total.merge(part)
        assert total == whole == load(whole.to_bytes()), metric
        assert whole.nbytes > 0 and whole.digest() == total.digest()


def test_two_arms_are_compared_although_their_shifts_differ() -> None:
    control, treatment = rows(6000, seed=2), rows(6000, seed=3)
    pvalues = []
    for scale in ("log odds", "Elo"):
        arms = []
        for first, columns, factor in ((0, control, 1.0), (1000, treatment, 4.0)):
            arm: UserGroups[Any] = UserGroups(ExactAUC())
            z = SCALES[scale](columns["z"] * (factor if scale == "Elo" else 1.0))
            arm.update(columns["groups"] + first, labels=columns["labels"], scores=z)
            arms.append(arm)
        pvalues.append(compare(*arms).pvalue)
    assert pvalues[0] == pytest.approx(pvalues[1], rel=0.03)


def test_drift_over_users_has_the_scores_of_both_sides_in_one_order() -> None:
    reference, current = rows(4000, seed=4), rows(4000, seed=5)
    drifts = {}
    for scale in ("log odds", "Elo", "percent"):
        sides = []
        for columns, shift in ((reference, 0.0), (current, 0.3)):
            side: UserGroups[Any] = UserGroups(ExactAUC())
            side.update(columns["groups"], labels=columns["labels"],
                        scores=SCALES[scale](columns["z"] + shift))  # fmt: skip
            sides.append(side)
        drifts[scale] = drift(*sides)
    for scale in drifts:
        assert drifts[scale].ks == drifts["log odds"].ks
        assert drifts[scale].deff == pytest.approx(drifts["log odds"].deff, rel=0.1)
        assert drifts[scale].deff > 1.3


# -- what no grid of bounded size can show ---------------------------------------------------------


def crowded(sample: dict[str, Any], level: float = 1.0) -> UserGroups[Any]:
    """Scores that crowd at a point other than 0 and 1, beside a few that are far away."""
    scores = level + 1e-12 * sample["z"]
    scores[: len(scores) // 30] = sample["z"][: len(scores) // 30] * 1e3
    state: UserGroups[Any] = UserGroups(ExactAUC())
    state.update(sample["groups"], labels=sample["labels"], scores=scores)
    return state


def test_scores_that_groups_cannot_tell_apart_are_said_and_not_taken_for_agreement() -> None:
    result = crowded(rows(), 100.0).compute()
    off = abs(result.group_estimate("auc") - result.auc)
    assert off > result.variance_of("auc").se / 10
    for view in ("auc", "gini", "ap", "ks", "precision_at_recall(0.8)"):
        interval = result.interval(view)
        assert "groups know too few of them apart, so that their auc is" in interval.reason, view
        assert "all groups agree" not in interval.reason
    assert "too few of them apart" in result.confusion(100.0).interval("recall").reason
    for scale in SCALES.values():
        assert "apart" not in counted(ExactAUC(), scale, rows(3000)).interval().reason


def test_groups_agree_only_where_they_know_what_all_rows_know() -> None:
    users, labels = np.arange(4000) % 400, np.arange(4000) // 400 % 2
    state: UserGroups[Any] = UserGroups(ExactAUC())
    state.update(users, labels=labels, scores=labels + 5.0)
    assert AGREE in state.compute().interval().reason and state.compute().auc == 1
    values: UserGroups[Any] = UserGroups(Quantiles())
    values.update(users, values=1500 + np.random.default_rng(1).normal(size=4000))
    interval = values.compute().interval("median")
    assert COARSE_GROUPS in interval.reason and AGREE not in interval.reason
    values = UserGroups(Quantiles())
    values.update(users, values=np.ones(4000))
    assert COARSE_GROUPS not in values.compute().interval("median").reason


def test_a_view_that_needs_each_score_has_the_variance_of_its_groups_on_any_scale() -> None:
    sample = rows(6000)
    for scale in ("log odds", "Elo"):
        result = counted(ExactAUC(), SCALES[scale], sample)
        threshold = float(SCALES[scale](np.array([0.5]))[0])
        part = result.confusion(threshold)
        assert part.interval("recall") == result.interval(f"confusion({threshold!r}).recall")
        assert part.variance_of("recall").se == pytest.approx(
            counted(ExactAUC(), SCALES["log odds"], sample).confusion(0.5).variance_of("recall").se,
            rel=0.05,
        )
        assert value_of(result.value, f"confusion({threshold!r}).recall") == part.recall
