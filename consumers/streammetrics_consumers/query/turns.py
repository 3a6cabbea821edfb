"""The turns of answers: one that nobody awaits any more ends, and a heavy one gives way to others.

Python computes one thread at a time, so an answer of ten thousand slices would hold up pages,
probes and scrapes for as long as it takes. An answer that a client awaits has a turn. Code that
computes it calls `checkpoint` between two slices, where the answer ends if its client has gone.
Programs that have no clients, such as `results`, have no turns and no limits.

An answer starts with a light turn. If it needs more slices than that admits, it is started again
with a heavy one, of which the server computes one at a time; beyond `most` slices it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Condition, Event
from typing import Final, TypeVar

from streammetrics_consumers.query.query import QueryError

T = TypeVar("T")

LIGHT_SLICES: Final = 1000  # of one answer; a slice counts once for each metric and window
MAX_SLICES: Final = 10_000
GIVE_WAY_S: Final = 0.02  # for at most so long at each checkpoint: a heavy answer also ends


class Abandoned(Exception):
    """The client of an answer has gone, or the server is about to end."""


class TooHeavy(Exception):
    """An answer needs more slices than a light turn admits, or waits for a heavy one."""


class Queue:
    """The answers of one server that come first, and those that give way to them. ended: whether
    the server is about to end."""

    def __init__(self, ended: Callable[[], bool] = lambda: False) -> None:
        self.ended = ended
        self._changed = Condition()
        self._first = 0
        self.heavy = 0  # answers that are computed at the moment and give way

    @contextmanager
    def first(self) -> Iterator[None]:
        """Others give way as long as the block computes."""
        with self._changed:
            self._first += 1
        try:
            yield
        finally:
            with self._changed:
                self._first -= 1
                self._changed.notify_all()

    @contextmanager
    def last(self) -> Iterator[None]:
        """The block gives way to others."""
        with self._changed:
            self.heavy += 1
        try:
            yield
        finally:
            with self._changed:
                self.heavy -= 1

    def give_way(self) -> None:
        """Wait until nothing that comes first is computed, but not for long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._first, GIVE_WAY_S)


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of one answer. light: the number of slices from which on it is too heavy; None if it
    has no such limit. most: from which on it is refused. gives_way: to the first of the queue."""

    queue: Queue
    light: int | None = LIGHT_SLICES
    most: int | None = MAX_SLICES
    gives_way: bool = False
    abandoned: Event = field(default_factory=Event)

    @property
    def is_heavy(self) -> bool:
        """Whether the answer may take very long."""
        return self.gives_way and self.most is not None

    def as_heavy(self) -> Turn:
        """A heavy turn for the same client."""
        return Turn(self.queue, None, self.most, gives_way=True, abandoned=self.abandoned)

    def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, which has this turn. Raises Abandoned and TooHeavy."""
        token = _TURN.set(self)
        try:
            with self.queue.last() if self.gives_way else nullcontext():
                return work()
        finally:
            _TURN.reset(token)

    def require_awaited(self) -> None:
        """Raise Abandoned if nobody awaits the answer, or the server is about to end."""
        if self.abandoned.is_set() or self.queue.ended():
            raise Abandoned


_TURN: Final[ContextVar[Turn | None]] = ContextVar("turn", default=None)


def current_turn() -> Turn | None:
    """The turn of the answer that this thread computes, if it has one."""
    return _TURN.get()


def checkpoint() -> None:
    """End an answer that nobody awaits (Abandoned), and give way to others if it is heavy."""
    turn = _TURN.get()
    if turn is None:
        return
    turn.require_awaited()
    if turn.gives_way:
        turn.queue.give_way()


def expect_slices(count: int) -> None:
    """Say how many slices an answer has so far, or at least. Raises TooHeavy, or QueryError if they
    are more than one answer may have."""
    turn = _TURN.get()
    if turn is None:
        return
    if turn.most is not None and count > turn.most:
        raise QueryError(
            expected=f"at most {turn.most:,} slices, each counted for every metric and window",
            got=f"at least {count:,}",
            where="the answer",
            hint="ask for the first slices of each metric with most=50, or for less with window, "
            "by, where or metric; `streammetrics results --json` has no limit, and "
            "[server] max_slices sets this one",
        )
    expect_work(count)


def expect_work(count: int) -> None:
    """Say of how many slices values are computed, shown or not. Raises TooHeavy."""
    turn = _TURN.get()
    if turn is not None and turn.light is not None and count > turn.light:
        raise TooHeavy
