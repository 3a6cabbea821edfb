"""PairedResult: two models on the same rows, and the interval of their difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Generic

from streammetrics.combine.clustered import no_jackknife
from streammetrics.combine.paired_errors import Errors
from streammetrics.combine.panel import R
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import among, flag
from streammetrics.core.errors import InputError
from streammetrics.core.interval import Interval, interval_within, taken_as_independent
from streammetrics.estimators.estimator import NoInterval
from streammetrics.estimators.request import IntervalRequest
from streammetrics.kernels.exact.rounding import rounded_down, rounded_up
from streammetrics.kernels.inference.area_interval import COARSE
from streammetrics.kernels.inference.paired import PairedError, mcnemar, paired_jackknife
from streammetrics.kernels.inference.t_interval import two_sided_p
from streammetrics.present.estimand import estimand_of
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import (
    ValueRow,
    checked_level,
    reason_of,
    rows_of_views,
    why_undefined,
)
from streammetrics.present.view import NONE, SHARE, Range, View
from streammetrics.present.views import (
    counts_of,
    headline_of,
    range_of,
    value_of,
    view_of,
    views_of,
)
from streammetrics.results.has_intervals import HasIntervals, no_interval

_NO_FORMULA = "no formula for independent rows"
_PAIR = "; pair users: Paired(UserGroups(...))"
_APART = "; count each model apart in UserGroups: compare(a, b, paired=True) has that of a quantile"
_MODELS = ("a", "b")
_OF_ERROR = NoInterval[object]("it is itself a measure of error", of_error=True)
_OWN = ("difference", *_MODELS, "pvalue")  # views of this result that the metric does not have


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class McNemar(Shown):
    """McNemar's test of two models that are right on different rows of the same rows.

    only_a, only_b: rows that only the first model, and only the second, has right. statistic: the
    smaller of both if the test is exact, else chi-square with one degree of freedom. pvalue:
    two-sided; 1 if both are right on the same rows.
    """

    only_a: int
    only_b: int
    statistic: float = field(metadata=View(estimator=_OF_ERROR, better=NONE))
    pvalue: float = field(metadata=View(estimator=_OF_ERROR, better=NONE))


@dataclass(frozen=True, eq=False, repr=False)
class PairedResult(Generic[R], Shown):
    """The results of two models on the same rows, and their difference a - b.

    value_a, value_b: the metric's own results. Views are those of the metric, such as `auc` or
    `log_loss`; None, or `difference`, is the headline. A certain bound of the difference is that of
    one model less the opposite one of the other.

    >>> from streammetrics import Calibration, Paired
    >>> models = Paired(Calibration())
    >>> models.update(labels=[1, 0, 0, 1], scores_a=[0.9, 0.2, 0.4, 0.7], scores_b=[0.8] * 4)
    >>> found = models.compute()
    >>> round(found.difference_of("brier"), 4), round(found.pvalue_of("brier"), 4)
    (-0.265, 0.1993)
    """

    independent: ClassVar[str] = ""  # each interval says itself that rows are taken as independent
    value_a: R
    value_b: R
    rows: int
    # The variance of the difference in a view over independent rows, lists or groups.
    _errors: Errors = field(repr=False, compare=False)

    @property
    @View(better=NONE, range=lambda paired: paired._limits(None))
    def difference(self) -> float | Bounded:
        """The headline of the first model less that of the second."""
        return self.difference_of()

    @property
    @View(better=NONE, range=lambda paired: paired._ranges(None)[0])
    def a(self) -> float | Bounded:
        """The headline of the first model."""
        return self._values(None)[0]

    @property
    @View(better=NONE, range=lambda paired: paired._ranges(None)[1])
    def b(self) -> float | Bounded:
        """The headline of the second model."""
        return self._values(None)[1]

    @property
    @View(estimator=_OF_ERROR, better=NONE, range=SHARE)
    def pvalue(self) -> float:
        """How often two equal models would differ at least this much, two-sided; nan if no variance
        is known."""
        return self.pvalue_of()

    def difference_of(self, view: object = None) -> float | Bounded:
        """A view of the first model less that of the second."""
        a, b = self._values(view)
        if not isinstance(a, Bounded) or not isinstance(b, Bounded):
            return float(a) - float(b) + 0.0
        value = a.value - b.value
        return Bounded(value, *_difference_of_bounds(a, b)) if value == value else _UNKNOWN

    def error_of(self, view: object = None) -> PairedError:
        """The variance of the difference in a view, its degrees of freedom and its method."""
        a, b, metric_view = self.value_a, self.value_b, _metric_view(view)
        if why := self._reason(metric_view):
            return PairedError(math.nan, math.nan, self.rows, "", "rows", why)
        if isinstance(a, UserGroupsResult) and isinstance(b, UserGroupsResult):
            estimands = a._estimand(metric_view), b._estimand(metric_view)
            if why := self._never(metric_view) or estimands[0].over_users.scarce:
                return PairedError(math.nan, math.nan, self.rows, "jackknife", "rows", why)
            replicates = a._replicates(estimands[0]), b._replicates(estimands[1])
            triples = zip(*replicates, a.weights, strict=True)
            used = [(x, y, rows) for x, y, rows in triples if rows]
            values_a, values_b = [x for x, _, _ in used], [y for _, y, _ in used]
            jackknife = paired_jackknife(values_a, values_b, a.weights)
            doubts = dict.fromkeys((*a._doubts_of(estimands[0]), *b._doubts_of(estimands[1])))
            why = "; ".join(filter(None, (jackknife.reason, *doubts)))
            return PairedError(
                jackknife.variance, jackknife.df, self.rows, "jackknife", "rows", why
            )
        for model in (a, b):
            if isinstance(model, HasIntervals) and (why := no_interval(model, metric_view)):
                return PairedError(math.nan, math.nan, self.rows, "", "rows", why)
        error = self._errors(view_of(a, metric_view).text)
        if error is None:
            return PairedError(
                math.nan, math.nan, self.rows, "", "rows", self._no_formula(metric_view)
            )
        return error

    def _never(self, view: object, otherwise: str = "") -> str:
        """Why a view has no interval of the difference however many users there are, or "".
        otherwise: why not, of a quantile, whose interval needs two states."""
        estimand = estimand_of(self._model_of(self.value_a), view)
        apart = no_jackknife(estimand)
        quantile = apart and estimand.over_users.behind is not None
        return (otherwise or apart) + _APART if quantile else apart

    def _no_formula(self, view: object) -> str:
        """Why a view of independent rows has no formula, and what has one."""
        return self._never(view, _NO_FORMULA) or _NO_FORMULA + _PAIR

    def interval(
        self, view: object = None, *, level: float = 0.95, method: str = "auto"
    ) -> Interval:
        """The confidence interval of the difference in a view; of `a` and `b` that of the model.

        method: "auto", or the one that the rows allow: "delong" for areas and "t" for means, both
        over independent rows, lists or groups, and "jackknife" over users, who leave both models
        together, or over the rows of BinaryConfusion. Student's t in each; over users with the
        effective number of groups less 1, so that a few users with most of the rows do not pass for
        64. Too little data is never an error.
        """
        if among(view, ("pvalue",)):
            why = "no formula for pvalue, which is itself a measure of error"
            return Interval.undefined(
                why, level=level, method=method, n=self.rows, estimate=self.pvalue, formula=False
            )
        if among(view, _MODELS):
            model = (self.value_a, self.value_b)[_MODELS.index(str(view))]
            if isinstance(model, HasIntervals | UserGroupsResult):
                return model.interval(level=level, method=method)
            why = "no formula for this model alone"
            return Interval.undefined(why, level=level, method=method, n=self.rows, formula=False)
        share = checked_level(level, "interval(level)")
        difference, error = self.difference_of(view), self.error_of(view)
        text = view_of(self._model_of(self.value_a), _metric_view(view))
        request = IntervalRequest(text.text, text.arguments or (), difference, share, method)
        if not error.method:
            return request.none(
                error.reason, n=self.rows, formula=error.reason != self._no_formula(text.text)
            )
        request.choose(error.method)
        if error.reason and not math.isfinite(error.variance):
            return request.none(error.reason, n=error.n)
        interval = request.spread(
            error.variance, error.n, df=error.df, methods=(error.method,), units=error.units
        )
        if not interval.defined:
            return interval
        users = isinstance(self.value_a, UserGroupsResult)
        note = error.reason if users else taken_as_independent(error.units)
        note = "" if error.units in ("groups", "users") else note
        interval = replace(interval, reason=note)
        if users:  # that of independent rows is not known
            interval = replace(interval, n_eff=math.nan, deff=math.nan)
        interval = request.widen(interval)
        return interval_within(interval, *self._limits(_metric_view(view)))

    def pvalue_of(self, view: object = None) -> float:
        """The p-value of a view: of the interval's t; nan without an error. If buckets may have
        moved the difference by more than a quarter of its error, it is moved towards 0 by as
        much."""
        difference, paired_error = self.difference_of(view), self.error_of(view)
        if not paired_error.variance > 0:
            return math.nan
        error, effect = math.sqrt(paired_error.variance), abs(float(difference))
        if isinstance(difference, Bounded):
            off = max(difference.value - difference.low, difference.high - difference.value)
            effect = max(0.0, effect - off) if off > COARSE * error else effect
        return two_sided_p(effect, error, paired_error.df)

    def mcnemar(
        self, view: object = "accuracy", *, exact: bool = True, correction: bool = True
    ) -> McNemar:
        """McNemar's test of the accuracy of both models, over independent rows of weight 1.

        view: the accuracy, or another share of all rows. exact: the binomial test; else chi-square,
        with the correction for continuity or without. InputError for a metric without accuracy, for
        weights and for users.

        >>> from streammetrics import BinaryConfusion, Paired
        >>> models = Paired(BinaryConfusion())
        >>> a, b = [1] * 14 + [0] * 16, [0] * 8 + [1] * 22
        >>> models.update(labels=[1] * 30, scores_a=a, scores_b=b)
        >>> found = models.compute().mcnemar()
        >>> found.only_a, found.only_b, round(found.pvalue, 4)
        (8, 16, 0.1516)
        """
        exact = flag(exact, "PairedResult.mcnemar(exact)")
        correction = flag(correction, "PairedResult.mcnemar(correction)")
        error = self.error_of(view)
        if error.discordant is None:
            kind = type(self._model_of(self.value_a)).__name__
            why = error.reason if error.reason != self._no_formula(view) else kind
            raise InputError(
                expected="independent rows of weight 1, each right or wrong in both models",
                got=why or "users, who may have several rows",
                where="mcnemar",
                hint=f'for users and weights ask Paired(UserGroups(...)) for pvalue_of("{view}")',
            )
        tested = mcnemar(*error.discordant, exact=exact, correction=correction)
        return McNemar(*error.discordant, *tested)

    def _values(self, view: object) -> tuple[float | Bounded, float | Bounded]:
        metric_view = _metric_view(view)
        a, b = (
            value_of(self._model_of(model), metric_view) for model in (self.value_a, self.value_b)
        )
        return a, b

    def _limits(self, view: object) -> Range:
        """The least and the greatest difference in a view of the metric."""
        (least_a, most_a), (least_b, most_b) = self._ranges(view)
        return least_a - most_b, most_a - least_b

    def _ranges(self, view: object) -> tuple[Range, Range]:
        """The least and the greatest value of each model in a view, which may follow from its
        rows."""
        a, b = (range_of(self._model_of(model), view) for model in (self.value_a, self.value_b))
        return a, b

    def _model_of(self, model: object) -> object:
        """The metric's result, without its groups of users."""
        return model.value if isinstance(model, UserGroupsResult) else model

    def __getstate__(self) -> dict[str, object]:
        """With the variances of all views in place of the state that they are computed from."""
        errors = {view: self._errors(view) for view in views_of(self._model_of(self.value_a))}
        return {**self.__dict__, "_errors": errors.get}

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        headline = headline_of(self)  # the difference
        for row in rows_of_views(self, level, headlines):
            why = self._why_undefined(row.counts) if math.isnan(row.value) else row.reason
            if row.name == headline and row.interval and not row.interval.defined:
                why = why or row.interval.reason  # also of a view that never has an interval
            yield replace(row, reason=why, pvalue=self.pvalue if row.name == headline else None)

    def _reason(self, view: object = None) -> str:
        """Why a view of the metric is undefined for these rows, or ""."""
        models = [self._model_of(model) for model in (self.value_a, self.value_b)]
        a, b = (reason_of(model, view_of(model, view).name) for model in models)
        reasons = (f"{name}: {why}" for name, why in zip(_MODELS, (a, b), strict=True) if why)
        return a if a == b else "; ".join(reasons)

    def _why_undefined(self, counts: Mapping[str, object]) -> str:
        if why := self._reason():
            return why
        model = self._model_of(self.value_a if math.isnan(float(self.a)) else self.value_b)
        return why_undefined(model, headline_of(model), math.nan, counts_of(model) or counts)


_UNKNOWN = Bounded(math.nan, math.nan, math.nan)


def _difference_of_bounds(a: Bounded, b: Bounded) -> tuple[float, float]:
    """[low_a - high_b, high_a - low_b], rounded outwards."""
    if not all(map(math.isfinite, (a.low, a.high, b.low, b.high))):
        low, high = a.low - b.high, a.high - b.low
        return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)
    least, most = Fraction(a.low) - Fraction(b.high), Fraction(a.high) - Fraction(b.low)
    return rounded_down(*least.as_integer_ratio()), rounded_up(*most.as_integer_ratio())


def _metric_view(view: object) -> object:
    """The view of the metric: None, its headline, for "difference"."""
    return None if among(view, ("difference",)) else view
