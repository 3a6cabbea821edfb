"""Panel: several metrics that read the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from dataclasses import dataclass
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Protocol,
    TypeVar,
    cast,
    overload,
)

from numpy.typing import ArrayLike

from streammetrics.combine.children import Product
from streammetrics.combine.panel_columns import Plan, Reader, plan_of
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.conversion import among
from streammetrics.core.errors import InputError, SettingsError, argument_hint, shown, unknown_key
from streammetrics.core.intakes import Intake, common
from streammetrics.core.parts.many_slots import AnySlots
from streammetrics.core.parts.part import SLOT_0, Slots
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.settings import (
    Setting,
    rename_from_stored,
    rename_to_stored,
)
from streammetrics.core.settings_property import settings_property
from streammetrics.core.slips import explained
from streammetrics.core.totals import WithoutRows, totals_of
from streammetrics.present.notebook import Shown
from streammetrics.present.views import Part

if TYPE_CHECKING:  # a type parameter that defaults to Any
    import typing_extensions

    R = typing_extensions.TypeVar("R", default=Any)
else:
    R = TypeVar("R")
A = TypeVar("A", bound=Accumulator)
K = TypeVar("K")
D = TypeVar("D")
R_co = TypeVar("R_co", covariant=True)
_SPLIT: Final = "rows of each metric"  # no column has this name


class Computes(Protocol[R_co]):
    """A metric whose result is of this type."""

    def compute(self) -> R_co:
        """Its result."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Results(Shown, Mapping[K, R]):
    """A result for each name, key or window."""

    results: Mapping[K, R]

    _kind: ClassVar[str] = "keys"  # what it is a mapping from

    def __getitem__(self, key: K) -> R:
        try:
            return self.results[self._stored(key)]
        except (KeyError, TypeError):  # nothing is found by what has no hash
            where = type(self).__name__
            raise unknown_key(key, self.results, where, self._kind, self._other_keys()) from None

    def _stored(self, key: object) -> K:
        """The key in the form in which states hold it."""
        return cast("K", key)

    def _other_keys(self) -> str:
        """Where the keys without a result of their own are, for the hint of an error."""
        return ""

    def __contains__(self, key: object) -> bool:
        try:
            return self._stored(key) in self.results
        except TypeError:
            return False

    @overload
    def get(self, key: K, /) -> R | None: ...
    @overload
    def get(self, key: K, /, default: R | D) -> R | D: ...
    def get(self, key: K, /, default: R | D | None = None) -> R | D | None:
        """The result of a key, or the default."""
        return self.results[self._stored(key)] if key in self else default

    def values(self) -> ValuesView[R]:
        """All results, without a look-up of each key."""
        return self.results.values()

    def items(self) -> ItemsView[K, R]:
        """All keys with their results, without a look-up of each."""
        return self.results.items()

    def __iter__(self) -> Iterator[K]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def _parts(self) -> Iterator[tuple[Part, object]]:
        """Each result with its place: by name, unless a subclass has keys or windows."""
        for name, result in self.results.items():
            yield _named_part(str(name)), result


@lru_cache
def _named_part(name: str) -> Part:
    return Part(name, name=name)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PanelResult(Results[str, Any]):
    """The result of each metric by its name; to a type checker it is Any."""

    _kind: ClassVar[str] = "metrics"


