"""Calibration and regression by their definitions, in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Row = tuple[int, float, Fraction | int]


def _over(a: Fraction | int, b: Fraction | int) -> Fraction | None:
    return Fraction(a) / Fraction(b) if b else None


def in_bin(score: float, i: int, bins: int) -> bool:
    """Whether i/bins <= score < (i + 1)/bins, between the doubles nearest to these."""
    return i / bins <= score and (score < (i + 1) / bins or i == bins - 1)


def figures(rows: Sequence[Row], bins: int, unit: Fraction = Fraction(1)) -> dict[str, Any]:
    """Rows (label, score, weight)."""
    rows = [(y, s, w) for y, s, w in rows if w]
    n = sum(w for _, _, w in rows)
    ones = sum(w for y, _, w in rows if y)
    predicted = sum(Fraction(s) * w for _, s, w in rows)
    squares = sum((Fraction(s) - y) ** 2 * w for y, s, w in rows)
    gaps = []
    for i in range(bins):
        bin_rows = [row for row in rows if in_bin(row[1], i, bins)]
        if bin_rows:
            size = sum(w for _, _, w in bin_rows)
            gaps.append((abs(sum((Fraction(s) - y) * w for y, s, w in bin_rows)), size))
    values = {
        "brier": _over(squares, n),
        "mean_score": _over(predicted, n),
        "base_rate": _over(ones, n),
        "ece": _over(sum(gap for gap, _ in gaps), n),
        "mce": max((Fraction(gap) / size for gap, size in gaps), default=None),
        "rows": len(rows),
        "positives": int(ones / unit),
    }
    if ones or not predicted:
        values["ratio"] = _over(predicted, ones)
    if predicted or not ones:
        values["copc"] = _over(ones, predicted)
    return values


def by_mass(rows: Sequence[Row], groups: int) -> dict[str, Any]:
    """The errors over groups of equal mass: a row with the weight b below its score, of n, is in
    group floor(groups b / n). Rows (label, score, weight)."""
    rows = [(y, s, Fraction(w)) for y, s, w in rows if w]
    n = sum((w for *_, w in rows), Fraction(0))
    gaps: dict[int, tuple[Fraction, Fraction]] = {}
    for y, s, w in rows:
        group = int(groups * sum((v for _, t, v in rows if t < s), Fraction(0)) / n)
        off, size = gaps.get(group, (Fraction(0), Fraction(0)))
        gaps[group] = off + (Fraction(s) - y) * w, size + w
    errors = [abs(off) / size for off, size in gaps.values()]
    return {
        "ece_by_mass": _over(sum(abs(off) for off, _ in gaps.values()), n),
        "mce_by_mass": max(errors, default=None),
        "ace": _over(sum(errors), len(errors)),
    }


def errors(rows: Sequence[tuple[float, float, Fraction | int]]) -> dict[str, Any]:
    """Rows (label, score, weight)."""
    exact = [(Fraction(y), Fraction(s), w) for y, s, w in rows if w]
    n = sum(w for *_, w in exact)
    squares = sum((y - s) ** 2 * w for y, s, w in exact)
    values = {
        "mae": _over(sum(abs(y - s) * w for y, s, w in exact), n),
        "mse": _over(squares, n),
        "r2": None,
        "rows": len(exact),
    }
    if n:
        mean = sum(y * w for y, _, w in exact) / Fraction(n)
        spread = sum((y - mean) ** 2 * w for y, _, w in exact)
        values["r2"] = 1 - squares / spread if spread else None
    return values
