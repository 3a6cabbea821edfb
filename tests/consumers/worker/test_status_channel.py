"""The words of several workers reach their parent; nobody waits for anybody."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing

import pytest
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.process.supervise import VARIABLE, StatusChannel, status_sender

from tests.requirements import ROOT

SPEAKING = """
import os, time
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.process.supervise import status_sender
from streammetrics_consumers.counting.worker_status import StatusRecorder
stop = Stop()
watch = StatusRecorder(time.monotonic, status_sender(os.environ, stop.request))
print("speaks", flush=True)
while not stop.wait(0.01):
    watch.opening()
"""


def speaking(channel: StatusChannel, worker: int) -> subprocess.Popen[bytes]:
    link = channel.descriptor(worker)
    return subprocess.Popen(
        [sys.executable, "-c", SPEAKING],
        cwd=ROOT,
        pass_fds=(link,),
        env={**os.environ, VARIABLE: str(link)},
        stdout=subprocess.PIPE,
    )


@pytest.mark.slow
def test_the_last_word_of_each_worker_is_heard_and_an_orphan_ends() -> None:
    channel = StatusChannel(2)
    assert channel.workers() == {"0": None, "1": None}
    process = speaking(channel, 1)
    try:
        limit_s = time.monotonic() + 30
        while channel.workers()["1"] is None and time.monotonic() < limit_s:
            channel.poll()
        heard = channel.workers()["1"]
        assert heard is not None
        assert heard.pid == process.pid
        assert abs(time.monotonic() - heard.polled_s) < 20  # one clock for all processes
        channel.close()
        process.communicate(timeout=30)
        assert process.returncode == 0
    finally:
        process.kill()


def test_a_parent_that_does_not_listen_holds_nobody_up() -> None:
    with closing(StatusChannel(1)) as channel:
        tell = status_sender({VARIABLE: str(channel.descriptor(0))}, lambda: None)
        watch = StatusRecorder(time.monotonic, tell)
        for _ in range(5000):
            watch.opening()
        channel.poll()
        assert channel.workers()["0"] is not None


def test_a_worker_that_is_started_again_has_not_spoken_and_one_that_ended_is_not_there() -> None:
    with closing(StatusChannel(2)) as channel:
        watch = StatusRecorder(
            time.monotonic, status_sender({VARIABLE: str(channel.descriptor(0))}, stop)
        )
        watch.opening()
        channel.poll()
        channel.started(0)
        channel.ended(1)
        assert channel.workers() == {"0": None}


def stop() -> None:
    raise AssertionError("nobody is gone")


def test_without_a_parent_nothing_is_told() -> None:
    for environ in ({}, {VARIABLE: ""}, {VARIABLE: "x"}, {VARIABLE: "987654"}, {VARIABLE: "2"}):
        status_sender(environ, stop)(b"{}")