class Panel(Accumulator, schema="panel/1"):
    """Several metrics by name, fed together; each takes the columns that its `update` names.

    Settings
        metrics: name → empty metric.
        inputs: name → {argument: column}, where an argument reads a column of another name.
    Rows
        Keywords. A missing required column of a metric, or a column that no metric takes, refuses
        the batch. One refusal refuses the rows for all metrics.
    State
        The product of the metrics' states.
    Result
        A mapping from name to result.
    Cost
        The sum of the metrics.
    Source
        A product of commutative monoids is itself one (Boykin, Ritchie, O'Connell & Lin 2014,
        "Summingbird", PVLDB 7(13), section 3).

    >>> from streammetrics import HistogramAUC, Panel, Ratio
    >>> panel = Panel({"auc": HistogramAUC(), "ctr": Ratio()},
    ...               inputs={"ctr": {"numerators": "labels"}})
    >>> panel.update(labels=[0, 1, 1, 0], scores=[0.1, 0.8, 0.6, 0.2])
    >>> float(panel.compute()["auc"].auc), panel.compute()["ctr"].ratio
    (1.0, 0.5)
    """

    _many_slots: ClassVar[bool] = True

    metrics: Mapping[str, Accumulator]
    inputs: Mapping[str, Mapping[str, str]] | None = None
    states = Product()

    def check_settings(self) -> None:
        if not _is_mapping(self.metrics) or not self.metrics:
            raise _bad("metrics", "a mapping from names to metrics", self.metrics)
        for name in self.metrics:
            if not _is_name(name):
                raise _bad("metrics", "names that are strings", name)
        metrics = {n: require_empty(m, f"Panel.metrics[{n!r}]") for n, m in self.metrics.items()}
        self._set("metrics", dict(sorted(metrics.items())))
        if any("/" in name for name in metrics):
            _require_one_of_each_path(metrics)
        if self.inputs is None:
            return
        if not _is_mapping(self.inputs):
            raise _bad("inputs", "a mapping from metric names to {argument: column}", self.inputs)
        renames = dict(self.inputs)
        for name, renamed in renames.items():
            if name not in self.metrics or not isinstance(renamed, Mapping):
                raise _bad("inputs", f"names of metrics ({', '.join(self.metrics)})", name)
            takes = self.metrics[name].arguments()
            for argument, column in renamed.items():
                if argument not in takes or not isinstance(column, str):
                    raise _bad(f"inputs[{name!r}]", f"arguments ({', '.join(takes)})", argument)
            renames[name] = dict(renamed)
        full = {name: dict(sorted(r.items())) for name, r in sorted(renames.items()) if r}
        self._set("inputs", full or None)

    def _stored_settings(self) -> Mapping[str, Setting]:
        stored = {
            name: rename_to_stored(self.metrics[name].stored_names(), renamed)
            for name, renamed in self._renames.items()
        }
        return {**super()._stored_settings(), "inputs": stored or None}

    @classmethod
    def _restored_settings(cls, stored: Mapping[str, Setting]) -> dict[str, Setting]:
        settings = super()._restored_settings(stored)
        metrics, inputs = settings["metrics"], settings["inputs"]
        if isinstance(metrics, Mapping) and isinstance(inputs, Mapping):
            settings["inputs"] = {
                name: _restored(metrics.get(name), r) for name, r in inputs.items()
            }
        return settings

    @property
    def _renames(self) -> Mapping[str, Mapping[str, str]]:
        return self.inputs or {}

    def arguments(self) -> Mapping[str, bool]:
        return self._takes

    def stored_names(self) -> Mapping[str, str]:
        names: dict[str, str] = {}
        for name, metric in self.metrics.items():
            renamed = self._renames.get(name, {})
            names |= {a: s for a, s in metric.stored_names().items() if a not in renamed}
        return names

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        widths: dict[str, tuple[int | None, ...]] = {}
        for reader in self._readers:
            tables = reader.metric.widths()
            for argument, column, _ in reader.inputs:
                if argument in tables:
                    widths.setdefault(column, tables[argument])
        return widths

    def _roles(self) -> Mapping[str, str]:
        roles: dict[str, str] = {}
        for reader in self._readers:
            inner = reader.metric._roles()
            for argument, column, _ in reader.inputs:
                if argument != column or argument in inner:
                    roles[column] = inner.get(argument, argument)
        return roles

    @settings_property
    def _takes(self) -> Mapping[str, bool]:
        takes: dict[str, bool] = {}
        for reader in self._readers:
            for _, column, required in reader.inputs:
                takes[column] = takes.get(column, False) or required
        return takes

    @settings_property
    def _readers(self) -> tuple[Reader, ...]:
        return tuple(
            Reader(
                name,
                metric,
                tuple(
                    (argument, renamed.get(argument, argument), required)
                    for argument, required in metric.arguments().items()
                ),
            )
            for name, metric in self.metrics.items()
            for renamed in (self._renames.get(name, {}),)
        )

    @settings_property
    def _reader_of(self) -> Mapping[str, Reader]:
        return {reader.name: reader for reader in self._readers}

    @settings_property
    def _plans(self) -> dict[frozenset[str], Plan]:
        return {}

    def _rows_shown(self, result: object) -> object:
        """Those of all metrics, if they are the same."""
        rows = {getattr(part, "rows", None) for part in cast("PanelResult", result).values()}
        return rows.pop() if len(rows) == 1 else None

    @explained
    def update(self, **columns: ArrayLike | DictionaryColumn | None) -> None:
        """Feed every metric; the class says which columns each takes.

        columns: each by the name that a metric's `update` gives it, or that `inputs` gives it in
        its place, all of one length [n]; metrics with an argument of one name share its column.
        What a metric may leave out may be left out. `arguments()` lists them.
        """
        if not self._wait(columns):
            self._update(self.check(**columns))

    @property
    def _intakes(self) -> Mapping[str, Intake | None]:
        by_column: dict[str, set[Intake | None]] = {}
        for reader in self._readers:
            intakes = reader.metric._intakes
            for argument, column, _ in reader.inputs:
                by_column.setdefault(column, set()).add(intakes.get(argument))
        return {column: common(different) for column, different in by_column.items()}

    def check(self, **columns: ArrayLike | DictionaryColumn | None) -> Batch:
        """The rows of each metric, or InputError; changes nothing."""
        if unknown := [column for column in columns if column not in self._takes]:
            instead = "leave it out, or name it in `inputs`; update_from(table) ignores other "
            raise InputError(
                expected=f"columns that a metric takes ({', '.join(self._takes)})",
                got=shown(unknown[0]),
                where="Panel.update",
                hint=argument_hint(unknown, self._takes, f"{instead}columns"),
            )
        names = frozenset([name for name, column in columns.items() if column is not None])
        plan = self._plans.get(names)
        if plan is None:
            plan = self._plans[names] = plan_of(self._readers, names)
        valid = plan.validated(columns)
        n = next(map(len, valid.values()), 0)
        if plan.sure and len(valid) == len(plan.validators):
            return Batch(n, {**valid})
        # If a metric is certain to accept its columns, its rows are made when they are counted.
        split = {
            reader.name: reader.check(columns)
            for reader, needs in zip(self._readers, plan.needs, strict=True)
            if not needs or not needs <= valid.keys()
        }
        sizes = {name: split[name].n if name in split else n for name in self.metrics}
        first, size = next(iter(sizes.items()))
        for name, n_rows in sizes.items():
            if n_rows != size:
                raise InputError(
                    expected=f"{size} rows, as in metric {first!r}",
                    got=f"{n_rows}",
                    where=f"Panel.update, metric {name!r}",
                    hint="put metrics of lists and metrics of events into separate panels",
                )
        shared = valid if len(split) < len(self.metrics) else {}
        total = max([size, *(batch.total for batch in split.values())])
        return Batch(size, {**shared, _SPLIT: Batch(size, {**split})}, total)

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        for name, metric in self.states.by_name.items():
            metric._feed(rows_of(self, batch, name), slots)

    def compute(self) -> PanelResult:
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[PanelResult]:
        names = tuple(self.metrics)
        states = self.states.by_name
        columns = [part_of(self, states[name])._compute_all(slots) for name in names]
        return [
            PanelResult(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)
        ]

    def state(self, name: str) -> Accumulator:
        """The state of one metric, as a separate accumulator; UnknownKeyError for other names."""
        if not among(name, self.metrics):
            raise unknown_key(name, self.metrics, "Panel.state", "metrics")
        self._flush()
        return part_of(self, self.states.by_name[name].copy())

    def _totals(self) -> Accumulator:
        self._flush()
        states = self.states.by_name
        totals = {name: totals_of(metric) for name, metric in states.items()}
        if all(totals[name] is states[name] for name in states):
            return self
        panel = Panel({name: state.empty() for name, state in totals.items()}, self.inputs)
        panel.states.by_name.update({name: state.copy() for name, state in totals.items()})
        panel.__dict__["_total_count"] = panel._exact_total_count()
        return panel


