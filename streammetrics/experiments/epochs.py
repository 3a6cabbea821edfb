"""Two rates compared epoch by epoch of allocation, as the evidence of one look."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from streammetrics.experiments.evidence import Evidence
from streammetrics.kernels.stratified import combined, rates
from streammetrics.kernels.success_labels import Successes


@dataclass(frozen=True, slots=True)
class EpochCounts:
    """Successes and units of each arm while the allocation did not change.

    share: the treatment's declared share of the units of both, if it is known.
    """

    control: tuple[int, int]
    treatment: tuple[int, int]
    share: Fraction | float | None = None

    @property
    def units(self) -> int:
        """Of both arms."""
        return self.control[1] + self.treatment[1]


@dataclass(frozen=True, slots=True)
class ByEpoch:
    """The stratified evidence, the epochs that it is of, and those in which an arm has no unit."""

    evidence: Evidence
    used: tuple[str, ...]
    left_out: tuple[str, ...]


def by_epoch(epochs: Mapping[str, EpochCounts]) -> ByEpoch:
    """Σ (N_e / N) (B_e - A_e) over epochs in which both arms have units, with its standard error.

    `least_count` is the least number of successes or failures of an arm in these epochs. The
    evidence has `successes` where every one of them has a share strictly between 0 and 1.

    >>> tenth, half = EpochCounts((90, 900), (10, 100)), EpochCounts((100, 500), (100, 500))
    >>> by_epoch({"10 %": tenth, "50 %": half}).evidence.effect_size
    0.0
    """
    used, left_out, strata = [], [], []
    for name, counts in sorted(epochs.items()):
        stratum = rates(counts.control, counts.treatment)
        if stratum is None:
            left_out.append(name)
        else:
            used.append(name)
            strata.append(stratum)
    whole = combined(strata)
    evidence = Evidence(
        effect_size=whole.effect,
        std_error=math.sqrt(whole.variance),
        df=whole.df,
        least_count=_least([epochs[name] for name in used]),
        successes=_successes([epochs[name] for name in used]),
    )
    return ByEpoch(evidence, tuple(used), tuple(left_out))


def _least(epochs: list[EpochCounts]) -> int:
    least = []
    for arm in ("control", "treatment"):
        pairs = [one.control if arm == "control" else one.treatment for one in epochs]
        successes, units = (sum(column) for column in zip(*pairs, strict=True)) if pairs else (0, 0)
        least.append(min(successes, units - successes))
    return min(least)


def _successes(epochs: list[EpochCounts]) -> tuple[Successes, ...] | None:
    found = [
        Successes(one.control[0], one.treatment[0], one.share)
        for one in epochs
        if one.share is not None and 0 < one.share < 1
    ]
    return tuple(found) if found and len(found) == len(epochs) else None
