"""What real runs give, with a join and without, as JSON and by HTTP, against the page."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families
from streammetrics_consumers.cli.arguments import COMMANDS
from streammetrics_consumers.cli.demo_configs import JOINED_CONFIG
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.counting.worker_status import PartitionStatus, WorkerStatus
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server.application import application
from streammetrics_consumers.server.exposition import ServerNumbers, exposition
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.openapi import QUERY

from streammetrics import HistogramAUC
from tests.consumers import experiment_run, hook_run, interacting_run, meeting_run, verdict_cases
from tests.consumers.hook_run import NOWHERE
from tests.consumers.server.asking import Client
from tests.consumers.stores import make_store
from tests.interface.page import PAGE, block, spans, table

Capture = pytest.CaptureFixture[str]


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


ASKED = {  # routes that say nothing by themselves
    "/assets/{name}": "/assets/index.html",
    "/api/history": "/api/history?metric=gauc",
    "/api/figure": "/api/figure?metric=gauc",
}


def document(capsys: Capture, *words: str) -> tuple[bytes, dict[str, object]]:
    """What a command prints with `--json`."""
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    text = capsys.readouterr().out
    return text.encode(), json.loads(text)


def test_the_results_of_the_page_are_those_of_a_real_run(store: Path, capsys: Capture) -> None:
    raw, payload = document(capsys, "results", str(store))
    in_one_line = json.dumps(payload, sort_keys=True, ensure_ascii=False)
    assert raw == in_one_line.encode() + b"\n"
    for row in payload["results"]:
        assert re.fullmatch("sha256:[0-9a-f]{64}", row["digest"])
        row["digest"] = "sha256:…"
    assert payload == json.loads(block("json"))


def test_the_page_has_the_keys_of_every_other_document(store: Path, capsys: Capture) -> None:
    state = str(store.parent / "all.state")
    assert main(["export", str(store), "-o", state, "--where", "variant=bts"]) == 0
    scores = store.parent / "scores.state"
    scores.write_bytes(HistogramAUC().to_file_bytes())
    words_by_command = {
        "status": [store],
        "status --history": [store],
        "quarantine": [store],
        "hooks": [store],
        "show": [state],
        "drift": [scores, scores],
        "plan": ["--rate", 0.05, "--effect", 0.01],
    }
    assert [spans(row[0])[0] for row in table("document")] == [
        f"{name} --json" for name in words_by_command
    ]
    for (command, words), row in zip(words_by_command.items(), table("document"), strict=True):
        _, payload = document(capsys, *command.split(), *map(str, words))
        assert payload.pop("format") == spans(row[1])[0]
        assert set(payload) == set(spans(row[2]))
        if command == "plan":
            passage = PAGE.partition("A test of `tests` has")[2].partition(";")[0]
            assert set(payload["tests"][0]) == set(spans(passage))
        if command == "quarantine":
            passage = PAGE.partition("An entry of quarantine has")[2].partition(";")[0]
            assert set(payload["entries"][0]) == set(spans(passage))
        if command == "status --history":
            passage = PAGE.partition("A range of `counted` has")[2].partition(";")[0]
            assert set(payload["counted"][0]) == set(spans(passage))


def test_the_page_has_every_route_and_no_other_is_there(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        app = application(ledger, store=str(store))
        client = Client(app)
        routes = [spans(row[0])[0] for row in table("route")]
        assert routes == sorted(route.path for route in app.app.routes)  # type: ignore[attr-defined]
        urls = [ASKED.get(route, route) for route in routes if route != "/api/events"]
        assert [client.get(route).status_code for route in urls] == [200] * len(urls)
        assert client.request("HEAD", "/api/events").status_code == 200
        assert all(client.request("HEAD", route).status_code == 200 for route in urls)
        assert all(client.request("POST", route).status_code == 405 for route in routes)
        assert set(QUERY) < {flag.name for c in COMMANDS for flag in c.flags}


def test_the_page_has_every_series_with_its_labels(tmp_path: Path) -> None:
    store = verdict_cases.store(tmp_path, verdict_cases.CASES["kept"])
    wait = '[metrics.wait]\ntype = "Quantiles"\ninputs = { values = "score" }\n'
    (tmp_path / "quantiles").mkdir()
    quantiles = make_store(tmp_path / "quantiles", rest=wait)
    place = PartitionStatus("t", 0, 0, 1, record_ms=0)
    reported = WorkerStatus(1, 0.0, 0.0, partitions=[place], quarantined={"empty": 1})
    watched = WatchedWorkers(lambda: {"0": reported}, lambda: 0.0, lambda: 0.0)
    labels_by_series: dict[str, set[str]] = {}
    for name in ("interacting", "hooks", "meeting"):
        (tmp_path / name).mkdir()
    hooked = experiment_run.run(hook_run.config(tmp_path / "hooks", hook_run.hook(NOWHERE)))
    interacting = interacting_run.make(tmp_path / "interacting")
    meeting = meeting_run.make(tmp_path / "meeting")
    for path in (store, quantiles, hooked, interacting, meeting):
        with closing(Ledger.open(str(path))) as ledger:
            text = exposition(ledger, watched, numbers=ServerNumbers(0, 0, 0)).decode()
        for family in text_string_to_metric_families(text):
            name = family.name + ("_total" if family.type == "counter" else "")
            labels = {label for sample in family.samples for label in sample.labels}
            labels -= {"le", "experiment"}  # the page says once which series name an experiment
            labels_by_series[name] = labels_by_series.get(name, set()) | labels
    on_the_page: dict[str, set[str]] = {}
    for row in table("series"):
        labels = set() if row[1] == "none" else {"worker", *spans(row[1])}
        on_the_page.update(dict.fromkeys(spans(row[0]), labels))
    for row in table("series of results"):
        on_the_page.update({name: set(spans(row[1])) for name in spans(row[0])})
    assert on_the_page == labels_by_series


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the demonstration with `--join`."""
    folder = tmp_path_factory.mktemp("joined")
    config = folder / "demo.toml"
    config.write_text(JOINED_CONFIG, encoding="utf-8")
    to = str(folder / "events.jsonl")
    assert main(["simulate", "--join", "--items", "10", "--events", "20000", "-o", to]) == 0
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    return folder / "demo.db"


