from pathlib import Path

import pytest
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.config.event import Field
from streammetrics_consumers.config.section import ConfigError, Override

from tests.consumers.small_config import EVENT, METRICS, SOURCE, config, toml
from tests.consumers.stores import write_config

INTERFACE = """
[source]
kind = "file"
path = "obd_men_events.jsonl"
format = "jsonl"
[event]
time = "ts"
variant = "variant"
variants = ["random", "bts"]
user = "user"
label = "label"
score = "score"
[windows]
size_s = 86400
slide_s = 86400
lateness_s = 600
max_ahead_s = 3600
retention_s = 2592000
[slices]
by = [[], ["variant"], ["phase"], ["variant", "phase"]]
max_keys = 10000
[metrics]
auc = { type = "HistogramAUC" }
propensity_auc = { type = "ExactAUC", inputs = { scores = "propensity" } }
gauc = { type = "GroupedAUC", weight = "impressions" }
ctr = { type = "Ratio" }
[metrics.rank]
type = "RankingMetrics"
measures = ["NDCG@10", "MRR@10"]
inputs = { labels = "clicks", scores = "p" }
[store]
url = "obd.db"
commit_interval_s = 5
[server]
host = "127.0.0.1"
port = 8765
"""


KAFKA = 'kind = "kafka"\nbootstrap_servers = "h:1"\ntopic = "t"\ngroup = "g"'


