"""The real stream, epochs, and names of metrics."""

from __future__ import annotations

import pytest

from streammetrics import HistogramAUC
from streammetrics.core.errors import InputError
from streammetrics.experiments import Experiment, compare
from tests.experiments.arms import clicks, plan, units

RAMP = {
    "10 %": {"random": {"ctr": clicks(90, 900)}, "bts": {"ctr": clicks(10, 100)}},
    "50 %": {"random": {"ctr": clicks(200, 1000)}, "bts": {"ctr": clicks(200, 1000)}},
}


def test_a_ramp_is_no_effect_of_the_treatment() -> None:
    (found,) = Experiment(plan(), RAMP).contrasts()
    assert found.comparison.effect_size == 0.0 and found.comparison.pvalue == 1.0
    assert found.comparison.method == "stratified" and found.comparison.epochs == ("10 %", "50 %")
    assert found.comparison.successes is not None and len(found.comparison.successes) == 2


def test_epochs_weigh_by_their_units_and_by_rows_where_one_has_none() -> None:
    arms = {
        "a": {"random": {"ctr": clicks(10, 100)}, "bts": {"ctr": clicks(20, 100)}},
        "b": {"random": {"ctr": clicks(10, 100)}, "bts": {"ctr": clicks(10, 100)}},
    }
    one = {"random": units(range(30)), "bts": units(range(100, 130))}
    three = {"random": units(range(90)), "bts": units(range(100, 190))}
    (found,) = Experiment(plan(), arms, {"a": one, "b": three}).contrasts()
    assert found.comparison.effect_size == 0.025
    (rows,) = Experiment(plan(), arms, {"a": one}).contrasts()
    assert rows.comparison.effect_size == 0.05


def test_metrics_are_found_by_name_and_view() -> None:
    auc = HistogramAUC()
    auc.update([0, 1, 1, 0], [0.1, 0.9, 0.2, 0.3])
    states = {"": {name: {"a": auc, "a.b": auc} for name in ("random", "bts")}}
    named = plan(decision=("a.gini", "a.b", "a.b.ks"))
    found = Experiment(named, states).contrasts()
    assert [one.name for one in found] == ["a.gini/bts", "a.b.auc/bts", "a.b.ks/bts"]
    with pytest.raises(InputError):
        Experiment(plan(decision=("a.nothing",)), states).contrasts()


def test_a_variant_without_rows_is_named_as_it_will_be() -> None:
    (found,) = Experiment(plan(), {"": {"random": {"ctr": clicks(1, 2)}}}).contrasts()
    assert found.name == "ctr.ratio/bts" and found.comparison.reason == "treatment: no rows"
    assert found.anytime.gated and found.comparison.pvalue == 1.0


def test_no_order_of_epochs_and_variants_changes_the_report() -> None:
    turned = {
        epoch: dict(reversed(list(arms.items()))) for epoch, arms in reversed(list(RAMP.items()))
    }
    assert Experiment(plan(), RAMP).report() == Experiment(plan(), turned).report()


def test_arms_without_any_variance_give_no_p_value() -> None:
    found = compare(clicks(0, 5), clicks(5, 5))
    assert (found.effect_size, found.std_error, found.pvalue) == (1.0, 0.0, 1.0)
    assert found.reason == "the variance of both arms is 0, which says nothing of other rows"
