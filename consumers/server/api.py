"""The routes of the interface: each answer is a function of the store and of the address."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, cast

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from consumers.experiment.reading import declared
from consumers.ledger.ledger import Ledger
from consumers.ledger.view import View, view
from consumers.render.text import Style, results_text
from consumers.results.answers import Answers, store_name
from consumers.results.catalogue import EFFECT, OVER_TIME, Catalogue
from consumers.results.histories import Effects, Histories
from consumers.results.history import history_json
from consumers.results.json_text import dumps
from consumers.results.query import Query, QueryError
from consumers.results.results import to_json
from consumers.results.status import status_json
from consumers.results.verdict import experiment_json
from consumers.server import questions
from consumers.server.pulse import Pulse
from consumers.server.turns import Turns

CHARTS: Final = 1  # worked out at once: they compute, and two take each other's time
TABLES: Final = 8  # of other answers: fewer than there are threads, so that probes find one
JSON: Final = "application/json"
VARIANT: Final = frozenset({"variant"})


class Api:
    """Answers over one ledger."""

    def __init__(self, ledger: Ledger, answers: Answers, pulse: Pulse, store: str) -> None:
        self._ledger, self._answers, self._pulse, self._store = ledger, answers, pulse, store
        self._catalogue = Catalogue(ledger, store_name(store))
        self._histories = Histories(ledger, answers, self._catalogue)

    def routes(self) -> list[Route]:
        """All of it but the events, which need no thread for each who listens."""
        charts, tables = Turns(CHARTS), Turns(TABLES)
        return [
            Route("/api/store", tables.of(self.store)),
            Route("/api/results", tables.of(self.results)),
            Route("/api/history", charts.of(self.history)),
            Route("/api/experiment", tables.of(self.experiment)),
            Route("/api/figure", charts.of(self.figure)),
            Route("/api/health", self.health),
            Route("/api/status", tables.of(self.status)),
            Route("/results.txt", tables.of(self.results_txt)),
        ]

    def store(self, request: Request) -> Response:
        """What may be asked."""
        return _json(self._catalogue.to_json(questions.generation_of(request.query_params)))

    def results(self, request: Request) -> Response:
        """As `results --json`, to the byte."""
        query = questions.query_of(request.query_params, "views")
        views = questions.choice(request.query_params, "views", ("all", "headline"))
        asked = replace(query, headlines=views == "headline")
        return _json(to_json(self._answers.results(asked)))

    def results_txt(self, request: Request) -> Response:
        """As `results` prints them, without colours."""
        query = questions.query_of(request.query_params)
        results = self._answers.results(replace(query, headlines=query.metric is None))
        text = results_text(results, query, Style(), store=self._store)
        return PlainTextResponse(text.encode("utf-8", "backslashreplace"))

    def status(self, request: Request) -> Response:
        """As `status --json`, to the byte."""
        wanted = questions.generation_of(request.query_params)
        return _json(status_json(self._ledger, wanted))

    def health(self, request: Request) -> Response:
        """How far and how well the log is read."""
        questions.refuse_others(request.query_params, ())
        return _json(dumps(self._pulse.health()))

    def experiment(self, request: Request) -> Response:
        """What may be concluded."""
        wanted = questions.generation_of(request.query_params)
        results = self._answers.experiment(Query(generation=wanted))

        def looks(now: View) -> int:
            return now.looks(of.fingerprint) if of is not None else 0

        of = declared(self._ledger.generation(results.generation))
        return _json(experiment_json(results, of, view(self._ledger, looks, generation=wanted)))

    def history(self, request: Request) -> Response:
        """One view over time."""
        questions.refuse_others(
            request.query_params, ("metric", "view", "by", "where", "generation")
        )
        query = questions.query_of(request.query_params, "view")
        metric = questions.metric_of(query)
        asked = request.query_params.get("view")
        results, found = self._histories.read(self._grouped(query), metric, asked)
        return _json(history_json(results, found))

    def figure(self, request: Request) -> Response:
        """A figure with its data."""
        from consumers.render import charts

        parameters = request.query_params
        query = questions.query_of(parameters, "kind", "view", "theme")
        metric = questions.metric_of(query)
        theme = cast("charts.Theme", questions.choice(parameters, "theme", ("light", "dark")))
        known = self._catalogue.known(metric, query.generation).figures
        kind = questions.choice(parameters, "kind", (*known, OVER_TIME, EFFECT))
        if kind in (OVER_TIME, EFFECT):
            # Effects by window are not drawn.
            effects: Effects = "total" if kind == EFFECT else "none"
            draw = charts.figure_of_effects if kind == EFFECT else charts.figure_of_history
            asked, slices = parameters.get("view"), self._grouped(query)
            _, history = self._histories.read(slices, metric, asked, effects=effects)
            return _json(draw(history, metric, theme))
        if query.window == "all":
            raise QueryError(
                expected="one window", came="'all'", where="window",
                todo="name total, latest or START/END, or draw the kind history",
            )  # fmt: skip
        query = self._grouped(query)
        variants = self._answers.rows(query).variants
        return _json(
            self._answers.states(
                query, lambda states: charts.figure_of_states(states, variants, kind, metric, theme)
            )
        )

    def _grouped(self, query: Query) -> Query:
        """The same with one grouping: by variant where `by` is not said and that is one."""
        if query.by is not None:
            return query
        names = frozenset(name for name, _ in query.where)
        return replace(query, by=self._catalogue.grouping(VARIANT | names, query.generation))


def _json(data: bytes) -> Response:
    return Response(data, media_type=JSON)
