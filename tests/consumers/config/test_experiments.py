"""[experiments.NAME], [event] assignments and [layers]: what may stand there, and what follows."""

from __future__ import annotations

import pytest
from streammetrics_consumers.config.arms import DeclaredArms
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.event import Condition
from streammetrics_consumers.config.experiment import ExperimentConfig

from tests.consumers import small_config
from tests.consumers.small_config import EVENT, METRICS, config

ASSIGNED = f'{EVENT}assignments = "exps"\n'
PLAIN = 'control = "a"\ndecision = ["ctr"]\n'
TWO = f'{PLAIN}variants = ["a", "b"]\n'


def make_config(*entries: str, event: str = ASSIGNED, **parts: str) -> Config:
    return config(event=event, rest="\n".join(entries), **parts)


def entry(keys: str, name: str = "ranker") -> str:
    return f"[experiments.{name}]\n{keys}"


def refused(where: str, message: str, rest: str, event: str = ASSIGNED) -> None:
    small_config.refused(where, message, event=event, rest=rest)


def test_an_entry_has_the_keys_of_an_experiment_and_its_own() -> None:
    keys = """
control = "control"
variants = { control = ["a"], both = ["v1", "v2"] }
where = { surface = "search", client.app = "present" }
metrics = ["auc"]
decision = ["ctr"]
start = 2024-01-01T00:00:00Z
end = "2024-01-02T01:00:00+01:00"
archived = true
name = "The ranker"
"""
    experiments = make_config(entry(keys)).experiments
    assert list(experiments) == ["ranker"]
    assert experiments["ranker"] == ExperimentConfig(
        control="control",
        decision=("ctr",),
        unit="user",
        name="The ranker",
        metrics=("auc",),
        where=(
            Condition("client.app", "client.app", True, None),
            Condition("surface", "surface", True, ("search",)),
        ),
        start=1_704_067_200_000,
        end=1_704_153_600_000,
        archived=True,
        arms=DeclaredArms(
            "exps.ranker",
            ("control", "both"),
            {"control": ("a",), "both": ("v1", "v2")},
            is_named=True,
        ),
        position=1,
    )
    assert experiments["ranker"].arms.values == ("a", "v1", "v2")


def test_the_arm_is_in_the_assignments_or_else_in_the_variant_of_the_event() -> None:
    assert make_config(entry(TWO)).experiments["ranker"].arms.path == "exps.ranker"
    assert make_config(entry(f'{TWO}variant = "arm"')).experiments["ranker"].arms.path == "arm"
    plain = make_config(entry(PLAIN), event=EVENT).experiments["ranker"]
    assert (plain.arms.path, plain.arms.names) == ("variant", ("a", "b"))
    event = 'time = "ts"\nlabel = "label"\nscore = "score"\nuser = "user"'
    refused_here = {"event": event, "slices": "by = [[]]", "rest": entry(TWO)}
    errors = small_config.problems(**refused_here)
    assert list(errors) == ["[experiments.ranker] variant"]
    refused_here["rest"] = entry(f'{PLAIN}variant = "arm"')
    assert list(small_config.problems(**refused_here)) == ["[experiments.ranker] variants"]


def test_experiments_are_in_the_order_of_the_file_and_that_without_a_name_is_first() -> None:
    experiments = make_config(
        entry(TWO, "b"), entry(TWO, "a"), f"[experiment]\n{PLAIN}"
    ).experiments
    assert [
        (name, experiment.position, experiment.is_named) for name, experiment in experiments.items()
    ] == [
        ("", 0, False),
        ("b", 1, True),
        ("a", 2, True),
    ]


def test_each_experiment_has_a_metric_set_and_names_of_its_own() -> None:
    run_config = make_config(f"[experiment]\n{PLAIN}", entry(f'{TWO}metrics = ["auc"]'))
    names = [
        [metric.name for metric in metric_set.metrics] for metric_set in run_config.metric_sets
    ]
    assert names == [
        ["auc", "ctr"],
        ["experiment/ctr", "experiment/units"],
        ["experiment/ranker/auc", "experiment/ranker/ctr", "experiment/ranker/units"],
    ]


