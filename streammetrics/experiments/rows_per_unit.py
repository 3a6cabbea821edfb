"""Rows per unit of both arms, beside every mean and rate per row.

People decide about units, such as users, and rows are counted. Where the arms differ in the rows of
a unit, a mean per row compares other things than a mean per unit, and may move against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from streammetrics.estimators.estimator import NoInterval
from streammetrics.present.notebook import Shown
from streammetrics.present.view import View

ALPHA: Final = 0.001  # of all looks together
_OF_ERROR: Final = View(estimator=NoInterval("it is itself a measure of error", of_error=True))
_DIGITS: Final = range(3, 17)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowsPerUnit(Shown):
    """Rows per unit of control and treatment; nan if units or rows are not known.

    log_e: the evidence of this look that they differ, valid at all looks together. reason: why it
    is not known, or "".
    """

    control: float = field(metadata=_OF_ERROR)
    treatment: float = field(metadata=_OF_ERROR)
    log_e: float = field(default=0.0, metadata=_OF_ERROR)
    reason: str = ""

    @property
    def differ(self) -> bool:
        """Whether they differ, at all looks together at 0.1 %."""
        return self.log_e >= -math.log(ALPHA)

    @property
    def text(self) -> str:
        """That they differ, and by how much; "" if that is not known.

        >>> RowsPerUnit(4.0812, 4.8799, 20.0).text
        'rows per unit differ (4.08 and 4.88)'
        """
        if not self.differ:
            return ""
        texts = [(f"{self.control:.{n}g}", f"{self.treatment:.{n}g}") for n in _DIGITS]
        a, b = next((pair for pair in texts if pair[0] != pair[1]), texts[-1])
        return f"rows per unit differ ({a} and {b})"
