"""Panel: several metrics that read the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from numpy.typing import ArrayLike

from streammetrics.combine.children import Product
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.parts import Slots
from streammetrics.core.rows import Coded, Rows
from streammetrics.core.stage import clean_rows
from streammetrics.results.shown import Shown


@dataclass(frozen=True, slots=True)
class PanelResult(Mapping[str, object], Shown):
    """The result of each metric by its name."""

    results: Mapping[str, object]

    def __getitem__(self, name: str) -> object:
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


class Panel(Accumulator, schema="panel/1"):
    """Several metrics by name, fed together; each takes the columns that its `update` names.

    Settings
        metrics: name → empty metric.
        inputs: name → {argument: column}, where a metric reads another column than the one
        that its argument is called.
    Rows
        Keywords; a metric whose required columns are missing refuses the batch, and so does a
        column that no metric takes. One refusal refuses the rows for all.
    State
        The product of the metrics' states.
    Result
        A mapping from name to result.
    Cost
        The sum of the metrics.
    Source
        A product of commutative monoids is one (Boykin, Ritchie, O'Connell & Lin 2014,
        "Summingbird", PVLDB 7(13), section 3).

    >>> from streammetrics import HistogramAUC, Panel, Ratio
    >>> panel = Panel({"auc": HistogramAUC(), "ctr": Ratio()},
    ...               inputs={"ctr": {"numerators": "labels"}})
    >>> panel.update(labels=[0, 1, 1, 0], scores=[0.1, 0.8, 0.6, 0.2])
    >>> float(panel.compute()["auc"].auc), panel.compute()["ctr"].ratio
    (1.0, 0.5)
    """

    metrics: Mapping[str, Accumulator]
    inputs: Mapping[str, Mapping[str, str]] | None = None
    states = Product()

    def check_settings(self) -> None:
        if not _is_mapping(self.metrics) or not self.metrics:
            raise _bad("metrics", "a mapping from names to metrics", self.metrics)
        for name in self.metrics:
            if not _is_name(name):
                raise _bad("metrics", "names that are strings", name)
        own = {n: require_empty(m, f"Panel.metrics[{n!r}]") for n, m in self.metrics.items()}
        self._set("metrics", dict(sorted(own.items())))
        if self.inputs is None:
            return
        if not _is_mapping(self.inputs):
            raise _bad("inputs", "a mapping from metric names to {argument: column}", self.inputs)
        renames: Mapping[str, object] = dict(self.inputs)
        for name, renamed in renames.items():
            if name not in self.metrics or not isinstance(renamed, Mapping):
                raise _bad("inputs", f"names of metrics ({', '.join(self.metrics)})", name)
            for argument, column in renamed.items():
                if argument not in self.metrics[name].arguments() or not isinstance(column, str):
                    takes = ", ".join(self.metrics[name].arguments())
                    raise _bad(f"inputs[{name!r}]", f"arguments ({takes})", argument)
        full = {name: dict(sorted(r.items())) for name, r in sorted(self.inputs.items()) if r}
        self._set("inputs", full or None)

    def arguments(self) -> Mapping[str, bool]:
        return self._takes

    @cached_property
    def _takes(self) -> Mapping[str, bool]:
        takes: dict[str, bool] = {}
        for reader in self._readers:
            for _, column, required in reader.inputs:
                takes[column] = takes.get(column, False) or required
        return takes

    @cached_property
    def _readers(self) -> tuple[_Reader, ...]:
        renames = self.inputs or {}
        return tuple(
            _Reader(
                name,
                metric,
                tuple(
                    (argument, renames.get(name, {}).get(argument, argument), required)
                    for argument, required in metric.arguments().items()
                ),
            )
            for name, metric in self.metrics.items()
        )

    def update(self, **columns: ArrayLike | Coded | None) -> None:
        """Feed every metric; see the class for what each takes."""
        self._update(self.check(**columns))

    def check(self, **columns: ArrayLike | Coded | None) -> Rows:
        """The rows of each metric, or InputError; changes nothing."""
        for column in columns:
            if column not in self._takes:
                raise InputError(
                    expected=f"columns that a metric takes ({', '.join(self._takes)})",
                    came=shown(column),
                    where="Panel.update",
                    todo="leave it out, or name it in `inputs`",
                )
        known: dict[tuple[int, int], Rows | None] = {}
        batches = [reader.check(columns, known) for reader in self._readers]
        n = batches[0].n
        for name, rows in zip(self.metrics, batches, strict=True):
            if rows.n != n:
                raise InputError(
                    expected=f"{n} rows, as {next(iter(self.metrics))!r} has",
                    came=f"{rows.n}",
                    where=f"Panel.update, metric {name!r}",
                    todo="put metrics of lists and metrics of events into panels of their own",
                )
        return Rows(n, tuple(batches), max(rows.mass for rows in batches))

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        for name, batch in zip(self.metrics, rows.columns, strict=True):
            assert isinstance(batch, Rows)
            self.states.by_name[name]._absorb(batch, slots)

    def compute(self) -> PanelResult:
        return PanelResult({name: self.state(name).compute() for name in self.metrics})

    def state(self, name: str) -> Accumulator:
        """The state of one metric, as an accumulator of its own."""
        self._flush()
        return part_of(self, self.states.by_name[name].copy())

    def _totals(self) -> Accumulator:
        self._flush()
        held = self.states.by_name
        totals = {name: metric._totals() for name, metric in held.items()}
        if all(totals[name] is held[name] for name in held):
            return self
        made = Panel({name: one.empty() for name, one in totals.items()}, self.inputs)
        made.states.by_name.update({name: one.copy() for name, one in totals.items()})
        made.__dict__["_mass"] = made._exact_mass()
        return made


class _Reader(NamedTuple):
    """A metric of a panel, and for each argument of its `update` which column it reads."""

    name: str
    metric: Accumulator
    inputs: tuple[tuple[str, str, bool], ...]  # argument, column, whether it must be there

    def check(
        self,
        columns: Mapping[str, ArrayLike | Coded | None],
        known: dict[tuple[int, int], Rows | None],
    ) -> Rows:
        """Its rows. known: rows of clean labels and scores, None where these are not clean."""
        mine = {}
        for argument, column, required in self.inputs:
            given = columns.get(column)
            if given is not None:
                mine[argument] = given
            elif required:
                raise InputError(
                    expected=f"the column {column!r}",
                    came=f"only {', '.join(sorted(columns)) or 'nothing'}",
                    where=f"Panel.update, metric {self.name!r}",
                    todo="pass it as a keyword, or rename another with `inputs`",
                )
        if self.metric._plain and len(mine) == 2 and "scores" in mine:
            labels, scores = mine["labels"], mine["scores"]
            which = id(labels), id(scores)
            if which not in known:
                known[which] = clean_rows(labels, scores)
            if (rows := known[which]) is not None:
                return rows
        try:
            return self.metric.check(**mine)
        except InputError as error:
            raise InputError(
                expected=error.expected,
                came=error.came,
                where=f"metric {self.name!r}, {error.where}",
                todo=error.todo,
                rows=error.rows,
            ) from None


def part_of(whole: Accumulator, part: Accumulator) -> Accumulator:
    """`part`, bounded in mass by the accumulator that it was taken from."""
    part.__dict__["_mass"] = whole._mass
    return part


def require_empty(metric: object, where: str) -> Accumulator:
    """An empty metric of one's own; what is not one is refused.

    A combinator takes it as a specification, whatever its giver counts with it afterwards.
    """
    if not isinstance(metric, Accumulator):
        raise SettingsError(
            expected="a metric",
            came=f"{shown(metric)} ({type(metric).__name__})",
            where=where,
            todo="pass an instance, for example HistogramAUC()",
        )
    if not metric._nests:
        raise SettingsError(
            expected="a metric that takes rows",
            came=f"a {type(metric).__name__}",
            where=where,
            todo="merge such states by themselves",
        )
    counted = metric._mass or metric._stage.n
    if counted and metric != metric.empty():  # to compare takes the bytes of both
        raise SettingsError(
            expected="an empty metric",
            came="one that has counted rows",
            where=where,
            todo="pass metric.empty(), and merge what it counted afterwards",
        )
    return metric.empty()


# What a type checker knows of settings is not known of those that come from a file.
def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name)


def _bad(where: str, expected: str, came: object) -> SettingsError:
    return SettingsError(
        expected=expected,
        came=shown(came),
        where=f"Panel.{where}",
        todo="see the docstring of Panel",
    )