def test_interactions_need_the_sums_by_unit_of_each_decision_metric_that_has_them() -> None:
    metrics = """
ctr = { type = "Ratio", where = "phase == 'eval'" }
spend = { type = "Ratio", inputs = { numerators = "spend", denominators = "visits" } }
mean = { type = "Moments", inputs = { values = "spend" } }
weighted = { type = "Moments", inputs = { values = "spend", weights = "weight" } }
each = { type = "UnitMean", inputs = { values = "spend" } }
rate = { type = "UnitRate", inputs = { values = "spend" } }
auc = { type = "HistogramAUC" }
"""
    names = ["ctr", "spend", "mean", "mean.above_zero", "weighted", "each", "rate", "auc"]
    keys = 'control = "a"\nvariants = ["a", "b"]\nmetrics = ["ctr"]\nunit = "account"\n'
    keys += f"decision = {names}\n"
    plain = make_config(entry(keys), metrics=metrics)
    run_config = make_config(entry(f"{keys}interactions = true"), metrics=metrics)
    counted = {metric.name: metric for metric in plain.experiment_metrics["ranker"]}
    metrics_by_name = {metric.name: metric for metric in run_config.experiment_metrics["ranker"]}
    sums = {
        name.rpartition("units:")[2]: {argument: f.path for argument, f in metric.inputs.items()}
        for name, metric in metrics_by_name.items()
        if name not in counted
    }
    assert sums == {
        "ctr": {"values": "label", "units": "account"},
        "spend": {"values": "spend", "denominators": "visits", "units": "account"},
        "mean": {"values": "spend", "units": "account"},
        "each": {"values": "spend", "units": "account"},
        "rate": {"values": "spend", "units": "account"},
    }
    assert (
        metrics_by_name["experiment/ranker/units:ctr"].where
        == metrics_by_name["experiment/ranker/ctr"].where
    )
    assert {name: run_config.fingerprints()[name] for name in counted} == {
        name: plain.fingerprints()[name] for name in counted
    }


def test_interactions_need_a_unit() -> None:
    keys = f'{TWO}cluster = "none"\ninteractions = true'
    event = ASSIGNED.replace('user = "user"\n', "")
    refused(
        "[experiments.ranker] interactions", "false, since there is no unit", entry(keys), event
    )


def test_a_description_has_the_plan_and_which_events_are_its_own() -> None:
    keys = f'{PLAIN}variants = {{ a = ["x"], b = ["y", "z"] }}\nend = 1970-01-01T00:00:01Z\n'
    keys += 'where = { surface = "search" }'
    description = make_config(entry(keys)).descriptions["experiment/ranker/ctr"]
    plan = description["experiment"]
    assert isinstance(plan, dict)
    assert plan["variants"] == ["a", "b"]
    assert plan["arms"] == {"a": ["x"], "b": ["y", "z"]}
    assert plan["end"] == 1000 and "start" not in plan
    assert plan["where"] == [["surface", "surface", ["search"]]]
    assert description["variant"] == ["exps.ranker", ["x", "y", "z"]]
    shown = description["shown"]
    assert isinstance(shown, dict)
    assert (shown["variants"], shown["order"]) == (["a", "b"], 1)
    plain = make_config(entry(TWO)).descriptions["experiment/ranker/ctr"]["experiment"]
    assert isinstance(plain, dict)
    assert not {"arms", "end", "start", "where"} & plain.keys()


def test_arms_that_have_the_names_of_their_values_are_not_merged() -> None:
    listed, table = (
        make_config(entry(PLAIN + variants))
        for variants in ('variants = ["b", "a"]', 'variants = { b = ["b"], a = ["a"] }')
    )
    assert listed.descriptions == table.descriptions
    assert table.experiments["ranker"].arms.names == ("b", "a")


def test_fields_that_only_experiments_with_names_read_are_optional() -> None:
    keys = f'{TWO}unit = "session"\nwhere = {{ surface = "search" }}'
    run_config = make_config(entry(keys), metrics=f'{METRICS}\ngauc = {{ type = "GroupedAUC" }}')
    optional = {field.path: field.optional for field in run_config.fields}
    names = {path for path, is_optional in optional.items() if is_optional}
    assert names == {"exps.ranker", "session", "surface"}
    assert not optional["user"] and not optional["variant"] and not optional["ts"]


