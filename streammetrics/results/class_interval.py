"""The intervals of averages over classes, and over the labels of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels import term_means
from streammetrics.kernels.class_influence import hit_influence, mean_influence
from streammetrics.kernels.influence import counts_variance
from streammetrics.kernels.sums_variance import mean_variance, ratio_variance
from streammetrics.kernels.term_means import Hits, Term
from streammetrics.results.interval import USERS, Asked, Interval
from streammetrics.results.rates_interval import weight_of_precision
from streammetrics.results.view_texts import ViewText

Ints = NDArray[np.int64]

_TERMS: Final[dict[str, Term]] = {
    "precision": term_means.precision,
    "recall": term_means.recall,
    "specificity": term_means.specificity,
    "jaccard": term_means.jaccard,
    "balanced_accuracy": term_means.recall,
}
_AT: Final = {"f_beta": 1, "f_alpha": 1}  # the place of `average` among the arguments, 0 else


def averaged_term(view: ViewText) -> tuple[Term, str] | None:
    """The ratio that is averaged, and how: of `Averaged`; None for other views."""
    weight = weight_of_precision(view)
    term = _TERMS.get(view.name) if weight is None else term_means.f_alpha(weight)
    if term is None:
        return None
    given = (view.arguments or ())[_AT.get(view.name, 0) :]
    return term, str(given[0]) if given else "macro"


def mean_interval(
    asked: Asked, truth: Ints, predicted: Ints, counts: Ints, hits: Sequence[Hits]
) -> Interval | None:
    """Of an average over classes, one of which is each row's; by delta, and micro by Wilson.

    truth, predicted, counts: [m], cells. hits: of each class. Whatever is pooled over all classes
    is a function of accuracy, and rises with it.
    """
    found = averaged_term(asked.view)
    if found is None:
        return None
    term, average = found
    n = sum(counts.tolist())
    if average == "micro":
        return _micro(asked, term, sum(one[0] for one in hits), n, len(hits))
    psi = mean_influence(truth, predicted, hits, term, by_rows=average == "weighted")
    return asked.spread(counts_variance(counts, psi), n, methods=("delta", "logit"))


def averaged_influence(
    view: ViewText, truth: Ints, predicted: Ints, hits: Sequence[Hits]
) -> NDArray[np.float64] | None:
    """The ψ of the cells of a macro or weighted average; None of other views."""
    found = averaged_term(view)
    if found is None or found[1] == "micro":
        return None
    term, average = found
    return mean_influence(truth, predicted, hits, term, by_rows=average == "weighted")


def _micro(asked: Asked, term: Term, right: int, n: int, classes: int) -> Interval:
    def through(accuracy: float) -> float:
        top, bottom = accuracy.as_integer_ratio()
        above, below = term(_pooled(top, bottom, classes))
        return term_means.value((above, below), 0.0)

    if through(0.25) == 0.25:  # the only ones that are there: accuracy, Jaccard and specificity
        return asked.share(right, n)
    of_hits = np.array(hit_influence(_pooled(right, n, classes), term))
    psi = [float((of_hits * row).sum()) for row in (_pooled(1, 1, classes), _pooled(0, 1, classes))]
    variance = counts_variance(np.array([right, n - right]), np.array(psi))
    return asked.mapped(right, n, through, variance)


def _pooled(right: int, n: int, classes: int) -> Hits:
    """The sums over classes, of n rows of which so many are right."""
    return right, n - right, n - right, (classes - 2) * n + right


def of_rows_interval(asked: Asked, rows: Iterable[tuple[Hits, int]]) -> Interval | None:
    """Of averages over the labels that rows have: "micro", which is a ratio of sums over rows, and
    "samples", a mean over rows.

    rows: what rows of one kind say, and how many there are.
    """
    found = averaged_term(asked.view)
    if found is None:
        return None
    term, average = found
    terms = [(*term(hits), count) for hits, count in rows]
    n = sum(count for _, _, count in terms)
    if average == "micro":
        y, m = (sum(one[place] * one[2] for one in terms) for place in (0, 1))
        yy, ym, mm = (
            sum(one[i] * one[j] * one[2] for one in terms) for i, j in ((0, 0), (0, 1), (1, 1))
        )
        variance = ratio_variance(n, y, m, (yy, ym, mm))
        return asked.spread(variance, n, df=n - 1.0, methods=("t",))
    if average == "samples":
        known = [(Fraction(y, m), count) for y, m, count in terms if m]
        return of_values(asked, known)
    why = f"labels of one row are not independent, and how is not kept; {USERS}"
    return asked.none(why, n=n, formula=False)


def of_values(asked: Asked, values: Sequence[tuple[Fraction, int]]) -> Interval:
    """Of a mean over rows, from the different values and how many rows have each."""
    n = sum(count for _, count in values)
    first = sum((value * count for value, count in values), Fraction(0))
    squares = sum((value * value * count for value, count in values), Fraction(0))
    return asked.spread(mean_variance(n, first, squares), n, df=n - 1.0, methods=("t",))
