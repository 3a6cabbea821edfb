"""Several comparisons, by name: adjusted p-values, and which e-values are rejected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from streammetrics.core.errors import SettingsError, shown
from streammetrics.kernels.multiplicity import bonferroni, e_bh, holm


def adjust_fwer(
    pvalues: Mapping[str, float], method: Literal["holm", "bonferroni"] = "holm"
) -> dict[str, float]:
    """p-values adjusted so that any false rejection has probability alpha at most.

    Of anytime p-values (`Watched.p_value`) this holds at all looks together. Raises SettingsError
    for another method.

    >>> adjust_fwer({"ctr": 0.01, "auc": 0.04})
    {'ctr': 0.02, 'auc': 0.04}
    """
    if method not in ("holm", "bonferroni"):
        raise SettingsError(
            expected='"holm" or "bonferroni"',
            came=shown(method),
            where="method",
            todo='pass "holm", which rejects at least as much',
        )
    adjust = holm if method == "holm" else bonferroni
    return dict(zip(pvalues, adjust(list(pvalues.values())), strict=True))


def adjust_fdr(*, e_values: Mapping[str, float], alpha: float = 0.05) -> dict[str, bool]:
    """Which comparisons are rejected, with a false discovery rate of alpha at most (e-BH).

    e_values: of this look, never the largest so far.

    >>> adjust_fdr(e_values={"ctr": 60.0, "auc": 1.5})
    {'ctr': True, 'auc': False}
    """
    return dict(zip(e_values, e_bh(list(e_values.values()), alpha), strict=True))
