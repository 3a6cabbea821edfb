"""What an experiment shows of exposed units besides its comparisons: the effects on the units that
the plan does not decide by, the effects by days since the exposure, and how many units were active
and converted.

All of it is of the rows since the start, and none of it is a verdict: the plan decides by one of
the views alone, and only looks at that one are taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast

import streammetrics as sm
from streammetrics import experiments
from streammetrics_consumers.ledger.delta_metadata import state_of
from streammetrics_consumers.ledger.store_view import StoreView
from streammetrics_consumers.model.formatting import iso_utc, span_text
from streammetrics_consumers.model.generation import ACTIVE, UNITS, Pane
from streammetrics_consumers.model.times import DAY_MS
from streammetrics_consumers.query.experiment_plan import (
    DeclaredExperiment,
    arm_states,
    counted_experiment,
    summed,
    window_panes,
)
from streammetrics_consumers.query.experiment_totals import closed_ms_of
from streammetrics_consumers.query.exposed_answers import (
    ExposedAnswer,
    ExposedEffect,
    FunnelArm,
    SinceExposure,
)
from streammetrics_consumers.query.exposed_states import (
    ALL_UNITS,
    COHORTS,
    CohortStates,
    Days,
    arms_of,
    closed_units,
    cohort_panes,
    units_since,
)
from streammetrics_consumers.query.turns import checkpoint

MAX_BYTES: Final = 256 << 20  # of the stored states that this reads
MINUTE_MS: Final = 60_000
NO_VERDICT: Final = "No verdict on it, because the plan does not decide by it."
NO_METRIC: Final = "No metric is of units: a UnitMean or UnitRate would be of all exposed ones."
_SO_FAR: Final = "all exposed units, each with what it did so far"
_VALUES: Final = "The values of each arm are those of all exposed units so far."
_DELAYS: Final = "Where an arm only delays what units do, an effect so far is not the final one."

ExposedAnswers: TypeAlias = "dict[tuple[int, str, str | None], tuple[object, ExposedAnswer]]"
Sums: TypeAlias = "Mapping[tuple[str, int], sm.PerKey]"


def exposed_answer(
    now: StoreView,
    design: DeclaredExperiment,
    panes: Sequence[Pane],
    metric: str | None,
    answers: ExposedAnswers,
) -> ExposedAnswer:
    """What an experiment shows of exposed units.

    panes: of the experiment. metric: only of this one. answers: the last answers, which are kept as
    long as what they are made of stays; this one is added.
    """
    names = {design.prefix + name for name in (UNITS, ACTIVE, *design.unit_metrics)}
    rows = now.delta_metadata(
        [
            pane
            for pane in [*window_panes(panes, None, None), *cohort_panes(panes)]
            if pane.metric in names
        ]
    )
    closed_ms = closed_ms_of(now, design)
    made_of: object = (
        design,
        now.version.retry_note,  # as in `outcome_of`
        frozenset((row.id, row.pane, row.end_offset, row.nbytes) for row in rows),
        None if closed_ms is None else closed_ms // MINUTE_MS,
    )
    key = now.version.generation.id, design.name, metric
    before = answers.get(key)
    if before is not None and before[0] == made_of:
        return before[1]
    if sum(row.nbytes for row in rows) > MAX_BYTES:
        answer = _Exposed(design, {}, closed_ms, metric).answer(
            f"its states are larger than {MAX_BYTES >> 20} MiB"
        )
    else:
        with closing(now.states(rows)) as stored:
            sums = summed((row.pane, state_of(row, data)) for row, data in stored)
        answer = _Exposed(design, sums, closed_ms, metric).answer()
    answers[key] = made_of, answer
    return answer


def answer_of(
    design: DeclaredExperiment,
    sums: Sums,
    closed_ms: int | None,
    metric: str | None = None,
) -> ExposedAnswer:
    """The answer from the sums of states by metric, as the ledger names it, and grouping."""
    return _Exposed(design, sums, closed_ms, metric).answer()


@dataclass(frozen=True, slots=True)
class _Exposed:
    """The states of one experiment. closed_ms: the time up to which its events are counted; metric:
    the only one that is asked for."""

    design: DeclaredExperiment
    sums: Sums
    closed_ms: int | None
    metric: str | None

    def answer(self, reason: str = "") -> ExposedAnswer:
        """All of it. reason: why the states were not read."""
        closed = {} if reason else self._closed()
        days = _range_of([*closed.values()])
        is_closed = self.design.is_of_closed_units
        reason = reason or self._not_apart()
        other_effects = [*self._effects(self._so_far() if is_closed else closed)]
        window_ms = self.design.window_ms
        sentences = f"Of {_SO_FAR}. {_DELAYS}", self._other(days)
        if is_closed:
            sentence = f"{self._sentence(days)} {_VALUES}"
            sentences = sentence, f"Of {_SO_FAR}. {_DELAYS} {NO_VERDICT}"
        if not self.design.unit_metrics:
            sentences = NO_METRIC, ""
        return ExposedAnswer(
            units="closed" if is_closed else "so_far",
            sentence=sentences[0],
            window_s=math.nan if window_ms is None else window_ms / 1000,
            closed_ms=self.closed_ms,
            closed_from_ms=None if days is None else days[0] * DAY_MS,
            closed_to_ms=None if days is None else days[1] * DAY_MS,
            other=sentences[1],
            beside=tuple(other_effects),
            since=tuple(self._day_effects()),
            funnel=tuple(self._funnel()),
            reason=reason,
        )

    def _sentence(self, days: tuple[int, int] | None) -> str:
        """Which units those are whose window is over."""
        window_ms = self.design.window_ms
        assert window_ms is not None
        window = span_text(window_ms)
        if days is None:
            return f"No unit's window of {window} after its exposure is over."
        first, end = (iso_utc(day * DAY_MS)[:10] for day in (days[0], days[1] - 1))
        return (
            f"Of the units whose window of {window} after the exposure is over, with their final "
            f"values: exposed from {first} to {end}."
        )

    def _other(self, days: tuple[int, int] | None) -> str:
        if self.design.window_ms is None:
            return "Events count for ever after an exposure, so no unit has its final values."
        return self._sentence(days) + (f" {NO_VERDICT}" if days is not None else "")

    def _states(self, grouping: int) -> Iterator[tuple[str, sm.PerKey]]:
        """The states of each mean or rate of units, by its name in the config."""
        for metric in self.design.unit_metrics:
            state = self.sums.get((self.design.prefix + metric, grouping))
            if state is not None and self.metric in (None, metric):
                yield metric, state

    def _not_apart(self) -> str:
        """Why cohorts are not known apart, or ""."""
        lost = [
            metric for metric, state in self._states(COHORTS) if state.overflow_state() is not None
        ]
        return f"more cohorts than are kept apart: {', '.join(lost)}" if lost else ""

    def _closed(self) -> dict[str, CohortStates]:
        """The units whose window is over, by metric."""
        window_ms = self.design.window_ms
        if window_ms is None:
            return {}
        closed = {
            metric: closed_units(state, self.closed_ms, window_ms)
            for metric, state in self._states(COHORTS)
        }
        return {metric: cohorts for metric, cohorts in closed.items() if cohorts is not None}

    def _so_far(self) -> experiments.Experiment:
        states = ((Pane(f"{self.design.prefix}{metric}", ALL_UNITS, None, None), state)
                  for metric, state in self._states(ALL_UNITS))  # fmt: skip
        return counted_experiment(self.design, states)[0]

    def _day_effects(self) -> Iterator[SinceExposure]:
        by_days: dict[Days, dict[str, CohortStates]] = {}
        for metric, state in self._states(COHORTS):
            checkpoint()
            for days, cohorts in units_since(state, self.closed_ms, self.design.window_ms):
                by_days.setdefault(days, {})[metric] = cohorts
        for days in sorted(by_days, key=lambda days: days.first):
            checkpoint()
            dates = _range_of([*by_days[days].values()])
            assert dates is not None
            first, end = dates
            yield SinceExposure(
                from_day=days.first,
                to_day=-(-(days.end_ms(self.design.window_ms) or 0) // DAY_MS),
                exposed_from_ms=first * DAY_MS,
                exposed_to_ms=end * DAY_MS,
                effects=tuple(self._effects(by_days[days])),
            )

    def _effects(
        self, states: Mapping[str, CohortStates] | experiments.Experiment
    ) -> Iterator[ExposedEffect]:
        """The effects on metrics that the plan names, in its order, each view once."""
        design = self.design
        # These are no decisions, and epochs have the weight of their units.
        plan = replace(design.plan, covariates={}, unit_view="closed", on_several_variants="keep")
        if isinstance(states, experiments.Experiment):
            experiment = replace(states, plan=replace(plan, unit_view="so_far"), units={})
        elif states:
            counted = {name.removeprefix(design.prefix) for name in design.metrics}
            experiment = experiments.Experiment(plan, arms_of(states, design.arms), {}, counted)
        else:
            return
        has_states = {
            metric
            for arms in experiment.states.values()
            for metrics in arms.values()
            for metric in metrics
        }
        watched = [name for name in plan.watched if design.metric_of(name) in has_states]
        for contrast in experiment.contrasts(watched):
            if not contrast.names.decides and contrast.counts_units:
                yield _effect(contrast)

    def _funnel(self) -> Iterator[FunnelArm]:
        exposed, active = (self._units(name) for name in (UNITS, ACTIVE))
        converted = {
            metric: dict(_units_above(arm_states(self.design, state)))
            for metric, state in self._states(ALL_UNITS)
        }
        for arm in self.design.plan.variants if exposed else ():
            n, n_active = exposed.get(arm, 0.0), active.get(arm, 0.0)
            counts = {metric: arms.get(arm, (0.0, math.nan)) for metric, arms in converted.items()}
            yield FunnelArm(
                variant=arm,
                exposed=n,
                active=n_active,
                share_active=_share(n_active, n),
                converted={metric: above for metric, (above, _) in counts.items()},
                share_converted={metric: share for metric, (_, share) in counts.items()},
            )

    def _units(self, name: str) -> dict[str, float]:
        """The different units of each arm."""
        state = self.sums.get((self.design.prefix + name, ALL_UNITS))
        if state is None:
            return {}
        by_arm, counts = arm_states(self.design, state), {}
        for key in by_arm.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
            _, arm = cast("tuple[int, str]", key)
            counts[arm] = cast("sm.Units", by_arm.state(key)).compute().units
        return counts


def _units_above(by_arm: sm.PerKey) -> Iterator[tuple[str, tuple[float, float]]]:
    """By arm, the units with a value above 0, and their share of all units."""
    for key in by_arm.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
        state = by_arm.state(key)
        assert isinstance(state, sm.UnitMean | sm.UnitRate) and isinstance(key, tuple)
        result = state.compute()
        above = math.nan if result.units_above_0 is None else float(result.units_above_0)
        share = getattr(state, "share", 1.0)
        yield str(key[1]), (above / share, result.rate)


def _effect(contrast: experiments.Contrast) -> ExposedEffect:
    comparison, anytime = contrast.comparison, contrast.anytime
    lower, upper = comparison.effect_size_ci_lower, comparison.effect_size_ci_upper
    if lower == -math.inf and upper == math.inf:
        lower = upper = math.nan  # there is none, as where all values of an arm are 0
    return ExposedEffect(
        metric=contrast.metric,
        view=contrast.view,
        control_variant=contrast.control_variant,
        treatment_variant=contrast.treatment_variant,
        units=int(contrast.units or comparison.n),
        control=comparison.control,
        treatment=comparison.treatment,
        effect_size=comparison.effect_size,
        effect_size_ci_lower=lower,
        effect_size_ci_upper=upper,
        rel_effect_size=comparison.rel_effect_size,
        level=comparison.level,
        anytime_lower=math.nan if anytime.reason else anytime.lower,
        anytime_upper=math.nan if anytime.reason else anytime.upper,
        reason=comparison.reason or anytime.reason,
    )


def _range_of(cohorts: Sequence[CohortStates]) -> tuple[int, int] | None:
    if not cohorts:
        return None
    return min(part.first for part in cohorts), max(part.end for part in cohorts)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan
