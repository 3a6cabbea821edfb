from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from streammetrics.kernels import term_means
from streammetrics.kernels.term_ends import Ends, Weighted, halves, mean_ends, term_ends
from streammetrics.kernels.term_means import Term

TERMS: dict[str, Term] = {
    "precision": term_means.precision,
    "recall": term_means.recall,
    "specificity": term_means.specificity,
    "jaccard": term_means.jaccard,
    "f_2": term_means.f_beta(Fraction(4)),
    "f_0": term_means.f_beta(Fraction(0)),
    "f_alpha": term_means.f_alpha(Fraction(1, 3)),
}


def may_be(units: int, rounded: int) -> list[int]:
    """In quarters what rows of so many units weigh, if so many were rounded: each way, or not."""
    low, high = halves(units, rounded)
    return sorted({2 * low, 4 * units, 2 * high})


@pytest.mark.parametrize("name", TERMS)
def test_a_term_is_between_its_ends_at_every_corner_and_reaches_both(name: str) -> None:
    term, random = TERMS[name], Random(1)
    for _ in range(200):
        units = [random.choice((0, 0, 1, 2, 9)) for _ in range(4)]
        rounded = [random.choice((0, 0, 1, 3)) for _ in range(4)]
        values = []
        for weights in product(*map(may_be, units, rounded)):
            top, bottom = term(weights)  # type: ignore[arg-type]
            values.append(top / bottom if bottom else math.nan)
        ends = term_ends(term, tuple(units), tuple(rounded))  # type: ignore[arg-type]
        defined = [value for value in values if not math.isnan(value)]
        if not defined:
            assert math.isnan(ends.low) and math.isnan(ends.high) and not ends.sure
            continue
        assert ends.sure == (len(defined) == len(values))
        assert ends.low <= min(defined) <= math.nextafter(ends.low, 2)
        assert ends.high >= max(defined) >= math.nextafter(ends.high, -1)


def test_what_has_a_unit_weighs_half_of_it_or_more() -> None:
    assert halves(1, 1) == (1, 3) and halves(1, 5) == (1, 7) and halves(4, 3) == (5, 11)


@pytest.mark.parametrize("zero", [math.nan, 0.0, 1.0])
def test_a_mean_is_between_its_ends_at_every_corner_and_reaches_both(zero: float) -> None:
    random = Random(2)
    for _ in range(300):
        terms = []
        for _ in range(random.choice((1, 2, 3))):
            low = random.choice((0.0, 0.25, 0.5, 1.0))
            least = random.choice((0, 0, 1, 2))
            sure = random.random() < 0.6
            ends = Ends(low, random.choice((low, 1.0)), sure)
            ends = random.choice((ends, ends, ends, Ends(math.nan, math.nan, False)))
            terms.append(Weighted(ends, least, least + random.choice((0, 0, 1, 4))))
        found, corners = mean_ends(terms, zero), []
        for corner in product(*map(_corners, terms)):
            kept = [
                (zero if value is None else value, weight)
                for value, weight in corner
                if value is not None or not math.isnan(zero)
            ]
            total = sum(weight for _, weight in kept)
            some = sum((Fraction(v) * w for v, w in kept), Fraction(0))
            corners.append(float(some / total) if total else zero)
        defined = [value for value in corners if not math.isnan(value)]
        assert math.isnan(found.low) == math.isnan(found.high) == (not defined)
        if defined:
            assert found.low <= min(defined) <= math.nextafter(found.low, 2), (terms, zero)
            assert found.high >= max(defined) >= math.nextafter(found.high, -1), (terms, zero)
            assert found.sure == (len(defined) == len(corners))


def _corners(term: Weighted) -> list[tuple[float | None, int]]:
    ends, least, most = term
    values = [None] if math.isnan(ends.low) else [ends.low, ends.high]
    values += [] if ends.sure else [None]
    return [(value, weight) for value in values for weight in (least, most)]
