"""Answers are compressed for clients that accept it, and kept until something is counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.consumers.server.asking import Client
from tests.consumers.stores import EVENTS, event, make_store

GZIP = {"accept-encoding": "gzip"}
PLAIN = {"accept-encoding": "identity"}
PATHS = (
    "/api/results",
    "/api/results?texts=tables&window=all",
    "/api/results?most=1&by=variant,phase&window=all&texts=tables",
    "/results.txt",
    "/metrics",
)


def test_large_answers_are_compressed_for_whom_that_suits_and_say_that_they_vary(
    client: Client,
) -> None:
    for path in ("/api/results", "/api/results?texts=tables", "/openapi.json"):
        plain, small = client.get(path, headers=PLAIN), client.get(path, headers=GZIP)
        assert "content-encoding" not in plain.headers, path
        assert small.headers["content-encoding"] == "gzip", path
        assert small.content == plain.content, path
        assert int(small.headers["content-length"]) < len(plain.content), path
        assert {answer.headers["vary"] for answer in (plain, small)} == {"accept-encoding"}
        assert small.headers["content-type"] == plain.headers["content-type"], path
        head = client.request("HEAD", path, GZIP).headers
        assert head["content-length"] == small.headers["content-length"], path
    tiny = client.get("/api/experiment", headers=GZIP)
    assert "content-encoding" not in tiny.headers and tiny.headers["vary"] == "accept-encoding"
    events = client.request("HEAD", "/api/events", GZIP)
    assert "content-encoding" not in events.headers


def test_the_etags_of_a_file_differ_by_its_encoding(client: Client) -> None:
    plain, small = (client.get("/", headers=headers).headers["etag"] for headers in (PLAIN, GZIP))
    assert plain != small
    for tag, status in ((plain, 200), (small, 304)):
        assert client.get("/", headers={**GZIP, "if-none-match": tag}).status_code == status


def test_what_a_server_kept_equals_the_answers_of_a_new_one(
    tmp_path: Path, make_client: Callable[[Path], Client]
) -> None:
    events = list(EVENTS)
    store = make_store(tmp_path, events)
    warm_client = make_client(store)
    for round in range(4):
        for path in PATHS:
            for headers in (GZIP, PLAIN, GZIP):
                answers = [
                    client.get(path, headers=headers).content
                    for client in (warm_client, make_client(store))
                ]
                answers = [counted(answer) if path == "/metrics" else answer for answer in answers]
                assert answers[0] == answers[1], (round, path)
        # Of one slice, then of a new one and a new window.
        new_event = event(125 + 30 * round, "ab"[round % 2], 1, 0.3, "fit" if round < 2 else "new")
        events += [new_event, new_event]
        make_store(tmp_path, events)


def counted(text: bytes) -> list[bytes]:
    """The lines of a scrape that tell of the store."""
    return [line for line in text.splitlines() if line.startswith(b"streammetrics_result")]
