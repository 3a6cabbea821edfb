"""Several workers of one Kafka group on one machine, under a process that starts and ends them.

Each worker has one end of a socket pair, whose descriptor is in its environment, and sends its
status there, one packet per snapshot. Neither side waits: a snapshot that does not fit is dropped,
and a newer one follows within a second. A worker detects with its next packet that its parent
has ended.
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
END_LIMIT_S: Final = 20.0  # for a worker to commit and leave after a stop request
RESTARTS: Final = 5  # of one worker that was killed by a signal
VARIABLE: Final = "_STREAMMETRICS_STATUS"  # the descriptor of a worker's socket
PACKET_BYTES: Final = 1 << 20


def supervise(command: Sequence[str], workers: int, stop: Stop, channel: StatusChannel) -> int:
    """Run `command` in `workers` processes until all have ended; returns the exit code.

    A worker that was killed by a signal is restarted, since nothing can be lost or counted twice. A
    worker that ends with an error ends the others.
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
                log.warning("worker %d was killed by signal %d; restarting it", i, -ended)
                running[i] = _started(command, i, channel)
                continue
            del running[i]
            channel.ended(i)
            if ended == -signal.SIGTERM and asked_s is not None:
                continue  # it got the signal before it had installed a handler or counted
            if ended and not code:
                code = ended if ended > 0 else 1
                stop.request()
    return code


def _started(
    command: Sequence[str], worker: int, channel: StatusChannel
) -> subprocess.Popen[bytes]:
    channel.started(worker)
    link = channel.descriptor(worker)
    # In its own session, so that Ctrl-C reaches only this process and each worker gets one signal:
    # a second one would end it before it has committed.
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=(link,),
        env={**os.environ, VARIABLE: str(link), WORKER: str(worker)},
    )


class StatusChannel:
    """The parent's side: the last status of each worker."""

    def __init__(self, workers: int) -> None:
        self.last: dict[str, WorkerStatus] = {}
        self._pairs = {i: _pair() for i in range(workers)}
        self._finished: set[int] = set()

    def descriptor(self, worker: int) -> int:
        """The descriptor of the socket that this worker inherits."""
        return self._pairs[worker][1].fileno()

    def poll(self) -> None:
        """Read the new snapshots of the workers."""
        for worker, (reader, _) in self._pairs.items():
            last = None
            with suppress(BlockingIOError):
                while packet := reader.recv(PACKET_BYTES):
                    last = packet
            if last is not None:
                self.last[str(worker)] = decode(last)

    def workers(self) -> dict[str, WorkerStatus | None]:
        """The status of each worker that has not ended; None if it has sent nothing yet."""
        names = (str(i) for i in self._pairs if i not in self._finished)
        return {name: self.last.get(name) for name in names}

    def started(self, worker: int) -> None:
        """Drop the status of an earlier process: the worker was started, possibly again."""
        self.last.pop(str(worker), None)

    def ended(self, worker: int) -> None:
        """Remove a worker that has ended for good."""
        self._finished.add(worker)

    def close(self) -> None:
        """Close the sockets."""
        for pair in self._pairs.values():
            for end in pair:
                end.close()


def status_sender(
    environ: Mapping[str, str], orphaned: Callable[[], None]
) -> Callable[[bytes], None]:
    """A function that sends a worker's snapshots to its parent, if it has one.

    orphaned: called when the parent has ended.
    """
    number = environ.get(VARIABLE, "")
    if not number.isdecimal() or not _is_socket(int(number)):
        return lambda sent: None

    def send(sent: bytes) -> None:
        link = socket.socket(fileno=int(number))
        try:
            link.send(sent, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except (BrokenPipeError, ConnectionError):
            log.warning("the parent process of this worker has ended; stopping")
            orphaned()
        except OSError as error:  # no room, or too long
            log.debug("the status was not sent: %s", error)
        finally:
            link.detach()  # the descriptor belongs to the process, and stays open

    return send


def _is_socket(number: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False


def _pair() -> tuple[socket.socket, socket.socket]:
    reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reader.setblocking(False)
    return reader, writer
