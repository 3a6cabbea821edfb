"""The config: tables, keys, defaults, formats, roles and reasons, as the page has them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

from consumers.config.config import TABLES, load_config
from consumers.config.dedup import read_dedup
from consumers.config.event import ROLE_ARGUMENTS, read_event
from consumers.config.join import read_join
from consumers.config.read_experiment import read_experiment
from consumers.config.schema import Problem, Section
from consumers.config.tables import (
    FORMATS,
    WindowsConfig,
    read_quarantine,
    read_server,
    read_slices,
    read_source,
    read_store,
    read_windows,
)
from consumers.events.refusals import PAYLOAD_BYTES, Reason
from tests.interface.page import PAGE, block, spans, table


@pytest.fixture(scope="module")
def sections(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Section]:
    """Each table of the config, after it was read empty."""
    problems: list[Problem] = []
    made = {name: Section(name, {}, problems) for name in TABLES if name != "metrics"}
    here = tmp_path_factory.mktemp("config")
    source = read_source(made["source"], here)
    read_join(made["join"], source, read_windows(made["windows"]))
    read_dedup(made["dedup"], source)
    event = read_event(made["event"])
    read_slices(made["slices"], event)
    read_experiment(made["experiment"], event, ())
    read_store(made["store"], here)
    read_quarantine(made["quarantine"], source)
    read_server(made["server"])
    return made


def test_the_page_has_every_key_of_the_config(sections: Mapping[str, Section]) -> None:
    known = {f"{name}.{key}" for name, section in sections.items() for key in section.asked}
    keys = [key for row in table("key") for key in spans(row[0])]
    assert len(keys) == len(set(keys))
    assert set(keys) == known


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
        event = { time = "ts", variant = "v", variants = ["a", "b"] }
        metrics = { ctr = { type = "Ratio" } }
        experiment = { control = "a", decision = ["ctr"], unit = "u" }
        [join]
        id = "i"
        label_window_s = 1
        impression = { field = "k", equals = "i" }
        outcomes = { n = { field = "k", equals = "n" } }
        [dedup]
        event_id = "e"
    """
    given = ("event.variant", "event.variants", "experiment.unit")
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    config = load_config(tmp_path / "config.toml")
    plain = [(key, row[1]) for row in table("key") for key in spans(row[0])]
    checked = 0
    for key, default in plain:
        section, _, name = key.partition(".")
        if key in given or "required" in default or default == "of the kind":
            continue
        value = getattr(getattr(config, section), name)
        if key == "windows.max_ahead_s":  # with [join], which this config has, there is another one
            value = WindowsConfig().max_ahead_s
        if key == "store.url":
            value = str(Path(value).relative_to(tmp_path.resolve()))
        if key == "event.where":
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


def test_keys_that_the_page_calls_required_are_missed(tmp_path: Path) -> None:
    for row in table("key"):
        for key in spans(row[0]) if "required" in row[1] else ():
            kind = spans(row[1])[0] if spans(row[1]) else "file"
            path = tmp_path / "config.toml"
            text = f'[source]\nkind = "{kind}"\n[experiment]\n[join]\n[dedup]\n'
            text = "" if key == "source.kind" else text
            path.write_text(text, encoding="utf-8")
            with pytest.raises(Exception, match=re.escape("[{}] {}:".format(*key.split(".")))):
                load_config(path)


def test_the_page_has_every_format_role_and_reason() -> None:
    formats = {spans(kind)[0]: tuple(spans(names)) for kind, names in table("kind")}
    assert formats == FORMATS
    roles = {spans(role)[0]: tuple(spans(names)) for role, names in table("role")}
    assert roles == {**ROLE_ARGUMENTS, "time": ("times_ms",)}
    said = PAGE.partition("one of\nthese reasons:")[2].partition(".")[0]
    assert spans(said) == list(get_args(Reason))
    assert f"cut at {PAYLOAD_BYTES} bytes" in PAGE
