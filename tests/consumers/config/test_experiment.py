"""[experiment]: what may stand there, and what follows from it: plans, directions, covariates."""

from __future__ import annotations

from streammetrics_consumers.config.arms import DeclaredArms
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.experiment import (
    CovariateConfig,
    ExperimentConfig,
    GuardrailConfig,
)

from tests.consumers import small_config
from tests.consumers.small_config import EVENT, METRICS, config

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


def make_config(text: str, **parts: str) -> Config:
    return config(rest=f"[experiment]\n{text}", **parts)


def declared(text: str = DECLARED, **parts: str) -> ExperimentConfig:
    return make_config(text, **parts).experiments[""]


def refused(where: str, message: str, text: str, **parts: str) -> None:
    """Assert that a key of [experiment], or another one in brackets, is refused in these words."""
    where = where if where.startswith("[") else f"[experiment] {where}"
    small_config.refused(where, message, rest=f"[experiment]\n{text}", **parts)


def test_fields_are_named_as_the_keys_and_have_defaults() -> None:
    assert declared() == ExperimentConfig(
        control="a",
        decision=("ctr", "auc.gini"),
        guardrails=(GuardrailConfig("auc", 0.01, True), GuardrailConfig("auc.ks", 0.0, False)),
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
        arms=DeclaredArms("variant", ("a", "b")),
    )
    names = ("start", "2024-01-01T01:00:00Z", "2024-01-01T02:30:00.500Z")
    assert declared().epoch_names == names
    plain = ExperimentConfig(control="a", decision=("ctr",), unit="user", cluster="none",
                             arms=DeclaredArms("variant", ("a", "b")))  # fmt: skip
    assert declared(PLAIN) == plain
    assert not config().experiments
    assert [metric.name for metric in config().counted] == ["auc", "ctr"]


def test_each_watched_metric_is_counted_once_beside_the_units() -> None:
    slice_set, experiment = make_config(DECLARED).metric_sets
    assert [metric.name for metric in slice_set.metrics] == ["auc", "ctr"]
    names = [metric.name for metric in experiment.metrics]
    assert names == ["experiment/auc", "experiment/ctr", "experiment/units"]
    assert experiment.slices.by == (("epoch", "variant"),)
    units = experiment.metrics[2]
    assert units.inputs["units"].path == "event_id"
    assert units.empty.settings() == {"share": 0.25, "max_units": 1000}
    # A name with a dot goes before a view.
    metrics = METRICS + '\n"auc.gini" = { type = "Ratio" }'
    text = f'{PLAIN}\nguardrails = [{{ metric = "auc.gini", margin = 1 }}]'
    names = [metric.name for metric in make_config(text, metrics=metrics).metric_sets[1].metrics]
    assert names == ["experiment/auc.gini", "experiment/ctr", "experiment/units"]
    # Without a unit no units are kept.
    run_config = make_config(PLAIN, event=EVENT.replace('user = "user"', ""))
    assert [metric.name for metric in run_config.counted] == ["auc", "ctr", "experiment/ctr"]


def test_rows_of_one_unit_are_kept_in_groups_unless_they_stand_for_themselves() -> None:
    grouped = make_config('control = "a"\ndecision = ["ctr"]').counted[2]
    assert (grouped.name, grouped.type) == ("experiment/ctr", "UserGroups")
    assert grouped.inputs["groups"].column == "user:hashed_id"
    plain = make_config(PLAIN).counted[2]
    assert (plain.name, plain.type) == ("experiment/ctr", "Ratio")


def test_a_metric_of_a_config_has_no_name_of_an_experiments() -> None:
    clash = f'{METRICS}\n"experiment/ctr" = {{ type = "Ratio" }}'
    refused("[metrics] experiment/ctr", "a name of up to 64 letters", PLAIN, metrics=clash)
    metrics = f'{METRICS}\nunits = {{ type = "Ratio" }}'
    watched = 'control = "a"\ndecision = ["units"]'
    refused("decision[0]", "a name other", watched, metrics=metrics)
    assert len(make_config(PLAIN, metrics=metrics).counted) == 5


def test_a_view_of_the_decision_may_have_arguments() -> None:
    names = ("auc.confusion(0.2).precision", "auc.precision_at_recall(0.8)")
    rail = 'guardrails = [{ metric = "auc.recall_at_budget(0.05)", margin = 0.01 }]'
    experiment = declared(f'control = "a"\ndecision = {list(names)}\n{rail}')
    assert experiment.decision == names
    assert experiment.guardrails == (GuardrailConfig("auc.recall_at_budget(0.05)", 0.01, True),)
    for view, message in (
        ("confusion(0.2)", "a view of auc"),
        ("confusion(0.2).tp", "a view of auc"),
        ("best_f1(2)", "best_f_beta(b)"),
        ("precision_at_recall()", "pass precision_at_recall(recall)"),
        ("precision_at_recall(80)", "a view of auc with a share from 0 to 1"),
    ):
        refused("decision[0]", message, f'control = "a"\ndecision = ["auc.{view}"]')


