"""What orchestrators and Prometheus ask: answered whatever else the server is asked for.

None of them takes a thread that other answers take. `/healthz` takes none at all; the others have
one thread each, and whoever asks while it is at work gets its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.follow import LatestResults
from streammetrics_consumers.server.exposition import CONTENT_TYPE_LATEST, exposition
from streammetrics_consumers.server.health import Watched, unready

PROBES: Final = ("/healthz", "/readyz", "/metrics")


def probes(ledger: Ledger, watched: Watched, latest: LatestResults) -> list[Route]:
    """The routes of a server over a ledger, and over those who count into it."""

    async def healthz(request: Request) -> Response:
        return _told(watched.unhealthy(), "ok")

    def readyz() -> Response:
        return _told(unready(ledger, watched), "ready")

    def metrics() -> Response:
        headers = {"content-type": CONTENT_TYPE_LATEST}
        return Response(exposition(ledger, watched, latest), headers=headers)

    return [
        Route("/healthz", healthz),
        Route("/readyz", Shared(readyz).answer),
        Route("/metrics", Shared(metrics).answer),
    ]


class Shared:
    """An answer that is worked out once for all who ask at a time, in a thread of its own."""

    def __init__(self, work: Callable[[], Response]) -> None:
        self._work = work
        self._begun: asyncio.Future[Response] | None = None

    async def answer(self, request: Request) -> Response:
        """The answer that is being worked out, or a new one."""
        if self._begun is None or self._begun.done():
            found: Future[Response] = Future()
            # A daemon: a store that never answers does not hold up the end of the process.
            Thread(target=self._work_out, args=(found,), name="probe", daemon=True).start()
            self._begun = asyncio.wrap_future(found)
        return await asyncio.shield(self._begun)

    def _work_out(self, found: Future[Response]) -> None:
        try:
            found.set_result(self._work())
        except Exception as error:
            found.set_exception(error)


def _told(why: str | None, well: str) -> Response:
    return PlainTextResponse(f"{well if why is None else why}\n", 200 if why is None else 503)
