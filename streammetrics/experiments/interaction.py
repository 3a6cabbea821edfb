"""Whether the effect of one experiment differs between the arms of another, at all looks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import ClassVar, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.combine.row_means import row_means
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import among, refused
from streammetrics.core.errors import SettingsError, nearest, shown
from streammetrics.estimators.units import MeanOfUnits, ShareOfUnits
from streammetrics.experiments.horizon import check_share
from streammetrics.experiments.multiplicity import adjust_fwer
from streammetrics.experiments.one_look import HasEvidence
from streammetrics.experiments.unit_sample import (
    SEVERAL,
    SampledUnits,
    UnitSample,
    log_weight,
    require_sample,
)
from streammetrics.kernels.inference.interaction import (
    CELLS,
    NEEDED,
    UNITS,
    FourCells,
    four_cells,
    half_width,
    log_e_of_interaction,
    one_look_p,
)
from streammetrics.present.numerals import least_count, p_value, plain, tenths
from streammetrics.present.view import declared_views
from streammetrics.results.unit_sums_result import UNIT_VIEWS, UnitSumsResult

_SKEWNESS: Final = "skewness number {:g}"


@dataclass(frozen=True, slots=True)
class UnitMetric:
    """A metric by unit. view: "ratio", "mean" or "rate" of the result of UnitSums."""

    sums: UnitSumsResult
    view: str

    def __post_init__(self) -> None:
        if not among(self.view, tuple(UNIT_VIEWS)):
            expected = " or ".join(f'"{view}"' for view in UNIT_VIEWS)
            raise SettingsError(
                expected=expected,
                got=shown(self.view),
                where="UnitMetric.view",
                hint=nearest(self.view, UNIT_VIEWS),
            )


Measured: TypeAlias = UnitMetric | str  # by unit, or why it is not known by unit


def unit_view(metric: Accumulator, view: str) -> str:
    """The view of UnitSums that equals this view of a metric, if its rows are given to UnitSums;
    "" if none does.

    >>> from streammetrics import ExactAUC, Ratio, UnitMean
    >>> unit_view(Ratio(), "ratio"), unit_view(UnitMean(), "rate"), unit_view(ExactAUC(), "auc")
    ('ratio', 'rate', '')
    """
    if not isinstance(cast("object", metric), Accumulator):
        raise refused("unit_view(metric)", "a metric", metric, "pass one, such as Ratio()")
    estimator = declared_views(type(metric.compute())).get(view)
    if estimator is not None and isinstance(estimator.estimator, MeanOfUnits):
        return "mean"
    if estimator is not None and isinstance(estimator.estimator, ShareOfUnits):
        return "rate"
    return "ratio" if view in row_means(metric) else ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Interaction(HasEvidence):
    """The effect of a treatment in one arm of another experiment, less that in its control.

    experiment, metric, control, treatment: whose effect, and on what. other, other_arm,
    other_control: the other experiment. units: the sampled units of (control, other_control),
    (control, other_arm), (treatment, other_control) and (treatment, other_arm). effect_size: effect
    in other_arm - effect in other_control, which are `effects`, that of the control first.

    lower, upper: an interval of the effect size at all looks together. pvalue: at one look. log_e,
    e_value, p_value: at all looks together; adjusted_p: p_value, adjusted by Holm over all
    interactions that were asked for. gated: before there are enough units in each cell.
    reason: why there is no interval, or "".
    """

    experiment: str
    metric: str
    control: str
    treatment: str
    other: str
    other_control: str
    other_arm: str
    effect_size: float = math.nan
    lower: float = -math.inf
    upper: float = math.inf
    pvalue: float = math.nan
    log_e: float = 0.0
    adjusted_p: float = math.nan
    effects: tuple[float, float] = (math.nan, math.nan)
    units: tuple[int, int, int, int] = (0, 0, 0, 0)
    level: int = 0
    gated: bool = False
    reason: str = ""
    alpha: float = 0.05
    estimates: ClassVar[bool] = True

    @property
    def differs(self) -> bool:
        """Whether the effect differs between the arms: adjusted_p is at most alpha."""
        return self.adjusted_p <= self.alpha

    @property
    def sentence(self) -> str:
        """What is known."""
        effect = f"The effect of {self.experiment} {self.treatment} on {self.metric}"
        arms = f"{self.other} {self.other_arm} and {self.other_control}"
        if self.reason:
            whether = f"{effect[0].lower()}{effect[1:]}"
            return f"Whether {whether} differs between {arms} is not known: {self.reason}."
        if not self.differs:
            return f"{effect} is not shown to differ between {arms}."
        base, changed = (plain(value, signed=True) for value in self.effects)
        return (
            f"{effect} differs between {arms}: {changed} in {self.other_arm}, {base} in "
            f"{self.other_control} ({p_value(self.adjusted_p)}, adjusted, at all looks)."
        )

    def _notes(self) -> Iterator[str]:
        yield self.sentence


def interactions(
    sample: UnitSample, metrics: Mapping[str, Mapping[str, Measured]], *, alpha: float = 0.05
) -> tuple[Interaction, ...]:
    """For each metric of each experiment whether its effect differs between the arms of each other.

    sample: with a plan of each experiment, which names the control, and the horizon of the metric,
    by which the e-values are tuned. metrics: by experiment and by the name of the metric in its
    plan what is known by unit; a text says why nothing is. The units are those in one arm of both
    experiments, in the smaller of the sample of units and that of the metric.

    One pair of experiments has an interaction for each treatment of one and each treatment of the
    other. All that are asked for, of all pairs, are adjusted together by Holm's method, those
    included that have too few units; with `adjust_fdr` on their e-values more may be shown.
    InputError for an experiment that is not in the sample, SettingsError for an alpha that is not
    between 0 and 1.
    """
    require_sample(sample, "interactions(sample)")
    hint = 'pass {"ranker": {"ctr": UnitMetric(sums, "mean")}}'
    if not isinstance(cast("object", metrics), Mapping):
        raise refused("interactions(metrics)", "metrics by experiment", metrics, hint)
    for name, by_metric in metrics.items():
        sample.experiment(name)  # refuses one that is not of the sample
        if not isinstance(cast("object", by_metric), Mapping):
            raise refused(f"metrics[{name!r}]", "metrics by name", by_metric, hint)
    check_share("alpha", alpha)
    tests = [
        _asked(sample, names, watched, measured, arms, alpha)
        for names in permutations(sample.names, 2)
        for watched, measured in sorted(metrics.get(names[0], {}).items())
        for arms in _treatments(sample, names)
    ]
    pvalues = {str(i): math.nan if test.reason else test.p_value for i, test in enumerate(tests)}
    adjusted = adjust_fwer(pvalues)
    return tuple(replace(test, adjusted_p=adjusted[str(i)]) for i, test in enumerate(tests))


def _treatments(sample: UnitSample, names: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Each treatment of one experiment with each of the other, in the order of their names."""
    plans = [sample.plans.get(name) for name in names]
    first, second = (sorted(plan.treatments) if plan is not None else [""] for plan in plans)
    yield from product(first, second)


def _asked(
    sample: UnitSample,
    names: tuple[str, str],
    watched: str,
    measured: Measured,
    arms: tuple[str, str],
    alpha: float,
) -> Interaction:
    plans = [sample.plans.get(name) for name in names]
    controls = ["" if plan is None else plan.control for plan in plans]
    blank = Interaction(
        names[0], watched, controls[0], arms[0], names[1], controls[1], arms[1], alpha=alpha
    )
    unplanned = next((name for name, plan in zip(names, plans, strict=True) if plan is None), "")
    if unplanned:
        return replace(blank, reason=f"{unplanned} has no plan, so no control and no horizon")
    if isinstance(measured, str):
        return replace(blank, reason=measured)
    for name in names:
        if sample.experiment(name).reason:
            return replace(blank, reason=f"units of {name}: {sample.experiment(name).reason}")
    assert plans[0] is not None
    horizon = plans[0].horizon_of(watched, arms[0])
    if horizon.v_opt is None:
        return replace(blank, reason=horizon.reason)
    level = max(sample.level, measured.sums.level)
    strata = _strata(sample, blank, measured)
    largest = max(strata, key=lambda cells: sum(cells.units))
    usable_strata = [
        cells for cells in strata if cells.few is None and 0 < cells.variance < math.inf
    ]
    values = _combined(usable_strata) if usable_strata else largest.values
    blank = replace(
        blank,
        effect_size=(values[3] - values[1]) - (values[2] - values[0]),
        effects=(values[2] - values[0], values[3] - values[1]),
        units=tuple(sum(counts) for counts in zip(*(group.units for group in strata), strict=True)),
        level=level,
    )
    if not usable_strata:
        return replace(blank, gated=True, reason=_too_few(blank, largest))
    variance, df = (
        1.0 / math.fsum(1.0 / cells.variance for cells in usable_strata),
        _least_df(usable_strata),
    )
    # Of each level by itself, at its share of alpha.
    weight, effect = log_weight(level), blank.effect_size
    reach = half_width(variance, df, horizon.v_opt, alpha * math.exp(weight))
    return replace(
        blank,
        lower=effect - reach,
        upper=effect + reach,
        pvalue=one_look_p(effect, variance, df),
        log_e=log_e_of_interaction(effect, variance, df, horizon.v_opt, alpha) + weight,
    )


