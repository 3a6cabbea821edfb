"""The HTTP face of a store: read-only, and the same bytes as the command line prints.

    /              a page with the results as text, and where the rest is
    /api/results   `results --json`; parameters window, by, where (again for and), metric
    /api/status    `status --json`
    /results.txt   `results`
    /healthz       whether the workers live
    /readyz        whether they know what to read, and the store answers
    /metrics       counts and times, as Prometheus reads them

Names in a store come from a stream and may be hostile: they are escaped, and no script may run.
"""

from __future__ import annotations

import html
from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from consumers.ledger.ledger import Ledger, LedgerError
from consumers.results.answers import Answers, results_text, store_name
from consumers.results.query import Query, QueryError, parse_generation, parse_query
from consumers.results.results import dumps, to_json
from consumers.results.status import status_json
from consumers.results.terminal import Style
from consumers.server.exposition import CONTENT_TYPE_LATEST, exposition
from consumers.server.guard import STYLE, Guard
from consumers.server.health import NOBODY, Watched

PARAMETERS = ("window", "by", "where", "metric", "generation")
JSON = "application/json"


def application(
    ledger: Ledger, watched: Watched = NOBODY, *, store: str, hosts: tuple[str, ...] = ()
) -> Starlette:
    """The ASGI application over a ledger, and over those who count into it.

    hosts: the names that it may be called by, beside localhost and numeric addresses.
    """
    answers = Answers(ledger)

    def results_json(request: Request) -> Response:
        query = _query(request.query_params)
        return Response(to_json(answers.results(query)), media_type=JSON)

    def results_txt(request: Request) -> Response:
        query = _query(request.query_params)
        text = results_text(answers.results(query), query, Style(), store=store)
        return PlainTextResponse(text.encode("utf-8", "backslashreplace"))

    def status(request: Request) -> Response:
        _refuse_others(request.query_params, ("generation",))
        wanted = parse_generation(request.query_params.get("generation"))
        return Response(status_json(ledger, wanted), media_type=JSON)

    def page(request: Request) -> Response:
        query = _query(request.query_params)
        text = results_text(answers.results(query), query, Style(), store=store)
        return Response(_page(store_name(store), text, request.url.query), media_type="text/html")

    def healthz(request: Request) -> Response:
        return _told(watched.unhealthy(), "ok")

    def readyz(request: Request) -> Response:
        try:
            ledger.generations()
        except LedgerError as error:
            return _told(str(error), "ready")
        return _told(watched.unready(), "ready")

    def metrics(request: Request) -> Response:
        headers = {"content-type": CONTENT_TYPE_LATEST}
        return Response(exposition(ledger, watched), headers=headers)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/api/results", results_json),
            Route("/api/status", status),
            Route("/results.txt", results_txt),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
        ],
        middleware=[Middleware(Guard, hosts=hosts)],
        exception_handlers={
            QueryError: _bad_query,
            LedgerError: _no_answer,
            HTTPException: _http_error,
            Exception: _broken,
        },
    )


def _told(why: str | None, well: str) -> Response:
    return PlainTextResponse(f"{well if why is None else why}\n", 200 if why is None else 503)


def _query(parameters: QueryParams) -> Query:
    _refuse_others(parameters, PARAMETERS)
    for name in ("window", "by", "metric", "generation"):
        if len(parameters.getlist(name)) > 1:
            raise QueryError(
                expected="one value",
                came=f"{len(parameters.getlist(name))}",
                where=name,
                todo="leave out the others; only `where` may be given again",
            )
    return parse_query(
        parameters.get("window", "total"),
        parameters.get("by"),
        parameters.getlist("where"),
        parameters.get("metric"),
        parameters.get("generation"),
    )


def _refuse_others(parameters: QueryParams, known: tuple[str, ...]) -> None:
    for name in parameters:
        if name not in known:
            raise QueryError(
                expected=" or ".join(known) or "no parameter",
                came=repr(name[:80]),
                where="the address",
                todo="correct the name or leave it out",
            )


def _bad_query(request: Request, error: Exception) -> Response:
    assert isinstance(error, QueryError)
    where = error.where.removeprefix("--")
    return _error(
        400, {"expected": error.expected, "came": error.came, "where": where, "todo": error.todo}
    )


def _no_answer(request: Request, error: Exception) -> Response:
    return _error(503, {"came": str(error)})


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, {"came": error.detail}, error.headers or {})


def _broken(request: Request, error: Exception) -> Response:
    # What went wrong inside goes to the log, which uvicorn writes, and not to whoever asks.
    return _error(500, {"came": "an error in this server; its log says more"})


def _error(status: int, parts: Mapping[str, str], headers: Mapping[str, str] = {}) -> Response:
    return Response(dumps({"error": dict(parts)}), status, headers, media_type=JSON)


def _page(name: str, text: str, query: str) -> str:
    asked = "?" + query if query else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(name)} - streammetrics</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{html.escape(name)}</h1>
<pre>{html.escape(text)}</pre>
<p><a href="{html.escape("/api/results" + asked)}">results as JSON</a>
<a href="{html.escape("/results.txt" + asked)}">results as text</a>
<a href="/api/status">status</a>
<a href="/?window=latest">latest window</a>
<a href="/?window=all">all windows</a></p>
</main>
</body>
</html>
"""
