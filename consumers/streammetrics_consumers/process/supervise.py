"""Several workers of one Kafka group on one machine, under a process that starts and ends them.

Each worker has one end of a pair of sockets, whose number stands in its environment, and sends its
status there: a snapshot is one packet. Nobody waits for anybody: what does not fit is left out, and
a newer one follows within a second. A worker whose parent is gone learns it from its next packet.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from streammetrics_consumers.counting.worker_status import WorkerStatus, decode
from streammetrics_consumers.process.stop import Stop

log = logging.getLogger(__name__)

WORKER: Final = "_STREAMMETRICS_WORKER"  # the number of a worker, in its environment
END_LIMIT_S: Final = 20.0  # for a worker to commit and leave, after it was asked to
RESTARTS: Final = 5  # of one worker that a signal has killed
VARIABLE: Final = "_STREAMMETRICS_STATUS"  # the number of a worker's socket
PACKET_BYTES: Final = 1 << 20


def supervise(command: Sequence[str], workers: int, stop: Stop, channel: StatusChannel) -> int:
    """Run `command` in `workers` processes until all have ended; answers the exit code.

    A worker that a signal has killed is started again, since nothing can be lost or doubled. One
    that ends with an error ends the others.
    """
    running = {i: _started(command, i, channel) for i in range(workers)}
    restarts = dict.fromkeys(running, 0)
    code = 0
    asked_s: float | None = None
    while running:
        channel.poll()
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
                running[i] = _started(command, i, channel)
                continue
            del running[i]
            channel.ended(i)
            if ended == -signal.SIGTERM and asked_s is not None:
                continue  # it was asked before it had begun to listen, and to count
            if ended and not code:
                code = ended if ended > 0 else 1
                stop.request()
    return code


def _started(
    command: Sequence[str], worker: int, channel: StatusChannel
) -> subprocess.Popen[bytes]:
    channel.started(worker)
    link = channel.descriptor(worker)
    # In a session of its own, so that Ctrl-C reaches us alone and each worker hears of it once: a
    # second signal would end it before it has committed.
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=(link,),
        env={**os.environ, VARIABLE: str(link), WORKER: str(worker)},
    )


class StatusChannel:
    """The parent's side: the last status that each worker sent."""

    def __init__(self, workers: int) -> None:
        self.last: dict[str, WorkerStatus] = {}
        self._pairs = {i: _pair() for i in range(workers)}
        self._gone: set[int] = set()

    def descriptor(self, worker: int) -> int:
        """The number of the socket that this worker is to inherit."""
        return self._pairs[worker][1].fileno()

    def poll(self) -> None:
        """Read what the workers have sent since."""
        for worker, (ours, _) in self._pairs.items():
            last = None
            with suppress(BlockingIOError):
                while packet := ours.recv(PACKET_BYTES):
                    last = packet
            if last is not None:
                self.last[str(worker)] = decode(last)

    def workers(self) -> dict[str, WorkerStatus | None]:
        """Each worker that has not ended; None of one that has sent nothing yet."""
        there = (str(i) for i in self._pairs if i not in self._gone)
        return {name: self.last.get(name) for name in there}

    def started(self, worker: int) -> None:
        """It was started, maybe again: what was received before is not of this one."""
        self.last.pop(str(worker), None)

    def ended(self, worker: int) -> None:
        """This one has ended for good."""
        self._gone.add(worker)

    def close(self) -> None:
        """Let go of the sockets."""
        for pair in self._pairs.values():
            for one in pair:
                one.close()


def status_sender(
    environ: Mapping[str, str], orphaned: Callable[[], None]
) -> Callable[[bytes], None]:
    """What sends a worker's snapshots to its parent, if it has one that listens.

    orphaned: called when the parent is gone.
    """
    number = environ.get(VARIABLE, "")
    if not number.isdecimal() or not _is_socket(int(number)):
        return lambda sent: None

    def send(sent: bytes) -> None:
        link = socket.socket(fileno=int(number))
        try:
            link.send(sent, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except (BrokenPipeError, ConnectionError):
            log.warning("the process that started this worker is gone; ending")
            orphaned()
        except OSError as error:  # no room, or too long
            log.debug("the status was not sent: %s", error)
        finally:
            link.detach()  # it is the process's, and stays open

    return send


def _is_socket(number: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False


def _pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs
