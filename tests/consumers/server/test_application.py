"""The HTTP interface: the same bytes as the command line, read-only, and safe to show."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy.pool import QueuePool
from starlette.types import Message, Receive, Scope, Send
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server.application import application

from streammetrics.present.spec import drawable
from tests.consumers.server.asking import Client
from tests.consumers.stores import EVENTS, HOSTILE, event, make_store, write_events

MakeClient = Callable[[Path], Client]

SPAN = "1970-01-01T00:00:00Z/1970-01-01T02:00:00Z"
SAME = (  # a path, the command that prints the same, and the parameters of both
    ("/api/results", "results --json", []),
    ("/api/results", "results --json", ["--window", "latest", "--by", "variant"]),
    ("/api/results", "results --json", ["--where", "variant=a", "--where", "phase=eval"]),
    ("/api/results", "results --json", ["--window", SPAN, "--generation", "1"]),
    ("/api/results", "results --json", ["--window", "all", "--views", "headline"]),
    ("/results.txt", "results", ["--window", "all"]),
    ("/results.txt", "results", ["--by", "", "--metric", "ctr"]),
    ("/api/status", "status --json", []),
)


def test_answers_are_those_of_the_command_line_to_the_byte(
    client: Client, store: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for path, words, flags in SAME:
        command, *arguments = words.split()
        assert main([command, str(store), *arguments, *flags]) == 0
        params = [
            (flag.removeprefix("--"), value)
            for flag, value in zip(flags[::2], flags[1::2], strict=True)
        ]
        answer = client.get(path, params=params)
        assert answer.content == capfdbinary.readouterr().out, (path, flags)
        kind = "text/plain; charset=utf-8" if path == "/results.txt" else "application/json"
        assert answer.headers["content-type"] == kind
        if "headline" in flags:
            views = {(row["metric"], row["view"]) for row in answer.json()["results"]}
            assert views == {("auc", "auc"), ("ctr", "ratio")}


def test_the_page_is_the_same_whatever_its_address_asks_and_loads_what_is_ours_alone(
    client: Client,
) -> None:
    page = client.get("/?window=latest&metric=nope")
    assert (page.status_code, page.content) == (200, client.get("/").content)
    policy = page.headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("img-src") == "'self' data:"
    assert {name: value for name, value in rules.items() if value != "'none'"} == dict.fromkeys(
        ("script-src", "style-src", "connect-src"), "'self'"
    )
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"


def test_only_get_and_head_of_our_own_names_are_answered(client: Client) -> None:
    for path in ("/", "/api/results", "/api/status", "/results.txt", "/healthz"):
        answer = client.request("HEAD", path)
        assert (answer.status_code, answer.content) == (200, b""), path
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        answer = client.request(method, "/api/results")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    for host in ("localhost:80", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST"):
        assert client.get("/healthz", headers={"host": host}).status_code == 200, host
    for host in (
        "evil.example",
        "localhost.evil.example:80",
        "127.0.0.1.nip.io",
        "",
        "a b",
        "[::1",
    ):
        for path in ("/", "/api/results", "/api/events", "/assets/main.js", "/healthz"):
            answer = client.get(path, headers={"host": host})
            assert answer.status_code == 400, (host, path)
            assert answer.text.startswith("this host name is not allowed")


def test_every_answer_carries_the_headers_of_the_guard(client: Client) -> None:
    for path in ("/", "/nothing", "/api/results?window=x"):
        headers = client.get(path, headers={"origin": "http://evil.example"}).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_a_question_without_an_answer_says_what_is_wrong(client: Client) -> None:
    for query, where, got in (
        ("window=yesterday", "window", "'yesterday'"),
        ("metric=nope", "metric", "'nope'"),
        ("by=nope", "by", "'nope'"),
        ("where=nope", "where", "'nope'"),
        ("where=nope=1", "where", "'nope'"),
        ("metric=auc&metric=ctr", "metric", "2"),
        ("generation=7", "generation", "7"),
        ("generation=one", "generation", "'one'"),
        ("metrics=auc", "the address", "'metrics'"),
        ("metric=%3Cscript%3E", "metric", "'<script>'"),
    ):
        answer = client.get(f"/api/results?{query}")
        assert answer.status_code == 400, query
        assert answer.headers["content-type"] == "application/json"
        error = answer.json()["error"]
        assert (error["where"], error["got"]) == (where, got)
        assert error["expected"] and error["hint"]


def test_an_unknown_path_is_a_json_error(client: Client) -> None:
    answer = client.get("/nothing")
    assert (answer.status_code, answer.json()) == (404, {"error": {"got": "Not Found"}})


def test_a_hostile_address_costs_a_short_error(client: Client) -> None:
    for target in (
        "/api/results?" + "&".join(f"where=a{i}=b" for i in range(1500)),
        "/api/results?metric=" + "x" * 20_000,
        "/api/figure?metric=auc&kind=%00%ff%fe",
        "/api/figure?metric=auc&where=" + quote("variant='; drop table delta; --"),
        "/api/results?generation=" + "9" * 4000,
        "/api/results?window=" + quote("0001-01-01/9999-12-31"),
        "/api/store?generation=-1",
        "/assets/..%2f..%2fguard.py",
        "/%2e%2e/%2e%2e",
    ):
        answer = client.get(target)
        assert answer.status_code in (400, 404), target[:80]
        assert len(answer.content) < 2000 and answer.json()["error"]["got"]


def test_hostile_names_are_data_and_never_a_page(tmp_path: Path, make_client: MakeClient) -> None:
    client = make_client(make_store(tmp_path, [event(0, HOSTILE, 1, 0.5)], variants=""))
    page, text = client.get("/"), client.get("/results.txt")
    assert "alert" not in page.text
    assert "\x1b" not in page.text + text.text
    assert text.headers["content-type"].startswith("text/plain")
    answer = client.get("/api/results?by=variant")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["results"][0]["slice"] == {"variant": HOSTILE}
    history = client.get("/api/history?metric=ctr").json()
    assert {series["slice"]["variant"] for series in history["series"]} == {HOSTILE}
    spec = client.get("/api/figure?metric=ctr&kind=history").json()
    assert {row["series"] for row in spec["data"]["values"]} == {drawable(HOSTILE)}


def test_a_commit_shows_in_the_next_answer(tmp_path: Path, make_client: MakeClient) -> None:
    client = make_client(make_store(tmp_path, EVENTS[:2]))
    first = client.get("/api/results").json()
    assert client.get("/api/results").json() == first
    write_events(tmp_path, EVENTS)
    assert main(["run", str(tmp_path / "clicks.toml"), "--until-end", "--no-serve"]) == 0
    later = client.get("/api/results").json()
    assert (first["rows_read"], later["rows_read"]) == (2, len(EVENTS))


def test_no_transaction_lasts_while_a_client_reads(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streammetrics_consumers.query.follow.MAX_DELTA_BYTES", 10)
    # So that all is merged within the transaction.
    monkeypatch.setattr("streammetrics_consumers.query.reader.HELD_BYTES", 10)
    with closing(Ledger.open(str(store))) as ledger:
        app = application(ledger, store=str(store))
        open_at: list[int] = []

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            async def noted(message: Message) -> None:
                pool = ledger.store.engine.pool
                assert isinstance(pool, QueuePool)
                open_at.append(pool.checkedout())
                await send(message)

            await app(scope, receive, noted)

        for path in ("/", "/api/results", "/results.txt", "/api/status", "/metrics"):
            open_at.clear()
            assert Client(watched).get(path).status_code == 200
            assert len(open_at) >= 2 and not any(open_at), path


def test_a_damaged_state_is_an_error_of_what_shows_it_alone(
    tmp_path: Path, store: Path, make_client: MakeClient
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(store.read_bytes())
    with closing(sqlite3.connect(copy)) as connection, connection:
        rows = connection.execute("SELECT id, state FROM delta WHERE metric = 'auc'").fetchall()
        for id_, state in rows:
            damaged = state[:-1] + bytes([state[-1] ^ 1]) if state else state
            connection.execute("UPDATE delta SET state = ? WHERE id = ?", (damaged, id_))
    client = make_client(copy)
    for path in ("/api/results", "/api/history?metric=auc", "/results.txt"):
        answer = client.get(path)
        parts = {*answer.json()["error"]}
        assert (answer.status_code, parts) == (503, {"expected", "got", "where", "hint"}), path
    assert client.get("/api/results?metric=ctr").status_code == 200
    metrics = client.get("/metrics").text
    assert "streammetrics_store_up 1.0" in metrics and "streammetrics_results_up 0.0" in metrics


def test_a_store_that_is_gone_is_an_error_and_not_a_crash(
    tmp_path: Path, store: Path, make_client: MakeClient
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(store.read_bytes())
    client = make_client(copy)
    assert client.get("/readyz").status_code == client.get("/healthz").status_code == 200
    copy.write_bytes(b"not a database" * 1000)
    assert client.get("/readyz").status_code in (500, 503)
    answer = client.get("/api/results")
    assert answer.status_code in (500, 503) and json.loads(answer.text)["error"]["got"]


def test_an_unexpected_error_carries_the_headers_of_every_answer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise OverflowError

    monkeypatch.setattr("streammetrics_consumers.server.api.status_json", broken)
    answer = client.get("/api/status")
    assert answer.status_code == 500 and "OverflowError" not in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_an_unknown_generation_is_refused_on_every_route(client: Client) -> None:
    paths = [
        *("store", "hooks", "results", "status", "quarantine", "experiment", "experiments"),
        *("history?metric=ctr", "figure?metric=ctr", "figure?metric=ctr&kind=history"),
    ]
    for path in paths:
        parameter = f"{'&' if '?' in path else '?'}generation="
        unknown = client.get(f"/api/{path}{parameter}7")
        assert unknown.status_code == 400, path
        assert unknown.json()["error"]["expected"] == "a generation of this store (1)"
        long = client.get(f"/api/{path}{parameter}{'9' * 20}")
        assert (long.status_code, long.json()["error"]["got"]) == (400, f"'{'9' * 20}'")


def test_a_figure_of_nothing_is_empty(client: Client) -> None:
    for query in ("where=phase=nope", "window=1971-01-01/1971-01-02", "where=phase=nope&kind=roc"):
        answer = client.get(f"/api/figure?metric=auc&{query}")
        assert answer.status_code == 200, query
        assert answer.json()["usermeta"]["reason"] == "no rows match"