def rows_of(panel: Panel, batch: Batch, name: str) -> Batch:
    """The rows of one metric, from checked rows of the Panel."""
    split = batch.as_batch(_SPLIT).columns if _SPLIT in batch.columns else {}
    return cast("Batch", split[name]) if name in split else panel._reader_of[name].rows(batch)


def part_of(whole: Accumulator, part: A) -> A:
    """`part`, whose total count is bounded by the accumulator that it was taken from."""
    part.__dict__["_total_count"] = whole._total_count
    return part


def require_empty(metric: object, where: str) -> Accumulator:
    """An empty metric equal to this one; SettingsError if it is not an empty metric.

    A combinator uses it as a specification, so the caller may count with the original afterwards.
    """
    if not isinstance(metric, Accumulator):
        raise SettingsError(
            expected="a metric",
            got=f"{shown(metric)} ({type(metric).__name__})",
            where=where,
            hint="pass an instance, for example HistogramAUC()",
        )
    if isinstance(metric, WithoutRows) and not metric._nests:
        raise SettingsError(
            expected="a metric that accepts rows",
            got=f"a {type(metric).__name__}",
            where=where,
            hint="merge these states outside a panel",
        )
    counted = metric._total_count or metric._pending
    if counted and metric != metric.empty():  # a comparison takes the bytes of both
        raise SettingsError(
            expected="an empty metric",
            got="a metric that has counted rows",
            where=where,
            hint="pass metric.empty(), and merge the counted state afterwards",
        )
    return metric.empty()


def _paths(metrics: Mapping[str, Accumulator]) -> Iterator[str]:
    """The names of metrics in results as rows, in which `/` joins those of panels in panels."""
    for name, metric in metrics.items():
        inner = _paths(metric.metrics) if isinstance(metric, Panel) else ()
        paths = [f"{name}/{path}" for path in inner]
        yield from paths or [name]


def _require_one_of_each_path(metrics: Mapping[str, Accumulator]) -> None:
    """SettingsError for metrics that rows of results could not tell apart."""
    for path, n in Counter(_paths(metrics)).items():
        if n > 1:
            raise SettingsError(
                expected="names that differ when `/` joins those of panels in panels",
                got=f"{n} metrics {shown(path)}",
                where="Panel.metrics",
                hint="rename one of them",
            )


# Settings from a file may not have the types that are declared for them.
def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _restored(metric: object, renamed: Setting) -> Setting:
    if isinstance(metric, Accumulator) and isinstance(renamed, Mapping):
        return rename_from_stored(metric.stored_names(), renamed)
    return renamed


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name)


def _bad(where: str, expected: str, got: object) -> SettingsError:
    return SettingsError(
        expected=expected,
        got=shown(got),
        where=f"Panel.{where}",
        hint="see the docstring of Panel",
    )
