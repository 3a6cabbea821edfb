"""The information in being shown, in bits, the same bits of the float on every processor."""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping
from typing import Final

_DIGITS: Final = 60  # two counts below 2**63 may have logarithms that agree in 19 of them


def mean_self_information(counts: Mapping[int, int], lists: int) -> float:
    """Σ m c log2(lists / c) / Σ m c over m items that c of the lists show; nan of no items.

    counts: c -> m, with 0 < c <= lists. Logarithms are taken with `decimal`, whose are correctly
    rounded, so the value is too (but for ties that no known input makes). A count of all lists
    gives 0 exactly.

    >>> mean_self_information({1: 2, 2: 1}, 4)  # (1·2 + 1·2 + 2·1) / 4
    1.5
    """
    shown = sum(count * items for count, items in counts.items())
    if not shown:
        return math.nan
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        whole = decimal.Decimal(lists).ln()
        nats = decimal.Decimal(0)
        for count, items in sorted(counts.items()):
            nats += count * items * (whole - decimal.Decimal(count).ln())
        return float(nats / (shown * decimal.Decimal(2).ln()))
