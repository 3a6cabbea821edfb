"""docs/interface.md and the code say the same, in both directions.

The page is read as data: its tables, its config, its JSON. A name that is missing on either side
fails, and so does a default, an argument or an exit code that differs.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import streammetrics
from consumers.cli import exit_codes
from consumers.cli.arguments import _parser, parse
from consumers.cli.flags import COMMANDS, LATER_COMMANDS, Flag
from consumers.cli.main import main
from consumers.config.config import LATER_TABLES, TABLES, load_config
from consumers.config.event import ROLE_ARGUMENTS, read_event
from consumers.config.schema import Problem, Section
from consumers.config.tables import (
    FORMATS,
    LATER_FORMATS,
    read_server,
    read_slices,
    read_source,
    read_store,
    read_windows,
)
from consumers.events.refusals import PAYLOAD_BYTES, Reason
from consumers.ledger.ledger import Ledger, LedgerError
from consumers.results.query import Span, parse_query
from consumers.server.application import PARAMETERS, application
from streammetrics import Accumulator, Measure, SettingsError, parse_measure
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.parts import Part
from streammetrics.ranking.measures import MEASURES
from streammetrics.registry import metric_types
from tests.consumers.server.asking import Client
from tests.requirements import ROOT

PAGE = (ROOT / "docs" / "interface.md").read_text(encoding="utf-8")
Capture = pytest.CaptureFixture[str]


# -- the page as data -------------------------------------------------------------------------
@cache
def table(head: str) -> tuple[tuple[str, ...], ...]:
    """The rows of the table whose first column has this title, as cells."""
    lines = iter(PAGE.splitlines())
    for line in lines:
        if line.startswith(f"| {head} |"):
            break
    else:
        pytest.fail(f"docs/interface.md has no table whose first column is {head!r}")
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return tuple(rows)


def spans(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


def block(language: str) -> str:
    """The one fenced block in this language."""
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def later(what: str) -> list[str]:
    """The names that the section `Not yet` has for this."""
    [row] = [row for row in table("what") if row[0].replace("`", "") == what]
    return spans(row[1])


def signature(arguments: str) -> inspect.Signature:
    """Arguments as the page writes them."""
    made: Callable[..., object] = eval(f"lambda {arguments}: None")
    return inspect.signature(made)


def bare(of: Callable[..., object], *, method: bool = False) -> inspect.Signature:
    """A signature without its types."""
    known = list(inspect.signature(of).parameters.values())[int(method) :]
    empty = inspect.Parameter.empty
    return inspect.Signature([one.replace(annotation=empty) for one in known])


def test_a_table_that_is_not_there_is_found_out() -> None:
    with pytest.raises(pytest.fail.Exception):
        table("no such table")


# -- the command line -------------------------------------------------------------------------
def parsers() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command."""
    [commands] = [a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction)]
    found: Mapping[str, argparse.ArgumentParser] = commands.choices
    return found


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    """The names of its flags, long and short."""
    return {name for action in parser._actions for name in action.option_strings} - {"-h", "--help"}


def names_of(cell: str) -> set[str]:
    """The flags that a cell of the page names."""
    return {name for span in spans(cell) for name in span.split()}


def documented(command: str) -> set[str]:
    """The flags that the page gives a command."""
    if command == "run":
        return {name for row in table("flag of `run`") for name in names_of(row[0])}
    [row] = [row for row in table("command") if spans(row[0])[0].split()[0] == command]
    return names_of(row[2])


def test_the_page_has_every_command_with_its_words() -> None:
    on_the_page = [spans(row[0])[0].split() for row in table("command")]
    assert [words[0] for words in on_the_page] == list(parsers())
    for command, *words in on_the_page:
        taken = [action for action in parsers()[command]._actions if not action.option_strings]
        assert len(words) == len(taken), command


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_the_page_has_every_flag_of_a_command(command: str) -> None:
    assert documented(command) == flags_of(parsers()[command])


def test_the_page_explains_every_flag_once() -> None:
    explained = [spans(row[0]) for row in (*table("flag of `run`"), *table("other flag"))]
    words = [name for row in explained for span in row for name in span.split()]
    assert len(words) == len(set(words))
    assert set(words) == {name for parser in parsers().values() for name in flags_of(parser)}


def test_the_page_has_the_default_of_every_flag() -> None:
    # Where commands differ (`--output`) the first one decides.
    known = {f"--{f.name}": f for command in reversed(COMMANDS) for f in command.flags}
    for row in (*table("flag of `run`"), *table("other flag")):
        for span in spans(row[0]):
            flag = known[span.split()[0]]
            default = "off" if flag.kind is bool else str(flag.default or "")
            assert row[1] == default, span
            assert all(choice in spans(row[2]) for choice in flag.choices), span


