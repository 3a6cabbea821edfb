"""A wish to end that comes in the middle of anything, as signals do."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from streammetrics_consumers.process.stop import Stop, signals_request

from tests.consumers.small_config import event, toml
from tests.patience import LIMIT_S
from tests.requirements import ROOT


def test_a_signal_in_the_middle_of_a_wait_of_the_same_thread_does_not_hang() -> None:
    """It comes once before each line of Python in `wait`, however deep."""

    def interrupted(at_line: int) -> bool:
        stop, left, before = Stop(), at_line, sys.gettrace()

        def trace(frame: object, event: str, argument: object) -> Any:
            nonlocal left
            if event == "line":
                left -= 1
                if left == 0:
                    sys.settrace(before)
                    signal.raise_signal(signal.SIGTERM)
            return trace

        with signals_request(stop):
            sys.settrace(trace)
            stop.wait(0.001)
            sys.settrace(before)
            if left <= 0:
                assert stop.requested and stop.wait(60)
        return left <= 0

    lines = 1
    while interrupted(lines):
        lines += 1
    assert lines > 2


def test_a_wait_ends_when_another_thread_asks() -> None:
    stop = Stop()
    assert not stop.wait(0)
    thread = threading.Thread(target=stop.request)
    thread.start()
    assert stop.wait(60) and stop.requested
    stop.request()
    assert stop.wait(60)  # and so does each wait after it
    thread.join()


def test_the_first_signal_asks_and_the_second_one_is_the_systems() -> None:
    """A signal may come while its thread writes a line of a log, which is no place for another."""

    class Busy(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("reentrant call inside")

    stop, busy = Stop(), Busy(logging.INFO)
    before = signal.getsignal(signal.SIGTERM)
    logger = logging.getLogger(signals_request.__module__)
    logger.addHandler(busy)
    logger.setLevel(logging.INFO)
    try:
        with signals_request(stop):
            signal.raise_signal(signal.SIGTERM)
            assert stop.requested
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    finally:
        logger.removeHandler(busy)
        logger.setLevel(logging.NOTSET)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_ends_a_wait_for_a_first_connection_and_no_other() -> None:
    stop, reached = Stop(), []
    with signals_request(stop):
        with stop.interrupting():
            pass
        signal.raise_signal(signal.SIGTERM)
        reached.append("outside")
    assert stop.requested
    stop = Stop()
    with signals_request(stop):
        with stop.interrupting():
            signal.raise_signal(signal.SIGTERM)
            reached.append("inside")
        reached.append("behind it")
    assert stop.requested and reached == ["outside"]


def test_a_process_that_waits_for_a_store_ends_at_once(tmp_path: Path) -> None:
    """Someone takes the connection and never answers: it would be given up after an hour."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = "{}:{}".format(*server.getsockname())
        path = tmp_path / "config.toml"
        (tmp_path / "events.jsonl").write_bytes(event() + b"\n")
        url = f"postgresql://me@{address}/x?connect_timeout=3600"
        path.write_text(toml(rest=f'[store]\nurl = "{url}"'))
        command = [
            sys.executable,
            "-m",
            "streammetrics_consumers.cli",
            "run",
            str(path),
            "--no-serve",
        ]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
            try:
                server.settimeout(LIMIT_S)
                with server.accept()[0]:
                    process.send_signal(signal.SIGTERM)
                    _, stderr = process.communicate(timeout=LIMIT_S)
            finally:
                process.kill()
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr


OPENING = """
import sys, time
from dataclasses import replace
from streammetrics_consumers.process import service
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.process.stop import Stop, signals_request
from tests.consumers.small_config import config

def opener(*_):
    print("opening", flush=True)
    time.sleep(3600)

made, stop = config(), Stop()
made = replace(made, store=replace(made.store, url=sys.argv[1]))
with signals_request(stop):
    service.run(made, Options(), stop=stop, opener=opener)
"""


def test_a_process_that_waits_for_a_source_ends_soon(tmp_path: Path) -> None:
    """Clients of Kafka may wait for a minute, and cannot be interrupted."""
    command = [sys.executable, "-c", OPENING, str(tmp_path / "store.db")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "opening\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()
