"""Stopping a process: the first signal stops it in good order, the second immediately."""

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
    """A stop was requested while no work was in progress that must end in good order."""


class Stop:
    """A stop request, checked between two steps of work.

    A signal handler may interrupt any code, also a `wait` of the same thread. So this class uses no
    lock that the interrupted code could hold: only a flag, and a pipe that wakes waits.
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
        """Whether a stop was requested."""
        return self._requested

    def request(self) -> None:
        """Request a stop. Safe in a signal handler, and from any thread."""
        if not self._requested:
            self._requested = True
            os.write(self._wakes, b"!")  # it is never read, so it wakes every wait from now on

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """A block in which a signal raises StopRequested immediately, for connections that may take
        a minute to fail before anything is read. `signals_request` catches the exception."""
        before, self._interrupts = self._interrupts, True
        try:
            yield
        finally:
            self._interrupts = before

    @contextmanager
    def ending_within(self, seconds: float) -> Iterator[None]:
        """A block in which, after a signal, the process has this many seconds to leave the block
        before it ends immediately: for clients that cannot be interrupted and may wait for a
        minute, while there is nothing to commit."""
        self._limit_s = seconds
        try:
            yield
        finally:
            self._limit_s, timer, self._timer = None, self._timer, None
            if timer is not None:
                timer.cancel()

    def interrupt(self) -> None:
        """The action of a signal in the two blocks above. For the main thread only."""
        if self._limit_s is not None:
            self._timer = Timer(self._limit_s, _end_now)
            self._timer.daemon = True
            self._timer.start()
        elif self._interrupts:
            raise StopRequested

    def wait(self, seconds: float) -> bool:
        """Wait, at most until a stop is requested; returns whether one was."""
        waiting = select.poll()
        waiting.register(self._woken, select.POLLIN)
        waiting.poll(seconds * 1000)
        return self._requested


def _end_now() -> None:
    with suppress(Exception):
        log.warning("no answer yet, and nothing to commit: stopping")
    os._exit(0)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@contextmanager
def signals_request(stop: Stop, next_step: str = "committing, then stopping") -> Iterator[None]:
    """A block in which SIGTERM and SIGINT request a stop. The second signal ends the process with
    the default action. For the main thread only, as signals are. next_step: for the log.
    StopRequested ends the block quietly: see `Stop.interrupting`.
    """

    def on_signal(number: int, _frame: FrameType | None) -> None:
        for signal_number in SIGNALS:
            signal.signal(signal_number, signal.SIG_DFL)
        stop.request()
        # It may have interrupted a log call: a lost line must not lose the stop request.
        with suppress(Exception):
            log.info("%s: %s", signal.Signals(number).name, next_step)
        stop.interrupt()

    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield
    except StopRequested:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
