"""Connections that never ask, ask without an end or never read: probes and pages are answered."""

from __future__ import annotations

import os
import resource
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import httpx
import pytest
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server import application, assets
from streammetrics_consumers.server import events as events_module
from streammetrics_consumers.server.bodies import Asset
from streammetrics_consumers.server.connections import PER_PEER, SILENT_S, Limits
from streammetrics_consumers.server.process import serving

from tests.consumers.server.test_events import ALONE, heard, until
from tests.patience import LIMIT_S
from tests.requirements import ROOT

PROBES = ("healthz", "readyz", "metrics")
HALF = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-half: "
WHOLE = b"GET /%s HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


def connected(stack: ExitStack, url: str, says: bytes) -> socket.socket:
    """A connection that has said something."""
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=LIMIT_S)
    connection.sendall(says)
    return stack.enter_context(closing(connection))


def drip(connections: list[socket.socket]) -> None:
    """One byte more of each header."""
    for connection in connections:
        try:
            connection.sendall(b"x")
        except OSError:  # it was closed
            continue


def quickest_s(url: str) -> float:
    """The time of the quickest of five answers; all five come."""
    times = []
    for _ in range(5):
        began_s = time.monotonic()
        assert httpx.get(url, timeout=LIMIT_S).status_code == 200
        times.append(time.monotonic() - began_s)
    return min(times)


def closes(connection: socket.socket, payload: bytes) -> bool:
    """Whether the server closes a connection that goes on talking."""
    limit_s = time.monotonic() + LIMIT_S
    while time.monotonic() < limit_s:
        try:
            connection.sendall(payload)
            readable, _, _ = select.select([connection], [], [], 0.05)
            if readable and not connection.recv(1 << 16):
                return True
        except OSError:
            return True
    return False


@pytest.fixture
def files() -> Iterator[None]:
    """Room for the sockets of a test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4096, hard)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_probes_are_answered_before_connections_that_others_hold_half_open_are_closed(
    store: Path, files: None
) -> None:
    few_files = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))"
    words = f"sys.argv[1:] = ['serve', {str(store)!r}, '--port', '0']"
    run = f"import sys; {few_files}; {words}; from streammetrics_consumers.cli import main; main()"
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", run], cwd=ROOT, stderr=subprocess.PIPE, text=True
            )
        )
        stack.callback(process.terminate)
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("serving ").strip()
        assert httpx.get(url + "metrics", timeout=LIMIT_S).status_code == 200
        page = stack.enter_context(httpx.stream("GET", url + "api/events", timeout=LIMIT_S))
        until(events := heard(page), "health")
        half = [connected(stack, url, HALF[: 1 + i % len(HALF)]) for i in range(300)]
        for probe in PROBES:
            drip(half)
            assert quickest_s(url + probe) < SILENT_S / 2
        assert httpx.get(url + "api/results", timeout=LIMIT_S).status_code == 200
        until(events, "health")  # the page goes on
        events.close()
        assert len(os.listdir(f"/proc/{process.pid}/fd")) < 200


def test_a_request_that_is_not_complete_in_time_is_closed_and_a_stream_goes_on(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "HEALTH_S", 2.0)
    limits = Limits(silent_s=1.0)
    body = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000000\r\n\r\n"
    with ExitStack() as stack:
        url = stack.enter_context(serving(str(store), ServerConfig(port=0), ALONE, limits=limits))
        page = stack.enter_context(httpx.stream("GET", url + "api/events", timeout=LIMIT_S))
        until(events := heard(page), "health")
        messages = ((b"", b""), (HALF, b"x"), (body, b"x"), (WHOLE % b"healthz", b""))
        for connection, ending in [
            (connected(stack, url, says), suffix) for says, suffix in messages
        ]:
            assert closes(connection, ending)
        until(events, "health")  # after more than the limit
        events.close()


def test_more_requests_at_once_than_the_limit_are_refused_and_probes_are_not(store: Path) -> None:
    limits = Limits(per_peer=8)
    with ExitStack() as stack:
        url = stack.enter_context(serving(str(store), ServerConfig(port=0), ALONE, limits=limits))
        pages = [connected(stack, url, WHOLE % b"api/events") for _ in range(8)]
        for page in pages:
            assert page.recv(15) == b"HTTP/1.1 200 OK"
        refused = httpx.get(url + "api/results", timeout=LIMIT_S)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.text == "too many requests at once from this address\n"
        for probe in PROBES:
            assert httpx.get(url + probe, timeout=LIMIT_S).status_code == 200
        pages[0].close()
        while httpx.get(url + "api/results", timeout=LIMIT_S).status_code != 200:
            time.sleep(0.05)


@pytest.mark.parametrize("probe", ["readyz", "metrics"])
def test_a_probe_is_answered_while_idle_connections_of_its_address_come(
    store: Path, monkeypatch: pytest.MonkeyPatch, files: None, probe: str
) -> None:
    work = {"readyz": "unready", "metrics": "exposition"}[probe]
    real, begun, end = getattr(application, work), Event(), Event()

    def slowly(*given: object) -> object:
        begun.set()
        assert end.wait(LIMIT_S)
        return real(*given)

    monkeypatch.setattr(application, work, slowly)
    with ExitStack() as stack:
        url = stack.enter_context(serving(str(store), ServerConfig(port=0), ALONE))
        scrape = connected(stack, url, WHOLE % probe.encode())
        assert begun.wait(LIMIT_S)
        idle = [connected(stack, url, b"") for _ in range(PER_PEER + 1)]
        assert closes(idle[0], b"")  # the limit has been applied
        end.set()
        assert scrape.recv(15) == b"HTTP/1.1 200 OK"


def test_an_answer_goes_to_whoever_reads_it_however_slowly_and_to_nobody_else(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Asset(b"x" * 10_000_000, b"", '"large"', "text/javascript")
    monkeypatch.setattr(assets, "asset", lambda name: large)
    with ExitStack() as stack:
        limits = Limits(silent_s=1.0)
        url = stack.enter_context(serving(str(store), ServerConfig(port=0), ALONE, limits=limits))
        ask = WHOLE % b"assets/large.js"
        sleeper, reader = connected(stack, url, ask), connected(stack, url, ask)
        # It reads for longer than the sleeper is awaited, which is `STALL` seconds.
        assert taken(reader, pause_s=0.06) > len(large.data)
        assert taken(sleeper) < len(large.data)


def taken(connection: socket.socket, pause_s: float = 0.0) -> int:
    """How many bytes a connection gets until it ends."""
    connection.settimeout(LIMIT_S)
    count = 0
    try:
        while chunk := connection.recv(1 << 17):
            count += len(chunk)
            time.sleep(pause_s)
    except ConnectionResetError:
        pass
    return count
