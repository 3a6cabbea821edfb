"""Several workers of one Kafka group on one machine, under a process that starts and ends them."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Final

from consumers.worker.stop import Stop
from consumers.worker.tell import VARIABLE, Hearing

log = logging.getLogger(__name__)

WORKER: Final = "_STREAMMETRICS_WORKER"  # the number of a worker, in its environment
END_LIMIT_S: Final = 20.0  # for a worker to commit and leave, after it was asked to
RESTARTS: Final = 5  # of one worker that a signal has killed


def supervise(command: Sequence[str], workers: int, stop: Stop, hearing: Hearing) -> int:
    """Run `command` in `workers` processes until all have ended; answers the exit code.

    A worker that a signal has killed is started again, since nothing can be lost or doubled. One
    that ends with an error ends the others.
    """
    running = {i: _started(command, i, hearing) for i in range(workers)}
    restarts = dict.fromkeys(running, 0)
    code = 0
    asked_s: float | None = None
    while running:
        hearing.heed()
        if stop.wait(0.05) and asked_s is None:
            asked_s = time.monotonic()
            for process in running.values():
                process.terminate()
        if asked_s is not None:
            time.sleep(0.05)
            if time.monotonic() - asked_s > END_LIMIT_S:
                for process in running.values():
                    process.kill()
        for i, process in list(running.items()):
            ended = process.poll()
            if ended is None:
                continue
            if ended < 0 and asked_s is None and restarts[i] < RESTARTS:
                restarts[i] += 1
                log.warning("worker %d was killed by signal %d; starting it again", i, -ended)
                running[i] = _started(command, i, hearing)
                continue
            del running[i]
            hearing.ended(i)
            if ended == -signal.SIGTERM and asked_s is not None:
                continue  # it was asked before it had begun to listen, and to count
            if ended and not code:
                code = ended if ended > 0 else 1
                stop.request()
    return code


def _started(command: Sequence[str], worker: int, hearing: Hearing) -> subprocess.Popen[bytes]:
    hearing.started(worker)
    link = hearing.descriptor(worker)
    # In a session of its own, so that Ctrl-C reaches us alone and each worker hears of it once: a
    # second signal would end it before it has committed.
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=(link,),
        env={**os.environ, VARIABLE: str(link), WORKER: str(worker)},
    )
