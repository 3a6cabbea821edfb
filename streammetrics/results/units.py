"""What results say of weights: rows are rows, and weights are counted in units."""

from __future__ import annotations

from fractions import Fraction


def units_counted(units: int, rows: int, unit: Fraction) -> int | None:
    """The units where they say more than the rows do; None where every row weighs 1."""
    return None if units == rows and unit == 1 else units
