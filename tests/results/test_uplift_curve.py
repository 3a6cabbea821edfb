"""Uplift against the worked examples and the conventions of other libraries; its intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics import Bounded, ExactUplift, InputError, Uplift, UserGroups, compare
from streammetrics.experiments import ConfidenceSequence, Horizon
from streammetrics.results import views_of
from streammetrics.results.uplift_curve import UpliftCurve
from tests.expected import Noted, examples_of
from tests.experiments.arms import finding, of_states

Floats = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture
def examples(data: Path) -> list[Noted]:
    """The worked examples of section 6."""
    return examples_of(data, 6)


def curve_of(metric: ExactUplift | Uplift, inputs: dict[str, Any]) -> UpliftCurve[Any]:
    metric.update(inputs["y"], inputs["score"], inputs["treated"])
    return metric.compute()


def holds(bounds: object, value: float) -> bool:
    return isinstance(bounds, Bounded) and bounds.low <= value <= bounds.high


AREAS: dict[str, tuple[str, str]] = {  # the view, and that of scikit-uplift's score
    "qini_radcliffe_area": ("qini_radcliffe", "qini_radcliffe_relative"),
    "uplift_gain_area": ("gain", "gain_relative"),
}


def test_worked_examples(examples: list[Noted]) -> None:
    counted = 0
    for example in examples:
        inputs, value, name = example["inputs"], example["value"], example["metric"]
        exact, coarse = curve_of(ExactUplift(), inputs), curve_of(Uplift(), inputs)
        if name == "qini_coefficient":
            assert (exact.qini, exact.ate) == (value["value"], value["ate"]), example["id"]
            assert holds(coarse.qini, exact.qini) and coarse.ate == exact.ate, example["id"]
        elif name == "qini_curve":
            points = exact.curve()
            assert points.share.tolist() == value["x"], example["id"]
            assert points.uplift.tolist() == value["v"], example["id"]
        elif name in AREAS:
            view, relative = AREAS[name]
            assert getattr(exact, view) == float(Fraction(example["exact"])), example["id"]
            assert holds(getattr(coarse, view), getattr(exact, view)), example["id"]
            conventions = example["other_conventions"].items()
            (peer_value,) = (x for library, x in conventions if library.startswith("scikit-uplift"))
            assert getattr(exact, relative) == pytest.approx(peer_value, rel=1e-14), example["id"]
            assert holds(getattr(coarse, relative), getattr(exact, relative)), example["id"]
        elif name == "qini_bounds":  # the scores are the edges of buckets
            edges = tuple(sorted(set(inputs["score"])))
            bounds = curve_of(Uplift(grid="edges", edges=edges), inputs).qini
            assert (
                bounds.low == pytest.approx(value["low"], rel=1e-15) and bounds.low <= value["low"]
            )
            assert bounds.high == pytest.approx(value["high"], rel=1e-15)
        else:
            assert name == "uplift_by_part"
            assert list(exact.uplift_by_part(inputs["parts"])) == value, example["id"]
            assert exact.by_part(inputs["parts"]).uplift.tolist() == value, example["id"]
            bounded = coarse.uplift_by_part(inputs["parts"])
            assert all(map(holds, bounded, value)), example["id"]
        counted += 1
    assert counted == 14


def heights(curve: UpliftCurve[float], height: Callable[..., Floats]) -> Floats:
    """causalml's curve at 0 rows, 1, ..., n rows: where an arm has none, interpolated."""
    points = curve.curve()
    assert (np.diff(points.treated + points.control) == 1).all()  # no ties
    with np.errstate(invalid="ignore"):
        y = height(
            points.treated_successes, points.treated, points.control_successes, points.control
        )
    indices = np.append(0, np.flatnonzero(np.isfinite(y)))
    y[0] = 0.0
    curve_heights: Floats = np.interp(np.arange(len(y)), indices, y[indices])
    return curve_heights


