"""`covariates` of [experiment]: what may stand there, and what follows from it."""

from __future__ import annotations

import pytest

from consumers.config.experiment import CovariateConfig
from tests.consumers.config.test_experiment import made, problems, table
from tests.consumers.small_config import METRICS

GROUPED = 'control = "a"\nunit = "event_id"\ndecision = ["ctr"]'
BEFORE = f'{METRICS}\nbefore = {{ type = "Ratio", inputs = {{ numerators = "score" }} }}'


def test_a_covariate_is_counted_in_the_same_groups_and_is_a_part_of_the_plan() -> None:
    text = f'{GROUPED}\ncovariates = {{ ctr = {{ metric = "before", theta = 0.5 }} }}'
    found = made(text, metrics=BEFORE)
    assert found.experiment is not None
    assert found.experiment.covariates == {"ctr": CovariateConfig("before", 0.5)}
    assert found.experiment.watched == ("ctr",) and found.experiment.counted == ("ctr", "before")
    counted = {metric.name: metric for metric in found.counted if "/" in metric.name}
    assert list(counted) == ["experiment/before", "experiment/ctr", "experiment/units"]
    assert counted["experiment/before"].type == "UserGroups"
    assert counted["experiment/before"].inputs["users"] == counted["experiment/ctr"].inputs["users"]
    plain, other = (
        made(one, metrics=BEFORE).descriptions["experiment/ctr"]
        for one in (GROUPED, text.replace("0.5", "0.25"))
    )
    here = found.descriptions["experiment/ctr"]
    assert here["experiment"]["covariates"] == {"ctr": ["before", 0.5]}  # type: ignore[index]
    assert here != plain and here != other
    assert "covariates" not in plain["experiment"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("covariates", "where", "said"),
    [
        ("1", "covariates", "a table of covariates, by metric"),
        ('{ ctx = { metric = "before", theta = 1 } }', "covariates", "did you mean `ctr`?"),
        (
            '{ before = { metric = "ctr", theta = 1 } }',
            "covariates",
            "as in decision or guardrails",
        ),
        ("{ ctr = 0.5 }", "covariates.ctr", "theta = 0.4"),
        ('{ ctr = { metric = "befor", theta = 1 } }', "covariates.ctr.metric", "mean `before`?"),
        ('{ ctr = { metric = "ctr", theta = 1 } }', "covariates.ctr.metric", "another metric"),
        ('{ ctr = { metric = "before" } }', "covariates.ctr.theta", "user_slope"),
        ('{ ctr = { metric = "before", theta = inf } }', "covariates.ctr.theta", "a finite number"),
        ('{ ctr = { metric = "before", theta = true } }', "covariates.ctr.theta", "finite number"),
    ],
)
def test_a_covariate_that_is_none_is_refused(covariates: str, where: str, said: str) -> None:
    text = table(f"{GROUPED}\ncovariates = {covariates}", metrics=BEFORE)
    assert said in problems(text)[f"[experiment] {where}"]


def test_a_covariate_has_no_other_keys_and_needs_groups() -> None:
    one = '{ ctr = { metric = "before", theta = 1, frozen = true } }'
    found = problems(table(f"{GROUPED}\ncovariates = {one}", metrics=BEFORE))
    assert any("covariates.ctr" in where for where in found)
    plain = '\ncluster = "none"\ncovariates = { ctr = { metric = "before", theta = 1 } }'
    found = problems(table(GROUPED + plain, metrics=BEFORE))
    assert 'write cluster = "groups"' in found["[experiment] covariates"]
