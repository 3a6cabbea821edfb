"""The HTTP interface of a store: read-only, with the same bytes as the command line prints.

docs/http.md lists the routes. Names in a store come from a stream and may be hostile: they are
data in JSON or plain text and never part of HTML, and only our own scripts may run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from streammetrics import StateError
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import Error, ProblemAnswer
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.latest import LatestResults
from streammetrics_consumers.query.query import QueryError
from streammetrics_consumers.query.turns import Queue, Turn
from streammetrics_consumers.render.prometheus import ROWS
from streammetrics_consumers.server import assets
from streammetrics_consumers.server.api import JSON, Api, checked, threaded
from streammetrics_consumers.server.bodies import asset_response, response
from streammetrics_consumers.server.events import Events
from streammetrics_consumers.server.exposition import CONTENT_TYPE_LATEST, ServerNumbers, exposition
from streammetrics_consumers.server.health import NO_WORKERS, HealthMonitor, WatchedWorkers, unready
from streammetrics_consumers.server.memory import (
    default_cache_bytes,
    is_full,
    memory_limit,
    return_memory,
)
from streammetrics_consumers.server.middleware import HostCheck, Token
from streammetrics_consumers.server.openapi import openapi_json

_DEFAULTS: Final = ServerConfig()


def application(
    ledger: Ledger,
    watched: WatchedWorkers = NO_WORKERS,
    *,
    store: str,
    settings: ServerConfig = _DEFAULTS,
    ended: Callable[[], bool] = lambda: False,
) -> ASGIApp:
    """The ASGI application over a ledger, and over the workers that count into it.

    settings: its host is an allowed host name, besides localhost and numeric addresses. ended:
    whether open streams must end.
    """
    queue, monitor, limit = Queue(ended), HealthMonitor(ledger, watched), memory_limit()
    cache = QueryCache(
        ledger,
        queue,
        max_bytes=default_cache_bytes() if settings.cache_bytes is None else settings.cache_bytes,
        is_full=lambda: is_full(limit),
        emptied=return_memory,
    )
    api = Api(ledger, cache, monitor, store, Turn(queue, most=settings.max_slices))
    streams = Events(monitor, ended)

    async def events(request: Request) -> Response:
        return streams.answer(request.method)

    app = Starlette(
        routes=[
            Route("/", _page),
            checked("/assets/{name}", threaded(_asset)),
            *api.routes(),
            checked("/api/events", events),
            checked("/openapi.json", threaded(_openapi)),
            *_probes(ledger, watched, cache, queue),
        ],
        middleware=[Middleware(Token, token=settings.token)],
        exception_handlers={
            QueryError: _bad_query,
            LedgerError: _no_answer,
            StateError: _unreadable,
            HTTPException: _http_error,
            Exception: _broken,
        },
    )
    # Around the whole: what Starlette answers to an unexpected error passes no middleware.
    return HostCheck(app, hosts=(settings.host,))


def _page(request: Request) -> Response:
    # The script of the page reads the address, which says what to show.
    assets.prepare()
    page = assets.asset("index.html")
    if page is None:
        return PlainTextResponse("the page is not installed; /results.txt has the results\n")
    return asset_response(request, page)


def _asset(request: Request) -> Response:
    asset = assets.asset(request.path_params["name"])
    if asset is None:
        raise HTTPException(404)
    return asset_response(request, asset)


def _openapi(request: Request) -> Response:
    return response(request, openapi_json(), JSON)


def _bad_query(request: Request, error: Exception) -> Response:
    assert isinstance(error, QueryError)
    return _error(400, _problem(error, error.where.removeprefix("--")))


def _no_answer(request: Request, error: Exception) -> Response:
    return _error(503, ProblemAnswer(str(error)))


def _unreadable(request: Request, error: Exception) -> Response:
    assert isinstance(error, StateError)
    return _error(503, _problem(error, error.where))


def _problem(error: QueryError | StateError, where: str) -> ProblemAnswer:
    return ProblemAnswer(expected=error.expected, got=error.got, where=where, hint=error.hint)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, ProblemAnswer(error.detail), error.headers or {})


def _broken(request: Request, error: Exception) -> Response:
    # uvicorn writes the cause to the log; the client must not see it.
    return _error(500, ProblemAnswer("an internal error; the server's log has the details"))


def _error(status: int, problem: ProblemAnswer, headers: Mapping[str, str] = {}) -> Response:
    return Response(dumps(Error(problem)), status, headers, media_type=JSON)


# -- probes of orchestrators and Prometheus, answered however busy the server is ----------------
#
# None of them uses a thread of the other answers. `/healthz` uses none at all; the others have one
# thread each, and requests that arrive while it works get its answer.


def _probes(
    ledger: Ledger, watched: WatchedWorkers, cache: QueryCache, queue: Queue
) -> list[Route]:
    """The probe routes over a ledger, and over the workers that count into it."""

    latest = LatestResults(cache, rows=ROWS)

    async def healthz(request: Request) -> Response:
        return _probe_response(watched.unhealthy(), "ok")

    def readyz() -> Response:
        return _probe_response(unready(ledger, watched), "ready")

    def metrics() -> Response:
        headers = {"content-type": CONTENT_TYPE_LATEST}
        numbers = ServerNumbers(queue.heavy, cache.nbytes, cache.max_bytes)
        return Response(exposition(ledger, watched, latest, numbers), headers=headers)

    return [
        Route("/healthz", healthz),
        Route("/readyz", _Shared(readyz, queue).answer),
        Route("/metrics", _Shared(metrics, queue).answer),
    ]


class _Shared:
    """An answer that is computed once for all concurrent requests, in a separate thread. Others
    give way to it."""

    def __init__(self, work: Callable[[], Response], queue: Queue) -> None:
        self._work, self._queue = work, queue
        self._begun: asyncio.Future[Response] | None = None

    async def answer(self, request: Request) -> Response:
        """The answer that is being computed, or a new one."""
        if self._begun is None or self._begun.done():
            future: Future[Response] = Future()
            # A daemon: a store that never answers must not delay the end of the process.
            Thread(target=self._work_out, args=(future,), name="probe", daemon=True).start()
            self._begun = asyncio.wrap_future(future)
        return await asyncio.shield(self._begun)

    def _work_out(self, future: Future[Response]) -> None:
        try:
            with self._queue.first():
                future.set_result(self._work())
        except Exception as error:
            future.set_exception(error)


def _probe_response(why: str | None, well: str) -> Response:
    return PlainTextResponse(f"{well if why is None else why}\n", 200 if why is None else 503)
