"""The routes of the interface: each answer is a function of the store and of the address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, Literal, cast

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import view
from streammetrics_consumers.query.answers import ExperimentsAnswer, ResultsAnswer
from streammetrics_consumers.query.catalogue import EFFECT, OVER_TIME, Catalogue
from streammetrics_consumers.query.comparisons import experiment_answer
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.history import Effects, HistoryReader
from streammetrics_consumers.query.hook_answers import SentHook, hooks_answer, sent_hooks
from streammetrics_consumers.query.json_kinds import Json
from streammetrics_consumers.query.moments import Last
from streammetrics_consumers.query.query import (
    Lines,
    Query,
    QueryError,
    parse_generation,
    parse_query,
    require_generation,
    store_name,
)
from streammetrics_consumers.query.results_json import KeptRows, to_json
from streammetrics_consumers.query.status import status_json
from streammetrics_consumers.query.turns import Turn
from streammetrics_consumers.render.cells import results_with_texts
from streammetrics_consumers.render.experiment_index_text import index_with_texts
from streammetrics_consumers.render.experiment_text import experiment_with_texts
from streammetrics_consumers.render.quarantine import refused_json
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import results_text, text_query
from streammetrics_consumers.server.bodies import (
    accepts_gzip,
    compressed,
    compressed_response,
    response,
)
from streammetrics_consumers.server.concurrency import ConcurrencyLimiter
from streammetrics_consumers.server.health import HealthMonitor
from streammetrics_consumers.server.openapi import CHOICES, LINES, parameters_of

CHARTS: Final = 1  # computed at once: they need the processor, and two slow each other down
TABLES: Final = 8  # other answers at once: fewer than the threads, so that probes find one
JSON: Final = "application/json"
VARIANT: Final = frozenset({"variant"})


class Api:
    """Answers over one ledger."""

    def __init__(
        self, ledger: Ledger, cache: QueryCache, monitor: HealthMonitor, store: str, turn: Turn
    ) -> None:
        """turn: of an answer that is not a chart."""
        self._ledger, self._cache, self._monitor, self._store = ledger, cache, monitor, store
        self._turn = turn
        self._catalogue = Catalogue(ledger, store_name(store))
        self._histories = HistoryReader(ledger, cache, self._catalogue)
        self._index: Last[ExperimentsAnswer] = Last()
        self._kept = KeptRows()  # of tables, which the page asks for after every commit

    def routes(self) -> list[Route]:
        """All routes but the events, which need no thread for each listener."""
        tables = ConcurrencyLimiter(TABLES, self._turn)
        # Charts have their own slot, in which they take as long as they need.
        chart = replace(self._turn, light=None, most=None, gives_way=True)
        charts = ConcurrencyLimiter(CHARTS, chart)
        return [
            checked("/api/store", tables.limited(self.store)),
            checked("/api/results", tables.limited(self.results)),
            checked("/api/history", charts.limited(self.history)),
            checked("/api/experiment", tables.limited(self.experiment)),
            checked("/api/experiments", tables.limited(self.experiments)),
            checked("/api/figure", charts.limited(self.figure)),
            checked("/api/health", threaded(self.health)),
            checked("/api/status", tables.limited(self.status)),
            checked("/api/hooks", tables.limited(self.hooks)),
            checked("/api/quarantine", tables.limited(self.quarantine)),
            checked("/results.txt", tables.limited(self.results_txt)),
        ]

    def store(self, request: Request) -> Response:
        """The contents of the store that a query may ask for."""
        experiment = request.query_params.get("experiment")
        return _json(request, self._catalogue.to_json(self._generation(request), experiment))

    def results(self, request: Request) -> Response:
        """The bytes of `results --json`, with texts if the request asks for them."""
        query = query_of(request.query_params)
        views, lines = choice(request.query_params, "views"), lines_of(request.query_params)
        page_query = replace(query, headlines=lines is None and views == "headline", lines=lines)
        texts = choice(request.query_params, "texts")
        write = self._json_with_texts if texts == "tables" else to_json
        if not accepts_gzip(request):
            return _json(request, write(self._cache.results(page_query)))
        # Only compressed bytes are kept, which are a small part of the answer.
        data = self._cache.document(page_query, texts, lambda results: compressed(write(results)))
        return compressed_response(data, JSON)

    def _json_with_texts(self, results: ResultsAnswer) -> bytes:
        return to_json(results_with_texts(results), self._kept)

    def results_txt(self, request: Request) -> Response:
        """The text of `results`, without colours."""
        query = query_of(request.query_params)
        results = self._cache.results(text_query(query))
        text = results_text(results, query, Style(), store=self._store)
        return response(request, text.encode("utf-8", "backslashreplace"), "text/plain")

    def status(self, request: Request) -> Response:
        """The bytes of `status --json`."""
        return _json(request, status_json(self._ledger, self._generation(request)))

    def quarantine(self, request: Request) -> Response:
        """The open refused events, without their contents."""
        return _json(request, refused_json(self._ledger, self._generation(request)))

    def health(self, request: Request) -> Response:
        """How far and how well the log is read."""
        return _json(request, dumps(self._monitor.health()))

    def experiment(self, request: Request) -> Response:
        """An experiment since the start: the advice and the conclusion."""
        generation, name = self._generation(request), request.query_params.get("experiment")
        query = Query(generation=generation, experiment=name)
        results, (looks, days) = self._cache.experiment_so_far(query)
        design = declared(self._ledger.generation(results.generation), name)
        if design is not None and not looks:  # also where its states cannot be read
            fingerprint = design.fingerprint
            looks = view(self._ledger, lambda now: now.looks(fingerprint), generation=generation)
        sent: tuple[SentHook, ...] = ()
        if design is not None:
            digest = design.fingerprint
            sent = view(self._ledger, lambda now: sent_hooks(now, digest), generation=generation)
        answer = experiment_answer(results, design, looks, days, sent)
        if choice(request.query_params, "texts") == "tables":
            answer = experiment_with_texts(answer)
        return _json(request, dumps(answer))

    def hooks(self, request: Request) -> Response:
        """The events of hooks, of an experiment or of all."""
        generation, name = self._generation(request), request.query_params.get("experiment")
        design = None
        if name is not None:
            design = declared(self._ledger.generation(generation), name)
        digest = None if design is None else design.fingerprint
        return _json(
            request,
            dumps(view(self._ledger, lambda now: hooks_answer(now, digest), generation=generation)),
        )

    def experiments(self, request: Request) -> Response:
        """The index of all experiments."""
        answer = self._cache.index(self._generation(request))
        if choice(request.query_params, "texts") == "tables":
            answer = self._index.result(index_with_texts, answer)
        return _json(request, dumps(answer))

    def history(self, request: Request) -> Response:
        """One view over time."""
        query, metric = self._metric_query(request.query_params)
        view_name = request.query_params.get("view")
        _, history = self._histories.read(self._grouped(query), metric, view_name)
        return _json(request, dumps(history))

    def figure(self, request: Request) -> Response:
        """A figure with its data."""
        from streammetrics_consumers.render import charts

        parameters = request.query_params
        query, metric = self._metric_query(parameters)
        theme = cast("charts.Theme", choice(parameters, "theme"))
        kinds = self._catalogue.known(metric, query.generation, query.experiment).figures
        kind = choice(parameters, "kind", (*kinds, OVER_TIME, EFFECT))
        if kind in (OVER_TIME, EFFECT):
            # Effects by window are not drawn.
            effects: Effects = "total" if kind == EFFECT else "none"
            view_name, slices = parameters.get("view"), self._grouped(query)
            results, history = self._histories.read(slices, metric, view_name, effects=effects)
            tables = results.tables
            if kind == EFFECT:
                spec = charts.figure_of_effects(history, tables, metric, theme)
            else:
                spec = charts.figure_of_history(history, tables, metric, theme)
            return _json(request, dumps(cast("Json", spec)))
        if query.window == "all":
            raise QueryError(
                expected="one window", got="'all'", where="window",
                hint="name total, latest or START/END, or draw the kind history",
            )  # fmt: skip
        query = self._grouped(query)
        tables = self._cache.rows(query).tables
        spec = self._cache.states(
            query, lambda states: charts.figure_of_states(states, tables, kind, metric, theme)
        )
        return _json(request, dumps(cast("Json", spec)))

    def _generation(self, request: Request) -> int | None:
        number = parse_generation(request.query_params.get("generation"))
        self._require_generation(number)
        return number

    def _metric_query(self, parameters: QueryParams) -> tuple[Query, str]:
        """A query of one metric, and that metric."""
        query = query_of(parameters)
        self._require_generation(query.generation)
        return query, metric_of(query)

    def _require_generation(self, number: int | None) -> None:
        if number is not None:
            require_generation(number, [stored.id for stored in self._ledger.generations()])

    def _grouped(self, query: Query) -> Query:
        """The query with one grouping: `by`, or else the one by variant if there is one."""
        if query.by is not None:
            return query
        names = VARIANT | {name for name, _ in query.where}
        grouping = self._catalogue.grouping(names, query.generation, query.experiment)
        return replace(query, by=grouping)


def _json(request: Request, data: bytes) -> Response:
    return response(request, data, JSON)


def checked(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
    """A route that refuses parameters that its address may not have."""

    async def checks(request: Request) -> Response:
        require_known(path, request.query_params)
        return await answer(request)

    return Route(path, checks)


def threaded(answer: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    """The same answer, computed in a thread."""

    async def answers(request: Request) -> Response:
        return await run_in_threadpool(answer, request)

    return answers


def query_of(parameters: QueryParams) -> Query:
    """The query in the parameters of an address."""
    return parse_query(
        parameters.get("window", "total"),
        parameters.get("by"),
        parameters.getlist("where"),
        parameters.get("metric"),
        parameters.get("generation"),
        parameters.get("experiment"),
    )


def lines_of(parameters: QueryParams) -> Lines | None:
    """The lines of tables that an address asks for; None for all rows. Raises QueryError."""
    most = parameters.get("most")
    if most is None:
        for name in LINES:
            if name in parameters:
                raise QueryError(
                    expected="`most` beside it", got="no `most`", where=name,
                    hint="say how many slices of each metric are wanted",
                )  # fmt: skip
        return None
    if not (most.isascii() and most.isdecimal() and int(most[:10]) > 0):
        raise QueryError(
            expected="a whole number, at least 1", got=repr(most[:80]), where="most",
            hint="say how many slices of each metric are wanted, or leave it out for all",
        )  # fmt: skip
    return Lines(
        int(most[:10]),
        cast("Literal['slice', 'rows', 'value']", choice(parameters, "sort")),
        parameters.get("variant"),
        choice(parameters, "order") == "descending",
        parameters.get("find", ""),
        parameters.get("view"),
    )


def metric_of(query: Query) -> str:
    """The metric of a query that must name one. Raises QueryError."""
    if query.metric is None:
        raise QueryError(
            expected="a metric", got="none", where="metric", hint="name one that /api/store lists"
        )
    return query.metric


def require_known(path: str, parameters: QueryParams) -> None:
    """Refuse unknown parameters, and repeated ones other than `where`."""
    names = parameters_of(path)
    for name in parameters:
        if name not in names:
            raise QueryError(
                expected=" or ".join(names) or "no parameter",
                got=repr(name[:80]),
                where="the address",
                hint="correct the name or leave it out",
            )
        count = len(parameters.getlist(name))
        if count > 1 and name != "where":
            raise QueryError(
                expected="one value",
                got=f"{count}",
                where=name,
                hint="leave out the others; only `where` may be repeated",
            )


def choice(parameters: QueryParams, name: str, choices: Sequence[str] = ()) -> str:
    """The value of a parameter, one of `choices` or else of CHOICES; by default the first."""
    choices = choices or CHOICES[name]
    value = parameters.get(name, choices[0])
    if value not in choices:
        raise QueryError(
            expected=" or ".join(choices), got=repr(value[:80]), where=name, hint="choose one"
        )
    return value
