"""What results say of a join, against the page."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.demo import JOINED_CONFIG
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server.application import application
from streammetrics_consumers.server.exposition import exposition
from streammetrics_consumers.server.health import Watched

from tests.consumers.server.asking import Client
from tests.interface.page import PAGE, spans, table


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the demonstration with `--join`."""
    folder = tmp_path_factory.mktemp("joined")
    config = folder / "demo.toml"
    config.write_text(JOINED_CONFIG, encoding="utf-8")
    to = str(folder / "events.jsonl")
    assert main(["simulate", "--join", "--events", "20000", "-o", to]) == 0
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    return folder / "demo.db"


@pytest.mark.slow
def test_the_page_explains_every_key_of_a_join(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["results", str(store), "--json"]) == 0
    join = json.loads(capsys.readouterr().out)["join"]
    said = PAGE.partition("`join` says how a join")[2].partition("\n\n")[0]
    keys = {*join, *join["outcomes"]["click"]}
    assert keys - set(spans(said)) == {"label_window_s"}  # the config has it
    assert main(["status", str(store), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["join"] == join


@pytest.mark.slow
def test_the_page_has_every_series_of_a_join_with_its_labels(store: Path) -> None:
    watched = Watched(dict, time.monotonic, time.time)
    with closing(Ledger.open(str(store))) as ledger:
        text = exposition(ledger, watched).decode()
    families = [f for f in text_string_to_metric_families(text) if "_join_" in f.name]
    told = {f.name: {label for s in f.samples for label in s.labels} - {"le"} for f in families}
    assert told == {
        name: set() if row[1] == "none" else set(spans(row[1]))
        for row in table("series of a join")
        for name in spans(row[0])
    }


@pytest.mark.slow
def test_an_answer_with_a_join_is_as_openapi_says(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        client = Client(application(ledger, store=str(store)))
        schemas = json.loads(client.get("/openapi.json").text)["components"]["schemas"]
        for name, path in (("Results", "/api/results"), ("Status", "/api/status")):
            answer = json.loads(client.get(path).text)
            assert answer["join"] is not None
            jsonschema.validate(
                answer, {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
            )
