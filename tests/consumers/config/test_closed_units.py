"""[experiments.NAME] units: by which exposed units a plan decides."""

from __future__ import annotations

from streammetrics_consumers.query.experiment_plan import plan_of

from tests.consumers.config.test_exposures import EXPOSURES, METRICS, RANKER, exposed, refused

BUYERS = f'{METRICS}\nbuyers = {{ type = "UnitRate", inputs = {{ values = "click" }} }}'
CLOSED = RANKER.replace('["ctr"]', '["buyers"]') + 'units = "closed"\n'
WINDOW = f"{EXPOSURES}window_s = 86_400\n"


def test_all_exposed_units_decide_unless_it_says_the_closed_ones() -> None:
    so_far = exposed(metrics=BUYERS).experiments["ranker"]
    assert so_far.units == "so_far" and "units" not in so_far.plan
    experiment = exposed(metrics=BUYERS, rest=RANKER + 'units = "so_far"\n').experiments["ranker"]
    assert experiment.plan == so_far.plan
    closed = exposed(WINDOW, CLOSED, metrics=BUYERS).experiments["ranker"]
    assert closed.plan["units"] == "closed"
    assert plan_of(closed.plan, ("a", "b")).decision == ("buyers",)


def test_a_guardrail_of_rows_may_stand_beside_closed_units() -> None:
    rail = '\nguardrails = [{ metric = "ctr", margin = 0.1 }]\n'
    experiment = exposed(WINDOW, CLOSED + rail, metrics=BUYERS).experiments["ranker"]
    assert experiment.guardrails[0].metric == "ctr"


def test_closed_units_need_a_window() -> None:
    refused(
        "[experiments.ranker] units",
        '"so_far", since [exposures] has no window_s, so that no unit is ever closed',
        EXPOSURES,
        CLOSED,
        metrics=BUYERS,
    )


def test_only_metrics_of_units_decide_by_closed_units() -> None:
    refused(
        "[experiments.ranker] decision",
        'means and rates of units alone, since units = "closed"',
        WINDOW,
        RANKER + 'units = "closed"\n',
    )


def test_an_experiment_without_exposures_has_no_closed_units() -> None:
    entry = RANKER.replace("ranker", "own") + 'variant = "arm"\nunits = "closed"\n'
    entry = entry.replace('["ctr"]', '["buyers"]')
    refused(
        "[experiments.own] units",
        '"so_far", since its arms are not those of exposures',
        WINDOW,
        RANKER + entry,
        metrics=BUYERS,
    )
