"""OneVsRest: what each class or label says as one against the rest, and their averages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.plain_values import whole
from streammetrics.kernels import term_means
from streammetrics.kernels.term_means import Hits, Term
from streammetrics.results.averaged import Averaged
from streammetrics.results.interval import HasIntervals
from streammetrics.results.rates import Rates
from streammetrics.results.units import units_counted

Floats: TypeAlias = NDArray[np.float64]


class OneVsRest(Averaged[float, Floats], HasIntervals):
    """The averages of exact counts, in units of weight: `weight_unit` each.

    Without weights these are rows. Each value is a ratio of integers, rounded once; where
    `average` is None they are an array.
    """

    weight_unit: Fraction
    _excess: int  # of units over rows

    @property
    @abstractmethod
    def _units(self) -> int: ...

    @property
    @abstractmethod
    def _hits(self) -> Sequence[Hits]: ...

    @property
    def rows(self) -> int:
        """All that were counted; those of weight zero are not."""
        return self._units - self._excess

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None where every row weighs 1, so that they are the rows."""
        return units_counted(self._units, self.rows, self.weight_unit)

    @property
    def weight(self) -> Fraction:
        """The weight of all rows together, exactly."""
        return self._units * self.weight_unit

    def rates(self, number: int) -> Rates:
        """The Rates of one class or label, by its number: it against the rest.

        With them its NPV, MCC and kappa, and its table in both layouts.
        """
        return Rates(*self._hits[self._number(number)], self.weight_unit, self._excess)

    def _number(self, number: int) -> int:
        """That of a class or label as an int."""
        found = whole(number)
        if found is None or not 0 <= found < len(self._hits):
            raise self._refused(f"a number from 0 to {len(self._hits) - 1}", number, "rates")
        return found

    def _each(self, term: Term, zero_division: float) -> Floats:
        values = [term_means.value(term(hits), zero_division) for hits in self._hits]
        return np.array(values, np.float64)

    def _mean(self, term: Term, average: str, zero_division: float) -> float:
        if average == "micro":
            return term_means.value(term(self._summed), zero_division)
        plain = average == "macro"
        return term_means.mean(
            ((term(hits), 1 if plain else hits[0] + hits[2]) for hits in self._hits),
            zero_division,
        )

    @property
    def _summed(self) -> Hits:
        tp, fp, fn, tn = (sum(part) for part in zip(*self._hits, strict=True))
        return tp, fp, fn, tn
