"""OneVsRestBetween: averages over classes or labels where the weights of rows were rounded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TypeAlias

from streammetrics.kernels import term_means
from streammetrics.kernels.term_ends import Ends, Weighted, halves, mean_ends, term_ends
from streammetrics.kernels.term_means import Hits, Term
from streammetrics.results.averaged import Averaged
from streammetrics.results.bounded import Bounded
from streammetrics.results.one_vs_rest import OneVsRest
from streammetrics.results.rates_between import RatesBetween, with_doubt

Figures: TypeAlias = tuple[Bounded, ...]


class OneVsRestBetween(Averaged[Bounded, Figures]):
    """The averages of counts of which the weights of some rows were rounded, by half a unit each.

    Each is `Bounded` by what the rows may weigh; where `average` is None they are a tuple. Classes
    that may be undefined are in the ends of a mean or not, whichever is further out. Where the
    value is undefined it is nan, and the ends are those of what it may be if it is defined.
    """

    @property
    @abstractmethod
    def _value(self) -> OneVsRest: ...

    @property
    @abstractmethod
    def _rounded(self) -> OneVsRest:
        """The same counts of the rows whose weight was rounded, a row each."""

    @property
    def rows_rounded(self) -> int:
        """Rows whose weight was rounded, those that were to nothing included."""
        return self._rounded._units

    def rates(self, number: int) -> RatesBetween:
        """The RatesBetween of one class or label, by its number: it against the rest."""
        at, found = self._value._number(number), self._value.rates(number)
        return with_doubt(found, found, found, self._rounded._hits[at], self.rows_rounded)

    def _each(self, term: Term, zero_division: float) -> Figures:
        values = self._value._each(term, zero_division).tolist()
        ends = (term_ends(term, *pair).or_else(zero_division) for pair in self._pairs())
        return tuple(bounded(*figure) for figure in zip(values, ends, strict=True))

    def _mean(self, term: Term, average: str, zero_division: float) -> Bounded:
        value = self._value._mean(term, average, zero_division)
        if average == "micro":
            ends = term_ends(term, self._value._summed, self._rounded._summed)
            return bounded(value, ends.or_else(zero_division))
        plain = average == "macro"
        terms = (
            Weighted(
                term_ends(term, hits, rounded),
                *((1, 1) if plain else halves(hits[0] + hits[2], rounded[0] + rounded[2])),
            )
            for hits, rounded in self._pairs()
        )
        return bounded(value, mean_ends(terms, zero_division))

    def _pairs(self) -> Iterator[tuple[Hits, Hits]]:
        return zip(self._value._hits, self._rounded._hits, strict=True)


def bounded(value: float, ends: Ends) -> Bounded:
    """The value between its ends."""
    return Bounded(value, ends.low, ends.high)


def share(value: float, parts: tuple[int, int], rounded: tuple[int, int]) -> Bounded:
    """A share: the units of a part and of the rest, and how many rows of each were rounded."""
    return bounded(value, term_ends(term_means.precision, (*parts, 0, 0), (*rounded, 0, 0)))
