"""How a process is asked to end: once politely, and the second time at once."""

from __future__ import annotations

import logging
import os
import select
import signal
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

log = logging.getLogger(__name__)

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """A wish to end, which those who work look at between two steps.

    A signal handler asks in the middle of anything, also of a `wait` of the same thread. So there
    is no lock here that the interrupted code could hold: a flag, and a pipe that wakes the waits.
    """

    def __init__(self) -> None:
        self._requested = False
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        weakref.finalize(self, _close, self._woken, self._wakes)

    @property
    def requested(self) -> bool:
        """Whether to end now."""
        return self._requested

    def request(self) -> None:
        """Ask to end. Safe in a signal handler, and from any thread."""
        if not self._requested:
            self._requested = True
            os.write(self._wakes, b"!")  # nobody reads it, so every wait from now on is woken

    def wait(self, seconds: float) -> bool:
        """Wait, but not longer than until someone asks to end; whether someone did."""
        waiting = select.poll()
        waiting.register(self._woken, select.POLLIN)
        waiting.poll(seconds * 1000)
        return self._requested


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@contextmanager
def signals_request(stop: Stop, then: str = "committing, then ending") -> Iterator[None]:
    """SIGTERM and SIGINT ask to end; the second one ends the process as if nobody had listened,
    whatever it is doing. Of the main thread alone, as signals are. then: what the log says follows.
    """

    def heed(number: int, _frame: FrameType | None) -> None:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_DFL)
        log.info("%s: %s", signal.Signals(number).name, then)
        stop.request()

    before = {number: signal.signal(number, heed) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
