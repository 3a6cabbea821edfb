"""Self-information: rounded once, and 0 where it is 0."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import pytest

from streammetrics.kernels.exact.elementary import mean_self_information


@pytest.mark.parametrize(
    ("counts", "lists", "bits"),
    [
        ({1: 5}, 1, 0.0),
        ({7: 3}, 7, 0.0),
        ({1: 1}, 8, 3.0),
        ({2: 4, 8: 1}, 8, 1.0),
        ({1: 1}, 1 << 62, 62.0),
    ],
)
def test_powers_of_two_have_whole_bits(counts: dict[int, int], lists: int, bits: float) -> None:
    assert mean_self_information(counts, lists) == bits


def test_nothing_shown_is_undefined() -> None:
    assert math.isnan(mean_self_information({}, 3))


def test_a_count_that_is_nearly_all_keeps_its_digits() -> None:
    lists = (1 << 62) + 12345
    found = mean_self_information({lists - 1: 1}, lists)
    with localcontext(prec=90):
        exact = (Decimal(lists) / (lists - 1)).ln() / Decimal(2).ln()
        assert found == float(exact)


def test_the_order_of_counts_and_the_callers_decimals_do_not_matter() -> None:
    counts = {3: 4, 1: 9, 11: 2}
    one = mean_self_information(counts, 13)
    with localcontext(prec=3):
        assert mean_self_information(dict(reversed(counts.items())), 13) == one