def test_the_scores_of_causalml_follow_from_the_points(examples: list[Noted]) -> None:
    counted = 0
    for example in examples:
        for name, peer_value in example.get("other_conventions", {}).items():
            curve = curve_of(ExactUplift(), example["inputs"])
            if name.startswith("causalml 0.18.0 qini_score"):
                y = heights(curve, lambda a, n, b, m: a - b * n / m)
                value = float(y.mean() - y[-1] / 2)
            elif name.startswith("causalml 0.18.0 auuc_score"):
                lift = heights(curve, lambda a, n, b, m: a / n - b / m)
                gain = lift * np.arange(len(lift))
                if not gain[-1]:
                    assert peer_value == "inf" and curve.ate == 0
                    continue
                value = float(gain.mean() / abs(gain[-1]))
            else:
                continue
            assert value == pytest.approx(peer_value, rel=1e-12), example["id"]
            counted += 1
    assert counted == 3


def randomised(n: int, users: int, seed: int, share: float = 0.5) -> dict[str, Any]:
    """Users who are treated or not, and whose response grows with the score if they are."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, users, n)
    treated = (rng.random(users) < share)[who]
    liking = rng.normal(size=users)[who]
    scores = rng.normal(size=n) / 8
    chance = 1 / (1 + np.exp(1.5 - liking - treated * (0.4 + 4 * scores)))
    labels = rng.random(n) < chance
    return {"groups": who, "labels": labels, "scores": scores, "treated": treated}


def test_the_interval_of_the_effect_is_newcombes_and_the_others_are_over_users() -> None:
    rows = randomised(4000, 400, 1)
    users, plain = UserGroups(Uplift()), Uplift()
    users.update(**rows)
    plain.update(*(rows[name] for name in ("labels", "scores", "treated")))
    result, plain_result = users.compute(), plain.compute()
    ate, by_users = plain_result.interval("ate"), result.interval("ate")
    assert ate.method == "newcombe" and ate.lower < plain_result.ate < ate.upper
    assert plain_result.interval("ate", method="delta").width == pytest.approx(ate.width, rel=0.01)
    assert by_users.method == "jackknife, newcombe"
    assert by_users.se > 1.3 * ate.se  # users are correlated
    assert plain_result.interval("treated_share").method == "wilson"
    part, over_users = (
        plain_result.interval("uplift_in_part(3, 5)"),
        result.interval("uplift_in_part(3, 5)"),
    )
    assert part.method == "newcombe" and part.lower < part.estimate < part.upper
    assert 700 < part.n < 900 and over_users.width > part.width
    for view in ("qini", "gain", "qini_radcliffe_relative"):
        none, interval = plain_result.interval(view), result.interval(view)
        assert not none.defined and "UserGroups has one" in none.reason, view
        assert interval.defined and interval.lower < interval.estimate < interval.upper, view


def test_the_interval_of_a_part_with_no_success_in_an_arm_holds_a_rate_that_may_be_higher() -> None:
    """The jackknife alone takes the rate of such an arm as 0, so half of such intervals miss."""
    n = 2_000
    treated = np.arange(n) % 20 == 0
    labels = np.where(treated, 0, np.arange(n) % 7 == 1)
    labels[[0, 40]] = 1
    rows = {"labels": labels, "scores": np.arange(n) // 20 % 10, "treated": treated}
    users, plain = UserGroups(ExactUplift()), ExactUplift()
    users.update(np.arange(n), **rows)
    plain.update(**rows)
    for view in ("uplift_in_part(1)", "ate"):
        interval, plain_interval = users.compute().interval(view), plain.compute().interval(view)
        symmetric = users.compute().interval(view, method="jackknife")
        assert interval.method == "jackknife, newcombe" and interval.deff == pytest.approx(
            1, abs=0.5
        )
        assert interval.upper == pytest.approx(plain_interval.upper, rel=0.2)
        assert interval.upper - interval.estimate > 1.3 * (symmetric.upper - interval.estimate), (
            view
        )


def test_an_area_of_few_successes_has_no_interval_and_says_why() -> None:
    n = 4_000
    treated = np.arange(n) % 4 == 0
    rows = {"scores": np.arange(n) % 97, "treated": treated}
    for hits, fail in ((9, False), (9, True), (10, False)):
        labels = (np.arange(n) % 7 == 1) & ~treated
        labels[np.flatnonzero(treated)[:hits]] = True
        states = UserGroups(ExactUplift()), UserGroups(ExactUplift())
        for state in states:
            state.update(np.arange(n), labels=labels != fail, **rows)
        interval = states[0].compute().interval("qini")
        compared = compare(*states, view="qini", paired=True)
        if hits < 10:
            reason = "an arm has too few events, or rows without one: 9, needs 10"
            assert (interval.reason, compared.reason) == (reason, reason)
            assert not interval.defined and compared.effect_size_ci_upper == math.inf
            assert states[0].compute().interval("ate").defined
            weighted = UserGroups(ExactUplift())  # whose shares have the jackknife's interval only
            weighted.update(np.arange(n), labels=labels != fail, **rows, weights=1 + treated % 2)
            assert weighted.compute().interval("ate", level=0.9).defined
            weighted = UserGroups(ExactUplift())
            weighted.update(np.arange(n), labels=labels != fail, **rows, weights=1 + ~treated)
            assert weighted.compute().interval("ate").reason == reason
        else:
            assert interval.defined and interval.reason == ""


def test_buckets_of_users_are_coarse_and_their_variance_is_that_of_exact_scores() -> None:
    rows = randomised(10_000, 1000, 0)
    coarse, exact = UserGroups(Uplift()), UserGroups(ExactUplift())
    # So few edges are kept in each bucket as they are.
    fine = UserGroups(Uplift(grid="edges", edges=tuple(np.linspace(-0.5, 0.5, 255))))
    results = []
    for state in (coarse, exact, fine):
        state.update(**rows)
        results.append(state.compute())
    assert [result.coarse for result in results] == [True, True, False]
    for view in ("qini", "uplift_in_part(1)"):
        errors = [result.interval(view).se for result in results]
        assert errors == pytest.approx([errors[2]] * 3, rel=0.1), view


def test_two_models_of_the_same_users_or_of_others_are_compared_by_their_coefficients() -> None:
    rows, second_rows = randomised(20_000, 2000, 7), randomised(20_000, 2000, 9)
    mixed = {**rows, "scores": np.random.default_rng(8).permutation(rows["scores"])}
    random, model, elsewhere = (UserGroups(ExactUplift()) for _ in range(3))
    random.update(**mixed)
    model.update(**rows)
    elsewhere.update(**{**second_rows, "groups": second_rows["groups"] + 2000})
    for better, paired in ((model, True), (elsewhere, False)):
        comparison = compare(random, better, view="qini", paired=paired)
        assert comparison.effect_size > 0.02 and comparison.pvalue < 0.01
        assert comparison.treatment == better.compute().qini


def test_a_declared_share_is_tested_and_an_implausible_one_is_an_alarm() -> None:
    rows = randomised(3000, 3000, 3)
    columns = {name: rows[name] for name in ("labels", "scores", "treated")}
    fair, unfair, none = (ExactUplift(treated_share=share) for share in (0.5, "0.6", None))
    for metric in (fair, unfair, none):
        metric.update(**columns)
    right, wrong = fair.compute(), unfair.compute()
    assert right.treated_share_p is not None and right.treated_share_p > 0.05
    assert wrong.treated_share_p is not None and wrong.treated_share_p < 0.001
    assert "alarm" not in repr(right)
    users = UserGroups(ExactUplift(treated_share="0.6"))
    users.update(**rows)
    assert "alarm: the treated are 0.5117 of the rows, not the declared 0.6" in repr(wrong)
    assert "alarm" not in repr(users.compute())  # the test of the share is one of independent rows
    assert none.compute().treated_share_p is None
    assert "treated_share_p" not in views_of(none.compute())
    weighted = ExactUplift(treated_share=0.5)
    weighted.update(**columns, weights=np.full(3000, 2))
    assert math.isnan(weighted.compute().treated_share_p or 0)


def test_a_part_that_there_is_not_is_refused_and_every_view_undefined_without_an_arm() -> None:
    metric = ExactUplift()
    metric.update([0, 1, 1], [0.5, 0.5, 0.25], [1, 1, 1])
    result = metric.compute()
    shown = views_of(result)
    assert shown.pop("treated_share") == 1.0
    assert all(map(math.isnan, shown.values())) and len(shown) == 6
    assert "an arm has no rows" in repr(result)
    assert np.isnan(result.curve().uplift).all()
    assert all(map(math.isnan, result.uplift_by_part(3)))
    for part, k in ((0, 10), (11, 10), (1.5, 10), (1, 0)):
        with pytest.raises(InputError):
            result.uplift_in_part(part, k)  # type: ignore[arg-type]


def test_thresholds_begin_with_one_that_no_score_reaches() -> None:
    exact, coarse = ExactUplift(), Uplift(ceiling=4.0)
    for metric in (exact, coarse):
        metric.update([0, 1, 1], [0.5, 3.0, 0.5], [1, 0, 1])
    assert exact.compute().curve().thresholds.tolist() == [math.inf, 3.0, 0.5]
    assert coarse.compute().curve().thresholds[0] == math.inf
    for metric in (exact, coarse):  # infinity is a score, or shares the highest bucket with one
        metric.update([0], [math.inf], [1])
        assert math.isnan(metric.compute().curve().thresholds[0])


def test_an_experiment_of_two_models_has_always_valid_intervals_of_the_coefficient() -> None:
    """Each variant is a model, and its users are treated at random: the models are compared."""
    rows, second_rows = randomised(40_000, 4000, 11), randomised(40_000, 4000, 12)
    mixed = {**rows, "scores": np.random.default_rng(8).permutation(rows["scores"])}
    control, treatment = UserGroups(Uplift()), UserGroups(Uplift())
    control.update(**mixed)
    treatment.update(**{**second_rows, "groups": second_rows["groups"] + 4000})
    watched = {"decision": ("targeting.qini",), "horizon": Horizon(mde=0.02)}
    effect = finding(of_states(control, treatment, "targeting", **watched))
    comparison = effect.contrast.comparison
    assert comparison.effect_size == treatment.compute().estimate - control.compute().estimate
    assert (
        effect.anytime_lower
        < comparison.effect_size_ci_lower
        < comparison.effect_size
        < effect.anytime_upper
    )
    assert effect.verdict == "better" and effect.anytime_lower > 0


def test_figures_are_those_of_the_weights_whatever_their_unit() -> None:
    """An area is in successes times rows, so it would be that many units, squared."""
    rows = randomised(600, 200, 5)
    weights = np.random.default_rng(6).integers(0, 4, 600)
    for metric in (Uplift, ExactUplift):
        results = []
        for unit in (1, "1/10", Fraction(1, 3)):
            users = UserGroups(metric(weight_unit=unit), 8)  # type: ignore[arg-type]
            users.update(**rows, weights=weights)
            results.append(users.compute())
        first, *scaled_results = results
        for result in scaled_results:
            for view, value in views_of(first.value).items():
                assert float(views_of(result.value)[view]) == float(value), view
            for view in ("gain", "qini_radcliffe"):
                first_interval, interval = first.interval(view), result.interval(view)
                assert (interval.lower, interval.se) == (first_interval.lower, first_interval.se), (
                    view
                )


def test_an_area_that_grows_with_the_rows_is_compared_for_the_same_rows_only() -> None:
    """More rows are no effect, but gain and qini_radcliffe are then larger."""
    few, many = randomised(2_000, 2_000, 1), randomised(8_000, 8_000, 2)
    states = [UserGroups(Uplift(), 16) for _ in range(3)]
    states[0].update(**few)
    states[1].update(**{**many, "groups": many["groups"] + 2_000})
    states[2].update(**{**few, "scores": -few["scores"]})
    for view in ("gain", "qini_radcliffe"):
        comparison = compare(*states[:2], view=view)
        why = f"{view} grows with the number of rows; {view}_relative does not"
        assert comparison.reason == comparison.no_sequence == why and math.isnan(comparison.pvalue)
        assert comparison.effect_size_ci_upper == comparison.rel_effect_size_ci_upper == math.inf
        assert ConfidenceSequence(v_opt=1.0).of(states[0], view).reason == why
        assert compare(*states[:2], view=f"{view}_relative").reason == ""
        alike = compare(states[2], states[0], view=view, paired=True)
        assert alike.reason == "" and 0 < alike.effect_size_ci_lower < math.inf
        assert states[0].compute().interval(view).defined
