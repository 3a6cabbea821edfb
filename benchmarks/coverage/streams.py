"""Two arms of independent users that grow from look to look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.draws import add_rows
from streammetrics import Ratio
from streammetrics.experiments import Comparison, compare

LOOKS: Final = 200


def linear(n: int, looks: int = LOOKS) -> NDArray[np.int64]:
    """New units at each look, [looks], of n in all: equally many each time."""
    return _new(np.linspace(0, n, looks + 1))


def logarithmic(n: int, looks: int = LOOKS, first: int = 100) -> NDArray[np.int64]:
    """As `linear`, but the total grows by the same factor at each look."""
    return _new(np.concatenate([[0.0], np.geomspace(first, n, looks)]))


def _new(units: NDArray[np.float64]) -> NDArray[np.int64]:
    """The new units at each look, from the totals before the first look and at each look."""
    increments: NDArray[np.int64] = np.diff(units.round()).astype(np.int64)
    return increments


def rate_looks(
    rng: np.random.Generator,
    sizes: NDArray[np.int64],
    rates: tuple[float, float],
    share: float = 0.5,
) -> Iterator[Comparison]:
    """The comparison of two rates at every look; looks at which an arm has no unit are left out.

    sizes: new units of an arm at each look if the arms were equal; share: of the treatment.
    """
    control, treatment = Ratio(), Ratio()
    b = rng.binomial(2 * sizes, share) if share != 0.5 else sizes
    a = 2 * sizes - b
    clicks = rng.binomial(a, rates[0]), rng.binomial(b, rates[1])
    minima = np.minimum(np.cumsum(a), np.cumsum(b))
    for i, least in enumerate(minima.tolist()):
        add_rows(control, clicks[0][i], a[i])
        add_rows(treatment, clicks[1][i], b[i])
        if least:
            yield compare(control, treatment)


def information(n: int, p: float, share: float = 0.5) -> float:
    """1 / variance of a difference of two rates p, of 2 n units with the treated `share`."""
    return 2 * n * share * (1 - share) / (p * (1 - p))
