"""Several worker processes under one: they end together, one that is killed starts again, and what
they send reaches their parent; nobody waits for anybody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.process import supervise as supervision
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.process.supervise import VARIABLE, StatusChannel, status_sender

from tests.patience import LIMIT_S
from tests.requirements import ROOT


def python(script: str, *arguments: object) -> list[str]:
    return [sys.executable, "-SIc", script, *map(str, arguments)]


def supervised(command: list[str], workers: int, stop: Stop) -> int:
    with closing(StatusChannel(workers)) as channel:
        return supervision.supervise(command, workers, stop, channel)


def test_each_worker_knows_its_number_and_when_all_have_ended_so_has_the_whole(
    tmp_path: Path,
) -> None:
    script = "import os, sys; open(f'{sys.argv[1]}/{os.environ[sys.argv[2]]}', 'w')"
    assert supervised(python(script, tmp_path, supervision.WORKER), 3, Stop()) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]


def test_an_error_of_one_ends_the_others_and_is_the_exit_code(tmp_path: Path) -> None:
    # The first to make the folder fails, the others would wait for an hour.
    script = (
        "import sys, time, os\n"
        "try: os.mkdir(sys.argv[1])\n"
        "except FileExistsError: time.sleep(3600)\n"
        "else: sys.exit(4)\n"
    )
    assert supervised(python(script, tmp_path / "first"), 3, Stop()) == 4


def test_a_worker_that_a_signal_has_killed_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import sys, os, signal\n"
        "try: os.mkdir(sys.argv[1])\n"
        "except FileExistsError: sys.exit(0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert supervised(python(script, tmp_path / "once"), 2, Stop()) == 0
    monkeypatch.setattr(supervision, "RESTARTS", 1)  # one that is killed again is given up
    script = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert supervised(python(script), 1, Stop()) == 1


def asked_after_start(folder: Path, workers: int) -> Stop:
    """A wish to end, once so many workers have made a file."""
    stop = Stop()

    def ask() -> None:
        while len(list(folder.iterdir())) < workers:
            time.sleep(0.01)
        stop.request()

    threading.Thread(target=ask, daemon=True).start()
    return stop


# Python looks for signals between its steps: one that comes just before a long sleep waits it out.
WAITING = (
    "import sys, os, pathlib, signal, time\n"
    "signal.signal(signal.SIGTERM, {handler})\n"
    "pathlib.Path(sys.argv[1], str(os.getpid())).touch()\n"
    "while True: time.sleep(0.01)\n"
)


@pytest.mark.parametrize("handler", ["signal.SIG_DFL", "lambda *_: sys.exit(0)"])
def test_a_stop_asks_each_worker_once_also_before_it_listens(tmp_path: Path, handler: str) -> None:
    script = WAITING.format(handler=handler)
    assert supervised(python(script, tmp_path), 2, asked_after_start(tmp_path, 2)) == 0


SUPERVISING = """
import sys
from streammetrics_consumers.process.supervise import supervise
from streammetrics_consumers.process.stop import Stop, signals_request
from streammetrics_consumers.process.supervise import StatusChannel
stop = Stop()
with signals_request(stop):
    sys.exit(supervise([sys.executable, "-c", *sys.argv[1:]], 2, stop, StatusChannel(2)))
"""
HEARING = """
import os, pathlib, signal, sys
both, place = {signal.SIGINT, signal.SIGTERM}, pathlib.Path(sys.argv[1], str(os.getpid()))
signal.pthread_sigmask(signal.SIG_BLOCK, both)
place.touch()
heard = [signal.sigwait(both).name]
while more := signal.sigtimedwait(both, 0.2):  # as if it committed
    heard.append(signal.Signals(more.si_signo).name)
place.write_text(" ".join(heard))
"""


def test_ctrl_c_reaches_the_workers_once_and_as_a_request(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISING, HEARING, tmp_path],
        cwd=ROOT,
        start_new_session=True,
        stderr=subprocess.PIPE,
    )
    try:
        while len(list(tmp_path.iterdir())) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to the whole group
        _, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, b"")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["SIGTERM", "SIGTERM"]


def test_workers_that_do_not_heed_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "END_LIMIT_S", 0.2)
    script = WAITING.format(handler="signal.SIG_IGN")
    assert supervised(python(script, tmp_path), 2, asked_after_start(tmp_path, 2)) == 1


# -- what workers send to their parent ------------------------------------------------------------


def test_a_parent_hears_the_last_word_of_each_worker_and_an_orphan_learns_it() -> None:
    channel, orphaned, began_s = StatusChannel(2), list[bool](), time.monotonic()
    link = os.dup(channel.descriptor(1))
    try:
        send = status_sender({VARIABLE: str(link)}, lambda: orphaned.append(True))
        watch = StatusRecorder(time.monotonic, send)
        assert channel.workers() == {"0": None, "1": None}
        for _ in range(5000):  # nobody listens, and it is not held up
            watch.opening()
        channel.poll()
        heard = channel.workers()["1"]
        assert heard is not None and heard.pid == os.getpid()
        assert began_s <= heard.polled_s <= time.monotonic()  # one clock for all processes
        channel.started(1)
        channel.ended(0)
        assert channel.workers() == {"1": None}
        assert not orphaned
        channel.close()
        watch.opening()
        assert orphaned
    finally:
        os.close(link)


def gone() -> None:
    raise AssertionError("nobody is gone")


def test_without_a_parent_nothing_is_told() -> None:
    for environ in ({}, {VARIABLE: ""}, {VARIABLE: "x"}, {VARIABLE: "987654"}, {VARIABLE: "2"}):
        status_sender(environ, gone)(b"{}")
