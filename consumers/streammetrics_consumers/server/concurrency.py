"""How many answers are computed at once, in which order, and until when: the client may go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from streammetrics_consumers.query.turns import Abandoned, TooHeavy, Turn

HEAVY: Final = 1  # heavy answers at once: two slow each other down, and everybody else
GONE: Final = 499  # the status of an answer whose client has gone: nobody reads it


class ConcurrencyLimiter:
    """Limits how many answers of some routes are computed at once; first come, first served.

    Python computes one of them at a time, however many threads there are. A reader who scrolls past
    fifty charts and opens another page sends fifty requests and needs one answer; and if a probe
    finds no free thread, a healthy worker is killed.
    """

    def __init__(self, at_once: int, turn: Turn) -> None:
        """turn: that of each answer; those that are too heavy for it wait for each other, apart
        from the rest."""
        self._turn = turn
        self._free, self._heavy = asyncio.Semaphore(at_once), asyncio.Semaphore(HEAVY)

    def limited(
        self, answer: Callable[[Request], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        """The same answer, computed in a thread once fewer are in progress; none for a client that
        has disconnected, or that disconnects meanwhile."""

        async def in_turn(request: Request) -> Response:
            if await request.is_disconnected():
                return Response(status_code=GONE)
            turn, work = replace(self._turn, abandoned=Event()), partial(answer, request)
            try:
                async with _watched(request, turn):
                    return await self._answer(turn, work)
            except Abandoned:
                if not turn.abandoned.is_set():
                    raise HTTPException(503, "the server stops") from None
                return Response(status_code=GONE)

        return in_turn

    async def _answer(self, turn: Turn, work: Callable[[], Response]) -> Response:
        async with self._free:
            turn.require_awaited()
            try:
                return await run_in_threadpool(turn.run, work)
            except TooHeavy:
                pass
        async with self._heavy:
            turn.require_awaited()
            return await run_in_threadpool(turn.as_heavy().run, work)


@asynccontextmanager
async def _watched(request: Request, turn: Turn) -> AsyncIterator[None]:
    """Within the block, the turn ends if the client disconnects."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        turn.abandoned.set()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