def refused(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config(text)
    return caught.value


def problems(text: str) -> dict[str, str]:
    """What is said, by where."""
    return {p.where: f"{p.expected} | {p.got} | {p.hint}" for p in refused(text).problems}


def test_the_example_of_the_interface_is_read(tmp_path: Path) -> None:
    path = tmp_path / "obd.toml"
    path.write_text(INTERFACE)
    found = load_config(path)
    assert found.source.path == tmp_path / "obd_men_events.jsonl"
    assert found.store.url == str(tmp_path / "obd.db")
    assert found.source.max_event_bytes == 262_144
    assert found.store.max_bad_share == 1.0
    assert found.windows.pane_ms == 86_400_000
    assert [metric.name for metric in found.metrics] == [
        "auc", "ctr", "gauc", "propensity_auc", "rank",
    ]  # fmt: skip


def test_roles_feed_the_arguments_of_metrics() -> None:
    found = {metric.name: metric.inputs for metric in config(INTERFACE).metrics}
    assert found["auc"] == {"labels": Field("label", "label"), "scores": Field("score", "real")}
    assert found["ctr"] == {"numerators": Field("label", "label")}
    assert found["gauc"]["groups"] == Field("user", "hashed_id")


def test_an_input_reads_an_argument_from_another_field() -> None:
    found = {metric.name: metric.inputs for metric in config(INTERFACE).metrics}
    assert found["propensity_auc"] == {
        "labels": Field("label", "label"), "scores": Field("propensity", "real"),
    }  # fmt: skip


def test_a_metric_of_lists_reads_arrays() -> None:
    (rank,) = (metric for metric in config(INTERFACE).metrics if metric.of_lists)
    assert rank.inputs["labels"] == Field("clicks", "label_list")
    assert rank.inputs["scores"] == Field("p", "real_list")


def test_the_panel_takes_the_columns_of_the_fields() -> None:
    takes = config(metrics=METRICS).metric_sets[0].panel().arguments()
    assert [name for name, needed in takes.items() if needed] == ["label:label", "score:real"]


def test_exact_states_are_bounded_and_users_are_strings() -> None:
    found = {metric.name: metric.empty.settings() for metric in config(INTERFACE).metrics}
    assert found["propensity_auc"]["max_rows"] == 10_000_000
    assert found["gauc"]["max_rows"] == 10_000_000
    assert found["gauc"]["ids"] == "hashed"


def test_a_setting_of_the_config_goes_before_its_defaults() -> None:
    found = config(metrics='g = { type = "GroupedAUC", ids = "integer", max_rows = 5 }')
    assert found.metrics[0].empty.settings()["max_rows"] == 5
    bounded = 'g = { type = "GroupedAUC", grid = "relative", resolution = 6 }'
    settings = config(metrics=bounded).metrics[0].empty.settings()
    assert (settings["max_rows"], settings["grid"], settings["ids"]) == (None, "relative", "hashed")
    assert found.metrics[0].inputs["groups"].kind == "int_id"


def test_one_error_lists_every_bad_setting() -> None:
    text = toml(
        source='kind = "file"\nmax_event_bytes = -1\ntopic = "x"',
        event='variants = ["a", "a"]\nlabel = "a..b"',
        windows="size_s = 0\nlateness_s = true",
        slices="by = [[], []]\nmax_keys = 0",
        metrics='auc = { type = "HistogramAUK" }\nh = { type = "HistogramAUC", resolution = 99 }',
        rest='[store]\nurl = 3\ncommit_interval_s = "5"\n[server]\nport = 70000\n[srever]\n',
    )
    assert set(problems(text)) == {
        "[srever]", "[source] max_event_bytes", "[source] path", "[source] topic",
        "[event] label", "[event] time", "[event] variants", "[windows] lateness_s",
        "[windows] size_s", "[slices] by[1]", "[slices] max_keys", "[metrics] auc.type",
        "[metrics] h.resolution", "[store] url", "[store] commit_interval_s",
        "[server] port",
    }  # fmt: skip


def test_the_error_reads_as_a_list() -> None:
    text = str(refused(toml(windows='size_s = 0\nslide = 3\nlateness_s = "x"')))
    assert "3 bad settings" in text
    assert "[windows] slide: expected a known key, got 'slide'; did you mean `slide_s`?" in text


@pytest.mark.parametrize(
    ("text", "where", "hint"),
    [
        (toml(source=SOURCE + '\nfromat = "csv"'), "[source] fromat", "`format`"),
        (toml(rest="[servers]\nport = 1"), "[servers]", "`server`"),
        (toml(metrics='a = { type = "HistogramAUK" }'), "[metrics] a.type", "`HistogramAUC`"),
        (toml(metrics='a = { type = "HistogramAUC", resolutoin = 7 }'),
         "[metrics] a.resolutoin", "`resolution`"),
        (toml(metrics='a = { type = "HistogramAUC", inputs = { score = "p" } }'),
         "[metrics] a.inputs.score", "`scores`"),
        (toml(source='kind = "kafak"'), "[source] kind", "`kafka`"),
    ],
)  # fmt: skip
def test_an_unknown_name_gets_a_did_you_mean(text: str, where: str, hint: str) -> None:
    assert f"did you mean {hint}?" in problems(text)[where]


@pytest.mark.parametrize("format", ["json", "ndjson", "array", "arrow"])
def test_a_message_of_kafka_may_carry_many_events(format: str) -> None:
    assert config(toml(source=f'{KAFKA}\nformat = "{format}"')).source.format == format
    said = problems(toml(source=f'kind = "file"\npath = "a.jsonl"\nformat = "{format}"'))
    assert "one of" in said["[source] format"] or "jsonl" in said["[source] format"]


def test_kafka_needs_its_servers_topic_and_group() -> None:
    assert set(problems(toml(source='kind = "kafka"'))) == {
        "[source] bootstrap_servers", "[source] topic", "[source] group",
    }  # fmt: skip


def test_client_settings_that_the_ledger_needs_are_refused() -> None:
    text = toml(
        source='kind = "kafka"\nbootstrap_servers = ["h:1"]\ntopic = "t"\ngroup = "g"\n'
        "[source.client]\nenable_auto_commit = true\nfetch_max_bytes = 1"
    )
    assert set(problems(text)) == {"[source.client] enable_auto_commit"}


def test_a_bad_setting_of_a_metric_carries_what_the_metric_said() -> None:
    said = problems(toml(metrics='auc = { type = "HistogramAUC", resolution = 99 }'))
    (text,) = said.values()
    assert "99" in text


def test_a_metric_without_a_role_that_it_needs_is_refused() -> None:
    said = problems(toml(event='time = "ts"', metrics='auc = { type = "HistogramAUC" }',
                         slices="by = [[]]"))  # fmt: skip
    assert "a field for `scores`" in said["[metrics] auc"]
    assert "name [event] score" in said["[metrics] auc"]


def test_a_field_cannot_be_a_value_and_a_list() -> None:
    ranked = (
        'r = { type = "RankingMetrics", measures = ["MRR@3"] }\nauc = { type = "HistogramAUC" }'
    )
    assert "reads it as" in " ".join(problems(toml(metrics=ranked)).values())


def test_a_path_cannot_go_through_a_value() -> None:
    said = problems(
        toml(slices='by = [[], ["user.country"]]', metrics='g = { type = "GroupedAUC" }')
    )
    assert "reads 'user' itself" in said["[slices] by"]


def test_combinators_are_not_metrics_of_a_config() -> None:
    assert "a metric" in problems(toml(metrics='p = { type = "PerKey" }'))["[metrics] p.type"]


def test_a_weight_that_no_metric_takes_is_not_left_out_in_silence() -> None:
    said = problems(toml(event=f'{EVENT}\nweight = "w"', metrics='c = { type = "Ratio" }'))
    assert "no metric" in said["[event] weight"]


def test_too_many_panes_within_the_retention_are_refused() -> None:
    said = problems(toml(windows="size_s = 61\nslide_s = 60\nretention_s = 2592000"))
    assert "panes of 1 s" in said["[windows] retention_s"]


def test_windows_that_slide_by_a_small_part_of_themselves_are_refused() -> None:
    said = problems(toml(windows="size_s = 86400\nslide_s = 1\nretention_s = 86400"))
    assert "at least 24" in said["[windows] slide_s"]
    config(toml(windows="size_s = 86400\nslide_s = 24\nretention_s = 86400"))


def test_an_override_goes_before_the_file_and_its_flag_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(toml(rest='[store]\nurl = "a.db"\n[server]\nport = 1'))
    found = load_config(path, {"server.port": "8", "store.url": "here.db"})
    assert (found.server.port, found.store.url) == (8, "here.db")
    with pytest.raises(ConfigError) as caught:
        load_config(path, {"server.port": Override("x", "--port"), "server.prot": 1})
    assert [p.where for p in caught.value.problems] == ["--port", "server.prot"]


def test_an_url_is_left_as_it_is() -> None:
    url = "postgresql://host/db"
    assert config(toml(rest=f'[store]\nurl = "{url}"')).store.url == url


@pytest.mark.parametrize(
    "data", [b"a = ", b"\xff\xfe", b"a = 1\na = 2", b"[[[[", b"#" * (1 << 20) + b"\n"]
)
def test_a_file_that_is_no_toml_is_one_clear_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=r"c\.toml"):
        load_config(path)


def test_a_file_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a readable file"):
        load_config(tmp_path / "none.toml")


def test_a_fingerprint_changes_with_what_selects_rows_and_with_nothing_else() -> None:
    def prints(**parts: str) -> dict[str, str]:
        return config(**parts).fingerprints()

    was = prints()
    assert (
        prints(windows="size_s = 3600\nlateness_s = 5\nretention_s = 7200\nmax_ahead_s = 100")
        == was
    )
    assert prints(metrics=METRICS + '\ng = { type = "GroupedAUC" }').items() >= was.items()
    moved = prints(event=EVENT.replace('score = "score"', 'score = "p"'))
    assert moved["ctr"] == was["ctr"] and moved["auc"] != was["auc"]
    for parts in (
        {"slices": "by = [[]]"},
        {"event": EVENT.replace('"b"', '"c"')},
        {"event": EVENT.replace('"ts"', '"t"')},
        {"windows": "size_s = 7200\nmax_ahead_s = 100"},
        {"windows": "size_s = 3600\nmax_ahead_s = 101"},
    ):
        assert prints(**parts)["ctr"] != was["ctr"]


def test_the_floor_is_the_start_of_a_pane_and_never_above_the_retention() -> None:
    hourly: Config = config(windows="size_s = 3600\nretention_s = 7200")
    assert hourly.floor_ms(3 * 3_600_000) == 3_600_000
    assert hourly.floor_ms(3 * 3_600_000 + 1) == 3_600_000
    assert hourly.floor_ms(3 * 3_600_000 - 1) == 0


def test_a_grouping_that_repeats_another_is_refused() -> None:
    said = problems(toml(slices='by = [["variant", "phase"], ["phase", "variant"]]'))
    assert "repetition" in said["[slices] by[1]"]


BESIDE = {
    "event": 'time = "ts"\nvariant = "header.variant"\nlabel = "key.label"\nscore = "keys"',
    "slices": 'by = [[], ["header.region"]]',
    "metrics": 'a = { type = "HistogramAUC", inputs = { scores = "header.score" } }',
}


def test_a_record_of_kafka_has_a_key_and_headers_and_one_of_a_file_has_none() -> None:
    assert config(toml(source=KAFKA, **BESIDE)).event.variant == "header.variant"
    found = problems(toml(**BESIDE))
    assert set(found) == {
        "[event] variant",
        "[event] label",
        "[slices] by[1]",
        "[metrics] a.inputs.scores",
    }
    assert (
        "only a record of Kafka has a header, and this source is a file"
        in (found["[event] variant"])
    )


def test_a_header_is_read_by_its_name() -> None:
    said = problems(toml(source=KAFKA, event='time = "ts"\nlabel = "label"\nscore = "header"'))
    assert said["[event] score"].startswith("header.NAME")


TOKEN = "0123456789abcdef"


def config_with(folder: Path, token: str) -> Path:
    """A config whose [server] has this token, as TOML writes it."""
    path = write_config(folder)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("port = 0\n", f"port = 0\ntoken = {token}\n"), encoding="utf-8")
    return path


def test_a_token_is_taken_and_not_shown(tmp_path: Path) -> None:
    server = load_config(config_with(tmp_path, f'"{TOKEN}"')).server
    assert server.token == TOKEN
    assert TOKEN not in repr(server)
    assert load_config(write_config(tmp_path)).server.token == ""


@pytest.mark.parametrize("token", ["short", "with spaces in the middle", "é" * 20, "a" * 201, ""])
def test_a_weak_token_is_an_error_that_keeps_it_to_itself(tmp_path: Path, token: str) -> None:
    with pytest.raises(ConfigError, match="16 to 200 letters") as refused:
        load_config(config_with(tmp_path, f'"{token}"'))
    assert not token or token not in str(refused.value)
