"""`streammetrics.open`: a store, or a server of one, and what is read from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self, cast

from streammetrics.core.conversion import flag
from streammetrics.core.errors import InputError, SettingsError, UnknownKeyError, nearest, shown
from streammetrics.present.notebook import chart
from streammetrics.present.value_rows import Library, frame_of
from streammetrics.stored.http_server import SCHEMES, HttpServer
from streammetrics.stored.json_table import columns_of
from streammetrics.stored.readable import Readable, document
from streammetrics.stored.stored_experiment import StoredExperiment, stored_experiment

if TYPE_CHECKING:
    from streammetrics.experiments.recommendation import Recommendation
    from streammetrics.present.notebook import Chart
    from streammetrics.present.themes import Spec
    from streammetrics.present.value_rows import Frame

Theme = Literal["light", "dark"]

# The reader of stores is in the other half of the package, which needs the extra `serve`: it is
# imported by its name when a store is opened, so nothing here depends on it (docs/architecture.md).
LOCAL: Final = "streammetrics_consumers.server.local_store"
STORES: Final = "the path of a SQLite file, postgresql://USER@HOST/DATABASE, or http://HOST:PORT"


class StoreReader:
    """The results of a store, read only, at the moment of each call. `open` makes it.

    The numbers and their names are those of the JSON of results (docs/http.md), whether a store or
    a server is read.

    >>> with open("experiment.db") as store:  # doctest: +SKIP
    ...     store.experiment().recommendation.action
    'wait'
    """

    def __init__(self, source: Readable) -> None:
        self._source = source

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the store."""
        self._source.close()

    @property
    def name(self) -> str:
        """The name of the store, or the address of the server; never a password."""
        return self._source.name

    def metrics(self) -> tuple[str, ...]:
        """The metrics, in the order of the config."""
        metrics = cast(
            "Sequence[Mapping[str, object]]", self._document("/api/store", ())["metrics"]
        )
        return tuple(str(metric["name"]) for metric in metrics)

    def experiments(self) -> tuple[str, ...]:
        """The names of the experiments, also of those that have ended; "" is that of
        `[experiment]`."""
        index = self._document("/api/experiments", ())
        entries = cast("Sequence[Mapping[str, object]]", index["experiments"])
        return tuple(str(entry["name"]) for entry in entries)

    def experiment(self, name: str | None = None) -> StoredExperiment:
        """An experiment as it stands; None: the only one. UnknownKeyError if there is no such one,
        or if there are several."""
        names = self.experiments()
        if name is None and len(names) == 1:
            [name] = names
        if name is None or name not in names:
            names_text = ", ".join(map(repr, names))
            raise UnknownKeyError(
                expected=f"an experiment of this store ({names_text or 'none is declared'})",
                got=shown(name),
                where="experiment(name)",
                hint=nearest(name, names, "name one of them"),
            )
        answer = self._document("/api/experiment", [("experiment", name)])
        return stored_experiment(name, answer, self.name)

    @property
    def recommendation(self) -> Recommendation | None:
        """That of the only experiment; see `experiment`."""
        return self.experiment().recommendation

    def frame(
        self,
        library: Library | None = None,
        *,
        window: str = "total",
        by: Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
        metric: str | None = None,
        experiment: str | None = None,
        generation: int | None = None,
        all_views: bool = False,
    ) -> Frame:
        """The values as a frame, a row for each window, slice, metric and view; library: as that of
        `to_frame` of a result.

        The columns are the fields of a result in JSON (docs/http.md#result): `window_start_ms`,
        `metric`, `view`, `value`, `low` and `high`, which certainly contain the exact value,
        `interval_lower` and so on, and one for each name of the slices and each count. window, by,
        where, metric, experiment, generation: as the flags of `streammetrics results`; by: the
        names of one grouping; experiment: whose arms are wanted in place of the slices. all_views:
        also those that are not headline views.
        """
        views = "all" if flag(all_views, "frame(all_views)") else "headline"
        parameters = self._query(window, by, where, metric, experiment, generation)
        parameters.append(("views", views))
        answer = self._document("/api/results", parameters)
        return frame_of(columns_of(cast("list[Mapping[str, object]]", answer["results"])), library)

    def figure(
        self,
        metric: str,
        kind: str | None = None,
        *,
        view: str | None = None,
        window: str = "total",
        by: Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
        experiment: str | None = None,
        generation: int | None = None,
        theme: Theme = "light",
    ) -> Spec:
        """A figure of a metric as the live page draws it: a Vega-Lite specification with its data.

        kind: one of the metric, such as `roc`; `history`, a view over the windows; or `effect`,
        that of an experiment look by look; None: the first. The others are those of `frame`.
        """
        parameters = self._query(window, by, where, metric, experiment, generation)
        parameters += [(n, v) for n, v in (("kind", kind), ("view", view)) if v is not None]
        return dict(self._document("/api/figure", (*parameters, ("theme", theme))))

    def plot(
        self,
        metric: str,
        kind: str | None = None,
        *,
        view: str | None = None,
        window: str = "total",
        by: Sequence[str] | None = None,
        where: Mapping[str, object] | None = None,
        experiment: str | None = None,
        generation: int | None = None,
        theme: Theme = "light",
    ) -> Chart:
        """The figure as an Altair chart (extra `plot`)."""
        return chart(
            self.figure(
                metric,
                kind,
                view=view,
                window=window,
                by=by,
                where=where,
                experiment=experiment,
                generation=generation,
                theme=theme,
            )
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}>"

    def _repr_html_(self) -> str:
        """The store as a notebook shows it: its metrics, and each experiment."""
        metrics = escape(", ".join(self.metrics())) or "no metrics"
        parts = [self.experiment(name)._repr_html_() for name in self.experiments()]
        return f"<p><b>{escape(self.name)}</b>: {metrics}</p>{''.join(parts)}"

    def _document(self, path: str, parameters: Sequence[tuple[str, str]]) -> Mapping[str, object]:
        return document(self._source, path, parameters)

    @staticmethod
    def _query(
        window: str,
        by: Sequence[str] | None,
        where: Mapping[str, object] | None,
        metric: str | None,
        experiment: str | None,
        generation: int | None,
    ) -> list[tuple[str, str]]:
        """The parameters of an address."""
        names = by if by is None else by if isinstance(by, str) else ",".join(by)
        pairs = {"window": window, "by": names, "metric": metric, "generation": generation}
        pairs["experiment"] = experiment
        parameters = [(name, str(value)) for name, value in pairs.items() if value is not None]
        for name, value in (where or {}).items():
            parameters.append(("where", f"{name}={'null' if value is None else value}"))
        return parameters


def open(source: str | PathLike[str], *, token: str = "", timeout_s: float = 60.0) -> StoreReader:
    """Open the results of a store or of a server, to read them.

    source: the path of a SQLite file or `postgresql://USER@HOST/DATABASE`, which need the extra
    `serve`; or `http://HOST:PORT`, where `streammetrics run` or `serve` answers. A store is opened
    for reading: nothing is created, changed or migrated. token: of a server that has one.
    timeout_s: of each read from a server.

    Raises SettingsError if the extra is missing, InputError for another source, and
    StreamMetricsError if it cannot be read.
    """
    if not isinstance(source, str | PathLike):
        raise InputError(
            expected=STORES, got=shown(source), where="open(source)", hint="pass one of these"
        )
    text = fspath(source)
    if text.partition("://")[0].lower() in SCHEMES and "://" in text:
        return StoreReader(HttpServer(text, token=token, timeout_s=timeout_s))
    try:
        stores = import_module(LOCAL)
    except ModuleNotFoundError as error:
        raise SettingsError(
            expected=f"the package {(error.name or LOCAL).partition('.')[0]}, which reads stores",
            got="an installation without it",
            where="open(source)",
            hint="install it with pip install '.[serve]' in a clone of streammetrics; "
            "http://HOST:PORT needs no extra",
        ) from None
    local: Readable = stores.LocalStore(text)
    return StoreReader(local)
