"""A server that is told to end, with pages open, logs no error."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import httpx
import pytest

from tests.consumers.server.test_events import heard, until
from tests.consumers.server.test_half_open import WHOLE, connected
from tests.consumers.stores import event, make_store
from tests.patience import LIMIT_S
from tests.requirements import ROOT

ALL = b"api/results?window=all&views=all"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose results are some megabytes: more than the kernel buffers of one answer."""
    events = [
        event(60 * (index % 2), "ab"[index % 4 > 1], index % 3 == 0, 0.5, f"item {index // 4}")
        for index in range(1200)
    ]
    return make_store(tmp_path_factory.mktemp("large"), events)


def test_a_stop_with_open_pages_logs_no_error(large: Path) -> None:
    command = [sys.executable, "-m", "streammetrics_consumers.cli", "serve", str(large)]
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen([*command, "--port", "0"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("serving ").strip()
        page = stack.enter_context(httpx.stream("GET", url + "api/events", timeout=LIMIT_S))
        until(heard(page), "health")
        # One reads the start of a large answer and no more; another is computed for long.
        unread = connected(stack, url, b"")
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        unread.sendall(WHOLE % ALL)
        assert unread.recv(15) == b"HTTP/1.1 200 OK"
        heavy = connected(stack, url, WHOLE % (ALL + b"&by=variant,phase"))
        while "streammetrics_heavy_answers 1.0" not in httpx.get(url + "metrics").text:
            assert not select.select([heavy], [], [], 0)[0]
        lines: list[str] = []
        reader = Thread(target=lambda: lines.extend(process.stderr or ()))
        reader.start()
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0
        reader.join(LIMIT_S)
        assert b" 503 " in heavy.recv(40)
    assert [line for line in lines if "SIGTERM: stopping" not in line] == []
