"""The processes that tests start leave nothing behind, however the tests end."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.requirements import ROOT

OWNER = """
import subprocess, time
from tests.kafka_broker import TIED
command = ["sh", "-c", TIED, "sh", "sleep", "600"]
subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
print("started", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.timeout(30)
def test_a_tied_process_ends_when_the_process_that_owns_it_is_killed() -> None:
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "started\n"
        owner.send_signal(signal.SIGKILL)
        assert owner.stdout.read() == ""  # the end comes when nobody holds the pipe any more
