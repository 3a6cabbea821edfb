"""Forms: in what other forms the rows of a metric can be counted, as the metric declares it.

Groups of users count scores more coarsely, `drift` compares the values of two states, and SQL
counts cells. Who does so asks the metric, and knows no class of metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.batch import Batch

DriftOf: TypeAlias = Literal["", "values", "scores"]
Kinds: TypeAlias = NDArray[np.integer[Any]]


class ScoreForm(NamedTuple):
    """How the scores of rows are counted.

    on_grid: the metric that counts the same rows in buckets, with settings of the same names.
    kinds: how many kinds of rows are counted apart; kind_of: of checked rows, each one's, [n].
    classes: how many classes have a score in each row, and a curve each; 0 for one score a row.
    score_type: in which all scores are kept, or None if they are counted on the metric's own grid.
    """

    on_grid: type
    kinds: int
    kind_of: Callable[[Batch], Kinds]
    classes: int = 0
    score_type: str | None = None


class PlainCells(NamedTuple):
    """Cells of scores that floats tell apart exactly, so that SQL can count rows for `from_counts`.

    threshold: cell 1 has the scores from it on, cell 0 the others; None: there are `buckets` of
    equal width over [0, 1], of which the last one has 1 too.
    """

    threshold: float | None = None
    buckets: int = 0


def labels_of(rows: Batch) -> Kinds:
    """The labels of rows as their kinds.

    >>> labels_of(Batch(2, {"labels": np.array([1, 0])})).tolist()
    [1, 0]
    """
    labels: Kinds = rows.labels
    return labels


class Forms:
    """The forms of a metric: a base class of all metrics, whose answers are that there are none.

    _drift_of: what `drift` compares of two states, the values of rows or their scores by label.
    _tells_units: whether the metric tells users apart by itself, so that its intervals are theirs.
    _shows_units: whether a row of zeros shows that its unit was there, so that it counts.
    """

    _drift_of: ClassVar[DriftOf] = ""
    _tells_units: ClassVar[bool] = False
    _shows_units: ClassVar[bool] = False

    def _score_form(self) -> ScoreForm | None:
        """How groups of users count the scores of the metric, if it is of scores."""
        return None

    def _coarse_in_groups(self) -> Self | None:
        """The empty metric that each group of users keeps for a variance, if that is another one of
        less resolution."""
        return None

    def _plain_cells(self) -> PlainCells | None:
        """The cells in which SQL can count the rows of the metric."""
        return None
