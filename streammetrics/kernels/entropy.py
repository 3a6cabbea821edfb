"""The entropy of a share of two counts, the same bits on every processor."""

from __future__ import annotations

import decimal
from fractions import Fraction
from typing import Final

_DIGITS: Final = 60  # of which counts below 2**63 may cost 40


def binary_entropy(positives: int, negatives: int) -> Fraction:
    """-q ln q - (1 - q) ln(1 - q) with q = positives / (positives + negatives), to 20 digits more
    than a float has; 0 where one of the two is 0.

    Logarithms are taken with `decimal`, whose digits do not depend on the processor.

    >>> float(binary_entropy(1, 1))  # ln 2
    0.6931471805599453
    """
    if not positives or not negatives:
        return Fraction(0)
    context = decimal.Context(prec=_DIGITS)
    n = positives + negatives
    nats = decimal.Decimal(0)
    for count, sign in ((n, 1), (positives, -1), (negatives, -1)):
        term = context.multiply(decimal.Decimal(sign * count), context.ln(decimal.Decimal(count)))
        nats = context.add(nats, term)
    return Fraction(nats) / n
