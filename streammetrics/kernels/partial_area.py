"""The area under the ROC curve from FPR 0 to a limit, as a fraction of integers.

(McClish 1989, Medical Decision Making 9, 190-195.) Between two points the curve is straight, as
tied pairs count one half. Where a step is a bucket, the area in its box is least with the
negatives first and greatest with the positives first.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from streammetrics.kernels.rounding import ratio, rounded_down, rounded_up
from streammetrics.kernels.steps import UNDEFINED, Figure, Ints, Steps


def partial_area(found: Steps, max_fpr: Fraction, *, standardized: bool, bounded: bool) -> Figure:
    """The area over FPR in [0, max_fpr], 0 < max_fpr <= 1; nan with one class only.

    standardized: (1 + (area - m) / (max_fpr - m)) / 2 with m = max_fpr²/2, the area of chance:
    1/2 for chance, 1 for a perfect order. Correctly rounded, ends rounded outwards.

    >>> import numpy as np
    >>> from streammetrics.kernels.steps import steps
    >>> perfect = steps(np.array([2, 0]), np.array([0, 1]))
    >>> partial_area(perfect, Fraction(1, 4), standardized=False, bounded=False)[0]
    0.25
    """
    if not found.pairs:
        return UNDEFINED
    limit = max_fpr * found.negatives
    # The last place at or before the limit.
    last = int(np.searchsorted(found.fp, limit.numerator // limit.denominator, "right")) - 1
    before, after = found.tp[:last], found.tp[1 : last + 1]
    widths = found.fp[1 : last + 1] - found.fp[:last]
    t0, f0 = int(found.tp[last]), int(found.fp[last])
    rest = limit - f0  # of the step that the limit cuts, of which `part` is before it
    p = n = 0
    if rest:
        p, n = int(found.tp[last + 1]) - t0, int(found.fp[last + 1]) - f0
    slope = Fraction(p, n) if n else Fraction(0)

    def standard(twice: Fraction) -> Fraction:
        area = twice / (2 * found.pairs)
        if not standardized:
            return area
        chance = max_fpr * max_fpr / 2
        return (1 + (area - chance) / (max_fpr - chance)) / 2

    low, high = 2 * _area(found, before, widths), 2 * _area(found, after, widths)
    value = standard(Fraction(low + high, 2) + rest * (2 * t0 + rest * slope))
    nearest = ratio(value, 1)
    if not bounded:
        return nearest, nearest, nearest
    worst, best = standard(low + 2 * rest * t0), standard(high + 2 * rest * (t0 + p))
    return (
        nearest,
        rounded_down(worst.numerator, worst.denominator),
        rounded_up(best.numerator, best.denominator),
    )


def _area(found: Steps, heights: Ints, widths: Ints) -> int:
    if found.pairs >= 1 << 63:
        heights, widths = heights.astype(object), widths.astype(object)
    return int((heights * widths).sum())
