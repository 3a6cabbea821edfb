"""The curve of an exact state: its area is known at once, its points are counted when asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.area import Pairs
from streammetrics.results.score_curve import ScoreCurve

Points: TypeAlias = tuple[NDArray[np.floating], NDArray[np.int64]]


class ExactCurve(ScoreCurve):
    """A ScoreCurve of every different score, ten times the size of the state that it comes from.

    Nobody who wants the area alone pays for the points. `points` gives scores [k], ascending, and
    counts [2, k]; it must give the same whenever it is called.

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
        rounded: tuple[int, int] | None = None,
    ) -> None:
        # A frozen value: what is fixed goes where the fields of the parent lie.
        found = replace(found, rounded=rounded or (0, 0))
        self.__dict__.update(_pairs=found, exact=True, rows=rows, reason="", _points=points)
        self.__dict__.update(weight_unit=weight_unit, _rounded=rounded)

    @cached_property
    def _held(self) -> Points:
        points: Callable[[], Points] = self.__dict__["_points"]
        return points()

    @cached_property
    def scores(self) -> NDArray[np.floating]:
        """Each different score, ascending [k]."""
        return self._held[0]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Negatives and positives at each of them [2, k]."""
        return self._held[1]