def test_the_page_explains_every_key_of_a_join(
    joined: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["results", str(joined), "--json"]) == 0
    join = json.loads(capsys.readouterr().out)["join"]
    passage = PAGE.partition("`join` is the state of a join")[2].partition("\n\n")[0]
    keys = {*join, *join["outcomes"]["click"]}
    assert keys - set(spans(passage)) == {"label_window_s"}  # the config has it
    assert main(["status", str(joined), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["join"] == join


def test_the_page_has_every_series_of_a_join_with_its_labels(joined: Path) -> None:
    watched = WatchedWorkers(dict, time.monotonic, time.time)
    with closing(Ledger.open(str(joined))) as ledger:
        text = exposition(ledger, watched).decode()
    families = [f for f in text_string_to_metric_families(text) if "_join_" in f.name]
    labels_by_series = {
        f.name: {label for s in f.samples for label in s.labels} - {"le"} for f in families
    }
    assert labels_by_series == {
        name: set() if row[1] == "none" else set(spans(row[1]))
        for row in table("series of a join")
        for name in spans(row[0])
    }


def test_an_answer_with_a_join_is_as_openapi_says(joined: Path) -> None:
    with closing(Ledger.open(str(joined))) as ledger:
        client = Client(application(ledger, store=str(joined)))
        schemas = json.loads(client.get("/openapi.json").text)["components"]["schemas"]
        for name, path in (("Results", "/api/results"), ("Status", "/api/status")):
            answer = json.loads(client.get(path).text)
            assert answer["join"] is not None
            jsonschema.validate(
                answer, {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
            )
