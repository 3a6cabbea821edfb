"""The experiments of a generation are told apart by name, and each is read from its own metrics."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import pytest
from streammetrics_consumers.model.generation import SHOWN, Generation, Metric, Pane
from streammetrics_consumers.query.experiment_plan import (
    DeclaredExperiment,
    arm_states,
    counted_experiment,
    declared,
    experiments_of,
    variants_of,
)
from streammetrics_consumers.query.query import QueryError

from streammetrics import PerKey, Ratio, Units

PLAN: Mapping[str, object] = {
    "control": "a",
    "decision": ["ctr"],
    "guardrails": [["errors", 0.1, False]],
    "on_several_variants": "keep",
    "cluster": "none",
    "horizon": None,
    "baseline": None,
    "mde": 0.1,
    "level": 0.95,
    "epochs": [],
    "shares": [],
    "variants": ["a", "b"],
}


def metrics(
    name: str, *, ended: bool = False, shown: Mapping[str, object] = {}, **plan: object
) -> list[Metric]:
    """The metrics of one experiment."""
    prefix = f"experiment/{name}/" if name else "experiment/"
    description = {
        "experiment": {**PLAN, **plan},
        "variant": ["arm", ["a", "b", "b2"]],
        SHOWN: dict(shown),
    }
    names = ("ctr", "errors", "units")
    return [Metric(prefix + metric, "", description, ended, {}) for metric in names]


def generation(*experiments: list[Metric]) -> Generation:
    """A generation with these experiments, and one metric of slices."""
    plain = Metric("ctr", "", {SHOWN: {"variants": ["x", "y"]}}, ended=False, start_offsets={})
    return Generation(1, 1, True, None, (*chain.from_iterable(experiments), plain))


def design(name: str | None, *experiments: list[Metric]) -> DeclaredExperiment:
    """One experiment of a generation."""
    declaration = declared(generation(*experiments), name)
    assert declaration is not None
    return declaration


def test_each_experiment_has_its_own_metrics_and_names() -> None:
    experiments = metrics(""), metrics("ranker"), metrics("units")
    assert set(design(None, *experiments).metrics) == {
        "experiment/ctr",
        "experiment/errors",
        "experiment/units",
    }
    ranker = design("ranker", *experiments)
    assert set(ranker.metrics) == {
        f"experiment/ranker/{metric}" for metric in ("ctr", "errors", "units")
    }
    assert ranker.metric_of("ctr.ratio") == "ctr"
    assert ranker.watched_of("errors") == ("errors",) and ranker.needed_for("ctr") == {"ctr"}
    panes = [Pane(name, 0, None, None) for name in ("experiment/ctr", "experiment/ranker/ctr")]
    assert ranker.panes(panes) == panes[1:]
    assert design("units", *experiments).prefix == "experiment/units/"


def test_experiments_are_in_the_order_of_the_config_and_ended_ones_last() -> None:
    stored = generation(
        metrics("late", shown={"order": 2}),
        metrics("gone", ended=True),
        metrics("early", shown={"order": 1}),
        metrics(""),
    )
    assert experiments_of(stored) == ("", "early", "late", "gone")
    assert experiments_of(generation()) == ()


def test_an_ended_one_is_read_if_it_is_named() -> None:
    stored = generation(metrics("", ended=True), metrics("gone", ended=True))
    assert declared(stored) is None
    for name in ("", "gone"):
        declaration = declared(stored, name)
        assert declaration is not None and declaration.ended and declaration.name == name


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(QueryError) as caught:
        declared(generation(metrics("ranker"), metrics("")), "rankr")
    error = caught.value
    assert error.expected == "an experiment of this store ('' for the one without a name, ranker)"
    assert (error.got, error.where) == ("'rankr'", "--experiment")
    with pytest.raises(QueryError, match="it has none"):
        declared(generation(), "ranker")


def test_a_name_and_the_meaning_identify_looks_and_the_end_and_texts_do_not() -> None:
    plain = design("ranker", metrics("ranker")).fingerprint
    texts = {"name": "Ranker", "archived": True, "order": 3}
    assert design("ranker", metrics("ranker", shown=texts, end=5)).fingerprint == plain
    fingerprints = {
        design("pricing", metrics("pricing")).fingerprint,
        design("", metrics("")).fingerprint,
        design("ranker", metrics("ranker", start=5)).fingerprint,
        design("ranker", metrics("ranker", where=["surface", "search"])).fingerprint,
    }
    assert len({*fingerprints, plain}) == 5


def test_texts_times_and_layers_are_those_of_the_last_config() -> None:
    shown = {"name": "Ranker", "hypothesis": "Better.", "days": 14, "archived": True,
             "layers": ["search"], "variants": ["b", "a"]}  # fmt: skip
    declaration = design("ranker", metrics("ranker", shown=shown, start=1000, end=9000))
    assert (declaration.title, declaration.hypothesis, declaration.days) == (
        "Ranker",
        "Better.",
        14,
    )
    assert (declaration.start_ms, declaration.end_ms, declaration.archived) == (1000, 9000, True)
    assert (declaration.layers, declaration.plan.variants) == (("search",), ("b", "a"))
    assert declaration.plan.min_days == 14


def test_variants_are_those_of_events_or_the_arms_of_one_experiment() -> None:
    stored = generation(metrics("ranker", variants=["a", "both"], shown={"variants": ["z"]}))
    assert variants_of(stored) == (("x", "y"), "")
    assert variants_of(stored, "ranker") == (("a", "both"), "a")


def state(**rows: int) -> PerKey:
    """A state of a ratio by (grouping, epoch, value); `none` is an arm that is not declared."""
    whole = PerKey(Ratio())
    for value, count in rows.items():
        key = (0, "start", None if value == "none" else value)
        whole.update([key] * count, numerators=[1] * count)
    return whole


def test_values_of_one_arm_are_merged_and_undeclared_ones_are_counted_apart() -> None:
    merged = metrics("ranker", variants=["a", "both"], arms={"a": ["a"], "both": ["b", "b2"]})
    declaration = design("ranker", merged)
    units = PerKey(Units())
    units.update([(0, "start", value) for value in ("a", "b", "b2", "b2")], units=[1, 2, 2, 3])
    panes = [Pane(f"experiment/ranker/{name}", 0, None, None) for name in ("ctr", "units")]
    counted = state(a=3, b=2, b2=4, none=7), units
    experiment, undeclared = counted_experiment(declaration, zip(panes, counted, strict=True))
    assert undeclared == 7
    rates = {arm: states["ctr"].compute() for arm, states in experiment.states["start"].items()}
    assert {arm: rate.denominator for arm, rate in rates.items()} == {"a": 3, "both": 6}  # type: ignore[attr-defined]
    assert dict(experiment.srm().counts) == {"a": 1, "both": 2}
    arms = arm_states(declaration, counted[0])
    assert {key: arms.state(key) for key in arms.keys()} == {  # noqa: SIM118 - of a state
        (0, arm): states["ctr"] for arm, states in experiment.states["start"].items()
    }


def test_without_a_name_nothing_is_left_out_in_silence() -> None:
    declaration = design(None, metrics(""))
    pane = Pane("experiment/ctr", 0, None, None)
    _, undeclared = counted_experiment(declaration, [(pane, state(a=1, b=1, none=2))])
    assert undeclared == 0
