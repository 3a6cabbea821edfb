"""Paired: one metric of two models that score the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.combine.children import Product
from streammetrics.combine.paired_errors import (
    Errors,
    Ints,
    area_errors,
    cells_of,
    group_errors,
    late_errors,
    table_error,
)
from streammetrics.combine.paired_result import PairedResult
from streammetrics.combine.panel import Computes, Panel, R, part_of, require_empty
from streammetrics.combine.per_key import PerKey, require_as_many
from streammetrics.combine.row_means import RowTerms, mean_error, row_means, unlike_weights
from streammetrics.combine.windows import Windows
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.codec import require
from streammetrics.core.conversion import among
from streammetrics.core.errors import InputError, SettingsError, argument_hint, nearest, shown
from streammetrics.core.intakes import Intake
from streammetrics.core.joint_rows import JointBuckets, JointScores
from streammetrics.core.layouts import Schemas
from streammetrics.core.multiset.bag import BagColumn, Bags
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_sums import ExactSums, require_finite
from streammetrics.core.parts.part import Slots
from streammetrics.core.parts.score_bits import codes_of
from streammetrics.core.rows import DictionaryColumn, Terms
from streammetrics.core.settings_property import settings_property
from streammetrics.core.weights import weighed_rows
from streammetrics.kernels.inference.paired import (
    SUMS,
    PairedError,
    PairedSums,
    are_possible,
    difference_terms,
)

_MODELS: Final = ("a", "b")
_USUAL: Final = ("scores", "predictions", "target", "numerators")  # what a model gives to a metric
_SHARED: Final = ("weights", "groups", "users")  # never a model's own
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
        The metric of each model. For means over rows (by the estimators of views) also the exact
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
        arguments = metric.arguments()
        columns: object = self.columns
        if columns is None:
            columns = next(((name,) for name in _USUAL if name in arguments), None)
        if isinstance(columns, str):
            columns = (columns,)
        if not isinstance(columns, tuple | list) or not columns:
            raise _bad("columns", "names of columns", self.columns, _name(arguments))
        for name in columns:
            if name not in arguments or name in _SHARED:
                hint = nearest(name, arguments, _name(arguments))
                raise _bad("columns", f"columns of {type(metric).__name__}", name, hint)
        self._set("columns", tuple(name for name in arguments if name in columns))

    # -- the sizes of the parts -----------------------------------------------------------
    @settings_property
    def _models(self) -> Mapping[str, Accumulator]:
        metric = self.metric
        finer = metric._finer() if isinstance(metric, _FinerInPairs) else metric
        return dict.fromkeys(_MODELS, finer)

    @settings_property
    def _row_means(self) -> Mapping[str, RowTerms]:
        """The views whose differences are summed row by row."""
        return row_means(self.metric)

    @property
    def _n_means(self) -> int:
        return len(self._row_means)

    @settings_property
    def _joint(self) -> JointBuckets | JointScores | None:
        """How rows are counted together, if both models have the labels in common."""
        return None if "labels" in self._own else self.metric._joint_rows()

    @property
    def _n_grids(self) -> int:
        return int(self._n_buckets > 0)

    @property
    def _n_buckets(self) -> int:
        return self._joint.buckets if isinstance(self._joint, JointBuckets) else 0

    @property
    def _n_bags(self) -> int:
        return int(isinstance(self._joint, JointScores))

    @property
    def _pair_ids(self) -> str:
        return "integer"

    @property
    def max_rows(self) -> int | None:
        """The limit of joint scores: a state of more rows keeps only their number."""
        return self._joint.max_rows if isinstance(self._joint, JointScores) else None

    # -- rows -----------------------------------------------------------------------------
    @settings_property
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
        """Count rows of both models, all or none.

        columns: those of the metric's own `update`, by name, [n] each. What both models have in
        common, such as labels, is given once; what is a model's own twice, as scores_a= and
        scores_b=. `arguments()` lists them.
        """
        if not self._wait(columns):
            self._update(self._checked(columns))

    @property
    def _intakes(self) -> Mapping[str, Intake | None]:
        base = self.metric._intakes
        pairs = {f"{name}_{model}": base.get(name) for name in self._own for model in _MODELS}
        return {**{name: intake for name, intake in base.items() if name not in self._own}, **pairs}

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
        hint = argument_hint([name], self.arguments(), "leave it out")
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
        if means := self._row_means.values():
            self._add_terms([terms(a) for terms in means], [terms(b) for terms in means], row_slots)
        joint = self._joint
        if isinstance(joint, JointBuckets):
            cells = a.labels.astype(np.intp) * joint.buckets + joint.bucket_of(a)
            self.cells.add(cells * joint.buckets + joint.bucket_of(b), row_slots)
        if isinstance(joint, JointScores):
            ids = (codes_of(joint.score_of(a)) ^ _SIGN).view(np.int64)
            kinds = np.zeros(a.n, np.intp)
            self.pairs.add(joint.score_of(b), a.labels, kinds, row_slots, groups=ids)

    def _add_terms(self, a: Sequence[Terms], b: Sequence[Terms], slots: Slots | None) -> None:
        for view, (terms_a, terms_b) in enumerate(zip(a, b, strict=True)):
            differences = difference_terms(terms_a.values, terms_b.values, terms_a.weights)
            terms, used, bounded = differences
            used = used & bounded
            unlike = unlike_weights(terms_a, terms_b)
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
        errors = self._errors((a, b), (value_a, value_b), units)
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

    def _errors(
        self,
        models: tuple[Accumulator, Accumulator],
        results: tuple[object, object],
        units: str,
    ) -> Errors:
        """A function that returns the variance of the difference in a view, or None without a
        formula, of the rows at this time."""
        if self._row_means:
            means = dict(zip(self._row_means, self._paired_sums(), strict=True))

            def error(view: str) -> PairedError | None:
                sums = means.get(view)
                return None if sums is None else mean_error(results, view, *sums, units)

            return error
        if isinstance(self._joint, JointBuckets):
            k, result = self._joint.buckets, self._joint.result
            table = self.cells.take(np.zeros(1, np.intp)).dense().reshape(2, k, k)
            if result is not None:
                return cache(partial(table_error, table, result))
            return late_errors(lambda: area_errors(*cells_of(table)))
        if self._n_bags:
            bag = self.pairs.bag(0)
            return late_errors(lambda: {} if bag.dropped else area_errors(*_rows_of(bag)))
        return late_errors(lambda: group_errors(*models, units))

    def _paired_sums(self) -> list[tuple[PairedSums, int]]:
        """For each mean its sums, and the number of rows whose weights differ."""
        counts = self.row_counts.dense().reshape(-1, 3).tolist()
        sums = self.row_sums.finite_fractions()
        return [
            (PairedSums(used, sums[i * SUMS : (i + 1) * SUMS], unbounded), unlike)
            for i, (used, unlike, unbounded) in enumerate(counts)
        ]


_SIGN: Final = np.uint64(1 << 63)  # of the integers whose order is that of scores


def _rows_of(bag: BagColumn) -> tuple[Ints, Ints, Ints, Ints]:
    """Label, the score of a as an ordered integer, that of b, and 1, for each row [n]."""
    groups = bag.groups()
    codes, labels = groups.rows(np.arange(len(groups)))
    first = np.repeat(bag.integer_ids(groups.indices), groups.sizes)
    second = (codes.astype(np.uint64) ^ _SIGN).view(np.int64)
    return labels.astype(np.int64), first, second, np.ones(len(labels), np.int64)


def _name(arguments: Mapping[str, bool]) -> str:
    return f"name columns that each model has of its own: {', '.join(arguments) or 'it has none'}"


def _bad(name: str, expected: str, got: object, hint: str) -> SettingsError:
    return SettingsError(expected=expected, got=shown(got), where=f"Paired.{name}", hint=hint)
