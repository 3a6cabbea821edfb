"""Paired: one metric of two models that score the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.classification.binary_confusion import BinaryConfusion
from streammetrics.classification.exact_auc import ExactAUC
from streammetrics.classification.histogram_auc import HistogramAUC
from streammetrics.combine.children import Product
from streammetrics.combine.paired_result import Errors, PairedResult
from streammetrics.combine.panel import Computes, Panel, R, part_of, require_empty
from streammetrics.combine.per_key import PerKey, require_as_many
from streammetrics.combine.windows import Windows
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.codec import require
from streammetrics.core.conversion import among
from streammetrics.core.errors import InputError, SettingsError, nearest, shown
from streammetrics.core.layouts import Schemas
from streammetrics.core.multiset.bag import BagColumn, Bags
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_sums import ExactSums, require_finite
from streammetrics.core.parts.part import Slots
from streammetrics.core.parts.score_bits import codes_of, in_type, result_type
from streammetrics.core.rows import DictionaryColumn, Terms
from streammetrics.core.weights import weighed_rows
from streammetrics.kernels.inference.area_interval import paired_placements
from streammetrics.kernels.inference.paired import (
    SUMS,
    PairedError,
    PairedSums,
    are_possible,
    difference_terms,
    table_variance,
)
from streammetrics.kernels.tables.class_cells import binary_cells
from streammetrics.kernels.tables.grids import grid_of
from streammetrics.present.views import value_of
from streammetrics.results.rates import Rates

_MODELS: Final = ("a", "b")
_USUAL: Final = ("scores", "predictions", "target", "numerators")  # what a model gives to a metric
_SHARED: Final = ("weights", "groups", "users")  # never a model's own
_PROBABILITIES: Final = HistogramAUC(resolution=3, floor=2.0**-16)  # 243 buckets
_REAL: Final = HistogramAUC(resolution=3, range="real", floor=2.0**-6, ceiling=2.0**6)
_USED, _UNLIKE, _UNBOUNDED = range(3)  # counts of rows: used, of unequal weights, infinite


@runtime_checkable
class _FinerInPairs(Protocol):
    """A metric that tells more scores apart where two models are compared."""

    def _finer(self) -> Accumulator:
        """The metric of one of the models, empty."""

    def _coarser(self, metric: Accumulator) -> Accumulator:
        """Its state as one of the given metric, whose `_finer` it is."""


class Paired(Accumulator, Generic[R], schema="paired/2"):
    """One metric of two models on the same rows, and the interval of their difference.

    Both models score the same rows, so their errors are correlated. An interval that takes the
    models for independent arms is far too wide.

    Settings
        metric: an empty metric, or UserGroups of it if rows of one user are correlated; not a
        combination of several. columns: names of the metric's columns that each model has of its
        own; by default `scores`, `predictions`, `target` or `numerators`, the first that the metric
        has.
    Rows
        Keywords: the metric's columns, with `_a` and `_b` after the names of the models' own, such
        as labels, scores_a and scores_b. UserGroups take `groups` as well. So both models have all
        rows, and a row that only one of them scored (None, NaN) is refused.
    State
        The metric of each model. For means (and the accuracy of MulticlassConfusion) also the exact
        sums of the differences of rows, of their squares and of their products with weights; for
        BinaryConfusion the rows by label and both predictions; for HistogramAUC those by label and
        by both scores on a grid of about 250 x 250 cells; for ExactAUC the multiset of (label, both
        scores). UserGroups, and metrics that hold their groups, need nothing more.
    Result
        PairedResult: `difference`, `a` and `b`, `pvalue`, `interval(view)` of any view,
        `mcnemar()`; `value_a` and `value_b` are the metric's own results.
    Undefined
        A difference of nan where a model is undefined. Without a formula for independent rows, or
        with weights, the interval is infinite, and its reason says that UserGroups has one.
    Exactness
        Both models are exactly those of the metric, with its bounds; those of the difference are
        certain. Variances are functions of exact totals, so that the order of rows changes no bit.
    Cost
        Twice the metric. Means: about 100 ns more a row. HistogramAUC: 1 MB more at most. ExactAUC:
        about 50 bytes more for each row, so count large data by HistogramAUC or by UserGroups.
    Source
        DeLong, DeLong & Clarke-Pearson 1988, Biometrics 44, for areas; Student 1908, Biometrika 6,
        for means; Efron & Stein 1981, Ann. Stat. 9, for confusion matrices; Wolter 2007,
        "Introduction to Variance Estimation", chapter 4, for users.

    >>> from streammetrics import ExactAUC, Paired
    >>> models = Paired(ExactAUC())
    >>> models.update(labels=[0, 1, 0, 1, 1], scores_a=[1, 2, 3, 4, 5], scores_b=[2, 1, 3, 4, 5])
    >>> found = models.compute()
    >>> round(found.a, 4), round(found.b, 4), round(found.difference, 4)
    (0.8333, 0.6667, 0.1667)
    """

    # Formerly the groups of both models told fewer scores apart.
    _schemas: ClassVar[Schemas] = {"paired/1": frozenset()}

    metric: Accumulator
    columns: tuple[str, ...] | None = None
    models = Product("_models")
    row_counts = Counts("_n_means", 3)  # used, of unequal weights, of infinite differences
    row_sums = ExactSums("_n_means", SUMS)
    cells = Counts("_n_grids", 2, "_n_buckets", "_n_buckets")  # [label, model a, model b]
    pairs = Bags("_n_bags", "float64", ids="_pair_ids")  # [label, model b] of each score of a

    if TYPE_CHECKING:  # the type of the values is that of the metric

        def __init__(
            self, metric: Computes[R], columns: tuple[str, ...] | str | None = None
        ) -> None: ...

    def check_settings(self) -> None:
        metric = require_empty(self.metric, "Paired.metric")
        if isinstance(metric, Panel | PerKey | Windows | Paired):
            name = type(metric).__name__
            hint = f"put Paired into the {name}, around each metric"
            raise _bad("metric", "one metric", name, hint)
        self._set("metric", metric)
        taken = metric.arguments()
        columns: object = self.columns
        if columns is None:
            columns = next(((name,) for name in _USUAL if name in taken), None)
        if isinstance(columns, str):
            columns = (columns,)
        if not isinstance(columns, tuple | list) or not columns:
            raise _bad("columns", "names of columns", self.columns, _name(taken))
        for name in columns:
            if name not in taken or name in _SHARED:
                hint = nearest(name, taken, _name(taken))
                raise _bad("columns", f"columns of {type(metric).__name__}", name, hint)
        self._set("columns", tuple(name for name in taken if name in columns))

    # -- the sizes of the parts -----------------------------------------------------------
    @cached_property
    def _models(self) -> Mapping[str, Accumulator]:
        metric = self.metric
        finer = metric._finer() if isinstance(metric, _FinerInPairs) else metric
        return dict.fromkeys(_MODELS, finer)

    @cached_property
    def _means(self) -> tuple[str, ...]:
        """The views whose differences are summed row by row."""
        return self.metric._mean_views() if self.metric._group_terms() is None else ()

    @property
    def _n_means(self) -> int:
        return len(self._means)

    @cached_property
    def _coarse(self) -> HistogramAUC | None:
        """The grid of the joint counts of a HistogramAUC: its own if that is not finer.

        Scores of one bucket are ties, which adds noise to the difference. With 64 buckets the error
        of two models with correlation 0.95 is 14 % too wide, with 243 buckets 1 %.
        """
        metric = self.metric
        if not isinstance(metric, HistogramAUC) or not self._same_labels:
            return None
        grid = _PROBABILITIES if metric.range == "probability" else _REAL
        return grid if metric.buckets > grid.buckets else metric

    @property
    def _same_labels(self) -> bool:
        """Whether both models have the labels in common, as joint counts of two classes need."""
        return "labels" not in self._own

    @property
    def _n_grids(self) -> int:
        return int(self._n_buckets > 0)

    @property
    def _n_buckets(self) -> int:
        if isinstance(self.metric, BinaryConfusion) and self._same_labels:
            return 2  # below the threshold, and from it on
        return self._coarse.buckets if self._coarse else 0

    def _buckets(self, rows: Batch) -> NDArray[np.intp]:
        """The bucket of each score, [n]."""
        if isinstance(self.metric, BinaryConfusion):
            return binary_cells(rows.labels, rows.scores, self.metric.threshold) & 1
        assert self._coarse is not None
        return grid_of(self._coarse).buckets(rows.scores).astype(np.intp)

    @property
    def _n_bags(self) -> int:
        return int(isinstance(self.metric, ExactAUC) and self._same_labels)

    @property
    def _pair_ids(self) -> str:
        return "integer"

    @property
    def max_rows(self) -> int | None:
        """The limit of an ExactAUC: a state of more rows keeps only their number."""
        return self.metric.max_rows if isinstance(self.metric, ExactAUC) else None

    # -- rows -----------------------------------------------------------------------------
    @cached_property
    def _own(self) -> tuple[str, ...]:
        return self.columns or ()

    def arguments(self) -> Mapping[str, bool]:
        arguments: dict[str, bool] = {}
        for name, required in self.metric.arguments().items():
            if name in self._own:
                arguments.update({f"{name}_{model}": True for model in _MODELS})
            else:
                arguments[name] = required
        return arguments

    def stored_names(self) -> Mapping[str, str]:
        names = self.metric.stored_names()
        return {name: stored for name, stored in names.items() if name not in self._own}

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        widths: dict[str, tuple[int | None, ...]] = {}
        for name, width in self.metric.widths().items():
            names = [f"{name}_{model}" for model in _MODELS] if name in self._own else [name]
            widths.update(dict.fromkeys(names, width))
        return widths

    def _roles(self) -> Mapping[str, str]:
        return self.metric._roles()

    def update(self, **columns: ArrayLike | DictionaryColumn | None) -> None:
        """Count rows of both models: labels=, scores_a=, scores_b= and so on; all or none."""
        self._update(self._checked(columns))

    def check(self, **columns: ArrayLike | DictionaryColumn | None) -> Batch:
        """The rows of both models, or InputError; changes nothing."""
        return self._checked(columns)

    def _checked(self, columns: dict[str, ArrayLike | DictionaryColumn | None]) -> Batch:
        takes = self.arguments()
        for name in columns:
            if name not in takes:
                raise self._unknown(name)
        for name, required in takes.items():
            if required and columns.get(name) is None:
                raise InputError(
                    expected=f"the column {name!r}",
                    got=f"columns {', '.join(columns)}" if columns else "no columns",
                    where="Paired.update",
                    hint=f"pass {', '.join(f'{n}=' for n, must in takes.items() if must)}",
                )
        shared = {name: c for name, c in columns.items() if name in self.metric.arguments()}
        a, b = (self._rows_of(model, shared, columns) for model in _MODELS)
        require_as_many(b.n, a.n, f"{self._own[0]}_b")
        return Batch(a.n, {"a": a, "b": b}, max(a.total, b.total))

    def _rows_of(self, model: str, shared: dict[str, Any], columns: Mapping[str, Any]) -> Batch:
        model_columns = {name: columns[f"{name}_{model}"] for name in self._own}
        try:
            return self.metric.check(**shared, **model_columns)
        except InputError as error:
            raise InputError(
                expected=error.expected,
                got=error.got,
                where=f"model {model}, {error.where}",
                hint=error.hint,
                rows=error.rows,
            ) from None

    def _unknown(self, name: str) -> InputError:
        kind = type(self.metric).__name__
        hint = nearest(name, self.arguments(), "leave it out")
        if name in self._own:
            hint = f"pass {name}_a= and {name}_b=, one for each model"
        elif name in ("groups", "users"):
            hint = f"use Paired(UserGroups({kind}(...))), which leaves users out of both models"
        takes = ", ".join(self.arguments())
        return InputError(
            expected=f"columns of {kind} for two models ({takes})",
            got=shown(name),
            where="Paired.update",
            hint=hint,
        )

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        a, b = batch.as_batch("a"), batch.as_batch("b")
        for model, rows in (("a", a), ("b", b)):
            self.models.by_name[model]._feed(rows, slots)
        (a, row_slots), (b, _) = weighed_rows(a, slots), weighed_rows(b, slots)
        if self._means:
            self._add_terms(self.metric._row_terms(a), self.metric._row_terms(b), row_slots)
        if k := self._n_buckets:
            cells = (a.labels.astype(np.intp) * k + self._buckets(a)) * k + self._buckets(b)
            self.cells.add(cells, row_slots)
        if isinstance(self.metric, ExactAUC) and self._same_labels:
            kind = result_type(self.metric.score_type)
            first, second = (
                in_type(rows.scores, kind).astype(np.float64, copy=False) for rows in (a, b)
            )
            ids = (codes_of(first) ^ _SIGN).view(np.int64)
            self.pairs.add(second, a.labels, np.zeros(a.n, np.intp), row_slots, groups=ids)

    def _add_terms(self, a: Sequence[Terms], b: Sequence[Terms], slots: Slots | None) -> None:
        for view, (terms_a, terms_b) in enumerate(zip(a, b, strict=True)):
            differences = difference_terms(terms_a.values, terms_b.values, terms_a.weights)
            terms, used, bounded = differences
            used = used & bounded
            unlike = _unlike(terms_a, terms_b)
            for kind, rows in ((_USED, used), (_UNLIKE, unlike), (_UNBOUNDED, ~bounded)):
                indices = np.flatnonzero(rows)
                row_slots = None if slots is None else slots[indices]
                self.row_counts.add(np.full(len(indices), view * 3 + kind, np.intp), row_slots)
            indices = np.flatnonzero(used)
            row_slots = None if slots is None else slots[indices]
            for number, values in enumerate(terms):
                cells = np.full(len(indices), view * SUMS + number, np.intp)
                self.row_sums.add(values[indices], cells, row_slots)

    def _require_possible(self) -> None:
        fault = "impossible differences"
        require_finite(self.row_sums.inner, fault)
        for slot in range(self._width):
            sums = self.row_sums.finite_fractions(slot)
            counts = self.row_counts.dense(slot).reshape(-1, 3).tolist()
            for view in range(self._n_means):
                used = counts[view][_USED]
                require(are_possible(used, sums[view * SUMS : (view + 1) * SUMS]), fault)

    # -- results --------------------------------------------------------------------------
    def compute(self) -> PairedResult[R]:
        """The metric of both models, and the interval of their difference."""
        self._flush()
        a, b = (part_of(self, self.models.by_name[name].copy()) for name in _MODELS)
        value_a, value_b = a.compute(), b.compute()
        units = getattr(value_a, "independent", "rows") or "groups"
        rows = int(getattr(value_a, "rows", 0) or 0)
        errors = self._errors(a, b, units)
        return PairedResult(cast("R", value_a), cast("R", value_b), rows, errors)

    def model(self, name: str) -> Accumulator:
        """The state of one model, "a" or "b", as a separate accumulator."""
        if not among(name, _MODELS):
            raise InputError(
                expected='"a" or "b"', got=shown(name), where="Paired.model", hint="name a model"
            )
        self._flush()
        state = self.models.by_name[name]
        as_given = state._coarser(self.metric) if isinstance(state, _FinerInPairs) else state.copy()
        return part_of(self, as_given)

    def _errors(self, a: Accumulator, b: Accumulator, units: str) -> Errors:
        """A function that returns the variance of the difference in a view, or None without a
        formula, of the rows at this time."""
        if self._means:
            means = dict(zip(self._means, self._paired_sums(), strict=True))
            return lambda view: _mean_error(view, *means[view], units) if view in means else None
        if k := self._n_buckets:
            cells = self.cells.take(np.zeros(1, np.intp))
            table = cells.dense().reshape(2, k, k)
            if isinstance(self.metric, BinaryConfusion):
                return cache(lambda view: _rates_error(table, view))
            return _known(lambda: _area_errors(*_cells_of(table)))
        if self._n_bags:
            bag = self.pairs.bag(0)
            return _known(lambda: {} if bag.dropped else _area_errors(*_cells_of_bag(bag)))
        return _known(lambda: _group_errors(a, b, units))

    def _paired_sums(self) -> list[tuple[PairedSums, int]]:
        """For each mean its sums, and the number of rows whose weights differ."""
        counts = self.row_counts.dense().reshape(-1, 3).tolist()
        sums = self.row_sums.finite_fractions()
        return [
            (PairedSums(used, sums[i * SUMS : (i + 1) * SUMS], unbounded), unlike)
            for i, (used, unlike, unbounded) in enumerate(counts)
        ]


_SIGN: Final = np.uint64(1 << 63)
Ints = NDArray[np.int64]


def _unlike(a: Terms, b: Terms) -> NDArray[np.bool_]:
    """Whether the weights of a row differ between both models."""
    if a.weights is None or b.weights is None:
        return np.full(len(a.values), a.weights is not b.weights)
    unlike: NDArray[np.bool_] = a.weights != b.weights
    return unlike


def _known(errors: Callable[[], Mapping[str, PairedError]]) -> Errors:
    """From a function that returns all views with a formula; it is called once."""
    once = cache(errors)
    return lambda view: once().get(view)


def _rates_error(table: Ints, view: str) -> PairedError | None:
    """The error of a view of Rates. table: rows by label and both predictions, [2, 2, 2]."""
    labels, a, b, counts = _cells_of(table)
    cells, n = list(zip(labels.tolist(), a.tolist(), b.tolist(), strict=True)), int(counts.sum())

    def difference(without: tuple[int, int, int] | None = None) -> float:
        left = table.copy()
        if without is not None:
            left[without] -= 1
        rates_a, rates_b = (_rates(left.sum(axis=axis)) for axis in (2, 1))
        return float(value_of(rates_a, view)) - float(value_of(rates_b, view))

    variance = table_variance(counts.tolist(), [difference(cell) for cell in cells])
    why = ""
    if not math.isfinite(variance) and math.isfinite(difference()):
        why = "the estimate is undefined without one of the rows"
    only_a, only_b = (int(table[1, i, 1 - i] + table[0, 1 - i, i]) for i in (1, 0))
    discordant = (only_a, only_b) if view == "accuracy" else None
    df = float(n - 1) if n > 1 else math.nan
    return PairedError(variance, df, n, "jackknife", "rows", why, discordant)


def _rates(table: Ints) -> Rates:
    tn, fp, fn, tp = table.ravel().tolist()
    return Rates(tp, fp, fn, tn)


def _mean_error(view: str, sums: PairedSums, unlike: int, units: str) -> PairedError:
    error = sums.error(units)
    if not unlike and view == "accuracy":  # each d is -1, 0 or 1
        d, _, dd, *_ = map(int, sums.sums)
        return replace(error, discordant=((dd + d) // 2, (dd - d) // 2))
    if not unlike:
        return error
    why = f"{unlike} {units} weigh differently in both models; UserGroups have an interval"
    return PairedError(np.nan, np.nan, error.n, "t", units, why)


def _cells_of(table: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Label, both buckets and rows of each occupied cell [n]; table: [2, k, k]."""
    labels, a, b = (indices.astype(np.int64) for indices in np.nonzero(table))
    return labels, a, b, table[labels, a, b]


