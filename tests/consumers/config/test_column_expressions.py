"""[columns], and where of a metric: what may stand there, and what it changes."""

from __future__ import annotations

import json

import pytest
from streammetrics_consumers.config.column_expressions import fields_read
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.section import ConfigError

from tests.consumers.messages import of_format
from tests.consumers.small_config import EVENT, config, problems, refused

WHERE = "surface == 'search' and dwell_s >= 30"
COLUMNS = """
[columns]
gain = "reward * weight_of_row"
is_long = "dwell_s >= 30"
large = "gain > 2 and not is_long"
place = "page.surface"
"""
METRICS = f"""
auc = {{ type = "HistogramAUC" }}
mean_gain = {{ type = "Moments", inputs = {{ values = "gain" }} }}
long_share = {{ type = "Ratio", inputs = {{ numerators = "is_long" }}, where = "{WHERE}" }}
"""


def make_config(columns: str = COLUMNS, metrics: str = METRICS, **parts: str) -> Config:
    return config(metrics=metrics, rest=columns, **parts)


def test_a_column_may_be_named_wherever_a_field_is() -> None:
    run_config = make_config(
        event=EVENT.replace('label = "label"', 'label = "large"'),
        slices='by = [[], ["is_long"], ["place", "variant"]]',
    )
    by_name = {metric.name: metric for metric in run_config.metrics}
    gain = by_name["mean_gain"].inputs["values"]
    assert (gain.column, gain.path, gain.kind) == ("gain:real", "gain", "real")
    label = by_name["auc"].inputs["labels"]
    read = [field.path for field in fields_read([label]) if field.computed is None]
    assert sorted(read) == ["dwell_s", "reward", "weight_of_row"]
    keys = run_config.metric_sets[0].keys
    assert keys["is_long"].computed is not None and keys["place"].path == "page.surface"
    paths = {field.path for field in run_config.fields}
    assert {"gain", "large", "is_long", "page.surface"} <= paths and "reward" not in paths


def test_metrics_of_one_condition_are_counted_together() -> None:
    extra_metric = (
        'more = { type = "Ratio", inputs = { numerators = "is_long" }, where = "is_long" }\n'
    )
    same = METRICS.replace("long_share", "zz").replace(" and ", "  and  ").replace("auc", "b")
    same = "\n".join(line for line in same.splitlines() if line.startswith("zz"))
    run_config = make_config(metrics=METRICS + extra_metric + same)
    names = [
        [metric.name for metric in metric_set.metrics] for metric_set in run_config.metric_sets
    ]
    assert names == [["auc", "mean_gain"], ["long_share", "zz"], ["more"]]
    flags = [
        [flag.column for flag in metric_set.rows.flags] for metric_set in run_config.metric_sets
    ]
    assert flags[0] == [] and len({*map(tuple, flags)}) == 3


def test_roles_are_their_paths() -> None:
    run_config = make_config(
        '[columns]\ngain = "score * 2"\n',
        'm = { type = "Moments", inputs = { values = "gain" }, where = "user == \'u\'" }',
        event=EVENT.replace('"score"', '"model.p"').replace('"user"', '"who.id"'),
    )
    (metric,) = run_config.metrics
    assert metric.where is not None
    read = fields_read([metric.inputs["values"], metric.where])
    assert [field.path for field in read if field.computed is None] == ["model.p", "who.id"]


def test_fingerprints_have_the_expressions_and_others_stay() -> None:
    plain = 'auc = { type = "HistogramAUC" }'
    before, after = config(metrics=plain), make_config(metrics=plain)
    assert after.fingerprints() == before.fingerprints()
    descriptions = make_config().descriptions
    assert descriptions["mean_gain"]["columns"] == {
        "gain": ["reward * weight_of_row", {"reward": "reward", "weight_of_row": "weight_of_row"}]
    }
    assert "condition" not in descriptions["mean_gain"] and "columns" not in descriptions["auc"]
    assert descriptions["long_share"]["condition"] == [
        WHERE,
        {"dwell_s": "dwell_s", "surface": "surface"},
    ]
    spaced = make_config(COLUMNS.replace("reward * weight_of_row", "( reward*weight_of_row )"))
    assert spaced.fingerprints() == make_config().fingerprints()
    fingerprints = make_config(
        COLUMNS.replace("reward * weight_of_row", "weight_of_row * reward")
    ).fingerprints()
    changed = {
        name
        for name, print_ in make_config().fingerprints().items()
        if fingerprints[name] != print_
    }
    assert changed == {"mean_gain"}
    json.dumps(descriptions)


def test_the_form_in_fingerprints_is_the_same_on_every_python() -> None:
    text = "min(a, -1.5e300)*(b-(c+1))/abs(-d)>=1_000 and not(e=='ü\"') or f!=-0.0"
    run_config = make_config(
        f"[columns]\nx = '''{text} '''\n", 'm = { type = "Ratio", inputs = { numerators = "x" } }'
    )
    assert run_config.descriptions["m"]["columns"]["x"][0] == (  # type: ignore[index]
        "min(a, -1.5e+300) * (b - (c + 1)) / abs(-d) >= 1000 and not e == 'ü\"' or f != -0.0"
    )