def test_a_metric_may_have_a_least_effect_of_its_own() -> None:
    experiment = declared(f'{DECLARED}\nmdes = {{ "auc.ks" = 1, ctr = 0.5, auc = 0.005 }}')
    assert experiment.mdes == {"ctr": 0.5, "auc": 0.005, "auc.ks": 1.0}
    assert experiment.watched == ("ctr", "auc.gini", "auc", "auc.ks")
    assert list(experiment.plan["mdes"].items()) == [  # type: ignore[attr-defined]
        ("auc", 0.005), ("auc.ks", 1.0), ("ctr", 0.5),
    ]  # fmt: skip
    # A plan without any is described as before there was such a key.
    assert "mdes" not in declared(f"{DECLARED}\nmdes = {{}}").plan


def test_a_bad_setting_says_what_is_expected_and_what_to_do() -> None:
    for text, where, message in (
        ('decision = ["ctr"]', "control", "compared with"),
        ('control = "c"\ndecision = ["ctr"]', "control", "one of [event] variants"),
        ('control = "a"', "decision", "a list of 1 to 100"),
        ('control = "a"\ndecision = ["ctr", "ctr"]', "decision[1]", "another view"),
        (
            'control = "a"\ndecision = ["ctr", "ctr.ratio"]',
            "decision[1]",
            "another view than ctr.ratio",
        ),
        (
            f'{PLAIN}\nguardrails = [{{ metric = "auc.auc" }}, {{ metric = "auc" }}]',
            "guardrails[1].metric",
            "another view than auc.auc",
        ),
        ('control = "a"\ndecision = ["ctx"]', "decision[0]", "did you mean `ctr`?"),
        ('control = "a"\ndecision = ["auc.gin"]', "decision[0]", "did you mean `gini`?"),
    ):
        refused(where, message, text)
    two = '["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00"]'
    for setting, where, message in (
        ("horizon = 100", "baseline", "declare an mde instead"),
        ("baseline = 0.5", "baseline", "add a horizon"),
        ("horizon = 100\nbaseline = 0.5\nmde = 0.1", "mde", "one of the two"),
        ("mdes = 0.1", "mdes", "a table"),
        ("mdes = { ctx = 0.1 }", "mdes", "did you mean `ctr`?"),
        ("mdes = { auc = 0.1 }", "mdes", "a name of decision or guardrails"),
        ("mdes = { ctr.ratio = 0.1 }", "mdes.ctr", "in quotes"),
        ('mdes = { "ctr.ratio" = 0.1 }', "mdes", "known: `ctr`"),
        ("mdes = { ctr = 0 }", "mdes.ctr", "a number above 0"),
        ("mdes = { ctr = inf }", "mdes.ctr", "a number above 0"),
        ("mdes = { ctr = true }", "mdes.ctr", "smallest absolute difference"),
        ('epochs = ["2024-01-01T00:00:00"]', "epochs[0]", "with a zone"),
        (f"epochs = {two}", "epochs", "ascending times"),
        ("epochs = [2024-01-01T00:00:00Z]", "epochs", "in quotes"),
        ("shares = { a = 1 }", "shares", "each of variants"),
        ("shares = { a = 1, b = 0 }", "shares", "a positive weight"),
        ("shares = { a = 1e308, b = 1e308 }", "shares", "weights with a finite sum"),
        ("shares = { a = 1e308, b = 1e-308 }", "shares", "each is a share above 0"),
        ("shares = []", "shares", "at least one table"),
        ("shares = [{ a = 1, b = 1 }, { a = 1, b = 2 }]", "shares", "or 1"),
        ('unit = "score.id"', "unit", "reads 'score' itself"),
        ('unit = "key.id"', "unit", "a path in the event"),
        ('assignment_salt = "streammetrics"', "assignment_salt", "a salt other than"),
        ("guardrails = 1", "guardrails", "a list"),
        ("lookevery_s = 1", "lookevery_s", "did you mean `look_every_s`?"),
    ):
        refused(where, message, f"{PLAIN}\n{setting}")


def test_a_bad_guardrail_is_named_by_its_place() -> None:
    entry = "[experiment.guardrails[0]]"
    for guardrail, where, message in (
        ("1", "guardrails[0]", "a table"),
        ('{ metric = "auk", margin = 1 }', "guardrails[0].metric", "`auc`"),
        ('{ metric = "auc" }', f"{entry} margin", "how much worse"),
        ('{ metric = "auc", margin = 0, direction = "up" }', f"{entry} direction", "remove it"),
        (
            '{ metric = "auc", margin = 0 }, { metric = "auc", margin = 1 }',
            "guardrails[1].metric",
            "repetition",
        ),
    ):
        refused(where, message, f"{PLAIN}\nguardrails = [{guardrail}]")


