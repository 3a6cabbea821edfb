"""How the vitals of several workers reach the process that started them.

Each worker has one end of a pair of sockets, whose number stands in its environment. A snapshot is
one packet. Nobody waits for anybody: what does not fit is left out, and a newer one follows within
a second. A worker whose parent is gone is told so by its next packet.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from consumers.worker.vitals import Vitals, decode

log = logging.getLogger(__name__)

VARIABLE: Final = "_STREAMMETRICS_TELL"  # the number of a worker's socket
PACKET_BYTES: Final = 1 << 20


class Hearing:
    """The parent's side: the last word of each worker."""

    def __init__(self, workers: int) -> None:
        self.last: dict[str, Vitals] = {}
        self._pairs = {i: _pair() for i in range(workers)}
        self._gone: set[int] = set()

    def descriptor(self, worker: int) -> int:
        """The number of the socket that this worker is to inherit."""
        return self._pairs[worker][1].fileno()

    def heed(self) -> None:
        """Take in what was said since."""
        for worker, (ours, _) in self._pairs.items():
            said = None
            with suppress(BlockingIOError):
                while packet := ours.recv(PACKET_BYTES):
                    said = packet
            if said is not None:
                self.last[str(worker)] = decode(said)

    def workers(self) -> dict[str, Vitals | None]:
        """Each worker that has not ended; None of one that has not spoken yet."""
        there = (str(i) for i in self._pairs if i not in self._gone)
        return {name: self.last.get(name) for name in there}

    def started(self, worker: int) -> None:
        """It was started, maybe again: what was heard before it is not of this one."""
        self.last.pop(str(worker), None)

    def ended(self, worker: int) -> None:
        """This one has ended for good."""
        self._gone.add(worker)

    def close(self) -> None:
        """Let go of the sockets."""
        for pair in self._pairs.values():
            for one in pair:
                one.close()


def teller(environ: Mapping[str, str], orphaned: Callable[[], None]) -> Callable[[bytes], None]:
    """What a worker tells its snapshots to: its parent, if it has one that listens.

    orphaned: called when the parent is gone.
    """
    number = environ.get(VARIABLE, "")
    if not number.isdecimal() or not _is_socket(int(number)):
        return lambda sent: None

    def tell(sent: bytes) -> None:
        link = socket.socket(fileno=int(number))
        try:
            link.send(sent, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except (BrokenPipeError, ConnectionError):
            log.warning("the process that started this worker is gone; ending")
            orphaned()
        except OSError as error:  # no room, or too long
            log.debug("vitals were not told: %s", error)
        finally:
            link.detach()  # it is the process's, and stays open

    return tell


def _is_socket(number: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False


def _pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs
