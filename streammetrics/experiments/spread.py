"""What a verdict on two arms rests on: the variance of their difference, and whether each arm has
enough rows. Both ask both arms together, never the small one about itself; `pooled_variance` has
the formulas. What is shown of one look does not come from here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from streammetrics.estimators.enough import ENOUGH, Enough
from streammetrics.experiments.arms import Arm, Arms, Basis, Stratum
from streammetrics.experiments.evidence import Shortage
from streammetrics.experiments.strata import scaled_variance, stratum_variance
from streammetrics.kernels.inference.pooled_variance import (
    SKEWNESS,
    Parts,
    RowsAndUsers,
    expected_counts,
    pooling_factors,
)
from streammetrics.kernels.inference.t_interval import welch_df

NAMES: Final = ("control", "treatment")
_OWN: Final = ""  # the name of no mass: each arm has its own variance


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of a difference at all looks together, and its degrees of freedom.

    parts: for each form that the variance may have, what control and treatment add to it.

    >>> Spread(((0.5, 0.25), (0.25, 0.5)), (math.inf, math.inf)).variance()
    0.75
    """

    parts: tuple[Parts[float], ...]
    dfs: tuple[float, float]

    def variance(self, ratio: float = 1.0) -> float:
        """The greatest variance of treatment - ratio · control; nan if one is."""
        return sum(self._greatest(ratio))

    def df(self, ratio: float = 1.0) -> float:
        """Degrees of freedom of that variance."""
        control, treatment = self._greatest(ratio)
        return welch_df(control, self.dfs[0], treatment, self.dfs[1])

    def _greatest(self, ratio: float) -> Parts[float]:
        square = ratio * ratio
        return max(((square * c, t) for c, t in self.parts), key=sum)


def spread_of(pair: Arms) -> Spread:
    """The spread of a pair of arms, of one epoch or of several."""
    a, b = pair.control, pair.treatment
    variances = a.precision.variance, b.precision.variance
    if a.known:
        return Spread((variances,), (a.precision.df, b.precision.df))
    dfs = _df(a), _df(b)
    if not math.isfinite(sum(variances)):
        return Spread((variances,), dfs)
    if len(pair.strata) < 2:
        return Spread(
            (variances, *(_times(variances, multiplier) for multiplier in factors(a, b).values())),
            dfs,
        )
    forms = [{_OWN: (1.0, 1.0), **factors(s.control, s.treatment)} for s in pair.strata]
    chosen = [[name] * len(forms) for name in dict.fromkeys(n for form in forms for n in form)]
    chosen.append([_widest(s, form) for s, form in zip(pair.strata, forms, strict=True)])
    parts = []
    for names in chosen:
        multipliers = [form.get(name, (1.0, 1.0)) for name, form in zip(names, forms, strict=True)]
        parts.append(_together(pair, multipliers))
    return Spread(tuple(dict.fromkeys(parts)), dfs)


def not_surer(pair: Arms) -> tuple[Arm, Arm]:
    """Both arms, neither with a smaller variance than a unit of the other one would give it."""
    a, b = pair.control, pair.treatment
    if a.known:
        return a, b
    pooled = [
        _times((a.precision.variance, b.precision.variance), multiplier)
        for multiplier in factors(a, b).values()
    ]
    return (
        a.replace_variance(max([a.precision.variance, *(t for _, t in pooled)])),
        b.replace_variance(max([b.precision.variance, *(c for c, _ in pooled)])),
    )


def factors(a: Arm, b: Arm) -> dict[str, Parts[float]]:
    """For each mass that both arms have, what their variances are multiplied by."""
    bases = {
        name: (basis, b.counts.masses[name])
        for name, basis in a.counts.masses.items()
        if name in b.counts.masses
    }
    multipliers = {name: _factors(*pair) for name, pair in bases.items()}
    return {name: multiplier for name, multiplier in multipliers.items() if multiplier is not None}


def _factors(control: Basis, treatment: Basis) -> Parts[float] | None:
    if isinstance(control, RowsAndUsers) and isinstance(treatment, RowsAndUsers):
        masses = control.rows, control.users, treatment.rows, treatment.users
        return (
            control.factors(treatment) if all(0 < number < math.inf for number in masses) else None
        )
    if isinstance(control, RowsAndUsers) or isinstance(treatment, RowsAndUsers):
        return None
    is_known = 0 < control < math.inf and 0 < treatment < math.inf
    return pooling_factors(control, treatment) if is_known else None


def _times(variances: Parts[float], factor: Parts[float]) -> Parts[float]:
    return variances[0] * factor[0], variances[1] * factor[1]


def _df(arm: Arm) -> float:
    """Those of groups or of a small area; the mean of rows is compared by the normal mixture."""
    return (
        math.inf
        if arm.without.replicates is None and arm.counts.kind == "mean"
        else arm.precision.df
    )


def _widest(stratum: Stratum, form: dict[str, Parts[float]]) -> str:
    variances = float(stratum_variance(stratum.control)), float(stratum_variance(stratum.treatment))
    return max(form, key=lambda name: sum(_times(variances, form[name])))


def _together(pair: Arms, multipliers: Sequence[Parts[float]]) -> Parts[float]:
    """What both arms add over all epochs, if those of each epoch are pooled over this mass."""
    of_control, of_treatment = zip(*multipliers, strict=True)
    control = scaled_variance([s.control for s in pair.strata], pair.weights, of_control)
    treatment = scaled_variance([s.treatment for s in pair.strata], pair.weights, of_treatment)
    return control, treatment


# Whether there are enough rows.


def shortage_of(pair: Arms, names: tuple[str, str] = NAMES) -> Shortage | None:
    """The least count of both arms of what a view of this kind needs; None without an arm.

    Of a rate the events, and the other rows, that each arm would have at the rate of both together,
    divided by the design effect; never the observed ones, because a treatment may end all events.
    """
    shortages = [shortage for shortage in _shortages(pair, names) if not math.isnan(shortage.count)]
    return min(shortages, key=lambda shortage: shortage.count, default=None)


def _shortages(pair: Arms, names: tuple[str, str]) -> Iterator[Shortage]:
    a, b = pair.control, pair.treatment
    enough = ENOUGH[a.counts.kind] if a.counts.kind == b.counts.kind else None
    if enough is not None and enough.expected and not a.known:
        yield from _expected(pair, names, enough)
        return
    for name, arm in zip(names, (a, b), strict=True):
        if arm.known:
            continue
        if enough is None:
            yield Shortage(
                name,
                arm.counts.rows,
                f"{{}} {arm.counts.unit}",
                arm.counts.rows,
                arm.counts.unit,
                "metric",
            )
        elif enough.each:
            for count, label in zip(arm.counts.counted, enough.labels, strict=True):
                yield Shortage(
                    name, count, f"{{}} {label}", arm.counts.rows, arm.counts.unit, enough.quantity
                )
        else:
            effective = "effective " * (arm.groups is not None)
            template = f"{{}} {effective}{next(iter(enough.labels), arm.counts.unit)}"
            yield Shortage(
                name, arm.least, template, arm.counts.rows, arm.counts.unit, enough.quantity
            )


def _expected(pair: Arms, names: tuple[str, str], enough: Enough) -> Iterator[Shortage]:
    """What each arm would have of the cells of a rate, or of a view of a confusion matrix."""
    arms = pair.control, pair.treatment
    deff = max(
        (arm.precision.deff for arm in arms if 1.0 < arm.precision.deff < math.inf), default=1.0
    )
    for cell in range(len(pair.control.counts.counted)):
        expectations = [_stratum_cell(stratum, cell) for stratum in pair.strata]
        label = enough.labels[cell]
        for side, (name, arm) in enumerate(zip(names, arms, strict=True)):
            count = math.fsum(sides[side] for sides in expectations) / deff
            template = f"{{}} {label} expected"
            yield Shortage(name, count, template, arm.counts.rows, arm.counts.unit, enough.quantity)


def _stratum_cell(stratum: Stratum, cell: int) -> Parts[float]:
    rows = stratum.control.counts.counted_of, stratum.treatment.counts.counted_of
    counts = stratum.control.counts.counted[cell], stratum.treatment.counts.counted[cell]
    return expected_counts(counts, rows) if sum(rows) else (0.0, 0.0)


def too_skew(pair: Arms, names: tuple[str, str] = NAMES) -> str:
    """Why a mean is too far from normal in an arm that has a variance, or ""."""
    for name, arm in zip(names, (pair.control, pair.treatment), strict=True):
        if arm.precision.variance > 0 and arm.is_skew and not arm.counts.skewness >= SKEWNESS:
            number = 0.0 if math.isnan(arm.counts.skewness) else arm.counts.skewness
            template = "its skewness number is {}"
            return Shortage(
                name, number, template, arm.counts.rows, arm.counts.unit, "mean"
            ).reason(SKEWNESS)
    return ""
