"""How a process is asked to end: once politely, and the second time at once."""

from __future__ import annotations

import logging
import os
import select
import signal
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from types import FrameType
from typing import Final

log = logging.getLogger(__name__)

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class StopRequested(BaseException):
    """Someone asked to end while nothing was under way that has to be ended in good order."""


class Stop:
    """A wish to end, which those who work look at between two steps.

    A signal handler asks in the middle of anything, also of a `wait` of the same thread. So there
    is no lock here that the interrupted code could hold: a flag, and a pipe that wakes the waits.
    """

    def __init__(self) -> None:
        self._requested = False
        self._interrupts = False
        self._limit_s: float | None = None
        self._timer: Timer | None = None
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

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """In this block a signal raises StopRequested at once: for connections that may take a
        minute to fail, before anything is read. `signals_request` takes the exception."""
        before, self._interrupts = self._interrupts, True
        try:
            yield
        finally:
            self._interrupts = before

    @contextmanager
    def ending_within(self, seconds: float) -> Iterator[None]:
        """Once a signal has come, the process ends at the end of this block, or after this many
        seconds in it, at once: for clients that cannot be interrupted and may wait for a
        minute, while nothing is read that would have to be committed."""
        self._limit_s = seconds
        try:
            yield
        finally:
            self._limit_s, timer, self._timer = None, self._timer, None
            if timer is not None:
                timer.cancel()

    def interrupt(self) -> None:
        """What a signal does where it comes: see the two blocks. Of the main thread alone."""
        if self._limit_s is not None:
            self._timer = Timer(self._limit_s, _end_now)
            self._timer.daemon = True
            self._timer.start()
        elif self._interrupts:
            raise StopRequested

    def wait(self, seconds: float) -> bool:
        """Wait, but not longer than until someone asks to end; whether someone did."""
        waiting = select.poll()
        waiting.register(self._woken, select.POLLIN)
        waiting.poll(seconds * 1000)
        return self._requested


def _end_now() -> None:
    with suppress(Exception):
        log.warning("there is no answer yet, and nothing to commit: ending")
    os._exit(0)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@contextmanager
def signals_request(stop: Stop, then: str = "committing, then ending") -> Iterator[None]:
    """SIGTERM and SIGINT ask to end; the second one ends the process as if nobody had listened,
    whatever it is doing. Of the main thread alone, as signals are. then: what the log says follows.
    The block ends with StopRequested where the first one interrupts it: see `Stop.interrupting`.
    """

    def on_signal(number: int, _frame: FrameType | None) -> None:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_DFL)
        stop.request()
        # It may have interrupted what writes a log: the wish to end must not be lost with a line.
        with suppress(Exception):
            log.info("%s: %s", signal.Signals(number).name, then)
        stop.interrupt()

    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield
    except StopRequested:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