def test_every_window_that_the_page_names_can_be_asked_for() -> None:
    [row] = [row for row in table("other flag") if "--window" in row[0]]
    *words, span = spans(row[2])
    assert [parse_query(word).window for word in words] == ["total", "all", "latest"]
    assert span == "START/END"
    assert isinstance(parse_query("1970-01-01/1970-01-02T00:00:00Z").window, Span)


def words_of(flag: Flag) -> tuple[str, list[str]]:
    """A value as the environment has it, and the same as words of a command line."""
    if flag.kind is bool:
        return "1", [f"--{flag.name}"]
    if flag.again:
        return "a=1\nb=2", [f"--{flag.name}=a=1", f"--{flag.name}=b=2"]
    value = flag.choices[-1] if flag.choices else "7"
    return value, [f"--{flag.name}={value}"]


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_flag_has_the_variable_that_the_page_says(command: str) -> None:
    assert "STREAMMETRICS_UNTIL_END=1" in spans(PAGE)
    [known] = [one for one in COMMANDS if one.name == command]
    words = [command, *(["x"] if known.metavar else [])]
    for flag in known.flags:
        value, given = words_of(flag)
        variable = "STREAMMETRICS_" + flag.name.upper().replace("-", "_")
        by_variable, by_flag = parse(words, {variable: value}), parse([*words, *given], {})
        assert by_variable._values == by_flag._values
        assert by_variable.given == {flag.name: variable}
        assert parse([*words, *given], {variable: "0"})._values == by_flag._values


def test_the_page_has_every_exit_code(capsys: Capture) -> None:
    errors = [LedgerError, *LedgerError.__subclasses__()]
    codes = {getattr(exit_codes, name) for name in dir(exit_codes) if name.isupper()}
    codes |= {error.exit_code for error in errors}
    assert {int(row[0]) for row in table("exit code")} == codes
    with pytest.raises(SystemExit):
        main(["--help"])
    said = dict(re.findall(r"(\d+) ([a-z ]+)", " ".join(capsys.readouterr().out.split())))
    for code, meaning in ((row[0], row[1]) for row in table("exit code") if row[0] in said):
        assert said[code].split()[0] == re.split(r"\W", meaning)[0]


def test_commands_that_come_later_are_errors() -> None:
    assert set(later("commands")) == set(LATER_COMMANDS)
    for command in (*LATER_COMMANDS, "quarantine retry"):
        assert main([*command.split(), "x"]) == 2


# -- the config -------------------------------------------------------------------------------
class Recording(Section):
    """A section that remembers which keys are for later."""

    later_keys: tuple[str, ...] = ()

    def later(self, key: str, issue: str) -> None:
        self.later_keys += (key,)
        super().later(key, issue)


@pytest.fixture(scope="module")
def sections(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Recording]:
    """Each table of the config, after it was read empty."""
    problems: list[Problem] = []
    made = {name: Recording(name, {}, problems) for name in TABLES if name != "metrics"}
    here = tmp_path_factory.mktemp("config")
    read_source(made["source"], here)
    read_windows(made["windows"])
    read_slices(made["slices"], read_event(made["event"]))
    read_store(made["store"], here)
    read_server(made["server"])
    return made


def test_the_page_has_every_key_of_the_config(sections: Mapping[str, Recording]) -> None:
    known = {
        f"{name}.{key}"
        for name, section in sections.items()
        for key in section.asked
        if key not in section.later_keys
    }
    keys = [key for row in table("key") for key in spans(row[0])]
    assert len(keys) == len(set(keys))
    assert set(keys) == known


