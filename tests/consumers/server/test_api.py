"""The JSON interface: every answer has the schema that /openapi.json says, and a bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import jsonschema
import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query import catalogue, history
from streammetrics_consumers.render import charts
from streammetrics_consumers.server.application import application
from streammetrics_consumers.server.openapi import openapi_json

from streammetrics.present.spec import drawable
from tests.consumers.server.asking import Client
from tests.consumers.stores import HOSTILE, event, make_store

EXPERIMENT = """\
[experiment]
control = "a"
decision = ["ctr"]
guardrails = [{ metric = "auc", margin = 0.1 }]
cluster = "none"
mde = 0.1
"""
ASKED = [
    "/api/results?window=all",
    "/api/status",
    "/api/store",
    "/api/history?metric=ctr",
    "/api/history?metric=auc&view=gini&by=variant,phase",
    "/api/history?metric=ctr&where=variant=a",
    "/api/experiment",
    "/api/health",
    "/api/figure?metric=auc",
    "/api/figure?metric=auc&kind=history&theme=dark",
    "/api/figure?metric=ctr&kind=effect",
    "/api/results?window=nope",
    "/nothing",
]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an experiment."""
    return make_store(tmp_path_factory.mktemp("watched"), more=EXPERIMENT)


@pytest.fixture(scope="module", params=["plain", "experiment"])
def client(store: Path, watched: Path, request: pytest.FixtureRequest) -> Iterator[Client]:
    path = store if request.param == "plain" else watched
    with closing(Ledger.open(str(path))) as ledger:
        yield Client(application(ledger, store=str(path)))


@pytest.fixture(scope="module")
def compared(watched: Path) -> Iterator[Client]:
    with closing(Ledger.open(str(watched))) as ledger:
        yield Client(application(ledger, store=str(watched)))


def fits(client: Client, path: str, answer: httpx.Response) -> None:
    """The answer is what the served schema says of its path and status."""
    told = client.get("/openapi.json").json()
    responses = told["paths"].get(path.partition("?")[0], {}).get("get", {}).get("responses", {})
    schema = {"$ref": "#/components/schemas/Error"}
    if str(answer.status_code) in responses:
        schema = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
    whole = {**schema, "components": told["components"]}
    jsonschema.Draft202012Validator(whole).validate(json.loads(answer.content))


@pytest.mark.parametrize("path", ASKED)
def test_an_answer_has_the_schema_that_is_served(client: Client, path: str) -> None:
    fits(client, path, client.get(path))


def test_a_key_that_no_schema_has_is_found_out() -> None:
    found = {"error": {"came": "x", "more": 1}}
    components = json.loads(openapi_json())["components"]
    whole = {"$ref": "#/components/schemas/Error", "components": components}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(whole).validate(found)


def test_every_path_that_is_served_is_described(client: Client) -> None:
    app = client.transport.app
    served = {route.path for route in app.routes}  # type: ignore[attr-defined]
    assert set(client.get("/openapi.json").json()["paths"]) == served


def test_parameters_that_are_described_are_those_that_are_taken(client: Client) -> None:
    for path, told in client.get("/openapi.json").json()["paths"].items():
        if path in ("/", "/assets/{name}") or not path.startswith("/api/"):
            continue
        for place in told["get"]["parameters"]:
            error = client.get(f"{path}?{place['name']}=%00").json()["error"]
            assert error["where"] != "the address", (path, place["name"])
        assert client.get(f"{path}?surplus=1").status_code == 400


def test_a_store_says_what_may_be_asked(compared: Client) -> None:
    found = compared.get("/api/store").json()
    assert (found["variants"], found["control"]) == (["a", "b"], "a")
    assert found["groupings"] == [[], ["variant"], ["variant", "phase"]]
    auc, ctr = found["metrics"]
    assert (auc["headlines"], ctr["headlines"]) == (["auc"], ["ratio"])
    assert "roc" in auc["figures"] and auc["figures"][-2:] == ["history", "effect"]
    assert [span["state"] for span in found["windows"]["spans"]] == ["closed", "open"]
    for metric in found["metrics"]:
        for kind in metric["figures"]:
            assert compared.get(f"/api/figure?metric={metric['name']}&kind={kind}").is_success


