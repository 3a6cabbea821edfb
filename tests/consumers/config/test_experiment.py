"""[experiment]: what may stand there, and what follows from it: plans, directions, covariates."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.experiment import (
    CovariateConfig,
    ExperimentConfig,
    GuardrailConfig,
)
from streammetrics_consumers.config.section import ConfigError

from tests.consumers.small_config import EVENT, METRICS, config, toml

PLAIN = 'control = "a"\ndecision = ["ctr"]\ncluster = "none"'
DECLARED = """
control = "a"
unit = "event_id"
on_several_variants = "error"
decision = ["ctr", "auc.gini"]
guardrails = [{ metric = "auc", margin = 0.01 },
              { metric = "auc.ks", margin = 0, higher_is_better = false }]
cluster = "none"
horizon = 10000
baseline = 0.00575
level = 0.9
epochs = ["2024-01-01T01:00:00Z", "2024-01-01T03:30:00.5+01:00"]
shares = [{ a = 9, b = 1 }, { a = 1, b = 1 }, { b = 1, a = 9 }]
unit_share = 0.25
max_units = 1000
assignment_salt = "ramp"
look_every_s = 5
"""


def table(text: str, **parts: str) -> str:
    return toml(rest=f"[experiment]\n{text}", **parts)


def made(text: str, **parts: str) -> Config:
    return config(table(text, **parts))


def problems(text: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        config(text)
    return {one.where: f"{one.expected}; {one.hint}" for one in caught.value.problems}


def test_a_config_without_the_table_counts_its_metrics_alone() -> None:
    found = config()
    assert found.experiment is None
    assert [metric.name for metric in found.counted] == ["auc", "ctr"]


def test_fields_are_named_as_the_keys() -> None:
    assert made(DECLARED).experiment == ExperimentConfig(
        control="a",
        decision=("ctr", "auc.gini"),
        guardrails=(GuardrailConfig("auc", 0.01), GuardrailConfig("auc.ks", 0.0, False)),
        unit="event_id",
        on_several_variants="error",
        cluster="none",
        horizon=10_000,
        baseline=0.00575,
        level=0.9,
        epochs=(1_704_070_800_000, 1_704_076_200_500),
        shares=({"a": 9.0, "b": 1.0}, {"a": 1.0, "b": 1.0}, {"a": 9.0, "b": 1.0}),
        unit_share=0.25,
        max_units=1000,
        assignment_salt="ramp",
        look_every_s=5.0,
    )


def test_what_is_not_said_has_defaults_and_the_unit_is_the_user() -> None:
    assert made('control = "b"\ndecision = ["ctr"]\ncluster = "none"').experiment == (
        ExperimentConfig("b", ("ctr",), unit="user", cluster="none")
    )


def test_each_watched_metric_is_counted_once_beside_the_units() -> None:
    found = made(DECLARED)
    own, experiment = found.metric_sets
    assert [metric.name for metric in own.metrics] == ["auc", "ctr"]
    names = [metric.name for metric in experiment.metrics]
    assert names == ["experiment/auc", "experiment/ctr", "experiment/units"]
    assert experiment.slices.by == (("epoch", "variant"),)
    units = experiment.metrics[2]
    assert units.inputs["units"].path == "event_id"
    assert units.empty.settings() == {"share": 0.25, "max_units": 1000}


def test_guardrails_are_counted_too_and_a_name_with_a_dot_goes_before_a_view() -> None:
    metrics = METRICS + '\n"auc.gini" = { type = "Ratio" }'
    text = f'{PLAIN}\nguardrails = [{{ metric = "auc.gini", margin = 1 }}]'
    names = [metric.name for metric in made(text, metrics=metrics).metric_sets[1].metrics]
    assert names == ["experiment/auc.gini", "experiment/ctr", "experiment/units"]


def test_rows_of_one_unit_are_kept_in_groups_unless_they_stand_for_themselves() -> None:
    grouped = made('control = "a"\ndecision = ["ctr"]').counted[2]
    assert (grouped.name, grouped.type) == ("experiment/ctr", "UserGroups")
    assert grouped.inputs["users"].column == "user:hashed_id"
    plain = made(PLAIN).counted[2]
    assert (plain.name, plain.type) == ("experiment/ctr", "Ratio")


def test_without_a_unit_no_units_are_kept() -> None:
    found = made(PLAIN, event=EVENT.replace('user = "user"', ""))
    assert [metric.name for metric in found.counted] == ["auc", "ctr", "experiment/ctr"]


def test_a_metric_of_a_config_never_has_a_name_of_an_experiments() -> None:
    text = toml(metrics=METRICS + '\n"experiment/ctr" = { type = "Ratio" }')
    assert "a name of up to 64 letters" in problems(text)["[metrics] experiment/ctr"]


def test_a_watched_metric_is_not_called_as_the_units_are() -> None:
    metrics = METRICS + '\nunits = { type = "Ratio" }'
    said = problems(table('control = "a"\ndecision = ["units"]', metrics=metrics))
    assert "another name" in said["[experiment] decision[0]"]
    assert len(made(PLAIN, metrics=metrics).counted) == 5


def test_another_set_of_variants_is_another_plan() -> None:
    was, more = (made(PLAIN, event=EVENT.replace('"b"', names)) for names in ('"b"', '"b", "c"'))
    plans = [found.descriptions["experiment/ctr"]["experiment"] for found in (was, more)]
    assert plans[0] != plans[1]


def test_a_metric_may_have_a_least_effect_of_its_own() -> None:
    own = 'mdes = { "auc.ks" = 1, ctr = 0.5, auc = 0.005 }'
    found = made(f"{DECLARED}\n{own}").experiment
    assert found is not None
    assert found.mdes == {"ctr": 0.5, "auc": 0.005, "auc.ks": 1.0}
    assert found.watched == ("ctr", "auc.gini", "auc", "auc.ks")
    assert list(found.plan["mdes"].items()) == [  # type: ignore[attr-defined]
        ("auc", 0.005), ("auc.ks", 1.0), ("ctr", 0.5),
    ]  # fmt: skip


def test_a_plan_without_least_effects_of_their_own_is_described_as_before() -> None:
    for text in (DECLARED, f"{DECLARED}\nmdes = {{}}"):
        experiment = made(text).experiment
        assert experiment is not None
        assert list(experiment.plan) == [
            "control", "decision", "guardrails", "on_several_variants", "cluster", "horizon",
            "baseline", "mde", "level", "epochs", "shares",
        ]  # fmt: skip


def test_epochs_are_named_by_their_start() -> None:
    experiment = made(DECLARED).experiment
    assert experiment is not None
    assert experiment.epoch_names == ("start", "2024-01-01T01:00:00Z", "2024-01-01T02:30:00.500Z")


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ('decision = ["ctr"]', "control", "compared with"),
        ('control = "c"\ndecision = ["ctr"]', "control", "one of [event] variants"),
        ('control = "a"', "decision", "a list of 1 to 100"),
        ('control = "a"\ndecision = []', "decision", "a list of 1 to 100"),
        ('control = "a"\ndecision = ["ctr", "ctr"]', "decision", "different"),
        ('control = "a"\ndecision = ["ctx"]', "decision[0]", "did you mean `ctr`?"),
        ('control = "a"\ndecision = ["auc.gin"]', "decision[0]", "did you mean `gini`?"),
        (f"{PLAIN}\nhorizon = 100", "baseline", "declare an mde instead"),
        (f"{PLAIN}\nbaseline = 0.5", "baseline", "add a horizon"),
        (f"{PLAIN}\nhorizon = 100\nbaseline = 0.5\nmde = 0.1", "mde", "one of the two"),
        (f"{PLAIN}\nhorizon = 1\nbaseline = 0.5", "horizon", "whole number of units"),
        (f"{PLAIN}\nhorizon = 100\nbaseline = 0", "baseline", "between 0 and 1"),
        (f"{PLAIN}\nhorizon = 100\nbaseline = 1", "baseline", "between 0 and 1"),
        (f"{PLAIN}\nmde = 0", "mde", "between 0 and inf"),
        (f"{PLAIN}\nmdes = 0.1", "mdes", "a table"),
        (f"{PLAIN}\nmdes = {{ ctx = 0.1 }}", "mdes", "did you mean `ctr`?"),
        (f"{PLAIN}\nmdes = {{ auc = 0.1 }}", "mdes", "as in decision or guardrails"),
        (f"{PLAIN}\nmdes = {{ ctr.ratio = 0.1 }}", "mdes.ctr", "in quotes"),
        (f'{PLAIN}\nmdes = {{ "ctr.ratio" = 0.1 }}', "mdes", "known are `ctr`"),
        (f"{PLAIN}\nmdes = {{ ctr = 0 }}", "mdes.ctr", "a number above 0"),
        (f"{PLAIN}\nmdes = {{ ctr = -0.1 }}", "mdes.ctr", "a number above 0"),
        (f"{PLAIN}\nmdes = {{ ctr = inf }}", "mdes.ctr", "a number above 0"),
        (f"{PLAIN}\nmdes = {{ ctr = true }}", "mdes.ctr", "the least that matters"),
        (f'{PLAIN}\nmdes = {{ ctr = "1" }}', "mdes.ctr", "a number above 0"),
        (f"{PLAIN}\nlevel = 1.0", "level", "between 0.5 and 1"),
        (f"{PLAIN}\nlevel = 95", "level", "from 0.5 to 1"),
        (f'{PLAIN}\nepochs = ["2024-01-01T00:00:00"]', "epochs[0]", "with a zone"),
        (f'{PLAIN}\nepochs = ["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00"]', "epochs",
         "times that rise"),
        (f"{PLAIN}\nepochs = [2024-01-01T00:00:00Z]", "epochs", "in quotes"),
        (f"{PLAIN}\nshares = {{ a = 1 }}", "shares", "each of variants"),
        (f"{PLAIN}\nshares = {{ a = 1, b = 0 }}", "shares", "a positive weight"),
        (f"{PLAIN}\nshares = []", "shares", "at least one table"),
        (f"{PLAIN}\nshares = [{{ a = 1, b = 1 }}, {{ a = 1, b = 2 }}]", "shares", "or 1"),
        (f"{PLAIN}\nunit_share = 0", "unit_share", "to 1"),
        (f"{PLAIN}\nmax_units = 0", "max_units", "from 1"),
        (f'{PLAIN}\nunit = "a..b"', "unit", "a dotted path"),
        (f'{PLAIN}\nassignment_salt = "streammetrics"', "assignment_salt", "another than"),
        (f"{PLAIN}\nguardrails = 1", "guardrails", "a list"),
        (f"{PLAIN}\nlook_every_s = 0", "look_every_s", "from 1 to 86400"),
        (f"{PLAIN}\nlookevery_s = 1", "lookevery_s", "did you mean `look_every_s`?"),
        ('control = "a"\ndecision = ["ctr"]\ncluster = "group"', "cluster", "`groups`"),
    ],
)  # fmt: skip
def test_a_bad_setting_says_what_is_expected_and_what_to_do(
    text: str, where: str, said: str
) -> None:
    assert said in problems(table(text))[f"[experiment] {where}"]


@pytest.mark.parametrize(
    ("guardrail", "where", "said"),
    [
        ("1", "[experiment] guardrails[0]", "a table"),
        ('{ metric = "auk", margin = 1 }', "[experiment] guardrails[0].metric", "`auc`"),
        ('{ metric = "auc" }', "[experiment.guardrails[0]] margin", "how much worse"),
        ('{ metric = "auc", margin = -1 }', "[experiment.guardrails[0]] margin", "from 0"),
        ('{ metric = "auc", margin = 0, direction = "up" }',
         "[experiment.guardrails[0]] direction", "remove it"),
        ('{ metric = "auc", margin = 0, higher_is_better = 1 }',
         "[experiment.guardrails[0]] higher_is_better", "true or false"),
        ('{ metric = "auc", margin = 0 }, { metric = "auc", margin = 1 }',
         "[experiment] guardrails[1].metric", "repetition"),
        ('{ metric = "ctr", margin = 0 }', "[experiment] guardrails[0].metric", "decides nothing"),
    ],
)  # fmt: skip
def test_a_bad_guardrail_is_named_by_its_place(guardrail: str, where: str, said: str) -> None:
    assert said in problems(table(f"{PLAIN}\nguardrails = [{guardrail}]"))[where]


def test_arms_are_declared_before_there_are_data() -> None:
    for variants in ("", 'variants = ["a"]'):
        event = EVENT.replace('variants = ["a", "b"]', variants)
        assert "at least two" in problems(table(PLAIN, event=event))["[event] variants"]


def test_groups_and_what_is_said_of_units_need_a_unit() -> None:
    event = EVENT.replace('user = "user"', "")
    said = problems(table('control = "a"\ndecision = ["ctr"]', event=event))
    assert 'cluster = "none"' in said["[experiment] unit"]
    said = problems(table(f'{PLAIN}\non_several_variants = "error"', event=event))
    assert "since there is no unit" in said["[experiment] on_several_variants"]


def test_an_epoch_comes_from_the_time_or_from_a_field() -> None:
    event = f'{EVENT}\nepoch = "allocation"'
    said = problems(table(f'{PLAIN}\nepochs = ["2024-01-01T00:00:00Z"]', event=event))
    assert "[event] epoch" in said["[experiment] epochs"]
    assert made(PLAIN, event=event).event.epoch == "allocation"


def test_a_unit_is_a_field_of_one_value_and_in_a_file_of_the_event() -> None:
    said = problems(table(f'{PLAIN}\nunit = "score.id"'))
    assert "reads 'score' itself" in said["[experiment] unit"]
    said = problems(table(f'{PLAIN}\nunit = "key.id"'))
    assert "a path in the event" in said["[experiment] unit"]


def test_all_that_is_declared_is_in_the_fingerprint_and_nothing_else() -> None:
    def prints(text: str, **parts: str) -> dict[str, str]:
        found = made(text, **parts).fingerprints()
        return {name: one for name, one in found.items() if name.startswith("experiment/")}

    was = prints(DECLARED)
    assert prints(DECLARED.replace("look_every_s = 5", "")) == was
    assert prints(DECLARED, slices="by = [[]]") == was
    for old, new in (
        ('control = "a"', 'control = "b"'),
        ('"error"', '"keep"'),
        ('["ctr", ', '["ctr.ratio", '),
        ("margin = 0.01", "margin = 0.02"),
        ("horizon = 10000", "horizon = 10001"),
        ("0.00575", "0.006"),
        ("level = 0.9", "level = 0.95"),
        ("01:00:00Z", "01:30:00Z"),
        ("a = 9, b = 1", "a = 8, b = 1"),
    ):
        now = prints(DECLARED.replace(old, new, 1))
        assert now.keys() == was.keys()
        assert all(now[name] != was[name] for name in was), new
    for old, new in (("event_id", "user"), ("0.25", "0.5"), ("max_units = 1000", "max_units = 9")):
        now = prints(DECLARED.replace(old, new))
        assert [name for name in was if now[name] != was[name]] == ["experiment/units"], new


def test_metrics_of_the_config_are_what_they_are_without_an_experiment() -> None:
    assert made(DECLARED).fingerprints().items() >= config().fingerprints().items()


PER_USER = (
    METRICS
    + '\ngauc = { type = "GroupedAUC" }'
    + '\nby_item = { type = "GroupedAUC", inputs = { groups = "item" } }'
)
DROP = 'control = "a"\non_several_variants = "drop"\ndecision = ["gauc.gauc"]'


@pytest.mark.parametrize("cluster", ["groups", "none"])
def test_units_of_several_variants_can_be_dropped_where_states_have_each_apart(
    cluster: str,
) -> None:
    found = made(f'{DROP}\ncluster = "{cluster}"', metrics=PER_USER).experiment
    assert found is not None and found.on_several_variants == "drop"


@pytest.mark.parametrize(
    ("text", "metrics", "said"),
    [
        (DROP.replace("gauc.gauc", "ctr"), PER_USER, "since ctr adds up rows of many units; only "
         "gauc could leave some out"),
        (DROP.replace("gauc.gauc", "by_item"), PER_USER, "since by_item adds up"),
        (f"{DROP}\nguardrails = [{{ metric = 'auc', margin = 0 }}]", PER_USER, "since auc adds up"),
        (DROP.replace("gauc.gauc", "ctr"), METRICS, "if it has user for its groups"),
        (DROP, PER_USER.replace('"GroupedAUC" }', '"GroupedAUC", ids = "integer" }'), "since gauc"),
        (f'{DROP}\nunit = "event_id"', PER_USER, "if it has event_id for its groups"),
    ],
)  # fmt: skip
def test_units_are_not_dropped_from_states_that_add_them_up(
    text: str, metrics: str, said: str
) -> None:
    assert said in problems(table(text, metrics=metrics))["[experiment] on_several_variants"]


def test_units_are_not_dropped_by_a_sample_of_them() -> None:
    text = table(f"{DROP}\nunit_share = 0.5", metrics=PER_USER)
    assert "needs each unit" in problems(text)["[experiment] unit_share"]


BOUNCE = 'bounce = {{ type = "Ratio", better = {} }}\ncal = {{ type = "Calibration" }}'


def directed(text: str, better: str = '"lower"') -> ExperimentConfig:
    metrics = f"{METRICS}\n{BOUNCE.format(better)}"
    found = config(table(text, metrics=metrics)).experiment
    assert found is not None
    return found


DECIDED = PLAIN.replace('["ctr"]', '["bounce", "ctr"]')


def test_a_metric_says_its_direction_beside_its_type() -> None:
    assert directed(DECIDED).better == {"bounce": "lower"}
    assert directed(DECIDED, '"higher"').better == {"bounce": "higher"}
    assert directed(DECIDED, "1").better == {"bounce": 1.0}
    assert directed(PLAIN).better == {}


def test_an_experiment_names_those_of_which_less_is_better() -> None:
    assert directed(f'{DECIDED}\nlower_is_better = ["ctr"]').better == {
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
    (found,) = directed(f"{PLAIN}\nguardrails = [{guardrail}]").guardrails
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
