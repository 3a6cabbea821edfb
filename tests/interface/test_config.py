"""The config: tables, keys, defaults, formats, roles and reasons, as the page has them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, get_args

import pytest
from streammetrics_consumers.cli.arguments import COMMANDS
from streammetrics_consumers.config.arms import DeclaredArms
from streammetrics_consumers.config.config import TABLES, load_config
from streammetrics_consumers.config.event import ROLE_ARGUMENTS, read_event
from streammetrics_consumers.config.exposures import read_exposures
from streammetrics_consumers.config.join import read_join
from streammetrics_consumers.config.keys import Key, read
from streammetrics_consumers.config.read_experiment import read_experiment
from streammetrics_consumers.config.section import Problem, RefusedSetting, Section
from streammetrics_consumers.config.source import FORMATS, read_source
from streammetrics_consumers.config.tables import (
    MAX_AHEAD_S,
    ServerConfig,
    read_dedup,
    read_quarantine,
    read_slices,
    read_store,
    read_windows,
)
from streammetrics_consumers.events import PAYLOAD_BYTES, Reason

from docs import config_table, http_page
from docs.marked_part import END, MarkedPart
from tests.interface.page import PAGE, block, spans, table


def test_every_key_that_is_declared_is_read_and_no_other(tmp_path: Path) -> None:
    problems: list[Problem] = []
    sections = {name: Section(name, {}, problems) for name in TABLES if name != "metrics"}
    source = read_source(sections["source"], tmp_path)
    event = read_event(sections["event"])
    windows = read_windows(sections["windows"])
    join = read_join(sections["join"], source, event, windows)
    read_exposures(sections["exposures"], source, event, windows, join, is_joined=True)
    read_dedup(sections["dedup"], source)
    read_slices(sections["slices"], event)
    read_experiment(sections["experiment"], event, (), DeclaredArms())
    read_store(sections["store"], tmp_path)
    read_quarantine(sections["quarantine"], source)
    read(sections["server"], ServerConfig)
    for name, section in sections.items():
        assert set(section.asked) == set(TABLES[name])


@pytest.mark.parametrize("part", [config_table.PART, *http_page.PARTS])
def test_a_page_has_what_the_declarations_say(part: MarkedPart) -> None:
    text = part.path.read_text(encoding="utf-8")
    assert part.page(text) == text, "run `make docs`"
    for mark in (part.start, END):
        with pytest.raises(SystemExit, match="lost its marks"):
            part.page(text.replace(mark, ""))


@pytest.mark.parametrize(
    ("number", "source"),
    [(0, ""), *((number, '[source]\nkind = "file"\npath = "x.jsonl"\n') for number in (1, 2, 3))],
)
def test_the_configs_of_the_page_are_good(tmp_path: Path, number: int, source: str) -> None:
    text = source + block("toml", number)
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    assert {metric.name for metric in load_config(tmp_path / "config.toml").metrics} == set(
        tomllib.loads(text)["metrics"]
    )


def test_the_page_has_the_default_of_every_key(tmp_path: Path) -> None:
    text = """
        source = { kind = "file", path = "x" }
        event = { time = "ts", variant = "v", variants = ["a", "b"], user = "u" }
        metrics = { ctr = { type = "Ratio" } }
        experiment = { control = "a", decision = ["ctr"] }
        experiments = { e = { control = "a", decision = ["ctr"] } }
        exposures = { field = "k", equals = "e", arm = "a" }
        [join]
        id = "i"
        label_window_s = 1
        impression = { field = "k", equals = "i" }
        outcomes = { n = { field = "k", equals = "n" } }
        [dedup]
        event_id = "e"
    """
    set_keys = ("event.variant", "event.variants", "event.user", "experiment.unit")
    set_keys += ("exposures.field", "exposures.equals", "exposures.topic")  # of its mark
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    config = load_config(tmp_path / "config.toml")
    plain = [(key, row[2]) for row in table("key") for key in spans(row[0])]
    keys = {key for key, _ in plain}
    checked = 0
    for key, default in plain:
        section, _, name = key.partition(".")
        if key in set_keys or "required" in default or default == "by kind":
            continue
        of_table = config.experiments[""] if section == "experiment" else getattr(config, section)
        value = getattr(of_table, name)
        if (default_key := spans(default)[:1]) and default_key[0] in keys:  # that of another key
            table_name, _, default_name = default_key[0].partition(".")
            assert value == (getattr(getattr(config, table_name), default_name) or "iso"), key
            continue
        if key == "windows.max_ahead_s":  # with [join], which this config has, there is another one
            value = MAX_AHEAD_S
        if key == "store.url":
            value = str(Path(value).relative_to(tmp_path.resolve()))
        if key.endswith(".where"):
            value = dict(value)
        elif isinstance(value, tuple):
            value = [list(names) for names in value]
        expected = None if default == "none" else tomllib.loads(f"x = {spans(default)[0]}")["x"]
        assert value == expected, key
        checked += 1
    assert checked > 20


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("x.db", "{folder}/x.db"),
        ("/a/x.db", "/a/x.db"),
        ("sqlite:///x.db", "sqlite:///{folder}/x.db"),
        ("sqlite+pysqlite:////a/x.db", "sqlite+pysqlite:////a/x.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("postgresql:///x", "postgresql:///x"),
    ],
)
def test_paths_of_the_config_are_relative_to_the_file(
    tmp_path: Path, url: str, expected: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'{block("toml")}\n[store]\nurl = "{url}"\n', encoding="utf-8")
    config = load_config(path)
    assert config.source.path == tmp_path.resolve() / "obd_men_events.jsonl"
    assert config.store.url == expected.format(folder=tmp_path.resolve())
    assert load_config(path, {"store.url": url}).store.url == url


def test_a_flag_of_serve_is_a_key_of_the_server_with_its_default() -> None:
    (serve,) = [command for command in COMMANDS if command.name == "serve"]
    for flag in serve.flags:
        declared = TABLES["server"][flag.dest]
        assert flag.default in (None, declared.default), flag.name


def test_keys_that_the_page_calls_required_are_missed(tmp_path: Path) -> None:
    for row in table("key"):
        for key in spans(row[0]) if "required" in row[2] else ():
            kind = spans(row[2])[0] if spans(row[2]) else "file"
            path = tmp_path / "config.toml"
            text = f'[source]\nkind = "{kind}"\n[experiment]\n[join]\n[exposures]\n[dedup]\n'
            text = "" if key == "source.kind" else text
            path.write_text(text, encoding="utf-8")
            with pytest.raises(Exception, match=re.escape("[{}] {}:".format(*key.split(".")))):
                load_config(path)


def test_the_page_has_every_format_role_and_reason() -> None:
    formats = {spans(kind)[0]: tuple(spans(names)) for kind, names in table("kind")}
    assert formats == FORMATS
    roles = {spans(role)[0]: tuple(spans(names)) for role, names in table("role")}
    assert roles == {**ROLE_ARGUMENTS, "time": ("times_ms",)}
    passage = PAGE.partition("one of\nthese reasons:")[2].partition(".")[0]
    assert spans(passage) == list(get_args(Reason))
    assert f"cut at {PAYLOAD_BYTES} bytes" in PAGE


PLAIN = """
    source = { kind = "file", path = "x.jsonl" }
    event = { time = "ts", variant = "v", variants = ["a", "b"], user = "u", score = "s" }
    windows = { size_s = 3600 }
    dedup = { event_id = "e" }
    experiment = { control = "a", decision = ["ctr"] }
    [metrics]
    ctr = { type = "Ratio" }
    auc = { type = "GroupedAUC" }
    top = { type = "GroupedScores", measures = ["MRR@3"], inputs = { items = "i", lists = "l" } }