def test_the_config_of_the_page_is_good(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(block("toml"), encoding="utf-8")
    assert {metric.name for metric in load_config(tmp_path / "config.toml").metrics} == set(
        tomllib.loads(block("toml"))["metrics"]
    )


def test_the_page_has_the_default_of_every_key(tmp_path: Path) -> None:
    text = """
        source = { kind = "file", path = "x" }
        event = { time = "ts", variant = "v" }
        metrics = { ctr = { type = "Ratio", inputs = { numerators = "n" } } }
    """
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    config = load_config(tmp_path / "config.toml")
    plain = [(key, row[1]) for row in table("key") for key in spans(row[0])]
    checked = 0
    for key, default in plain:
        section, _, name = key.partition(".")
        if key == "event.variant" or "required" in default or default == "of the kind":
            continue
        value = getattr(getattr(config, section), name)
        if key == "store.url":
            value = str(Path(value).relative_to(tmp_path.resolve()))
        if key == "slices.by":
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
            text = "" if key == "source.kind" else f'[source]\nkind = "{kind}"\n'
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


def test_tables_and_keys_that_come_later_are_errors(sections: Mapping[str, Recording]) -> None:
    assert set(later("tables of the config")) == set(LATER_TABLES)
    assert set(later("keys of [event]")) == set(sections["event"].later_keys)
    assert set(later("formats of Kafka")) == set(LATER_FORMATS)
    assert not any(one.later_keys for name, one in sections.items() if name != "event")


# -- results and HTTP -------------------------------------------------------------------------
CONFIG = """
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "ts"
variant = "variant"
variants = ["random", "bts"]
user = "user"
label = "label"
score = "score"
[slices]
by = [["variant"]]
[metrics]
gauc = { type = "GroupedAUC" }
"""
EVENTS = [("a", 1, 0.5), ("a", 0, 0.5), ("a", 1, 0.9), ("a", 0, 0.1), ("b", 0, 0.1)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the page's example: five good events and a broken one."""
    folder = tmp_path_factory.mktemp("interface")
    lines = [
        json.dumps({"ts": f"2019-11-24T00:00:0{i}Z", "variant": "bts", "user": user,
                    "label": label, "score": score})
        for i, (user, label, score) in enumerate(EVENTS)
    ]  # fmt: skip
    (folder / "events.jsonl").write_text("\n".join([*lines, "{", ""]), encoding="utf-8")
    (folder / "config.toml").write_text(CONFIG, encoding="utf-8")
    assert main(["run", str(folder / "config.toml"), "--until-end", "--no-serve"]) == 0
    return folder / "streammetrics.db"


def document(capsys: Capture, *words: str) -> tuple[bytes, dict[str, object]]:
    """What a command prints with `--json`."""
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    text = capsys.readouterr().out
    return text.encode(), json.loads(text)


def test_the_results_of_the_page_are_those_of_a_real_run(store: Path, capsys: Capture) -> None:
    raw, found = document(capsys, "results", str(store))
    in_one_line = json.dumps(found, sort_keys=True, ensure_ascii=False)
    assert raw == in_one_line.encode() + b"\n"
    for row in found["results"]:
        assert re.fullmatch("sha256:[0-9a-f]{64}", row["digest"])
        row["digest"] = "sha256:…"
    assert found == json.loads(block("json"))


def test_the_page_has_the_keys_of_every_other_document(store: Path, capsys: Capture) -> None:
    state = str(store.parent / "all.state")
    assert main(["export", str(store), "-o", state, "--where", "variant=bts"]) == 0
    given = {"status": str(store), "quarantine": str(store), "show": state}
    assert [spans(row[0])[0] for row in table("document")] == [f"{one} --json" for one in given]
    for (command, word), row in zip(given.items(), table("document"), strict=True):
        _, found = document(capsys, command, word)
        assert found.pop("format") == spans(row[1])[0]
        assert set(found) == set(spans(row[2]))
        if command == "quarantine":
            said = PAGE.partition("An entry of quarantine has")[2].partition(";")[0]
            assert set(found["entries"][0]) == set(spans(said))


def test_the_page_has_every_route_and_no_other_is_there(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        app = application(ledger, store=str(store))
        client = Client(app)
        routes = [spans(row[0])[0] for row in table("route")]
        assert routes == [route.path for route in app.routes]
        assert [client.get(route).status_code for route in routes] == [200] * len(routes)
        assert all(client.request("HEAD", route).status_code == 200 for route in routes)
        assert all(client.request("POST", route).status_code == 405 for route in routes)
        assert [client.get(route).status_code for route in later("routes")] == [404, 404]
        [row] = [row for row in table("route") if "/api/results" in row[0]]
        assert spans(row[1])[1:] == list(PARAMETERS)
        assert set(PARAMETERS) < {flag.name for c in COMMANDS for flag in c.flags}


# -- the library ------------------------------------------------------------------------------
def test_the_page_has_every_name_of_the_library() -> None:
    names = [name for row in table("names") for name in spans(row[0])]
    assert sorted(names) == sorted(streammetrics.__all__)
    for row in table("module"):
        assert sorted(spans(row[1])) == sorted(importlib.import_module(spans(row[0])[0]).__all__)
    assert not set(later("names of the library")) & set(streammetrics.__all__)


def test_the_page_has_every_member_of_an_accumulator() -> None:
    said = PAGE.partition("Every accumulator has ")[2].partition("Bytes, digest")[0]
    named = {re.sub(r"^Class\.|\(.*\)$", "", span) for span in spans(said)}
    named -= {"a + b", "sum(states)", "sum", "==", "sha256:…"}
    assert named == {name for name in dir(Accumulator) if not name.startswith("_")}


def classes() -> Iterator[tuple[type[Accumulator], str, tuple[str, ...]]]:
    """Each class of the page, its settings as written, and the cells of its row."""
    for row in table("class"):
        name, _, settings = spans(row[0])[0].partition("(")
        yield getattr(streammetrics, name), settings.removesuffix(")"), row


def test_the_page_has_every_class_with_its_settings_and_arguments() -> None:
    found = {kind.__name__: (kind, settings, row) for kind, settings, row in classes()}
    assert set(found) == set(metric_types())
    for kind, settings, row in found.values():
        assert signature(settings) == bare(kind), kind
        assert signature(spans(row[1])[0]) == bare(kind.update, method=True), kind
        assert signature(spans(row[1])[0]) == bare(kind.check, method=True), kind
        assert not set(later("arguments of update")) & set(bare(kind.update).parameters)


SAMPLES: Mapping[str, tuple[object, ...]] = {
    "RankingMetrics": (["NDCG@10"],),
    "Panel": ({"ctr": streammetrics.Ratio()},),
    "PerKey": (streammetrics.Ratio(),),
    "Windows": (streammetrics.Ratio(), 3600),
}


def public(result: object) -> set[str]:
    """Attributes that the class of a result itself brings, not as a mapping or an object."""
    given = set(dir(Mapping)) if isinstance(result, Mapping) else set(dir(object))
    return {name for name in dir(result) if not name.startswith("_")} - given


def test_the_page_has_every_attribute_of_a_result() -> None:
    for kind, _, row in classes():
        result = kind(*SAMPLES.get(kind.__name__, ())).compute()
        assert type(result).__name__ == spans(row[2])[0]
        listed = [span for span in spans(row[3]) if not span.startswith("result[")]
        calls = [span for span in listed if span.endswith(")")]
        names = {name for span in listed if span not in calls for name in span.split()}
        assert names | {call.partition("(")[0] for call in calls} == public(result), kind
        for call in calls:
            name, _, arguments = call.partition("(")
            assert signature(arguments.removesuffix(")")) == bare(getattr(result, name)), call
        assert any(span.startswith("result[") for span in spans(row[3])) == isinstance(
            result, Mapping
        )


def test_the_page_has_what_some_classes_have_more() -> None:
    said = PAGE.partition("Some have more: ")[2].partition("Metrics given")[0]
    listed = set()
    for span in spans(said):
        owner, _, member = span.partition(".")
        name, _, arguments = member.partition("(")
        listed.add((owner, name))
        method = getattr(getattr(streammetrics, owner), name)
        assert callable(method) == member.endswith(")"), span
        if callable(method):
            assert signature(arguments.removesuffix(")")) == bare(method, method=True), span
    assert listed == {
        (kind.__name__, name)
        for kind, _, _ in classes()
        for name in set(vars(kind)) - set(dir(Accumulator))
        if not name.startswith("_")
        and name not in kind._settings
        and not isinstance(vars(kind)[name], Part)
    }


def test_the_page_has_the_attributes_of_bounded_and_of_errors() -> None:
    [row] = [row for row in table("names") if spans(row[0]) == ["Bounded"]]
    assert set(spans(row[1])) - {"float()"} == public(streammetrics.Bounded(0.0, 0.0, 0.0))
    [row] = [row for row in table("names") if "StreamMetricsError" in row[0]]
    errors = [getattr(streammetrics, name) for name in spans(row[0])]
    assert set(errors[1:]) == set(StreamMetricsError.__subclasses__())
    assert errors[0].__mro__[1] is ValueError
    said = PAGE.partition("Errors are `ValueError`s under")[2].partition("A measure")[0]
    named = {name.removeprefix(".") for span in spans(said) for name in span.split() if "." in name}
    made = streammetrics.InputError(expected="", came="", where="", todo="")
    assert named == set(vars(made))


def test_the_page_has_every_measure_with_its_parameters() -> None:
    listed = {name: spans(row[1])[0] for row in table("measure") for name in spans(row[0])}
    assert set(listed) == set(MEASURES)
    for name, parameters in listed.items():
        defaults = {p.name: p.default for p in signature(parameters).parameters.values()}
        assert defaults == dict(MEASURES[name]._defaults())
        assert isinstance(parse_measure(name), Measure)


def test_what_the_library_does_not_have_yet_is_an_error() -> None:
    for measure in later("measures"):
        with pytest.raises(SettingsError):
            parse_measure(f"{measure}@10")
    curve = public(streammetrics.HistogramAUC().compute())
    assert not curve & set(later("attributes of ScoreCurve"))
    assert not set(later("methods of metrics")) & set(dir(Accumulator))
    with pytest.raises(TypeError):
        streammetrics.GroupedAUC(grid="relative")  # type: ignore[call-arg]


# -- the promises -----------------------------------------------------------------------------
def test_every_file_that_the_page_of_promises_names_is_there() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|streammetrics|benchmarks|docs)/[^` ]+)`", page)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []
