"""The server beside the loop: a real socket, a real address."""

from __future__ import annotations

import http.client
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.server import ServeError
from streammetrics_consumers.server.process import serving

from tests.patience import LIMIT_S


def status(url: str, target: str, **headers: str) -> int:
    """The status of one request, sent as it is written."""
    host = urlsplit(url).netloc
    connection = http.client.HTTPConnection(host, timeout=LIMIT_S)
    try:
        connection.putrequest("GET", target, skip_host=True)
        for name, value in {"host": host, **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_address_is_the_real_one_and_ends_with_the_block(store: Path) -> None:
    with serving(str(store), ServerConfig(port=0)) as url:
        assert not url.endswith(":0/")
        assert status(url, "/readyz") == status(url, "/api/results") == 200
        assert status(url, "/", host="evil.example") == 400
        assert status(url, "/assets/..%2f..%2fguard.py") == 404
        assert status(url, "//evil.example/%2e%2e") == 404
        assert status(url, "/api/results?metric=" + "x" * 20_000) == 400
    with pytest.raises(httpx.TransportError):
        httpx.get(url)
    assert not any(thread.name == "http" for thread in threading.enumerate())


def test_a_request_of_two_lengths_is_refused_and_its_connection_closed(store: Path) -> None:
    with serving(str(store), ServerConfig(port=0)) as url:
        parts = urlsplit(url)
        for names in (
            "content-length: 6\r\ntransfer-encoding: chunked",
            "transfer-encoding: chunked\r\ncontent-length: 6",
        ):
            with socket.create_connection((parts.hostname, parts.port), timeout=LIMIT_S) as client:
                head = f"GET /healthz HTTP/1.1\r\nhost: {parts.netloc}\r\n{names}\r\n\r\n"
                smuggled = f"GET /readyz HTTP/1.1\r\nhost: {parts.netloc}\r\n\r\n"
                client.sendall(f"{head}0\r\n\r\n{smuggled}".encode())
                answer = b""
                while chunk := client.recv(1 << 16):  # until the server closes it
                    answer += chunk
            assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1 ") == 1
            assert b"either Content-Length or Transfer-Encoding" in answer
        assert status(url, "/healthz", **{"content-length": "0"}) == 200
        assert status(url, "/healthz", **{"transfer-encoding": "gzip"}) in (400, 501)


def test_a_port_that_is_taken_is_said_with_what_to_do(store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ServeError, match="choose another with --port") as refused,
            serving(str(store), ServerConfig(port=port)),
        ):
            raise AssertionError("served on a port that is taken")
    assert str(refused.value).startswith(f"http://127.0.0.1:{port}/ cannot be served: ")


def test_a_store_that_is_not_there_leaves_no_open_port(tmp_path: Path) -> None:
    with pytest.raises(LedgerError), serving(str(tmp_path / "no.db"), ServerConfig(port=0)):
        raise AssertionError("served a store that is not there")