def test_an_experiment_needs_variants_and_mostly_a_unit() -> None:
    for variants in ("", 'variants = ["a"]'):
        event = EVENT.replace('variants = ["a", "b"]', variants)
        refused("[event] variants", "at least two", PLAIN, event=event)
    event = EVENT.replace('["a", "b"]', '["a", "b", "b (decided)"]')
    refused("[event] variants", "names that do not end in", PLAIN, event=event)
    event = EVENT.replace('user = "user"', "")
    refused("unit", 'cluster = "none"', 'control = "a"\ndecision = ["ctr"]', event=event)
    several = f'{PLAIN}\non_several_variants = "error"'
    refused("on_several_variants", "since there is no unit", several, event=event)


def test_an_epoch_comes_from_the_time_or_from_a_field() -> None:
    text = f'{PLAIN}\nepochs = ["2024-01-01T00:00:00Z"]'
    refused("epochs", "[event] epoch", text, event=f'{EVENT}\nepoch = "allocation"')


PER_USER = (
    METRICS
    + '\ngauc = { type = "GroupedAUC" }'
    + '\nby_item = { type = "GroupedAUC", inputs = { groups = "item" } }'
)
DROP = 'control = "a"\non_several_variants = "drop"\ndecision = ["gauc.gauc"]'


def test_units_are_dropped_only_from_states_that_have_each_apart() -> None:
    for cluster in ("groups", "none"):
        experiment = declared(f'{DROP}\ncluster = "{cluster}"', metrics=PER_USER)
        assert experiment.on_several_variants == "drop"
    by_ctr = DROP.replace("gauc.gauc", "ctr")
    integers = PER_USER.replace('"GroupedAUC" }', '"GroupedAUC", ids = "integer" }')
    guarded = f"{DROP}\nguardrails = [{{ metric = 'auc', margin = 0 }}]"
    for text, metrics, message in (
        (by_ctr, PER_USER, "since ctr adds up rows of many units"),
        (by_ctr, PER_USER, "; only gauc can drop units"),
        (DROP.replace("gauc.gauc", "by_item"), PER_USER, "since by_item adds up"),
        (guarded, PER_USER, "since auc adds up"),
        (by_ctr, METRICS, "with user for its groups"),
        (DROP, integers, "since gauc"),
        (f'{DROP}\nunit = "event_id"', PER_USER, "with event_id for its groups"),
    ):
        refused("on_several_variants", message, text, metrics=metrics)
    sample = f"{DROP}\nunit_share = 0.5"
    refused("unit_share", "needs each unit", sample, metrics=PER_USER)


def directed(better: str = '"lower"') -> str:
    """Metrics of which one says in which direction it is better."""
    bounce = f'bounce = {{ type = "Ratio", better = {better} }}'
    return f'{METRICS}\n{bounce}\ncal = {{ type = "Calibration" }}'


DECIDED = PLAIN.replace('["ctr"]', '["bounce", "ctr"]')


def test_a_metric_says_its_direction_beside_its_type_or_the_experiment_does() -> None:
    for better, expected in (('"lower"', "lower"), ('"higher"', "higher"), ("1", 1.0)):
        assert declared(DECIDED, metrics=directed(better)).better == {"bounce": expected}
    assert declared(PLAIN, metrics=directed()).better == {}
    experiment = declared(f'{DECIDED}\nlower_is_better = ["ctr"]', metrics=directed())
    assert experiment.better == {"bounce": "lower", "ctr": "lower"}


def test_a_guardrail_has_the_direction_of_its_metric() -> None:
    for guardrail, higher in (
        ('{ metric = "auc", margin = 0.01 }', True),
        ('{ metric = "cal.log_loss", margin = 0.01 }', False),
        ('{ metric = "bounce", margin = 0.01 }', False),
        ('{ metric = "cal.ratio", margin = 0.01, higher_is_better = false }', False),
        ('{ metric = "cal.mean_score", margin = 0.01 }', True),  # nobody says which
    ):
        (rail_config,) = declared(
            f"{PLAIN}\nguardrails = [{guardrail}]", metrics=directed()
        ).guardrails
        assert rail_config == GuardrailConfig(rail_config.metric, 0.01, higher), guardrail


