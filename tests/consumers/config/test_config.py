"""The config file as a whole: roles, defaults, overrides, fingerprints, and every bad setting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.config.event import Field
from streammetrics_consumers.config.section import ConfigError, Override

from tests.consumers.messages import KAFKA
from tests.consumers.small_config import (
    EVENT,
    METRICS,
    SOURCE,
    config,
    problems,
    refused,
    toml,
)


def test_roles_feed_the_arguments_of_metrics_unless_inputs_name_another_field(
    tmp_path: Path,
) -> None:
    path = tmp_path / "obd.toml"
    metrics = f"""{METRICS}
    propensity_auc = {{ type = "ExactAUC", inputs = {{ scores = "propensity" }} }}
    gauc = {{ type = "GroupedAUC", weight = "impressions" }}
    [metrics.rank]
    type = "RankingMetrics"
    measures = ["NDCG@10", "MRR@10"]
    inputs = {{ labels = "clicks", scores = "p" }}
    """
    path.write_text(toml(windows="", metrics=metrics, rest='[store]\nurl = "obd.db"'))
    run_config = load_config(path)
    assert run_config.source.path == tmp_path / "events.jsonl"
    assert run_config.store.url == str(tmp_path / "obd.db")
    assert run_config.windows.pane_ms == 86_400_000
    inputs = {metric.name: metric.inputs for metric in run_config.metrics}
    label, propensity = Field("label", "label"), Field("propensity", "real")
    assert list(inputs) == ["auc", "ctr", "gauc", "propensity_auc", "rank"]
    assert inputs["auc"] == {"labels": label, "scores": Field("score", "real")}
    assert inputs["ctr"] == {"numerators": label}
    assert inputs["gauc"]["groups"] == Field("user", "hashed_id")
    assert inputs["propensity_auc"] == {"labels": label, "scores": propensity}
    # A metric of lists reads arrays.
    assert [metric.name for metric in run_config.metrics if metric.has_lists] == ["rank"]
    arrays = {"labels": Field("clicks", "label_list"), "scores": Field("p", "real_list")}
    assert inputs["rank"] == arrays
    # Exact states are bounded, and users are texts.
    settings = {metric.name: metric.empty.settings() for metric in run_config.metrics}
    assert settings["propensity_auc"]["max_rows"] == settings["gauc"]["max_rows"] == 10_000_000
    assert settings["gauc"]["ids"] == "hashed"


def test_a_setting_of_the_config_goes_before_its_defaults() -> None:
    run_config = config(metrics='g = { type = "GroupedAUC", ids = "integer", max_rows = 5 }')
    assert run_config.metrics[0].empty.settings()["max_rows"] == 5
    assert run_config.metrics[0].inputs["groups"].kind == "int_id"
    bounded = 'g = { type = "GroupedAUC", grid = "relative", resolution = 6 }'
    settings = config(metrics=bounded).metrics[0].empty.settings()
    assert (settings["max_rows"], settings["grid"], settings["ids"]) == (None, "relative", "hashed")


def test_one_error_lists_every_bad_setting() -> None:
    parts = {
        "source": 'kind = "file"\nmax_event_bytes = -1\ntopic = "x"',
        "event": 'variants = ["a", "a"]\nlabel = "a..b"',
        "windows": "size_s = 0\nlateness_s = true",
        "slices": "by = [[], []]\nmax_keys = 0",
        "metrics": 'a = { type = "HistogramAUK" }\nh = { type = "HistogramAUC", resolution = 99 }',
        "rest": '[store]\nurl = 3\ncommit_interval_s = "5"\n[server]\nport = 70000\n[srever]\n',
    }
    errors = problems(**parts)
    assert set(errors) == {
        "[srever]", "[source] max_event_bytes", "[source] path", "[source] topic",
        "[event] label", "[event] time", "[event] variants", "[windows] lateness_s",
        "[windows] size_s", "[slices] by[1]", "[slices] max_keys", "[metrics] a.type",
        "[metrics] h.resolution", "[store] url", "[store] commit_interval_s",
        "[server] port",
    }  # fmt: skip
    assert "99" in errors["[metrics] h.resolution"]  # what the metric itself said
    with pytest.raises(ConfigError) as caught:
        config(windows='size_s = 0\nslide = 3\nlateness_s = "x"')
    text = str(caught.value)
    assert "3 bad settings" in text
    assert "[windows] slide: expected a known key, got 'slide'; did you mean `slide_s`?" in text


def test_a_bad_setting_says_where_it_is_and_what_to_do() -> None:
    refused("[source] kind", "did you mean `kafka`?", source='kind = "kafak"')
    refused("[servers]", "did you mean `server`?", rest="[servers]\nport = 1")
    refused("[event] variants", "different texts", event=EVENT.replace('"b"', '"b\\u0000"'))

    def metric(where: str, message: str, entry: str, **parts: str) -> None:
        refused(f"[metrics] {where}", message, metrics=entry, **parts)

    auc = 'a = { type = "HistogramAUC"'
    metric("a.type", "did you mean `HistogramAUC`?", 'a = { type = "HistogramAUK" }')
    metric("a.resolutoin", "did you mean `resolution`?", f"{auc}, resolutoin = 7 }}")
    metric("a.inputs.score", "did you mean `scores`?", f'{auc}, inputs = {{ score = "p" }} }}')
    metric("p.type", "expected a metric", 'p = { type = "PerKey" }')  # a combinator
    poor = {"event": 'time = "ts"', "slices": "by = [[]]"}
    metric("a", "a field for `scores`, got nothing; name [event] score", f"{auc} }}", **poor)
    ranked = 'r = { type = "RankingMetrics", measures = ["MRR@3"] }'
    metric("r, labels", "reads it as one value", f"{auc} }}\n{ranked}")
    through = {"slices": 'by = [[], ["user.country"]]'}
    reason = "reads 'user' itself"
    refused("[slices] by", reason, metrics='g = { type = "GroupedAUC" }', **through)
    sections = {"event": f'{EVENT}\nweight = "w"', "metrics": 'c = { type = "Ratio" }'}
    refused("[event] weight", "no metric", **sections)
    twice = 'by = [["variant", "phase"], ["phase", "variant"]]'
    refused("[slices] by[1]", "repetition", slices=twice)
    panes = "size_s = 61\nslide_s = 60\nretention_s = 2592000"
    refused("[windows] retention_s", "panes of 1 s", windows=panes)
    slides = "size_s = 86400\nslide_s = {}\nretention_s = 86400"
    refused("[windows] slide_s", "at least 24", windows=slides.format(23))
    config(windows=slides.format(24))


def test_each_kind_of_source_has_its_formats_and_its_keys() -> None:
    for format in ("json", "ndjson", "array", "arrow"):
        assert config(source=f'{KAFKA}\nformat = "{format}"').source.format == format
        file = f'kind = "file"\npath = "a.jsonl"\nformat = "{format}"'
        refused("[source] format", "jsonl", source=file)
    assert set(problems(source='kind = "kafka"')) == {
        "[source] bootstrap_servers", "[source] topic", "[source] group",
    }  # fmt: skip
    client = "\n[source.client]\nenable_auto_commit = true\nfetch_max_bytes = 1"
    assert set(problems(source=KAFKA + client)) == {"[source.client] enable_auto_commit"}


def test_a_source_has_one_topic_or_several() -> None:
    servers = 'kind = "kafka"\nbootstrap_servers = "h:1"\ngroup = "g"\ntopic = '
    for topic, expected in (
        ('"clicks"', ("clicks",)),
        ('"views, clicks"', ("views", "clicks")),
        ('["views", "clicks"]', ("views", "clicks")),
    ):
        assert config(source=servers + topic).source.topics == expected
    for topic in ("[]", '["a", "a"]', '["a", ""]', "[1]", '"a,"', "7"):
        refused("[source] topic", "expected a topic such as", source=servers + topic)
    sections = {"rest": '[quarantine]\ntopic = "clicks"', "source": f'{servers}["views", "clicks"]'}
    refused("[quarantine] topic", "a topic that is not read", **sections)


def test_an_override_goes_before_the_file_and_its_flag_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(toml(rest='[store]\nurl = "a.db"\n[server]\nport = 1'))
    run_config = load_config(path, {"server.port": "8", "store.url": "here.db"})
    assert (run_config.server.port, run_config.store.url) == (8, "here.db")
    with pytest.raises(ConfigError) as caught:
        load_config(path, {"server.port": Override("x", "--port"), "server.prot": 1})
    assert [p.where for p in caught.value.problems] == ["--port", "server.prot"]


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (None, "No such file"),
        (b"a = ", "Invalid value"),
        (b"a = 1\na = 2", "overwrite"),
        (b"#" * (1 << 20) + b"\n", "more"),
        (b"\xef\xbb\xbf[source]\nkind = 'file'\n", "the mark of UTF-8 at the start"),
        ("[source]\n".encode("utf-16"), "the mark of UTF-16 at the start"),
        (b"[server]\nport = " + b"9" * 5000, "a longer one"),
        (b"[metrics]\nx = { type = 'Ratio', y = [[" + b"9" * 5000 + b"]] }", "a longer one"),
        (b"[server]\nport = 0x" + b"f" * 5000, "a longer one"),
    ],
    ids=["none", "cut", "twice", "large", "mark", "UTF-16", "digits", "nested digits", "hex"],
)
def test_a_file_that_is_no_toml_is_one_error_of_four_parts(
    tmp_path: Path, data: bytes | None, got: str
) -> None:
    path = tmp_path / "config.toml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    (problem,) = caught.value.problems
    assert problem.where == str(path) and got in problem.got
    assert problem.expected and problem.hint
    assert str(caught.value) == str(problem)


def test_the_default_precision_of_scores_is_that_of_the_stores_of_older_versions() -> None:
    scores = 'n_classes = 3, inputs = { scores = "all" }'
    metrics = f"""
    a = {{ type = "ExactAUC" }}
    b = {{ type = "GroupedAUC" }}
    c = {{ type = "GroupedScores", measures = ["NDCG@10"], inputs = {{ groups = "q" }} }}
    d = {{ type = "GroupedAUC", grid = "relative" }}
    e = {{ type = "MulticlassAUC", exact = true, {scores} }}
    f = {{ type = "MulticlassAUC", {scores} }}"""
    assert {
        name: print_[:8] for name, print_ in config(metrics=metrics).fingerprints().items()
    } == {
        "a": "5258606c",
        "b": "87cfe9e4",
        "c": "5349cd04",
        "d": "cbf87bdb",
        "e": "0c12fa36",
        "f": "a1444e24",
    }
    auto = config(metrics='a = { type = "ExactAUC", score_type = "auto" }')
    assert auto.fingerprints()["a"][:8] != "5258606c"


def test_the_floor_is_the_start_of_a_pane_and_never_above_the_retention() -> None:
    hourly = config(windows="size_s = 3600\nretention_s = 7200").windows
    floors = [hourly.floor_ms(3 * 3_600_000 + offset) for offset in (-1, 0, 1)]
    assert floors == [0, 3_600_000, 3_600_000]


def test_a_record_of_kafka_has_a_key_and_headers_and_one_of_a_file_has_none() -> None:
    sections = {
        "event": 'time = "ts"\nvariant = "header.variant"\nlabel = "key.label"\nscore = "keys"',
        "slices": 'by = [[], ["header.region"]]',
        "metrics": 'a = { type = "HistogramAUC", inputs = { scores = "header.score" } }',
    }
    assert config(source=KAFKA, **sections).event.variant == "header.variant"
    errors = problems(**sections)
    places = ("[event] variant", "[event] label", "[slices] by[1]", "[metrics] a.inputs.scores")
    assert set(errors) == {*places}
    message = "only Kafka records have a header, and the source is of kind file"
    assert message in errors["[event] variant"]
    whole = 'time = "ts"\nlabel = "label"\nscore = "header"'
    refused("[event] score", "expected header.NAME", source=KAFKA, event=whole)


CLIENT = "client = "
SECRET = "hunter2-hunter2-hunter2"
SECRETS: Sequence[tuple[str, str, str]] = (
    ("[hooks] url", "a text", f'[hooks]\nurl = "https://h/{SECRET}"'),
    ("[hooks]", "a list", f'[[hooks]]\nurl = "https://h/{SECRET}"'),
    ("[hooks] flags", "a list", f'[[hooks.flags]]\nurl = "https://h/{SECRET}"'),
    ("[server]", "a list", f'[[server]]\ntoken = "{SECRET}"'),
    ("[store]", "a list", f'[[store]]\nurl = "postgresql://u:{SECRET}@h/db"'),
    ("[store] url", "a list", f'[store]\nurl = ["postgresql://u:{SECRET}@h/db"]'),
    ("[source.client] password", "a list", f'client = {{ password = ["{SECRET}"] }}'),
    ("[source] client", "a text", f'client = "password={SECRET}"'),
    ("[source] client", "a list", f'client = [{{ password = "{SECRET}" }}]'),
)


@pytest.mark.parametrize(("where", "got", "text"), SECRETS)
def test_a_value_that_may_be_a_secret_is_in_no_message(where: str, got: str, text: str) -> None:
    parts = {"source": f"{KAFKA}\n{text}"} if text.startswith(CLIENT) else {"rest": text}
    messages = problems(**parts)
    assert f", got {got}; " in messages[where]
    assert "hunter2" not in "".join(messages.values())


def test_a_setting_of_the_client_is_in_no_message_either(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    for text, flags in (
        (toml(source=f'{SOURCE}\nclient = {{ password = "{SECRET}" }}'), {}),
        (toml(), {"source.client.password": Override(SECRET, "-X")}),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"got a t(ext|able); ") as caught:
            load_config(path, flags)
        assert "hunter2" not in str(caught.value)
    password = f'client = {{ password = "{SECRET}" }}'
    assert "hunter2" not in repr(config(source=f"{KAFKA}\n{password}"))


def test_a_token_is_taken_and_neither_it_nor_a_weak_one_is_shown() -> None:
    token = "0123456789abcdef"
    server = config(rest=f'[server]\ntoken = "{token}"').server
    assert server.token == token
    assert token not in repr(server)
    assert config().server.token == ""
    for weak in ("short", "with spaces in the middle", "é" * 20, "a" * 201, ""):
        error = problems(rest=f'[server]\ntoken = "{weak}"')["[server] token"]
        assert "16 to 200 visible ASCII" in error
        assert not weak or weak not in error
