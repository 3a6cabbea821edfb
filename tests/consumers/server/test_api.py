"""The JSON interface: every answer fits the schema that is served, and has a bounded size."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import jsonschema
import pytest
from streammetrics_consumers.server.openapi import openapi_json

from tests.consumers.server.asking import Client, fits
from tests.consumers.stores import make_store

MakeClient = Callable[[Path], Client]


def error(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 400, answer.url
    problem: dict[str, str] = answer.json()["error"]
    return problem


def test_a_key_that_no_schema_has_is_found_out() -> None:
    with pytest.raises(jsonschema.ValidationError):
        fits("/api/results", 400, b'{"error": {"got": "x", "more": 1}}')


def test_paths_and_parameters_that_are_described_are_those_that_are_served(client: Client) -> None:
    described = json.loads(openapi_json())["paths"]
    app = client.transport.app
    assert set(described) == {route.path for route in app.app.routes}  # type: ignore[attr-defined]
    for path, methods in described.items():
        if not path.startswith("/api/"):
            continue
        for place in methods["get"]["parameters"]:
            problem = error(client.get(f"{path}?{place['name']}=%00"))
            assert problem["where"] != "the address", (path, place["name"])
        assert error(client.get(f"{path}?surplus=1"))["where"] == "the address"


def test_every_figure_that_a_store_names_is_drawn(compared: Client) -> None:
    for metric in compared.get("/api/store").json()["metrics"]:
        for kind in metric["figures"]:
            assert compared.get(f"/api/figure?metric={metric['name']}&kind={kind}").is_success
    spec = compared.get("/api/figure?metric=auc&kind=roc").json()
    assert {row["series"] for row in spec["data"]["values"]} == {"a (control)", "b"}


def test_a_figure_that_is_not_there_says_what_is(client: Client) -> None:
    for query, where, got in (
        ("", "metric", "none"),
        ("metric=nope", "metric", "'nope'"),
        ("metric=auc&kind=nope", "kind", "'nope'"),
        ("metric=auc&kind=history&view=nope", "view", "'nope'"),
        ("metric=auc&theme=pink", "theme", "'pink'"),
        ("metric=auc&window=all", "window", "'all'"),
        ("metric=auc&theme=dark&theme=light", "theme", "2"),
        ("metric=%3Cscript%3E", "metric", "'<script>'"),
    ):
        problem = error(client.get(f"/api/figure?{query}"))
        assert (problem["where"], problem["got"]) == (where, got)


def test_an_empty_store_is_answered(tmp_path: Path, make_client: MakeClient) -> None:
    client = make_client(make_store(tmp_path, [b"not json"]))
    for path in ("/api/store", "/api/results", "/api/experiment", "/api/health"):
        answer = client.get(path)
        assert answer.status_code == 200
        fits(path, 200, answer.content)
    for path in ("/api/history?metric=ctr", "/api/figure?metric=ctr"):
        assert client.get(path).status_code == 400
