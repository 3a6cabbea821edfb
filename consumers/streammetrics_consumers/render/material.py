"""The contents of a report, read from the store: results, the experiment, and figures."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from streammetrics.present import svg
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.catalogue import Catalogue, StoreMetric, watched_by
from streammetrics_consumers.query.experiment_plan import DeclaredExperiment, declared
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.history import HistoryReader
from streammetrics_consumers.query.query import Query, QueryError, store_name
from streammetrics_consumers.render import charts
from streammetrics_consumers.render.cells import names_of, rows_shown
from streammetrics_consumers.render.verdict_words import standing_over

MAX_FIGURES: Final = 120
WIDTH: Final = 560  # of a figure, in pixels
# The kinds that a report shows; tables show the others better.
KINDS: Final = (
    *("roc", "pr", "reliability", "scores", "lift", "uplift", "uplift_parts"),
    *("confusion", "classes"),
)
EFFECTS: Final = "effects"
WINDOWS: Final = "windows"


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as an image, with the sentence that describes it."""

    metric: str
    kind: str
    source: str  # a data: URL
    description: str


@dataclass(frozen=True, slots=True)
class Material:
    """The contents. undrawn: figures beyond MAX_FIGURES; nothing: why some could not be drawn."""

    name: str
    results: ResultsAnswer
    experiment: DeclaredExperiment | None
    verdict: str
    pictures: tuple[Picture, ...]
    undrawn: int
    nothing: tuple[str, ...]


def gather(
    ledger: Ledger, query: Query, report: Callable[[int, int], None] = lambda n_done, total: None
) -> Material:
    """Read and draw everything; `report` is called with the figures drawn, and in total."""
    if query.window == "all":
        raise QueryError(
            expected="one window", got="'all'", where="--window",
            hint="name total, latest or START/END; figures over time show all windows",
        )  # fmt: skip
    reader = _Reader(ledger, query)
    figures = list(reader.wanted())
    pictures: list[Picture] = []
    nothing: list[str] = []
    for n_done, (metric, kind) in enumerate(figures[:MAX_FIGURES]):
        report(n_done, len(figures))
        spec = reader.spec(metric, kind)
        meta = spec.get("usermeta")
        why = meta.get("reason") if isinstance(meta, dict) else ""
        if why:
            nothing.append(f"{metric}, {kind}: {why}")
            continue
        pictures.append(Picture(metric, kind, _image(spec), str(spec.get("description", ""))))
    report(len(figures), len(figures))
    suffix = f", experiment {query.experiment}" if query.experiment else ""
    return Material(
        name=store_name(ledger.store.name) + suffix,
        results=reader.results,
        experiment=reader.of,
        verdict=reader.verdict(),
        pictures=tuple(pictures),
        undrawn=len(figures[MAX_FIGURES:]),
        nothing=tuple(nothing),
    )


class _Reader:
    """Reads a store for one report."""

    def __init__(self, ledger: Ledger, query: Query) -> None:
        self._ledger, self._query = ledger, query
        self._answers = QueryCache(ledger)
        self._catalogue = Catalogue(ledger, ledger.store.name)
        self._histories = HistoryReader(ledger, self._answers, self._catalogue)
        self.results = self._answers.results(query)
        self.of = declared(ledger.generation(self.results.generation), query.experiment)
        self._rows = rows_shown(self.results)
        self._by = names_of(self._rows[0]) if self._rows else frozenset()

    def verdict(self) -> str:
        """The conclusion over the total; "" if the recommendation says it all."""
        if self.of is None:
            return ""
        query = Query(generation=self._query.generation, experiment=self._query.experiment)
        total = self._answers.experiment(query)
        return standing_over(self.of, total)

    def wanted(self) -> Iterator[tuple[str, str]]:
        """(metric, kind) of each figure, the effects first."""
        metrics = list(dict.fromkeys(row.metric for row in self._rows))
        compared = watched_by(self.of) if self.of is not None else set()
        if not self._query.where:
            yield from ((metric, EFFECTS) for metric in metrics if metric in compared)
        for metric in metrics:
            kinds = self._known(metric).figures
            yield metric, WINDOWS
            yield from ((metric, kind) for kind in KINDS if kind in kinds)

    def spec(self, metric: str, kind: str) -> dict[str, object]:
        """The figure as a specification."""
        query = replace(self._query, by=self._by, metric=metric)
        tables = self.results.tables
        if kind == WINDOWS:
            results, history = self._histories.read(query, metric, effects="none")
            return charts.figure_of_history(history, results.tables, metric, "light")
        if kind == EFFECTS:
            _, history = self._histories.read(query, metric, effects="total")
            return charts.figure_of_effects(history, tables, metric, "light")
        return self._answers.states(query, lambda states: charts.figure_of_states(
            states, tables, kind, metric, "light"))  # fmt: skip

    def _known(self, metric: str) -> StoreMetric:
        return self._catalogue.known(metric, self._query.generation, self._query.experiment)


def _image(spec: dict[str, object]) -> str:
    # A separate image: names inside one cannot clash with those of another, and no script runs.
    picture = svg({**spec, "width": WIDTH})
    return "data:image/svg+xml;base64," + base64.b64encode(picture.encode()).decode()