def _cells_of_bag(bag: BagColumn) -> tuple[Ints, Ints, Ints, Ints]:
    """Label, the score of a as an ordered integer, that of b, and 1, for each row [n]."""
    groups = bag.groups()
    codes, labels = groups.rows(np.arange(len(groups)))
    first = np.repeat(bag.integer_ids(groups.indices), groups.sizes)
    second = (codes.astype(np.uint64) ^ _SIGN).view(np.int64)
    return labels.astype(np.int64), first, second, np.ones(len(labels), np.int64)


def _area_errors(labels: Ints, a: Ints, b: Ints, counts: Ints) -> Mapping[str, PairedError]:
    placements = paired_placements(labels, a, b, counts)
    n = placements.positives + placements.negatives
    area = PairedError(placements.variance, placements.df, n, "delong")
    return {"auc": area, "gini": PairedError(4 * placements.variance, placements.df, n, "delong")}


def _group_errors(a: Accumulator, b: Accumulator, units: str) -> Mapping[str, PairedError]:
    """From states that hold their groups; {} for all others."""
    all_a, all_b = a._group_terms(), b._group_terms()
    if all_a is None or all_b is None:
        return {}
    errors = {}
    for view, terms_a, terms_b in zip(a._mean_views(), all_a, all_b, strict=True):
        if len(terms_a.values) != len(terms_b.values) or _unlike(terms_a, terms_b).any():
            why = f"the {units} of both models differ"
            errors[view] = PairedError(np.nan, np.nan, 0, "t", units, why)
        else:
            errors[view] = PairedSums.of(terms_a.values, terms_b.values, terms_a.weights).error(
                units
            )
    return errors


def _name(taken: Mapping[str, bool]) -> str:
    return f"name columns that each model has of its own: {', '.join(taken) or 'it has none'}"


def _bad(name: str, expected: str, got: object, hint: str) -> SettingsError:
    return SettingsError(expected=expected, got=shown(got), where=f"Paired.{name}", hint=hint)