def test_a_history_has_the_numbers_of_the_results(client: Client) -> None:
    found = client.get("/api/history?metric=auc&view=gini&by=variant").json()
    rows = client.get("/api/results?metric=auc&window=all&by=variant").json()["results"]
    told = {
        (window["start_ms"], series["slice"]["variant"]): tuple(
            series[name][i] for name in ("value", "low", "high")
        )
        for series in found["series"]
        for i, window in enumerate(found["windows"])
        if series["rows"][i] is not None
    }
    assert told == {
        (row["window"]["start_ms"], row["slice"]["variant"]): (
            row["value"], row["low"], row["high"],
        )
        for row in rows
        if row["view"] == "gini" and row["window"]["state"] != "total"
    }  # fmt: skip


def test_an_effect_over_time_has_the_numbers_of_the_comparisons(compared: Client) -> None:
    [effect] = compared.get("/api/history?metric=ctr").json()["effects"]
    rows = compared.get("/api/results?window=all&metric=ctr").json()["comparisons"]
    total, *windows = [row["effect_size"] for row in rows]
    assert effect["windows"]["effect"] == windows
    assert effect["looks"]["effect"] == [total]
    assert (effect["control_variant"], effect["treatment_variant"]) == ("a", "b")


def test_the_experiment_is_one_sentence(compared: Client, store: Path) -> None:
    found = compared.get("/api/experiment").json()
    assert found["state"] == "early"
    assert found["sentence"].startswith("Too early to say")
    assert found["plan"]["guardrails"] == ["auc"]
    assert found["comparisons"] == compared.get("/api/results").json()["comparisons"]
    with closing(Ledger.open(str(store))) as ledger:
        plain = Client(application(ledger, store=str(store))).get("/api/experiment").json()
    assert (plain["state"], plain["plan"]) == ("none", None)
    assert plain["sentence"] == "No experiment is declared."


@pytest.mark.parametrize(
    ("query", "where", "got"),
    [
        ("", "metric", "none"),
        ("metric=nope", "metric", "'nope'"),
        ("metric=auc&kind=nope", "kind", "'nope'"),
        ("metric=auc&kind=history&view=nope", "view", "'nope'"),
        ("metric=auc&theme=pink", "theme", "'pink'"),
        ("metric=auc&window=all", "window", "'all'"),
        ("metric=auc&theme=dark&theme=light", "theme", "2"),
        ("metric=%3Cscript%3E", "metric", "'<script>'"),
    ],
)
def test_a_figure_that_is_not_there_says_what_is(
    client: Client, query: str, where: str, got: str
) -> None:
    answer = client.get(f"/api/figure?{query}")
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["where"], error["came"]) == (where, got)


def test_variants_stand_in_a_figure_by_their_names(client: Client) -> None:
    spec = client.get("/api/figure?metric=auc&kind=roc").json()
    assert {row["series"] for row in spec["data"]["values"]} == {"a", "b"}


def test_hostile_names_are_data(tmp_path: Path) -> None:
    made = make_store(tmp_path, [event(0, HOSTILE, 1, 0.5), event(1, "b", 0, 0.1)], variants="")
    with closing(Ledger.open(str(made))) as ledger:
        client = Client(application(ledger, store=str(made)))
        found = client.get("/api/history?metric=ctr").json()
        spec = client.get("/api/figure?metric=ctr&kind=history").json()
    assert HOSTILE in {series["slice"]["variant"] for series in found["series"]}
    assert drawable(HOSTILE) in {row["series"] for row in spec["data"]["values"]}


def test_the_size_of_every_answer_is_bounded(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_WINDOWS", 1)
    monkeypatch.setattr(history, "MAX_SERIES", 1)
    monkeypatch.setattr(charts, "MAX_SERIES", 1)
    monkeypatch.setattr(catalogue, "MAX_SPANS", 1)
    found = client.get("/api/history?metric=ctr").json()
    assert (found["more"], found["more_series"]) == (1, 1)
    assert [len(found["windows"]), len(found["series"])] == [1, 1]
    assert found["windows"][0]["start_ms"] == 3_600_000  # the newest is kept
    spans = client.get("/api/store").json()["windows"]
    assert (len(spans["spans"]), spans["more"]) == (1, 1)
    drawing = client.get("/api/figure?metric=auc&kind=roc").json()
    assert "1 of 2 are drawn" in json.dumps(drawing["title"])


def test_an_empty_store_is_answered(tmp_path: Path) -> None:
    made = make_store(tmp_path, [b"not json"])
    with closing(Ledger.open(str(made))) as ledger:
        client = Client(application(ledger, store=str(made)))
        for path in ("/api/store", "/api/results", "/api/experiment", "/api/health"):
            answer = client.get(path)
            assert answer.status_code == 200
            fits(client, path, answer)
        for path in ("/api/history?metric=ctr", "/api/figure?metric=ctr"):
            assert client.get(path).status_code == 400
