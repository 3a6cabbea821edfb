"""Turns: answers that take long are worked out a few at a time, and never for who has gone.

Python works at one of them at a time, however many threads wait. Whoever scrolls past fifty charts
and opens another page asks fifty questions and wants one answer; and a probe that finds no thread
free gets a worker killed that is well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

Answer = Callable[[Request], Response]


class Turns:
    """A queue for some routes: the first who came is answered first, so many at once."""

    def __init__(self, at_once: int) -> None:
        self._free = asyncio.Semaphore(at_once)

    def of(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """The same answer, in a thread, when its turn has come."""

        async def in_turn(request: Request) -> Response:
            async with self._free:
                if await request.is_disconnected():
                    return Response(status_code=499)  # nobody reads it
                return await run_in_threadpool(answer, request)

        return in_turn
