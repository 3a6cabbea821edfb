"""ExactCurve: a ScoreCurve whose scores are read from a state when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from streammetrics.kernels.curves.area import Pairs
from streammetrics.kernels.inference.area_interval import Placements
from streammetrics.results.score_curve import Points, ScoreCurve


class ExactCurve(ScoreCurve[float]):
    """A ScoreCurve of every different score, ten times the size of its state.

    The area and its interval do not need the points. `points` returns ascending scores [k] and
    counts [2, k]; every call must return the same. placed: the placements of the same rows, without
    the points; None if they are to be made from these.

    >>> import numpy as np
    >>> curve = ExactCurve(Pairs(1, 0, 1, 1), 2, lambda: (np.arange(2.0), np.eye(2, dtype=int)))
    >>> curve.auc
    1.0
    >>> curve.scores.tolist()
    [0.0, 1.0]
    """

    def __init__(
        self,
        found: Pairs,
        rows: int,
        points: Callable[[], Points],
        weight_unit: Fraction = Fraction(1),
        rows_rounded: int | None = None,
        placed: Callable[[], Placements] | None = None,
    ) -> None:
        # The parent is a frozen dataclass: its fields are set in `__dict__`.
        self.__dict__.update(_pairs=found, exact=True, rows=rows, reason="", _points=points)
        self.__dict__.update(weight_unit=weight_unit, rows_rounded=rows_rounded, _ends=None)
        self.__dict__.update(_placed=placed)

    def __reduce__(self) -> tuple[object, ...]:
        # `points` reads a state; a copy and a pickle hold what it returned.
        more = self.weight_unit, self.rows_rounded
        return (type(self), (self._pairs, self.rows, partial(tuple, self._held), *more))
