"""Multiple comparisons, by name: adjusted p-values, and rejections by e-values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, cast

from streammetrics.core.conversion import as_float, refused
from streammetrics.core.errors import SettingsError, shown


def adjust_fwer(
    pvalues: Mapping[str, float], method: Literal["holm", "bonferroni"] = "holm"
) -> dict[str, float]:
    """p-values adjusted so that the probability of any false rejection is at most alpha.

    "bonferroni": min(1, m p) (Dunn 1961, J. Am. Stat. Assoc. 56, 52-64). "holm": the i-th smallest,
    from 0, is max over j <= i of (m - j) p_(j), at most 1 (Holm 1979, Scand. J. Stat. 6, 65-70).
    A p-value that is nan stays so. For anytime p-values (`Watched.p_value`) this holds at all looks
    together. Raises SettingsError for another method.

    >>> adjust_fwer({"ctr": 0.01, "auc": 0.04})
    {'ctr': 0.02, 'auc': 0.04}
    """
    pvalues = _numbers(pvalues, "adjust_fwer(pvalues)", 1.0)
    m = len(pvalues)
    if method == "bonferroni":
        return {name: p if math.isnan(p) else min(1.0, m * p) for name, p in pvalues.items()}
    if method != "holm":
        raise SettingsError(
            expected='"holm" or "bonferroni"',
            got=shown(method),
            where="method",
            hint='pass "holm", which rejects at least as much',
        )
    adjusted, worst = dict.fromkeys(pvalues, math.nan), 0.0
    known_pvalues = {name: p for name, p in pvalues.items() if not math.isnan(p)}
    for rank, name in enumerate(sorted(known_pvalues, key=known_pvalues.__getitem__)):
        worst = max(worst, (m - rank) * pvalues[name])
        adjusted[name] = min(1.0, worst)
    return adjusted


def adjust_fdr(*, e_values: Mapping[str, float], alpha: float = 0.05) -> dict[str, bool]:
    """Which comparisons are rejected, with a false discovery rate of at most alpha (e-BH).

    e_values: of this look, never the largest so far. The k largest of m are rejected, for the
    largest k with e_(k) >= m / (alpha k); one that is nan is not, and counts in m. Compared as
    rational numbers, with alpha as written (0.05 is 1/20), so that equality counts. (Wang and
    Ramdas 2022, J. R. Stat. Soc. B 84, 822-852.)

    >>> adjust_fdr(e_values={"ctr": 60.0, "auc": 1.5})
    {'ctr': True, 'auc': False}
    """
    e_values = _numbers(e_values, "adjust_fdr(e_values)", math.inf)
    if (level_given := as_float(alpha)) is None or not 0 < level_given < 1:
        raise refused("adjust_fdr(alpha)", "a number between 0 and 1, such as 0.05", alpha)
    # Equal e-values are all rejected or all kept, so that the order does not matter.
    m, level, least = len(e_values), Fraction(repr(float(alpha))), math.nan
    known_values = [e for e in e_values.values() if not math.isnan(e)]
    for rank, e in enumerate(sorted(known_values, reverse=True), start=1):
        if e == math.inf or (e > 0 and Fraction(e) >= Fraction(m, rank) / level):
            least = e
    return {name: e >= least for name, e in e_values.items()}


def _numbers(values: object, where: str, most: float) -> dict[str, float]:
    """Numbers from 0 to `most`, or nan, by name, or InputError."""
    numbers: dict[str, float | None] = {}
    if isinstance(values, Mapping):
        numbers = {name: _number(value) for name, value in values.items()}
    if not isinstance(values, Mapping) or None in numbers.values():
        raise refused(where, "a number for each name", values, 'pass {"ctr": 0.01, "auc": 0.04}')
    checked = cast("dict[str, float]", numbers)
    for name, number in checked.items():
        if number < 0 or number > most:
            expected = "a number of at least 0" if most == math.inf else f"one from 0 to {most:g}"
            raise refused(f"{where}[{name!r}]", expected, number, "pass it as it was computed")
    return checked


def _number(value: object) -> float | None:
    return math.nan if isinstance(value, float) and math.isnan(value) else as_float(value)
