"""Units of several variants leave both arms, where the states have each unit apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from streammetrics import Accumulator, GroupedAUC, Ratio, SettingsError, Units, UserGroups
from streammetrics.experiments import Experiment, Horizon, Plan

METRICS = {"gauc": GroupedAUC(), "groups": UserGroups(GroupedAUC())}


def counted(users: Sequence[int]) -> dict[str, Accumulator]:
    """Ten rows of each of these users, the same whoever else is there."""
    states = {name: metric.empty() for name, metric in METRICS.items()}
    for user in users:
        rng = np.random.default_rng(user)
        labels = np.arange(10) % 2
        scores, who = rng.normal(labels, 1.0), np.full(10, user)
        states["gauc"].update(labels, scores, groups=who)
        states["groups"].update(users=who, labels=labels, scores=scores, groups=who)
    return states


def units_of(users: Sequence[int], **settings: float) -> Units:
    state = Units(**settings)  # type: ignore[arg-type]
    state.update(list(users))
    return state


def experiment(
    arms: Mapping[str, Mapping[str, Sequence[int]]],
    word: str = "drop",
    units: Mapping[str, float] | None = None,
) -> Experiment:
    """Of the users by epoch and variant."""
    plan = Plan(
        control="a",
        variants=("a", "b"),
        decision=("gauc", "groups"),
        horizon=Horizon(mde=0.1),
        on_several_variants=word,  # type: ignore[arg-type]
    )
    states = {
        e: {v: counted(users) for v, users in variants.items()} for e, variants in arms.items()
    }
    sets = {
        e: {v: units_of(users, **(units or {})) for v, users in variants.items()}
        for e, variants in arms.items()
    }
    return Experiment(plan, states, sets)


# 7 is in both variants of an epoch, 60 in one in each of two, 5 in two epochs of one variant.
MIXED = {
    "1": {"a": [*range(40), 60], "b": [7, *range(100, 140)]},
    "2": {"a": [5, *range(40, 60)], "b": [60, *range(140, 170)]},
}
CLEAN = {
    epoch: {
        variant: [user for user in users if user not in (7, 60)] for variant, users in arms.items()
    }
    for epoch, arms in MIXED.items()
}


def test_what_is_left_is_as_if_they_had_never_come() -> None:
    dropped, clean = experiment(MIXED), experiment(CLEAN)
    assert dropped.contrasts() == clean.contrasts()
    assert dropped.report().recommendation.action == clean.report().recommendation.action
    assert "2 units (1.52 % of all) were seen in several variants and dropped." in (
        dropped.report().findings[0].sentence
    )
    mixed = experiment(MIXED, "keep")
    assert mixed.contrasts() != clean.contrasts()
    assert "2 units (1.52 % of all) were seen in several variants, which may bias the" in (
        mixed.report().findings[0].sentence
    )


def test_the_sample_ratio_is_of_all_who_were_assigned() -> None:
    assert experiment(MIXED).srm() == experiment(MIXED, "keep").srm()


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"max_units": 3}, "more than max_units=3"), ({"share": 0.5}, "only 50 % of the units are")],
)
def test_where_nobody_knows_which_they_are_nothing_is_believed(
    settings: dict[str, float], why: str
) -> None:
    report = experiment(MIXED, units=settings).report()
    assert all("Not trustworthy: " in finding.sentence and why in finding.sentence
               for finding in report.findings)  # fmt: skip
    assert not any("dropped" in note for note in report.notes)
    uncounted = Experiment(experiment(MIXED).plan, experiment(MIXED).states).report()
    assert "units are not counted" in uncounted.findings[0].sentence


def test_units_of_several_variants_in_a_sample_are_estimates() -> None:
    for word, prefix in (("keep", "About "), ("error", "Not trustworthy: about ")):
        report = experiment(MIXED, word, {"share": 0.5}).report()
        assert report.findings[0].contrast is not None
        several = report.in_several
        assert several is not None and several.sampled
        expected = f"{prefix}{several.units:g} unit"
        assert any(expected in text for text in (report.findings[0].sentence, *report.notes))


def test_a_metric_that_adds_users_up_cannot_drop_them() -> None:
    plan = Plan(control="a", variants=("a", "b"), decision=("ctr",), on_several_variants="drop")
    units = {"": {"a": units_of([1]), "b": units_of([2])}}
    with pytest.raises(SettingsError, match="GroupedAUC"):
        Experiment(plan, {"": {"a": {"ctr": Ratio()}}}, units).contrasts()
