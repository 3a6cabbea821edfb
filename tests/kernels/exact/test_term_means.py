from __future__ import annotations

import math
from fractions import Fraction

from streammetrics.kernels.exact import term_means


def test_a_mean_of_many_fractions_is_rounded_once() -> None:
    terms = [((1, n), n % 3 + 1) for n in range(1, 400)]
    exact = sum(Fraction(w, n) for (_, n), w in terms) / sum(w for _, w in terms)
    assert term_means.mean(terms, math.nan) == float(exact)


def test_what_is_0_over_0_leaves_with_its_weight_or_is_what_is_said() -> None:
    terms = [((0, 0), 7), ((1, 2), 1)]
    assert term_means.mean(terms, math.nan) == 0.5
    assert term_means.mean(terms, 0) == 0.5 / 8
    assert term_means.mean(terms, 1) == 7.5 / 8


def test_a_mean_of_no_weight_is_what_0_over_0_is() -> None:
    assert math.isnan(term_means.mean([((1, 2), 0)], math.nan))
    assert term_means.mean([], 1) == 1
