"""In which direction a metric is better: beside the metric, in [experiment], or by its view."""

from __future__ import annotations

import pytest

from consumers.config.experiment import ExperimentConfig, GuardrailConfig
from tests.consumers.config.test_experiment import PLAIN, problems, table
from tests.consumers.small_config import METRICS, config

BOUNCE = 'bounce = {{ type = "Ratio", better = {} }}\ncal = {{ type = "Calibration" }}'


def read(text: str, better: str = '"lower"') -> ExperimentConfig:
    metrics = f"{METRICS}\n{BOUNCE.format(better)}"
    found = config(table(text, metrics=metrics)).experiment
    assert found is not None
    return found


DECIDED = PLAIN.replace('["ctr"]', '["bounce", "ctr"]')


def test_a_metric_says_its_direction_beside_its_type() -> None:
    assert read(DECIDED).better == {"bounce": "lower"}
    assert read(DECIDED, '"higher"').better == {"bounce": "higher"}
    assert read(DECIDED, "1").better == {"bounce": 1.0}
    assert read(PLAIN).better == {}


def test_an_experiment_names_those_of_which_less_is_better() -> None:
    assert read(f'{DECIDED}\nlower_is_better = ["ctr"]').better == {
        "bounce": "lower",
        "ctr": "lower",
    }


@pytest.mark.parametrize(
    ("guardrail", "higher"),
    [
        ('{ metric = "auc", margin = 0.01 }', True),
        ('{ metric = "cal.log_loss", margin = 0.01 }', False),
        ('{ metric = "bounce", margin = 0.01 }', False),
        ('{ metric = "cal.ratio", margin = 0.01, higher_is_better = false }', False),
        ('{ metric = "cal.mean_score", margin = 0.01 }', True),  # nobody says which
    ],
)
def test_a_guardrail_has_the_direction_of_its_metric(guardrail: str, higher: bool) -> None:
    (found,) = read(f"{PLAIN}\nguardrails = [{guardrail}]").guardrails
    assert found == GuardrailConfig(found.metric, 0.01, higher)


@pytest.mark.parametrize(
    ("text", "better", "where", "said"),
    [
        (DECIDED, '"lowr"', "[metrics] bounce.better", "did you mean `lower`?"),
        (DECIDED, "true", "[metrics] bounce.better", '"lower"'),
        (DECIDED, "nan", "[metrics] bounce.better", '"lower"'),
        (f'{DECIDED}\nlower_is_better = ["bonce"]', '"lower"',
         "[experiment] lower_is_better[0]", "did you mean `bounce`?"),
        (f'{DECIDED}\nlower_is_better = "bounce"', '"lower"',
         "[experiment] lower_is_better", "a list"),
        (f'{DECIDED}\nlower_is_better = ["bounce"]', '"higher"',
         "[experiment] lower_is_better[0]", "remove one of the two"),
        (f'{PLAIN}\nguardrails = [{{ metric = "cal.copc", margin = 1 }}]', '"lower"',
         "[experiment] guardrails[0].higher_is_better", "near to 1"),
        (f'{PLAIN}\nguardrails = [{{ metric = "bounce", margin = 1, higher_is_better = true }}]',
         '"lower"', "[experiment] guardrails[0].higher_is_better", "false, since lower is better"),
    ],
)  # fmt: skip
def test_a_direction_that_cannot_be_is_named(text: str, better: str, where: str, said: str) -> None:
    metrics = f"{METRICS}\n{BOUNCE.format(better)}"
    assert said in problems(table(text, metrics=metrics))[where]


def test_a_direction_moves_no_state_so_that_it_may_be_declared_while_it_goes_on() -> None:
    plain, said = (
        config(table(DECIDED, metrics=f"{METRICS}\n{BOUNCE.format(one)}"))
        for one in ('"none"', '"lower"')
    )
    assert plain.fingerprints() == said.fingerprints()
    assert plain.descriptions != said.descriptions
