"""The HTTP interface: the same bytes as the command line, read-only, and safe to show."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.pool import QueuePool
from starlette.types import Message, Receive, Scope, Send
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server.application import application

from tests.consumers.server.asking import Client
from tests.consumers.stores import EVENTS, HOSTILE, event, make_store, write_events


@pytest.fixture(scope="module")
def client(store: Path) -> Iterator[Client]:
    with closing(Ledger.open(str(store))) as ledger:
        yield Client(application(ledger, store=str(store)))


QUERIES = [
    [],
    ["--window", "all"],
    ["--window", "latest", "--by", "variant"],
    ["--by", "", "--metric", "ctr"],
    ["--where", "variant=a", "--where", "phase=eval"],
    ["--window", "1970-01-01T00:00:00Z/1970-01-01T02:00:00Z"],
    ["--generation", "1"],
]


def parameters(words: list[str]) -> list[tuple[str, str]]:
    """Flags of the command line as parameters of an address."""
    return [
        (flag.removeprefix("--"), value) for flag, value in zip(*[iter(words)] * 2, strict=True)
    ]


@pytest.mark.parametrize("words", QUERIES, ids=" ".join)
def test_the_results_are_those_of_the_command_line_to_the_byte(
    client: Client, store: Path, capfdbinary: pytest.CaptureFixture[bytes], words: list[str]
) -> None:
    assert main(["results", str(store), "--json", *words]) == 0
    answer = client.get("/api/results", params=parameters(words))
    assert answer.status_code == 200
    assert answer.content == capfdbinary.readouterr().out
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.content)["results"]


@pytest.mark.parametrize("words", QUERIES, ids=" ".join)
def test_the_text_is_that_of_the_command_line_in_a_pipe(
    client: Client, store: Path, capfdbinary: pytest.CaptureFixture[bytes], words: list[str]
) -> None:
    assert main(["results", str(store), *words]) == 0
    answer = client.get("/results.txt", params=parameters(words))
    assert answer.content == capfdbinary.readouterr().out
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_the_status_is_that_of_the_command_line(
    client: Client, store: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["status", str(store), "--json"]) == 0
    assert client.get("/api/status").content == capfdbinary.readouterr().out


@pytest.mark.parametrize("words", QUERIES, ids=" ".join)
def test_the_headlines_are_those_of_the_command_line_to_the_byte(
    client: Client, store: Path, capfdbinary: pytest.CaptureFixture[bytes], words: list[str]
) -> None:
    words = [*words, "--views", "headline"]
    assert main(["results", str(store), "--json", *words]) == 0
    answer = client.get("/api/results", params=parameters(words))
    assert answer.content == capfdbinary.readouterr().out
    views = {(row["metric"], row["view"]) for row in answer.json()["results"]}
    assert views <= {("auc", "auc"), ("ctr", "ratio")} and views


def test_the_page_is_the_same_whatever_its_address_asks(client: Client) -> None:
    page = client.get("/?window=latest&metric=nope")
    assert page.status_code == 200
    assert page.content == client.get("/").content


def test_the_page_loads_what_is_ours_and_nothing_else(client: Client) -> None:
    policy = client.get("/").headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("img-src") == "'self' data:"
    assert {name: value for name, value in rules.items() if value != "'none'"} == dict.fromkeys(
        ("script-src", "style-src", "connect-src"), "'self'"
    )
    assert rules["default-src"] == "'none'"


def test_health_and_readiness_are_told(client: Client) -> None:
    assert (client.get("/healthz").status_code, client.get("/readyz").status_code) == (200, 200)


@pytest.mark.parametrize("path", ["/", "/api/results", "/api/status", "/results.txt", "/healthz"])
def test_head_is_answered_without_a_body(client: Client, path: str) -> None:
    answer = client.request("HEAD", path)
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_written(client: Client, method: str) -> None:
    answer = client.request(method, "/api/results")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("query", "where", "got"),
    [
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
    ],
)
def test_a_question_without_an_answer_says_what_is_wrong(
    client: Client, query: str, where: str, got: str
) -> None:
    answer = client.get(f"/api/results?{query}")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert (error["where"], error["came"]) == (where, got)
    assert error["expected"] and error["todo"]


def test_an_unknown_path_is_a_json_error(client: Client) -> None:
    answer = client.get("/nothing")
    assert (answer.status_code, answer.json()) == (404, {"error": {"came": "Not Found"}})


@pytest.mark.parametrize("path", ["/", "/nothing", "/api/results?window=x"])
def test_every_answer_carries_the_guard_s_headers(client: Client, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "a b", "[::1"])
def test_another_host_name_is_refused(client: Client, host: str) -> None:
    answer = client.get("/api/results", headers={"host": host})
    assert answer.status_code == 400
    assert b"generation" not in answer.content


@pytest.mark.parametrize("host", ["localhost:80", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST"])
def test_our_names_are_answered(client: Client, host: str) -> None:
    assert client.get("/healthz", headers={"host": host}).status_code == 200


def test_hostile_names_are_data_and_never_a_page(tmp_path: Path) -> None:
    store = make_store(tmp_path, [event(0, HOSTILE, 1, 0.5)], variants="")
    with closing(Ledger.open(str(store))) as ledger:
        client = Client(application(ledger, store=str(store)))
        page, text = client.get("/"), client.get("/results.txt")
        answer = client.get("/api/results?by=variant")
    found = answer.json()["results"]
    assert "alert" not in page.text
    assert "\x1b" not in page.text + text.text
    assert text.headers["content-type"].startswith("text/plain")
    assert answer.headers["content-type"] == "application/json"
    assert found[0]["slice"] == {"variant": HOSTILE}


@pytest.mark.slow
def test_a_commit_shows_in_the_next_answer(tmp_path: Path) -> None:
    store = make_store(tmp_path, EVENTS[:2])
    with closing(Ledger.open(str(store))) as ledger:
        client = Client(application(ledger, store=str(store)))
        first = client.get("/api/results").json()
        again = client.get("/api/results").json()
        write_events(tmp_path, EVENTS)
        config = str(tmp_path / "clicks.toml")
        assert main(["run", config, "--until-end", "--no-serve"]) == 0
        later = client.get("/api/results").json()
    assert first == again
    assert (first["rows_read"], later["rows_read"]) == (2, len(EVENTS))


@pytest.mark.parametrize("path", ["/", "/api/results", "/results.txt", "/api/status", "/metrics"])
def test_no_transaction_lasts_while_a_client_reads(
    store: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streammetrics_consumers.query.follow.MAX_DELTA_BYTES", 10)
    # So that all is merged within the transaction.
    monkeypatch.setattr("streammetrics_consumers.query.reader.HELD_BYTES", 10)
    open_at: list[int] = []
    with closing(Ledger.open(str(store))) as ledger:
        app = application(ledger, store=str(store))

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            async def noted(message: Message) -> None:
                pool = ledger.store.engine.pool
                assert isinstance(pool, QueuePool)
                open_at.append(pool.checkedout())
                await send(message)

            await app(scope, receive, noted)

        client = Client(watched)
        assert client.get(path).status_code == 200
    assert len(open_at) >= 2 and not any(open_at)


def test_a_store_that_is_gone_is_an_error_and_not_a_crash(tmp_path: Path, store: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(store, copy)
    with closing(Ledger.open(str(copy))) as ledger:
        app = application(ledger, store=str(copy))
        client = Client(app)
        assert client.get("/readyz").status_code == 200
        copy.write_bytes(b"not a database" * 1000)
        ready, page = client.get("/readyz"), client.get("/")
    assert ready.status_code in (500, 503)
    assert "Traceback" not in page.text