def test_a_mistake_is_shown_at_its_place() -> None:
    errors = problems(rest='[columns]\ngain = "reward * \'x\'"\nbad = "reward **"\nworse = 3')
    assert errors["[columns] gain, column 10"] == (
        "[columns] gain, column 10: expected a number, got the text 'x'; compare texts with a "
        "field, by == or !=\n    reward * 'x'\n             ^"
    )
    assert "expected an expression, got invalid syntax" in errors["[columns] bad, column 10"]
    assert "expected an expression as a text, got 3" in errors["[columns] worse"]
    refused(
        "[metrics] ctr.where, column 8",
        "expected a condition",
        metrics='ctr = { type = "Ratio", where = "reward * 2" }',
    )
    refused(
        "[metrics] ctr.where",
        "expected an expression as a text",
        metrics='ctr = { type = "Ratio", where = { surface = "search" } }',
    )


@pytest.mark.parametrize(
    ("columns", "where", "words"),
    [
        ('a = "b + 1"\nb = "a + 1"', "[columns] a", "computed of others, got 'a of b of a'"),
        ('a = "a + 1"', "[columns] a", "got 'a of a'"),
        ('a = "a"', "[columns] a", "got 'a of a'"),
        ('a = "b"\nb = "a"', "[columns] a", "got 'a of b of a'"),
        (
            'a = "b > 1"\nc = "a + 1"',
            "[columns] c, column 1",
            "expected a number, got the column a",
        ),
        ('user = "b + 1"', "[columns] user", "that is no role of [event]"),
        ('"a b" = "b + 1"', "[columns] a b", "a name of letters, digits and _"),
        ('"if" = "b + 1"', "[columns] if", "a name of letters, digits and _"),
        ('a.b = "c + 1"', "[columns] a", "an expression as a text"),
        ('a = "header.x + 1"', "[columns] a", "a path in the event"),
        (f'a = "{"b" * 201} + 1"', "[columns] a", "a dotted path"),
    ],
)
def test_what_is_no_column_is_refused_in_words(columns: str, where: str, words: str) -> None:
    refused(where, words, rest=f"[columns]\n{columns}")


def test_ids_and_arrays_are_not_computed() -> None:
    columns = '[columns]\ngain = "reward * 2"\n'
    for metric in (
        'm = { type = "UnitRate", inputs = { units = "gain", values = "v" } }',
        'm = { type = "RankingMetrics", measures = ["ndcg@2"], '
        'inputs = { labels = "gain", scores = "s" } }',
    ):
        with pytest.raises(
            ConfigError, match=r"a field of the event, or a computed number or flag"
        ):
            make_config(columns, metric)
    make_config(
        '[columns]\nwho = "user.id"\n',
        'm = { type = "UnitRate", inputs = { units = "who", values = "v" } }',
    )


def test_a_field_of_an_expression_is_one_value() -> None:
    with pytest.raises(ConfigError, match="name another"):
        make_config(
            '[columns]\nx = "scores > 1"\n',
            'm = { type = "RankingMetrics", measures = ["ndcg@2"], inputs = { labels = "l", '
            'scores = "scores" } }\nr = { type = "Ratio", inputs = { numerators = "x" } }',
        )


def test_there_are_at_most_a_hundred_columns_and_they_may_be_deep() -> None:
    many = "\n".join(f'c{i} = "x + {i}"' for i in range(101))
    refused("[columns]", "at most 100 columns", rest=f"[columns]\n{many}")
    deep = "\n".join(f'c{i} = "c{i - 1} + c{max(i - 2, 0)}"' for i in range(1, 99))
    run_config = make_config(
        f'[columns]\nc0 = "x"\n{deep}', 'm = { type = "Moments", inputs = { values = "c98" } }'
    )
    assert len(run_config.descriptions["m"]["columns"]) == 98  # type: ignore[arg-type]


def test_time_variant_and_user_are_fields_themselves() -> None:
    for role, path in (("time", "ts"), ("variant", "variant"), ("user", "user")):
        refused(
            f"[event] {role}",
            "a field of the event",
            event=EVENT.replace(f'{role} = "{path}"', f'{role} = "gain"'),
            rest=COLUMNS,
        )


def test_kafka_records_may_be_chosen_by_key_and_headers() -> None:
    run_config = of_format("json", metrics='m = { type = "Ratio", where = "header.x == \'a\'" }')
    assert run_config.metrics[0].where is not None


def test_a_condition_holds_in_experiments_too() -> None:
    experiment = '[experiment]\ncontrol = "a"\ndecision = ["long_share", "auc"]\n'
    run_config = make_config(COLUMNS + experiment)
    names = [
        [metric.name for metric in metric_set.metrics] for metric_set in run_config.metric_sets
    ]
    assert names == [
        ["auc", "mean_gain"],
        ["long_share"],
        ["experiment/auc", "experiment/units"],
        ["experiment/long_share"],
    ]
    plain, experiments = run_config.metric_sets[1], run_config.metric_sets[3]
    assert experiments.rows.flags[-1:] == plain.rows.flags
    described = run_config.descriptions
    assert described["experiment/long_share"]["condition"] == described["long_share"]["condition"]
    needed = {field.path: field.needed_where for field in run_config.fields}
    assert needed["is_long"] and not needed["score"]
