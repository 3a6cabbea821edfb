"""Cases of many classes and labels where rows have weights, with zeros and with fractions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from hypothesis import strategies as st

from streammetrics import MulticlassAUC, MulticlassConfusion, MultilabelConfusion
from streammetrics.testing import Case, strategies
from tests import many_classes_cases as plain
from tests.many_classes_cases import CLASSES, table
from tests.oracles import many_classes as brute
from tests.oracles import weighted_classes
from tests.oracles.weighted import in_units
from tests.weighted_cases import rounded

Rows = Sequence[Any]
Oracle = Callable[[Rows], dict[str, Any]]

_classes = st.integers(0, CLASSES - 1)
_whole = st.sampled_from((0, 1, 1, 2, 5))
_tenths = st.sampled_from((0.0, 0.1, 0.3, 0.5))  # few: laws double them 53 times
_fifths = st.sampled_from((0.0, 0.2, 0.4, 1.0, 1.2))  # in quarters none is rounded to nothing
_TENTH, _QUARTER = Fraction(1, 10), Fraction(1, 4)
_BAD: Sequence[object] = ([1, -1], [1, float("nan")], [1, 0.25], [1, 2, 3], [1, "1"], [[1]])


def _columns(name: str, flags: bool = False) -> Callable[[Rows], Mapping[str, object]]:
    def columns(rows: Rows) -> Mapping[str, object]:
        truth = [row[0] for row in rows]
        return {
            "labels": table(truth, 2, int) if flags else truth,
            name: table([row[1] for row in rows], 2 if flags else CLASSES),
            "weights": [row[2] for row in rows],
        }

    return columns


def _refused(name: str, flags: bool = False) -> list[Mapping[str, object]]:
    truth, scores = ([[0, 1], [1, 1]], [[0.5, 0.5]] * 2) if flags else ([0, 1], [[0.1] * 3] * 2)
    return [
        *({"labels": truth, name: scores, "weights": weights} for weights in _BAD),
        {"labels": [0, 7], name: scores, "weights": [1, 1]},
    ]


def _always_refused(name: str, flags: bool = False) -> list[Mapping[str, object]]:
    return [bad for bad in _refused(name, flags) if bad["weights"] != [1, 0.25]]


def _of_scores(unit: Fraction) -> Oracle:
    return lambda rows: weighted_classes.confusion(
        [(t, brute.predicted(s), w) for t, s, w in in_units(rows, unit)], CLASSES
    )


def _of_classes(unit: Fraction) -> Oracle:
    return lambda rows: weighted_classes.confusion(in_units(rows, unit), CLASSES)


def _of_labels(unit: Fraction) -> Oracle:
    return lambda rows: weighted_classes.labels(
        [(t, [int(v >= 0.5) for v in s], w) for t, s, w in in_units(rows, unit)], 2
    )


def _of_curves(unit: Fraction) -> Oracle:
    return lambda rows: weighted_classes.mean_areas(in_units(rows, unit))


def _case(metric: Any, rows: Any, columns: Any, oracle: Oracle, refused: Any) -> Case[Any]:
    settings = {**metric.settings(), "weight_unit": Fraction(1, 20), "round_weights": False}
    variants = (type(metric)(**settings), MulticlassConfusion(4), MultilabelConfusion(3))
    suffix = ", exact" if metric.settings().get("exact") else ""
    suffix += ", rounded" if metric.round_weights else ""
    name = f"{type(metric).__name__}{suffix}, of weights in {metric.settings()['weight_unit']}"
    return Case(metric, rows, columns, refused, variants, oracle, name)


_scores = st.tuples(*[strategies.scores()] * CLASSES)
_shares = st.tuples(*[strategies.probabilities()] * CLASSES)
_truths = st.tuples(*[strategies.labels()] * 2)
_pairs = st.tuples(*[strategies.scores()] * 2)
_ONE = Fraction(1)

WEIGHTED_CLASSES = [
    _case(
        MulticlassConfusion(CLASSES, weight_unit="0.1"),
        st.tuples(_classes, _classes, _tenths),
        strategies.columns("labels", "predictions", "weights"),
        _of_classes(_TENTH),
        _refused("predictions"),
    ),
    _case(
        MulticlassConfusion(CLASSES, top_k=(1, 2)),
        st.tuples(_classes, _scores, _whole),
        _columns("predictions"),
        _of_scores(_ONE),
        _refused("predictions"),
    ),
    _case(
        MultilabelConfusion(2, weight_unit=_TENTH),
        st.tuples(_truths, _pairs, _tenths),
        _columns("scores", flags=True),
        _of_labels(_TENTH),
        _refused("scores", flags=True),
    ),
    _case(
        MulticlassAUC(CLASSES, weight_unit="1/10"),
        st.tuples(_classes, _shares, _tenths),
        _columns("scores"),
        _of_curves(_TENTH),
        _refused("scores"),
    ),
    _case(
        MulticlassAUC(CLASSES, exact=True),
        st.tuples(_classes, _scores, _whole),
        _columns("scores"),
        _of_curves(_ONE),
        _refused("scores"),
    ),
    _case(
        MulticlassConfusion(CLASSES, top_k=(1, 2), weight_unit="1/4", round_weights=True),
        st.tuples(_classes, _scores, _fifths),
        _columns("predictions"),
        rounded(_of_scores(_QUARTER), _QUARTER),
        _always_refused("predictions"),
    ),
    _case(
        MultilabelConfusion(2, weight_unit="1/4", round_weights=True),
        st.tuples(_truths, _pairs, _fifths),
        _columns("scores", flags=True),
        rounded(_of_labels(_QUARTER), _QUARTER),
        _always_refused("scores", flags=True),
    ),
    *(
        _case(
            MulticlassAUC(CLASSES, exact=exact, weight_unit="1/4", round_weights=True),
            st.tuples(_classes, _shares, _fifths),
            _columns("scores"),
            rounded(_of_curves(_QUARTER), _QUARTER),
            _always_refused("scores"),
        )
        for exact in (False, True)
    ),
]

_SCORES = ((0.5, 0.25, 0.5), (0.1, 0.2, 0.3))
_FLAGS = list(product(((0, 0), (0, 1), (1, 1)), ((0.5, 0.0), (1.0, 0.75))))


def _small(case: Case[Any]) -> tuple[Rows, int]:
    """Few different rows of a case here, to make every small multiset of."""
    unit = case.empty.settings()["weight_unit"]
    weights_by_unit: Mapping[Any, tuple[float, ...]] = {
        1: (0, 1, 3),
        Fraction(1, 4): (0.0, 0.2, 1.0),
    }
    weights = weights_by_unit.get(unit, (0.0, 0.5, 1.2))
    if isinstance(case.empty, MultilabelConfusion):
        return [(*row, w) for row, w in product(_FLAGS, weights)], 2
    if isinstance(case.empty, MulticlassConfusion) and unit == _TENTH:
        return list(product(range(CLASSES), range(CLASSES), weights)), 2
    return list(product(range(CLASSES), _SCORES, weights)), 2


# The different rows of which every small multiset is tried, and how many of them at most.
SMALL_ROWS: Mapping[str, tuple[Rows, int]] = {
    **plain.SMALL_ROWS,
    **{str(case): _small(case) for case in WEIGHTED_CLASSES},
}
