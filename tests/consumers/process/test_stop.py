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

import pytest
from streammetrics_consumers.process.stop import Stop, signals_request

from tests.consumers.small_config import event, toml
from tests.requirements import ROOT

# Interrupts `wait` once before each line of Python in it, however deep, and asks to end there.
INTERRUPTED = """
import signal, sys
from streammetrics_consumers.process.stop import Stop, signals_request

def traced(lines_before):
    stop = Stop()
    left = [lines_before]

    def trace(frame, event, argument):
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGTERM)
        return trace

    with signals_request(stop):
        sys.settrace(trace)
        stop.wait(0.01)
        sys.settrace(None)
        if left[0] <= 0:
            assert stop.requested and stop.wait(60)
    return left[0] <= 0

lines = 1
while traced(lines):
    lines += 1
print(lines)
"""


def test_a_signal_in_the_middle_of_a_wait_of_the_same_thread_does_not_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 2  # it was interrupted at some lines


def test_a_wait_ends_when_another_thread_asks() -> None:
    stop = Stop()
    assert not stop.wait(0)
    thread = threading.Thread(target=stop.request)
    thread.start()
    assert stop.wait(60) and stop.requested
    stop.request()
    assert stop.wait(60)  # and so does each wait after it
    thread.join()


def test_a_log_that_cannot_be_written_does_not_lose_the_wish(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A signal may come while its thread writes a line of a log, which is no place for another."""

    class Busy(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("reentrant call inside")

    caplog.set_level(logging.INFO)
    stop, busy = Stop(), Busy()
    logging.getLogger().addHandler(busy)
    try:
        with signals_request(stop):
            signal.raise_signal(signal.SIGTERM)
    finally:
        logging.getLogger().removeHandler(busy)
    assert stop.requested


def test_the_first_signal_asks_and_the_second_one_is_the_systems() -> None:
    stop = Stop()
    before = signal.getsignal(signal.SIGTERM)
    with signals_request(stop):
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
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


@pytest.mark.slow
def test_a_process_that_waits_for_a_store_ends_at_once(tmp_path: Path) -> None:
    """Someone takes the connection and never answers: it would be given up after a minute."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = "{}:{}".format(*server.getsockname())
        path = tmp_path / "config.toml"
        (tmp_path / "events.jsonl").write_bytes(event() + b"\n")
        path.write_text(toml(rest=f'[store]\nurl = "postgresql://me@{address}/x"'))
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
                server.settimeout(60)
                with server.accept()[0]:
                    process.send_signal(signal.SIGTERM)
                    _, said = process.communicate(timeout=8)
            finally:
                process.kill()
    assert process.returncode == 0, said
    assert "Traceback" not in said


OPENING = """
import sys, time
from dataclasses import replace
from streammetrics_consumers.process import service
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.process.stop import Stop, signals_request
from tests.consumers.small_config import config

def opener(*_):
    print("opening", flush=True)
    time.sleep(600)

made, stop = config(), Stop()
made = replace(made, store=replace(made.store, url=sys.argv[1]))
with signals_request(stop):
    service.run(made, Options(), stop=stop, opener=opener)
"""


@pytest.mark.slow
def test_a_process_that_waits_for_a_source_ends_soon(tmp_path: Path) -> None:
    """Clients of Kafka may wait for a minute, and cannot be interrupted."""
    command = [sys.executable, "-c", OPENING, str(tmp_path / "store.db")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "opening\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(15) == 0
        finally:
            process.kill()