def _combined(strata: list[FourCells]) -> list[float]:
    """The values of four cells over pairs of epochs, each weighted by the information on its
    interaction."""
    weights = [1.0 / cells.variance for cells in strata]
    total = math.fsum(weights)
    return [
        math.fsum(w * cells.values[i] for w, cells in zip(weights, strata, strict=True)) / total
        for i in range(CELLS)
    ]


def _least_df(strata: list[FourCells]) -> float:
    return min(cells.df for cells in strata)


def _strata(sample: UnitSample, interaction: Interaction, measured: UnitMetric) -> list[FourCells]:
    """The four cells of each pair of epochs with units, at least one: shares that change together
    would look like an interaction."""
    sums = measured.sums
    hashes = sums._hashes
    first, second = sample.experiment(interaction.experiment), sample.experiment(interaction.other)
    arm, epoch = _arms_and_epochs(first, hashes, (interaction.control, interaction.treatment))
    other_arm, other_epoch = _arms_and_epochs(
        second, hashes, (interaction.other_control, interaction.other_arm)
    )
    is_in = (arm >= 0) & (other_arm >= 0)
    values, weights = sums._parts_of_units(measured.view)
    cells, pair = 2 * arm + other_arm, epoch * len(second.epochs) + other_epoch
    strata = []
    for pair_number in np.unique(pair[is_in]).tolist():
        rows = np.flatnonzero(is_in & (pair == pair_number))
        strata.append(four_cells(values[rows], weights[rows], cells[rows]))
    return strata or [four_cells(values[:0], weights[:0], cells[:0])]


def _arms_and_epochs(
    units: SampledUnits, hashes: NDArray[np.uint64], arms: tuple[str, str]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """[n] each: 0 for units in the first of these arms, 1 for those in the second, -1 for others;
    and the number of the epoch."""
    codes, epochs = np.full(len(hashes), -1, np.intp), np.zeros(len(hashes), np.intp)
    positions = units.positions(hashes)
    known_rows = np.flatnonzero(positions >= 0)
    places = units.places[positions[known_rows]].astype(np.intp)
    for code, arm in enumerate(arms):
        if arm in units.arms:
            is_in = places % len(units.arms) == units.arms.index(arm)
            codes[known_rows[is_in & (places != SEVERAL)]] = code
    epochs[known_rows] = places // max(len(units.arms), 1)
    return codes, epochs


def _too_few(interaction: Interaction, cells: FourCells) -> str:
    """What a person can do about it."""
    cell = cells.few
    if cell is None:
        return "the four cells have no finite variance above 0"
    arm = (interaction.control, interaction.treatment)[cell // 2]
    other_arm = (interaction.other_control, interaction.other_arm)[cell % 2]
    where = f"in both {interaction.experiment} {arm} and {interaction.other} {other_arm}"
    units, number = cells.units[cell], cells.numbers[cell]
    if not units:
        return f"no sampled unit is {where}"
    shares = units / UNITS, number / NEEDED
    count = f"{units} units, needs {UNITS}"
    if shares[1] < shares[0]:
        template = "{:g} expected events, or rows without one" if cells.is_share else _SKEWNESS
        count = f"{template.format(tenths(number))}, needs {NEEDED:g}"
    extra_units = least_count(units * (1.0 / min(shares) - 1.0)) if min(shares) > 0 else ""
    return f"{f'at least {extra_units} ' * bool(extra_units)}more sampled units {where}: {count}"
