"""The probability that a user examines a rank, and how evenly items are examined.

Exposure is that of Singh and Joachims (2018, "Fairness of exposure in rankings", KDD, section 3.1):
the sum over lists of the probability that the rank of the item is examined.

A click at a rank that few users examine stands for more clicks. So the mean of a measure over
clicks, each with its list, weighs by inverse propensities (Wang, Bendersky, Metzler and Najork
2016, "Learning to rank with selection bias in personal search", SIGIR, section 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import exact
from streammetrics.core.errors import SettingsError, shown
from streammetrics.kernels.exact.double_double import Pair
from streammetrics.kernels.ranking.rank_tables import discounts

Ints = NDArray[np.int64]

Examination: TypeAlias = str | Sequence[float | Fraction]

NAMED: Final = ("log", "reciprocal", "uniform")
MAX_RANKS: Final = 1 << 10  # few users examine more
_MOST_DIGITS: Final = 100  # of a fraction in a stored setting


def examination(model: str, k: int) -> list[Fraction]:
    """The probabilities of the first k ranks i: "log", 1/log2(i + 1) to 60 binary digits;
    "reciprocal", 1/i; "uniform", 1.

    >>> examination("reciprocal", 3)
    [Fraction(1, 1), Fraction(1, 2), Fraction(1, 3)]
    """
    if model == "log":
        upper, lower = discounts(k)
        pairs = zip(upper[:k].tolist(), lower[:k].tolist(), strict=True)
        return [Fraction(high) + Fraction(low) for high, low in pairs]
    return [Fraction(1, i if model == "reciprocal" else 1) for i in range(1, k + 1)]


def exposures(
    items: Ints, ranks: Ints, counts: Ints, weights: Sequence[Fraction]
) -> tuple[Ints, list[Fraction]]:
    """Σ count · weight of each item that occurs, and these items, ascending.

    items, ranks, counts: [m], by item: how often an item was at a 0-based rank.
    """
    if not len(items):
        return items, []
    unit = Fraction(1, int(np.lcm.reduce([w.denominator for w in weights], dtype=object)))
    whole = np.array([int(w / unit) for w in weights], dtype=object)
    firsts = np.flatnonzero(np.diff(items, prepend=-1))
    sums = np.add.reduceat(counts.astype(object) * whole[ranks], firsts)
    return items[firsts], [total * unit for total in sums.tolist()]


def gini(values: Sequence[Fraction], n: int) -> Fraction | None:
    """Σ (2 i - n - 1) x_i / (n Σ x_i) over values x_1 <= ... <= x_n, none negative; None if all are
    0. Values that are not given are 0.

    >>> gini([Fraction(1), Fraction(3)], 4)
    Fraction(5, 8)
    """
    total = sum(values, Fraction(0))
    if not total:
        return None
    first = n - len(values) + 1
    terms = (x * (2 * i - n - 1) for i, x in enumerate(sorted(values), first))
    return sum(terms, Fraction(0)) / (n * total)


def inverse_propensities(examination: Sequence[float | Fraction]) -> Pair:
    """0, for no rank, and 1/p of each rank, to twice the digits of a double; [ranks + 1].

    >>> inverse_propensities([Fraction(1), Fraction(1, 4)]).high.tolist()
    [0.0, 1.0, 4.0]
    """
    exact = [Fraction(0), *(1 / Fraction(p) for p in examination)]
    high = [float(weight) for weight in exact]
    low = [float(weight - Fraction(top)) for weight, top in zip(exact, high, strict=True)]
    return Pair(np.array(high), np.array(low))


# The setting `examination`, which the user declares.


def checked_examination(
    value: object, where: str, *, allows_names: bool = True, least: int = 1
) -> str | tuple[Fraction, ...]:
    """The name of a model, or the probabilities of the first ranks; a float is the decimal that it
    is written as. least: the number of ranks that it must have at least."""
    if allows_names and isinstance(value, str) and value in NAMED:
        return value
    ranks = list(value) if isinstance(value, np.ndarray) and value.ndim == 1 else value
    probabilities = [_decimal(p) for p in ranks] if isinstance(ranks, (list, tuple)) else []
    probabilities = probabilities if len(probabilities) <= MAX_RANKS else []
    if not probabilities or any(p is None or not 0 < p <= 1 for p in probabilities):
        models = ", ".join(f'"{name}"' for name in NAMED) + ", or " if allows_names else ""
        raise SettingsError(
            expected=f"{models}the probability of each rank, above 0 and up to 1",
            got=shown(value),
            where=where,
            hint="pass them for the ranks from 1 on, such as (1, 0.6, 0.4)",
        )
    if any(p is not None and p.denominator >= 10**_MOST_DIGITS for p in probabilities):
        raise SettingsError(
            expected=f"probabilities of at most {_MOST_DIGITS} digits",
            got=shown(value),
            where=where,
            hint="round them: nobody examines a rank of so small a probability",
        )
    if len(probabilities) < least:
        raise SettingsError(
            expected=f"probabilities of the {least} ranks that count",
            got=f"{len(probabilities)}",
            where=where,
            hint="pass one for each rank, or a smaller k",
        )
    return tuple(p for p in probabilities if p is not None)


def examined(value: object, k: int, where: str) -> Sequence[Fraction]:
    """The probabilities of the first k ranks, of a setting or of an argument."""
    checked = checked_examination(value, where, least=k)
    return examination(checked, k) if isinstance(checked, str) else checked[:k]


def _decimal(value: object) -> Fraction | None:
    written = isinstance(value, (float, np.floating)) and np.isfinite(value)
    return exact(Fraction(str(value)) if written else value)