@pytest.mark.parametrize(
    ("where", "message", "rest"),
    [
        ("[experiments] a.b", "expected a name of 1 to 64 letters", '[experiments."a.b"]\n' + TWO),
        ("[experiments] x", "expected a table", "[experiments]\nx = 1"),
        ("[experiments]", "expected a table", "[[experiments]]\nx = 1"),
        ("[experiments.ranker] contol", "did you mean `control`?", entry(f"{TWO}contol = 1")),
        (
            "[experiments.ranker] control",
            "one of its variants",
            entry(TWO.replace('"a"\n', '"c"\n')),
        ),
        (
            "[experiments.ranker] decision",
            "1 to 100",
            entry('control = "a"\nvariants = ["a", "b"]'),
        ),
        ("[experiments.ranker] variants", "a list of 2 to", entry(f'{PLAIN}variants = ["a"]')),
        ("[experiments.ranker] variants", "a list of 2 to", entry(f'{PLAIN}variants = ["a", "a"]')),
        (
            "[experiments.ranker] variants",
            "a list of 2 to",
            entry(f"{PLAIN}variants = [[1], {{}}]"),
        ),
        (
            "[experiments.ranker] variants",
            "a list of 2 to",
            entry(f'{PLAIN}variants = {{ a = ["x"], b = ["x"] }}'),
        ),
        (
            "[experiments.ranker] variants",
            "a list of 2 to",
            entry(f'{PLAIN}variants = {{ a = ["x"], b = [] }}'),
        ),
        ("[experiments.ranker] variants", "a list of 2 to", entry(f"{PLAIN}variants = 3")),
        ("[experiments.ranker] variant", "a dotted path", entry(f'{TWO}variant = "a..b"')),
        (
            "[experiments.ranker] variants",
            "names that do not end in",
            entry(f'{PLAIN}variants = {{ a = ["1"], "b (guardrail)" = ["2"] }}'),
        ),
        ("[experiments.ranker] start", "a time with a zone", entry(f"{TWO}start = 2024-01-01")),
        (
            "[experiments.ranker] start",
            "a time with a zone",
            entry(f"{TWO}start = 2024-01-01T00:00:00"),
        ),
        ("[experiments.ranker] end", "a time with a zone", entry(f'{TWO}end = "soon"')),
        (
            "[experiments.ranker] end",
            "a time after start",
            entry(f"{TWO}start = 2024-01-01T00:00:00Z\nend = 2024-01-01T00:00:00Z"),
        ),
        ("[experiments.ranker] where.x", "a text, a whole number", entry(f"{TWO}where.x = 0.5")),
        (
            "[experiments.ranker] metrics[0]",
            "a metric of [metrics]",
            entry(f'{TWO}metrics = ["no"]'),
        ),
        (
            "[experiments.ranker] metrics[0]",
            "a metric of [metrics]",
            entry(f'{TWO}metrics = ["auc.gini"]'),
        ),
        ("[experiments.ranker] archived", "true or false", entry(f"{TWO}archived = 1")),
        (
            "[experiments.ranker.guardrails[0]] margin",
            "a number of 0 or more",
            entry(f'{TWO}guardrails = [{{ metric = "auc" }}]'),
        ),
        ("[experiment] variants", "a known key", f'[experiment]\n{PLAIN}variants = ["a", "b"]'),
        ("[layers] x", "at least two different", f'{entry(TWO)}\n[layers]\nx = ["ranker"]'),
        ("[layers] x[1]", "an experiment of", f'{entry(TWO)}\n[layers]\nx = ["ranker", "rankr"]'),
        ("[layers] x", "at least two", f'{entry(TWO)}\n[layers]\nx = ["ranker", "ranker"]'),
        ("[layers] a.b", "a name of 1 to 64", f'{entry(TWO)}\n[layers]\n"a.b" = ["ranker"]'),
    ],
)
def test_what_does_not_fit_is_refused_where_it_stands(where: str, message: str, rest: str) -> None:
    refused(where, message, rest)


def test_a_field_is_not_both_a_value_and_an_object() -> None:
    refused("[experiments.b] variant", "a field of an object",
            f'{entry(TWO)}\n{entry(TWO, "b")}variant = "user.id"')  # fmt: skip
    keys = f'{TWO}where = {{ exps = "present" }}'
    small_config.problems(event=ASSIGNED, rest=entry(keys))


def test_layers_are_the_groups_that_an_experiment_belongs_to() -> None:
    layers = '[layers]\nsearch = ["a", "b"]\nprices = ["b", "c"]'
    run_config = make_config(entry(TWO, "a"), entry(TWO, "b"), entry(TWO, "c"), layers)
    assert [experiment.layers for experiment in run_config.experiments.values()] == [
        ("search",),
        ("search", "prices"),
        ("prices",),
    ]
    shown = run_config.descriptions["experiment/b/ctr"]["shown"]
    assert isinstance(shown, dict) and shown["layers"] == ["search", "prices"]
    plain_config = make_config(entry(TWO, "a"), entry(TWO, "b"), entry(TWO, "c"))
    assert plain_config.fingerprints() == run_config.fingerprints()


def test_epochs_of_an_experiment_with_a_name_follow_from_the_time() -> None:
    event = f'{ASSIGNED}epoch = "phase"\n'
    run_config = make_config(entry(f'{TWO}epochs = ["2024-01-01T01:00:00Z"]'), event=event)
    assert run_config.experiments["ranker"].epoch_names == ("start", "2024-01-01T01:00:00Z")
    assert "phase" not in {field.path for field in run_config.fields if field.kind == "variant"}