def test_a_direction_that_cannot_be_is_named() -> None:
    rail = f'{PLAIN}\nguardrails = [{{ metric = "cal.copc", margin = 1 }}]'
    higher = rail.replace("cal.copc", "bounce").replace("1 }", "1, higher_is_better = true }")
    for text, better, where, message in (
        (DECIDED, '"lowr"', "[metrics] bounce.better", "did you mean `lower`?"),
        (DECIDED, "nan", "[metrics] bounce.better", '"lower"'),
        (f'{DECIDED}\nlower_is_better = ["bonce"]', '"lower"', "lower_is_better[0]", "`bounce`?"),
        (f'{DECIDED}\nlower_is_better = "bounce"', '"lower"', "lower_is_better", "a list"),
        (
            f'{DECIDED}\nlower_is_better = ["bounce"]',
            '"higher"',
            "lower_is_better[0]",
            "remove one of the two",
        ),
        (rail, '"lower"', "guardrails[0].higher_is_better", "the target 1"),
        (higher, '"lower"', "guardrails[0].higher_is_better", "false, since lower is better"),
    ):
        refused(where, message, text, metrics=directed(better))


def test_a_direction_moves_no_state_so_that_it_may_be_declared_while_it_goes_on() -> None:
    plain, lower_config = (
        make_config(DECIDED, metrics=directed(better)) for better in ('"none"', '"lower"')
    )
    assert plain.fingerprints() == lower_config.fingerprints()
    assert plain.descriptions != lower_config.descriptions


GROUPED = 'control = "a"\nunit = "event_id"\ndecision = ["ctr"]'
BEFORE = f'{METRICS}\nbefore = {{ type = "Ratio", inputs = {{ numerators = "score" }} }}'


def test_a_covariate_is_counted_in_the_same_groups_and_is_a_part_of_the_plan() -> None:
    text = f'{GROUPED}\ncovariates = {{ ctr = {{ metric = "before", theta = 0.5 }} }}'
    run_config = make_config(text, metrics=BEFORE)
    experiment = run_config.experiments[""]
    assert experiment.covariates == {"ctr": CovariateConfig("before", 0.5)}
    assert experiment.watched == ("ctr",) and experiment.counted == ("ctr", "before")
    counted = {metric.name: metric for metric in run_config.counted if "/" in metric.name}
    assert list(counted) == ["experiment/before", "experiment/ctr", "experiment/units"]
    assert counted["experiment/before"].type == "UserGroups"
    assert (
        counted["experiment/before"].inputs["groups"] == counted["experiment/ctr"].inputs["groups"]
    )
    plain, variation = (
        make_config(section, metrics=BEFORE).descriptions["experiment/ctr"]
        for section in (GROUPED, text.replace("0.5", "0.25"))
    )
    description = run_config.descriptions["experiment/ctr"]
    assert description["experiment"]["covariates"] == {"ctr": ["before", 0.5]}  # type: ignore[index]
    assert description != plain and description != variation
    assert "covariates" not in plain["experiment"]  # type: ignore[operator]


def test_a_covariate_that_is_none_is_refused() -> None:
    entry = '{ ctr = { metric = "before", theta = 1 } }'
    for covariates, where, message in (
        ("1", "covariates", "a table of covariates, by metric"),
        (entry.replace("ctr", "ctx"), "covariates", "did you mean `ctr`?"),
        (
            '{ before = { metric = "ctr", theta = 1 } }',
            "covariates",
            "a name of decision or guardrails",
        ),
        ("{ ctr = 0.5 }", "covariates.ctr", "theta = 0.4"),
        (entry.replace("before", "befor"), "covariates.ctr.metric", "mean `before`?"),
        (entry.replace("before", "ctr"), "covariates.ctr.metric", "another metric"),
        ('{ ctr = { metric = "before" } }', "covariates.ctr.theta", "user_slope"),
        (entry.replace("1", "inf"), "covariates.ctr.theta", "a finite number"),
        (entry.replace("1", "1, frozen = 1"), "[covariates.ctr] frozen", "a known key"),
    ):
        refused(where, message, f"{GROUPED}\ncovariates = {covariates}", metrics=BEFORE)
    text = f'{GROUPED}\ncluster = "none"\ncovariates = {entry}'
    refused("covariates", 'write cluster = "groups"', text, metrics=BEFORE)


def test_a_quantile_is_not_watched_over_several_epochs() -> None:
    metrics = f'{METRICS}\nwaits = {{ type = "ExactQuantiles", inputs = {{ values = "wait" }} }}'
    rails = f'{PLAIN}\nguardrails = [{{ metric = "waits.median", margin = 1 }}]'
    decides = 'control = "a"\ndecision = ["waits"]'
    epochs = 'epochs = ["2026-01-31T00:00:00Z"]'
    for key, text in (("guardrails", rails), ("decision", decides)):
        assert declared(text, metrics=metrics).watched
        refused(key, "compared over epochs", f"{text}\n{epochs}", metrics=metrics)
        refused(key, "of a quantile is of one epoch", f"{text}\n{epochs}", metrics=metrics)
    assert declared(f"{PLAIN}\n{epochs}", metrics=metrics).epochs