"""
LABEL: Mapping[str, object] = {"event.label": "label"}
JOIN: Mapping[str, object] = {
    "metrics.top": None,
    "join.id": "id",
    "join.impression": {"field": "k", "equals": "i"},
    "join.outcomes": {"n": {"field": "k", "equals": "n"}},
    "join.label_window_s": 60,
}
EXPOSED: Mapping[str, object] = {
    **LABEL,
    "metrics.top": None,
    "exposures.field": "k",
    "exposures.equals": "e",
    "exposures.arm": "a",
    "experiments": {"e": {"control": "a", "decision": ["ctr"]}},
}
NAMED: Mapping[str, object] = {
    **{f"exposures.{name}": name for name in ("field", "equals", "unit", "experiment", "arm")},
    "exposures.time": "at",
    "exposures.time_unit": "iso",
    "exposures.where": {},
}
KAFKA: Mapping[str, object] = {
    "source": {"kind": "kafka", "topic": "t", "group": "g", "bootstrap_servers": "h:1"}
}
HORIZON: Mapping[str, object] = {"experiment.horizon": 1000, "experiment.baseline": 0.1}
ROLES: Mapping[str, object] = {"metrics.top.inputs": None, "event.list": "l", "event.item": "i"}
OF_SUBTOPICS: Mapping[str, object] = {
    "type": "RankingMetrics", "measures": ["StRecall"], "inputs": {"labels": "y", "scores": "z"}
}  # fmt: skip
MEAN: Mapping[str, object] = {"type": "UnitMean", "inputs": {"values": "x"}, "better": "lower"}
# What stands beside a key and another value of its own. A key that is not here has nothing beside
# it, and the value of `another`: a new key needs no line.
CHANGED: Mapping[str, tuple[Mapping[str, object], object]] = {
    **{f"event.{name}": (LABEL, "other") for name in ("time", "variant", "user", "score", "epoch")},
    **{f"event.{name}": (LABEL | ROLES, "other") for name in ("list", "item")},
    "event.time_unit": (LABEL, "ms"),
    "event.variants": (LABEL, ["a", "c"]),
    "event.label": (LABEL, "other"),
    "event.subtopics": (LABEL | {"event.subtopics": "t", "metrics.all": OF_SUBTOPICS}, "other"),
    "event.weight": (LABEL | {"metrics.all": {"type": "HistogramAUC"}}, "w"),
    "event.where": (LABEL, {"bot": False}),
    "windows.size_s": (LABEL, 7200),
    "windows.slide_s": (LABEL, 60),
    "windows.lateness_s": (JOIN | {"windows.max_ahead_s": 10}, 700),
    "windows.max_ahead_s": (LABEL, 10),
    "windows.retention_s": (LABEL, 86_400),
    "slices.by": (LABEL, [[]]),
    "store.url": (LABEL, "other.db"),
    "experiment.control": (LABEL, "b"),
    "experiment.decision": (LABEL, ["auc"]),
    "experiment.guardrails": (LABEL, [{"metric": "auc", "margin": 0.1}]),
    "experiment.lower_is_better": (LABEL, ["ctr"]),
    "experiment.unit": (LABEL, "other"),
    "experiment.cluster": (LABEL, "none"),
    "experiment.on_several_variants": (LABEL, "error"),
    "experiment.horizon": (LABEL | HORIZON, 2000),
    "experiment.baseline": (LABEL | HORIZON, 0.2),
    "experiment.mde": (LABEL, 0.1),
    "experiment.mdes": (LABEL, {"ctr": 0.1}),
    "experiment.covariates": (LABEL, {"ctr": {"metric": "auc", "theta": 0.5}}),
    "experiment.level": (LABEL, 0.9),
    "experiment.epochs": (LABEL, ["2026-01-31T00:00:00Z"]),
    "experiment.shares": (LABEL, {"a": 9, "b": 1}),
    "experiment.unit_share": (LABEL, 0.5),
    "experiment.max_units": (LABEL, 10),
    "experiment.metrics": (LABEL, ["auc"]),
    "experiment.where": (LABEL, {"bot": False}),
    "experiment.start": (LABEL, "2026-01-31T00:00:00Z"),
    "experiment.end": (LABEL, "2026-01-31T00:00:00Z"),
    "experiment.name": (LABEL, "New ranker"),
    "experiment.hypothesis": (LABEL, "It raises clicks."),
    "experiment.days": (LABEL, 14),
    "experiment.min_days": (LABEL, 7),
    "experiment.sample_ratio_acknowledged": (LABEL, "bots"),
    "experiment.assignment_salt": (LABEL, "salt"),
    "experiment.look_every_s": (LABEL, 10.0),
    "experiment.watch_rates": (LABEL | {"metrics.ctr": MEAN}, False),
    "join.id": (JOIN, "other"),
    "join.impression": (JOIN, {"field": "k", "equals": "j"}),
    "join.outcomes": (JOIN, {"n": {"field": "k", "equals": "m"}}),
    "join.label_window_s": (JOIN, 61),
    "join.reopen_s": (JOIN, 1),
    "join.attribution": (JOIN, "last"),
    "join.idle_s": (JOIN, 10),
    "join.warn_cut": (JOIN, 0.5),
    "exposures.topic": (EXPOSED | KAFKA, "t"),
    "exposures.preset": (EXPOSED | NAMED, "posthog"),
    "exposures.time_unit": (EXPOSED, "ms"),
    "exposures.where": (EXPOSED, {"bot": False}),
    "exposures.reopen_s": (EXPOSED, 1),
    "exposures.idle_s": (EXPOSED, 10),
    "dedup.event_id": (LABEL, "other"),
    "dedup.retention_s": (LABEL, 10),
    "server.host": (LABEL, "0.0.0.0"),
    "server.token": (LABEL, "0123456789abcdef"),
    "server.cache_bytes": (LABEL, 10),
}


def inline(value: object) -> str:
    """A value as TOML has it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {inline(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


VALUES: Final = (True, False, 10, 2000, 0.5, "other")


def _neighbours(key: str) -> Mapping[str, object]:
    return {"join": JOIN, "exposures": EXPOSED}.get(key.partition(".")[0], LABEL)


def another(key: Key) -> object:
    """A value of a key that is not its default."""
    for value in (*spans(key.kind.text), *VALUES):
        with suppress(RefusedSetting):
            is_read = key.kind.read(Section("table", {}, []), "name", value) == value
            if is_read and value != key.default:
                return value
    raise AssertionError(f"a line of CHANGED for {key}: its kind does not say which values it has")


def test_a_key_is_part_of_states_where_the_page_says_so(tmp_path: Path) -> None:
    def prints(settings: Mapping[str, object]) -> dict[str, str]:
        document = tomllib.loads(PLAIN)
        for key, value in settings.items():
            *tables, name = key.split(".")
            table = document
            for table_name in tables:
                table = table.setdefault(table_name, {})
            if value is None:
                del table[name]
            else:
                table[name] = value
        path = tmp_path / "config.toml"
        path.write_text("".join(f"{name} = {inline(entry)}\n" for name, entry in document.items()))
        return load_config(path).fingerprints()

    declared = {
        f"{table}.{name}": key for table, keys in TABLES.items() for name, key in keys.items()
    }
    assert CHANGED.keys() <= declared.keys()
    for key in declared:
        # Which log is read is not what its states mean.
        if key.startswith(("source.", "quarantine.")):
            continue
        neighbours, value = CHANGED.get(key) or (_neighbours(key), another(declared[key]))
        differs = prints(neighbours) != prints({**neighbours, key: value})
        assert differs == declared[key].in_states, key
    moved = {**LABEL, **KAFKA, "quarantine.topic": "bad"}
    assert prints(moved) == prints(LABEL)
    assert not any(declared[key].in_states for key in declared if key[:7] in ("source.", "quarant"))
