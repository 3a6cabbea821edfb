"""A wish to end that comes in the middle of anything, as signals do."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from consumers.worker.stop import Stop
from tests.requirements import ROOT

# Interrupts `wait` once before each line of Python in it, however deep, and asks to end there.
INTERRUPTED = """
import signal, sys
from consumers.worker.stop import Stop, signals_request

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


@pytest.mark.parametrize("times", [1, 2])
def test_a_wait_ends_when_another_thread_asks(times: int) -> None:
    stop = Stop()
    assert not stop.wait(0)

    def ask() -> None:
        for _ in range(times):
            stop.request()

    thread = threading.Thread(target=ask)
    thread.start()
    assert stop.wait(60) and stop.requested
    assert stop.wait(60)  # and so does each wait after it
    thread.join()
