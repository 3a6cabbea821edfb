"""What a server answers is bounded and checked, whatever it is."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from streammetrics import InputError, StreamMetricsError
from streammetrics.stored.http_server import HttpServer
from streammetrics.stored.readable import document

Answers = Callable[[BaseHTTPRequestHandler], None]
ROUTE = "/api/store"


@contextmanager
def server(answer: Answers) -> Iterator[str]:
    """A server that answers every request so; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()


def says(
    body: bytes = b"{}", status: int = 200, kind: str = "application/json", **headers: str
) -> Answers:
    """An answer."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"content-type": kind, **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def test_the_object_of_an_answer_is_read() -> None:
    paths, tokens = [], []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        paths.append(handler.path)
        tokens.append(handler.headers["authorization"])
        says(b'{"a": 1}', kind="application/json; charset=utf-8")(handler)

    with server(answer) as address:
        http_server = HttpServer(f"{address}/proxy/", token="secret")
        assert document(http_server, ROUTE, [("where", "a=b c&d"), ("where", "é=1")]) == {"a": 1}
        assert document(HttpServer(address), ROUTE) == {"a": 1}
        assert http_server.name == address
    assert paths == ["/proxy/api/store?where=a%3Db+c%26d&where=%C3%A9%3D1", ROUTE]
    assert tokens == ["Bearer secret", None]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (says(kind="text/html"), "expected an answer in application/json, got 'text/html'"),
        (says(b"{", kind="application/json"), "expected JSON, got JSONDecodeError"),
        (says(b"\xff"), "expected JSON, got UnicodeDecodeError"),
        (says(b"[" * 100_000), "expected JSON, got RecursionError"),
        (says(b"[]"), "expected an answer, got status 200"),
        (says(status=302, location="file:///etc/passwd"), "got a redirect, status 302"),
        (says(status=301, location="https://127.0.0.1:1/"), "got a redirect, status 301"),
        (says(b"{" + b" " * 2000), "expected at most 1,000 bytes, got more than 1,000"),
        (says(content_length="1001"), "expected at most 1,000 bytes, got 1,001"),
        (says(content_length="10"), "expected a server of results, got IncompleteRead"),
        (says(status=503, body=b'{"error": {"got": "locked"}}'), "expected an answer, got locked"),
        (lambda handler: handler.wfile.write(b"nonsense\r\n\r\n"), "got BadStatusLine"),
        (lambda _: None, "got RemoteDisconnected"),
    ],
)
def test_any_other_answer_is_refused(answer: Answers, words: str) -> None:
    with server(answer) as address:
        limit = 1_000_000 if "RecursionError" in words else 1_000
        http_server = HttpServer(address, max_bytes=limit)
        with pytest.raises(StreamMetricsError) as caught:
            document(http_server, ROUTE)
    assert words in str(caught.value) and address in caught.value.where
    assert type(caught.value) is StreamMetricsError


def test_a_refused_question_has_the_parts_of_the_server() -> None:
    parts = {"expected": "a metric", "got": "'x'", "where": "metric", "hint": "correct the name"}
    with server(says(json.dumps({"error": parts}).encode(), 400)) as address:
        with pytest.raises(InputError) as caught:
            document(HttpServer(address), ROUTE)
        assert vars(caught.value).items() >= {
            **parts, "where": f"{address}, {ROUTE}, metric"
        }.items()  # fmt: skip


def test_a_server_that_says_nothing_is_left() -> None:
    ended = threading.Event()
    with server(lambda _: ended.wait() and None) as address:
        with pytest.raises(StreamMetricsError, match="got TimeoutError"):
            document(HttpServer(address, timeout_s=0.05), ROUTE)
        ended.set()


def test_no_server_there_is_said() -> None:
    with server(says()) as address:
        pass
    with pytest.raises(StreamMetricsError, match=r"got ConnectionRefusedError.*is running there"):
        document(HttpServer(address), ROUTE)


@pytest.mark.parametrize(
    "address",
    [
        "http://",
        "http://user:secret@host",
        "http://host/?token=secret",
        "http://host/#part",
        "http://host:port",
        "http://[::1",
        "ftp://host",
    ],
)
def test_any_other_address_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(
        InputError, match="expected http://HOST:PORT or https://HOST:PORT"
    ) as caught:
        HttpServer(address)
    assert "secret" not in str(caught.value)
