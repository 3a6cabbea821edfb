"""The assignment of units to variants: the sample ratio over epochs, and contamination."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import ClassVar, Final, cast

import numpy as np

from streammetrics.combine.units import UnitsResult, in_several
from streammetrics.core.conversion import as_float, numeric, refused, whole
from streammetrics.core.errors import InputError, SettingsError, nearest, shown
from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.rows import sorted_distinct
from streammetrics.experiments.horizon import exact_number, settle
from streammetrics.experiments.one_look import e_value
from streammetrics.experiments.plan import Plan
from streammetrics.kernels.inference.dirichlet_multinomial import (
    chi_square,
    log_e,
    log_mean_e,
    log_sum,
)
from streammetrics.kernels.inference.normal_mixture import anytime_p
from streammetrics.kernels.inference.tails import chi2_sf
from streammetrics.present.notebook import Shown
from streammetrics.present.numerals import least, plain
from streammetrics.present.value_rows import ValueRow, rows_of_views
from streammetrics.present.view import View

ALARM: Final = 1000.0
_MOST_UNITS: Final = 2**63 - 1
_NO_HASHES: Final = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SampleRatioFound(Shown):
    """The units of each arm against the declared shares.

    pvalue, statistic, df: the chi-square test, valid for one look. e_value, anytime_p: valid at
    all looks, of the newest epoch: `epoch`, whose units are `epoch_counts`. alarm: the e-value of
    this look or of an earlier one has reached 1000, which by chance has a probability of at most
    0.001 over all looks; the effects must then not be believed. Units that balance later do not
    end it: 800 : 200 and then 200 : 800 is no experiment.

    log_e: the logarithm of the e-value. by_day: that of the units by the day on which they were
    first seen, None if their days are not known; log_e is then that of all units together.
    greatest: the largest log_e of the looks at this epoch. earlier: epochs before it that had an
    alarm of their own. acknowledged: the plan's acknowledgement of the alarm, or "".
    """

    counts: tuple[tuple[str, int], ...]
    statistic: float
    df: int
    pvalue: float
    log_e: float
    reason: str = ""
    by_day: float | None = None
    greatest: float = 0.0
    epoch: str = ""
    epoch_counts: tuple[tuple[str, int], ...] = ()
    earlier: tuple[str, ...] = ()
    acknowledged: str = ""

    @property
    def e_value(self) -> float:
        """The e-value; infinite past the largest float, or if an arm without a share has a unit."""
        return e_value(self.log_e)

    @property
    def anytime_p(self) -> float:
        """min(1, 1 / e_value)."""
        return anytime_p(self.log_e)

    @property
    def greatest_e_value(self) -> float:
        """The largest e-value of this look and of the earlier ones at this epoch."""
        return e_value(max(self.log_e, self.greatest))

    @property
    def alarm(self) -> bool:
        """Whether the e-value has reached 1000, at this look or at an earlier one."""
        return max(self.log_e, self.greatest) >= math.log(ALARM)

    @property
    def blocks(self) -> bool:
        """Whether there is an alarm that nobody has acknowledged."""
        return self.alarm and not self.acknowledged

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """Both tests, with the units of each arm."""
        for row in rows_of_views(self, level, headlines):
            yield replace(row, counts={**row.counts, **{f"units_{a}": n for a, n in self.counts}})

    def _notes(self) -> Iterator[str]:
        yield "units: " + (", ".join(f"{arm} {n:,}" for arm, n in self.counts) or "none")
        if self.alarm:
            yield "alarm: the units do not fit the declared shares"


@dataclass(frozen=True, slots=True)
class SampleRatio:
    """The declared weights of the arms, on any scale, and the weight k of the prior, in units.

    k: None for the mean of the e-values with 10, 100, 1,000 and 10,000, which sees small
    experiments and small shifts. SettingsError if a weight is negative or all are 0, or if k is
    not positive. An arm with the weight 0 is declared to get no unit.

    >>> found = SampleRatio({"control": 1, "treatment": 1}).at({"control": 5120, "treatment": 4880})
    >>> f"{found.pvalue:.4f} {found.log_e:.4f} {found.alarm}"
    '0.0164 0.8530 False'
    """

    weights: Mapping[str, int | float | Fraction]
    k: float | None = None

    def __post_init__(self) -> None:
        weights: object = self.weights
        values = [*map(as_float, weights.values())] if isinstance(weights, Mapping) else []
        if not all(w is not None and 0 <= w < math.inf for w in values) or not any(values):
            raise SettingsError(
                expected="weights of at least 0 by arm, one of them positive",
                got=shown(dict(weights) if isinstance(weights, Mapping) else weights),
                where="weights",
                hint="pass the planned share of units of each arm",
            )
        if self.k is not None and not 0 < numeric(self.k) < math.inf:
            raise SettingsError(
                expected="a positive number of units, or None",
                got=shown(self.k),
                where="k",
                hint="leave it out for the mean of 10, 100, 1,000 and 10,000",
            )
        settle(self, "k")
        exact = {arm: exact_number(weight) for arm, weight in self.weights.items()}
        object.__setattr__(self, "weights", exact)

    def at(self, units: Mapping[str, int]) -> SampleRatioFound:
        """The check of the units by arm; exact counts, or those of a hash-threshold sample.

        An arm without a count has 0 units. InputError for an arm that the weights do not name (a
        misspelt name is not a mismatch), and for a count that is negative or not whole. An arm that
        must not get units is declared with the weight 0; a unit in it is a certain mismatch, p = 0.
        """
        if not isinstance(cast("object", units), Mapping):
            raise refused("units", "a number of units for each arm", units, 'pass {"a": 512}')
        unknown = [arm for arm in units if arm not in self.weights]
        if unknown:
            names = list(map(str, self.weights))
            raise InputError(
                expected=f"units of the declared arms: {', '.join(names)}",
                got=shown(unknown[0]),
                where="units",
                hint=f"{nearest(unknown[0], names)}; declare an arm that must get no unit with the "
                "weight 0",
            )
        numbers: dict[str, int] = dict.fromkeys(sorted(self.weights), 0)
        for arm, count in units.items():
            number = whole(count)
            if number is None or not 0 <= number <= _MOST_UNITS:
                raise InputError(
                    expected=f"a whole number of units, 0 to {_MOST_UNITS}",
                    got=shown(count),
                    where=f"units[{arm!r}]",
                    hint="pass the number of different units",
                )
            numbers[arm] = number
        arms, counts = list(numbers), list(numbers.values())
        weights = [self.weights[arm] for arm in arms]
        test = chi_square(counts, weights)
        if not sum(counts):
            reason = "no unit was counted"
        elif test.df == 0 and test.pvalue:
            reason = "only one arm has a share"
        else:
            reason = ""
        evidence = log_mean_e(counts, weights) if self.k is None else log_e(counts, weights, self.k)
        counts_by_arm = tuple(zip(arms, counts, strict=True))
        return SampleRatioFound(
            counts_by_arm,
            test.statistic,
            test.df,
            test.pvalue,
            evidence,
            reason,
            epoch_counts=counts_by_arm,
        )


Found = Mapping[str, Mapping[str, UnitsResult]]
NOT_COUNTED = "units are not counted"
MOST_IN_SEVERAL: Final = 0.01  # of all units; above it each conclusion has a warning


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Contamination(Shown):
    """The units seen in several variants.

    units: their number; share: of all units of the plan's variants, nan if there are none. dropped:
    whether they are removed from the states. estimated: both numbers are from a sample of the
    units. warning: the share is above 1 %.
    """

    units: float
    share: float = field(metadata=View(undefined="no units"))
    dropped: bool = False
    estimated: bool = False
    estimates: ClassVar[bool] = True

    @property
    def warning(self) -> bool:
        """Whether the share is above 1 %."""
        return self.share > MOST_IN_SEVERAL

    @property
    def sentence(self) -> str:
        """The warning that follows each conclusion; "" if there is none."""
        if not self.warning:
            return ""
        share = f"{least(100 * self.share)} % of all"
        clause = in_several_variants(self.units, share, estimated=self.estimated)
        consequence = " and dropped" if self.dropped else ", which may bias the difference"
        return f"{clause[0].upper()}{clause[1:]}{consequence}."

    def _notes(self) -> Iterator[str]:
        yield from filter(None, (self.sentence,))


def in_several_variants(units: float, share: str = "", *, estimated: bool) -> str:
    """A clause on the number of units that were seen in several variants.

    >>> in_several_variants(20.0, "1 % of all", estimated=True)
    'about 20 units (1 % of all) were seen in several variants'
    """
    count = f"{'about ' if estimated else ''}{plain(units, 6)} {'unit' if units == 1 else 'units'}"
    of_all = f" ({share})" if share else ""
    return f"{count}{of_all} {'was' if units == 1 else 'were'} seen in several variants"


def sample_ratio(
    plan: Plan,
    units: Found,
    variants: Sequence[str] = (),
    days: Mapping[int, Found] | None = None,
) -> SampleRatioFound:
    """The check of each epoch's shares: chi-square and its df summed over epochs, and the e-value
    of the newest epoch that has units, since an alarm ends with a new epoch.

    units: by epoch and variant. variants: those that get units, by default all. A unit counts only
    in the epoch in which it was first seen: it stays in its variant, so later events are no new
    assignment, and the epochs would be dependent. days: the units by day, as days since 1970, from
    which the day follows on which each was first seen; None if they are not known.
    """
    if not units:
        return _unknown(NOT_COUNTED)
    totals: dict[str, int] = dict.fromkeys(variants or plan.variants, 0)
    checks: dict[str, SampleRatioFound] = {}
    epochs = plan.ordered(units)
    arms = [_variant_arms(units[epoch], totals) for epoch in epochs]
    results = [result for of_epoch in arms for result in of_epoch.values()]
    unknown = next((result for result in results if result.sampled is None), None)
    if unknown is not None:
        return _unknown(unknown.reason)
    first_counts = first_seen(dict(enumerate(arms)))
    for i, fresh in sorted(first_counts.items()):
        weights = {name: plan.weights(epochs[i])[name] for name in totals}
        checks[epochs[i]] = SampleRatio(weights).at(fresh)
        totals = {name: n + fresh.get(name, 0) for name, n in totals.items()}
    counts = tuple(sorted(totals.items()))
    if not checks:
        return _unknown("no unit was counted", counts)
    newest, epoch_checks = list(checks)[-1], list(checks.values())
    last = checks[newest]
    if len(checks) > 1:
        statistic, df = (
            math.fsum(check.statistic for check in epoch_checks),
            sum(check.df for check in epoch_checks),
        )
        pvalue = 0.0 if any(not check.pvalue for check in epoch_checks) else chi2_sf(statistic, df)
        last = replace(last, statistic=statistic, df=df, pvalue=pvalue, reason="", counts=counts)
    last = replace(
        last,
        epoch=newest,
        earlier=tuple(name for name, check in checks.items() if check.alarm and name != newest),
        acknowledged=plan.sample_ratio_acknowledged,
    )
    if days is None:
        return last
    weights = {name: plan.weights(newest)[name] for name in totals}
    of_newest = {day: _variant_arms(of_day.get(newest, {}), totals) for day, of_day in days.items()}
    before = _united_hashes(
        result for of_epoch in arms[: max(first_counts)] for result in of_epoch.values()
    )
    by_day = log_e_by_day(weights, of_newest, before, start_day(newest))
    return last if by_day is None else with_days(last, by_day)


def _variant_arms(
    arms: Mapping[str, UnitsResult], variants: Collection[str]
) -> Mapping[str, UnitsResult]:
    return {name: result for name, result in arms.items() if name in variants}


def with_days(ratio: SampleRatioFound, by_day: float) -> SampleRatioFound:
    """The sample ratio with the e-value of the days beside that of the total: the mean of both."""
    log_mean = log_sum(((ratio.log_e, 0.5), (by_day, 0.5)))
    return replace(ratio, log_e=log_mean, by_day=by_day)


def start_day(epoch: str) -> int | None:
    """The day since 1970 on which an epoch starts, if its name is a time; else None.

    >>> start_day("1970-01-03T12:00:00Z"), start_day("start")
    (2, None)
    """
    try:
        start = datetime.fromisoformat(epoch)
    except ValueError:
        return None
    instant = start if start.tzinfo else start.replace(tzinfo=UTC)
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)).days


def log_e_by_day(
    weights: Mapping[str, int | float],
    days: Mapping[int, Mapping[str, UnitsResult]],
    before: Words,
    start: int | None = None,
) -> float | None:
    """The logarithm of Σ_d e_d / (d (d + 1)) + 1 / (D + 1), e_d of the units first seen on day d.

    It sees one bad day at once, which the total dilutes. days: the units of each day, by days since
    1970; those of days before the start belong to day 1. before: units that were seen before the
    epoch. start: the epoch's first day, None for the first one with a unit. D is the last day with
    a unit; a day without units has e = 1. None without a unit, or if those of a day are not known.
    """
    if any(result.sampled is None for arms in days.values() for result in arms.values()):
        return None
    new = first_seen(days, before)
    if not new:
        return None
    start = min(new) if start is None else start
    counts: dict[int, dict[str, int]] = {}
    for day, fresh in new.items():
        counts_of_day = counts.setdefault(max(1, day - start + 1), {})
        for name, n in fresh.items():
            counts_of_day[name] = counts_of_day.get(name, 0) + n
    evidence = {day: SampleRatio(weights).at(arms).log_e for day, arms in counts.items()}
    last = max(evidence)
    terms = [(evidence.get(d, 0.0), 1.0 / (d * (d + 1.0))) for d in range(1, last + 1)]
    return log_sum([*terms, (0.0, 1.0 / (last + 1.0))])


def first_seen(
    places: Mapping[int, Mapping[str, UnitsResult]], before: Words = _NO_HASHES
) -> dict[int, dict[str, int]]:
    """The number of units of each variant that were first seen at each place in an order, such as
    a day or an epoch, without those that were seen `before`; a unit in two variants at its first
    place counts in both. One sort, however many places there are."""
    sources = [(at, name) for at in sorted(places) for name in places[at]]
    words = [places[at][name].hashes() for at, name in sources]
    hashes = np.concatenate([_NO_HASHES, *words])
    source = np.repeat(np.arange(len(sources)), [len(part) for part in words])
    place = np.array([at for at, _ in sources], np.int64)[source]
    order = np.argsort(hashes, kind="stable")  # it merges ascending runs, and keeps places in order
    hashes, source, place = hashes[order], source[order], place[order]
    starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])[: len(hashes)])
    first = np.repeat(place[starts], np.diff(np.append(starts, len(hashes))))
    fresh = place == first
    if len(before):
        fresh &= ~np.isin(hashes, before)
    counts: dict[int, dict[str, int]] = {}
    for i, n in enumerate(np.bincount(source[fresh], minlength=len(sources)).tolist()):
        if n:
            counts.setdefault(sources[i][0], {})[sources[i][1]] = n
    return counts


def seen_in_several(plan: Plan, units: Found) -> UnitsResult | None:
    """The units seen in more than one variant, over all epochs; None if units are not counted."""
    if not units:
        return None
    return in_several([_variant_units(name, units) for name in plan.variants])


def contamination(plan: Plan, units: Found, several: UnitsResult | None) -> Contamination | None:
    """The units of several variants and their share of all; None if they are unknown.
    several: from `seen_in_several`."""
    if several is None or several.sampled is None:
        return None
    shared_hashes, total, repeats = several.hashes(), 0, 0
    for name in plan.variants:
        hashes = _variant_units(name, units).hashes()
        total += len(hashes)
        first, last = (np.searchsorted(hashes, shared_hashes, side) for side in ("left", "right"))
        repeats += int((last - first).sum())
    whole = total - (repeats - len(shared_hashes))  # each unit once
    share = len(shared_hashes) / whole if whole else math.nan
    dropped = plan.on_several_variants == "drop" and not why_unknown(several)
    return Contamination(several.units, share, dropped, several.share < 1)


def units_of(units: Found, variants: Collection[str], epochs: Collection[str]) -> int | None:
    """The number of units of these variants in these epochs, each once per variant; None if
    unknown."""
    total = 0.0
    for name in variants:
        results = [units[epoch][name] for epoch in epochs if name in units.get(epoch, {})]
        if len(results) < len(epochs) or not results:
            return None
        total += (results[0] if len(results) == 1 else _united(results, units)).units
    return None if math.isnan(total) else round(total)


def why_unknown(several: UnitsResult | None) -> str:
    """Why the units of several variants are not all known; "" if they are."""
    if several is None:
        return NOT_COUNTED
    if several.sampled is None:
        return several.reason
    return "" if several.share == 1 else f"only {100 * several.share:g} % of the units are sampled"


def left(units: Found, dropped: UnitsResult) -> Found:
    """The remaining units, by epoch and variant."""
    removed = dropped.hashes()

    def without(result: UnitsResult) -> UnitsResult:
        remaining_hashes = np.setdiff1d(result.hashes(), removed, assume_unique=True)
        return replace(result, sampled=len(remaining_hashes), _hashes=remaining_hashes)

    return {
        epoch: {name: without(variant_units) for name, variant_units in arms.items()}
        for epoch, arms in units.items()
    }


def _variant_units(variant: str, units: Found) -> UnitsResult:
    return _united([arms[variant] for arms in units.values() if variant in arms], units)


def _united(results: Sequence[UnitsResult], units: Found) -> UnitsResult:
    share = next((result.share for arms in units.values() for result in arms.values()), 1.0)
    unknown = next((result for result in results if result.sampled is None), None)
    if unknown is not None:
        return unknown
    hashes = _united_hashes(results)
    return UnitsResult(share, len(hashes), _hashes=hashes)


def _united_hashes(results: Iterable[UnitsResult]) -> Words:
    return sorted_distinct(np.concatenate([_NO_HASHES, *(result.hashes() for result in results)]))


def _unknown(reason: str, counts: tuple[tuple[str, int], ...] = ()) -> SampleRatioFound:
    return SampleRatioFound(counts, 0.0, 0, 1.0, 0.0, reason)
