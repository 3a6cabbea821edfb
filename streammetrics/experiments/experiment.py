"""An experiment: the states of its variants, by epoch, and the conclusions from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from streammetrics.combine.units import Units, UnitsResult, without_units
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import instance, refused
from streammetrics.experiments.arm import arm_of, is_effect
from streammetrics.experiments.arms import UNITS, Arm, no_arm, without_effect
from streammetrics.experiments.assignment import (
    Found,
    SampleRatioFound,
    contamination,
    left,
    sample_ratio,
    seen_in_several,
    units_of,
    why_unknown,
)
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.contrasts import contrast_of
from streammetrics.experiments.covariate import adjusted_arms
from streammetrics.experiments.masses import USERS
from streammetrics.experiments.monitor import Watched
from streammetrics.experiments.one_look import Anytime
from streammetrics.experiments.plan import Plan, Safeguard, known, refuse
from streammetrics.experiments.rates_beside import not_watched, rate_beside, why_no_rate
from streammetrics.experiments.report import Outcome, Report
from streammetrics.experiments.rows_of_units import arm_of_units, rows_per_unit
from streammetrics.experiments.rows_per_unit import RowsPerUnit
from streammetrics.experiments.same_rows import same_rows
from streammetrics.kernels.inference.pooled_variance import RowsAndUsers

StatesByMetric = Mapping[str, Mapping[str, Accumulator]]
States = Mapping[str, StatesByMetric]
UnitStates = Mapping[str, Mapping[str, Units]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A plan and the states: states[variant][metric], and the counted units: units[variant].

    With epochs, states[epoch][variant][metric] and units[epoch][variant]. An experiment is pure:
    it changes nothing, and its findings are a function of the rows and the plan, however the rows
    were sharded. metrics: names that may have no state yet. days: the units counted on each day, by
    days since 1970, epoch and variant, from which the sample ratio by day follows. SettingsError
    for a variant of the states that the plan does not name, and, from the findings, for a metric of
    the plan that is neither in the states nor in `metrics`, and for two names of one view.

    >>> from streammetrics import Ratio
    >>> a, b = Ratio(), Ratio()
    >>> a.update([1] * 46 + [0] * 9954)
    >>> b.update([1] * 69 + [0] * 9931)
    >>> plan = Plan(control="random", variants=("random", "bts"), decision=("ctr",))
    >>> experiment = Experiment(plan, {"random": {"ctr": a}, "bts": {"ctr": b}})
    >>> [(one.name, round(one.comparison.pvalue, 3)) for one in experiment.contrasts()]
    [('ctr.ratio/bts', 0.031)]

    One look at its end is significant, but nothing was declared that makes it valid however often
    somebody looks. With the least effect that matters in the plan the report says what holds:

    >>> from dataclasses import replace
    >>> from streammetrics.experiments import Horizon
    >>> declared = replace(plan, horizon=Horizon(mde=0.001), better={"ctr": "higher"})
    >>> report = Experiment(declared, experiment.states).report()
    >>> [finding.verdict for finding in report.findings], report.recommendation.action
    (['no_difference_yet'], 'wait')
    """

    plan: Plan
    states: States
    units: UnitStates = field(default_factory=dict)
    metrics: Collection[str] = ()
    days: Mapping[int, UnitStates] = field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self,
            plan: Plan,
            states: StatesByMetric | States,
            units: Mapping[str, Units] | UnitStates = ...,
            metrics: Collection[str] = ...,
            days: Mapping[int, UnitStates] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        hint = "see Plan of streammetrics.experiments"
        instance(self.plan, Plan, "Experiment(plan)", "a Plan", hint)
        if _are_arms(self.states, Accumulator):
            object.__setattr__(self, "states", {"": self.states})
        if _are_arms({"": self.units}, Units):
            object.__setattr__(self, "units", {"": self.units})
        self._require_types()
        for name, epochs in (("states", self.states), ("units", self.units)):
            for epoch, arms in epochs.items():
                where = f"{name}[{epoch!r}]" if epoch else name
                known(arms, self.plan.variants, where, "variants of the plan")

    def _require_types(self) -> None:
        """InputError for what is no states of variants."""
        for name, kind, depth in (
            ("states", Accumulator, 3),
            ("units", Units, 2),
            ("days", Units, 3),
        ):
            nested_states: object = getattr(self, name)
            if not _is_nested(nested_states, kind, depth):
                hint = 'pass {"control": state, "treatment": state} for each metric, by its name'
                expected = "states by name and variant"
                raise refused(f"Experiment({name})", expected, nested_states, hint)

    def srm(self) -> SampleRatioFound:
        """Whether units fell to the variants as planned, over all epochs."""
        return self._sample_ratio(self._units())

    def in_several(self) -> UnitsResult | None:
        """The units that were seen in several variants; None if units are not counted."""
        return seen_in_several(self.plan, self._units())

    def contrasts(self, watched: Collection[str] | None = None) -> tuple[Contrast, ...]:
        """One contrast for each metric of the plan and each treatment, decisions first.

        watched: only these metrics, as the plan names them. With "drop" in the plan, the states are
        those without units of several variants. Raises InputError for a view that a metric does not
        have, and SettingsError for a metric that does not keep units apart and so cannot drop any.
        """
        return self._compared(watched, self._not_watched())

    def _compared(
        self, watched: Collection[str] | None, unwatched: Collection[str]
    ) -> tuple[Contrast, ...]:
        """The contrasts, without guardrails that are not watched."""
        counted, dropped = self._units(), self._dropped()
        if dropped is not None:
            counted = left(counted, dropped)
        known_units: dict[tuple[str, ...], int | None] = {}
        contrasts = []
        rails = [
            (rail.metric, rail)
            for rail in self.plan.guardrails
            if rail.required or rail.metric not in unwatched
        ]
        for name, guardrail in [*((name, None) for name in self.plan.decision), *rails]:
            if watched is not None and name not in watched:
                continue
            for contrast in self._contrasts(name, counted, dropped, guardrail):
                variants, epochs = (
                    (self.plan.control, contrast.treatment_variant),
                    contrast.comparison.epochs,
                )
                if (*variants, *epochs) not in known_units:
                    known_units[*variants, *epochs] = units_of(counted, variants, epochs)
                n_units = known_units[*variants, *epochs]
                if self.plan.unit_view == "closed" and contrast.counts_units:
                    n_units = contrast.comparison.n
                contrasts.append(replace(contrast, units=n_units or None))
        _require_different(contrasts)
        return tuple(contrasts)

    def readings(self, last: Mapping[str, Anytime] | None = None) -> dict[str, Anytime]:
        """The current readings by name, for `Look.at`: of the contrasts, of the effects since their
        decisions, and of the sample ratio. last: the readings of the look before, `Monitor.last`.
        """
        return self.outcome().readings(last)

    def report(
        self, watched: Mapping[str, Watched] | None = None, *, days: float | None = None
    ) -> Report:
        """The report in words; watched: the looks so far, `Monitor.watched` by the names of
        `Outcome.alphas`; days: how long the experiment has run."""
        return self.outcome().report(watched, days=days)

    def outcome(self, watched: Collection[str] | None = None) -> Outcome:
        """Everything read from the states, once, to keep and report with later looks.
        watched: as in `contrasts`."""
        units, unwatched = self._units(), self._not_watched()
        several = seen_in_several(self.plan, units)
        return Outcome(
            self.plan,
            self._compared(watched, unwatched),
            self._sample_ratio(units),
            several,
            contamination(self.plan, units, several),
            tuple(self._same_rows_note()),
            tuple(unwatched.values()),
        )

    def _sample_ratio(self, units: Found) -> SampleRatioFound:
        """The sample ratio; of the treatments alone if the control gets no unit, because each
        metric compares it within the rows of a treatment."""
        is_one_stream = all(
            self._is_in_one_stream(*self._named(name)) for name in self.plan.watched
        )
        variants = self.plan.treatments if is_one_stream else ()
        by_day = {day: _results(units) for day, units in self.days.items()} or None
        return sample_ratio(self.plan, units, variants, by_day)

    def _is_in_one_stream(self, metric: str, view: str | None) -> bool:
        """Whether the view is itself an effect."""
        states = (
            state
            for arms in self.states.values()
            for metrics in arms.values()
            for state in [metrics.get(metric)]
        )
        state = next((state for state in states if state is not None), None)
        return state is not None and is_effect(state.empty().compute(), view)

    def _same_rows_note(self) -> Iterator[str]:
        """What says that two arms have the same rows or users, unless units are counted, which
        shows how many are in several variants."""
        if self.units:
            return
        for arms in self.states.values():
            control = arms.get(self.plan.control, {})
            for variant in self.plan.treatments:
                for name, state in arms.get(variant, {}).items():
                    warning = same_rows(control[name], state) if name in control else None
                    if warning is not None:
                        yield f"{name} of {self.plan.control} and {variant}: {warning}."

    def _not_watched(self) -> dict[str, str]:
        """The guardrails beside means whose rows they do not fit, each with a sentence that says
        so; also where the plan has none, because values above 0 were not counted at first."""
        sentences = {}
        for watched in self.plan.watched:
            name, view = self._named(watched)
            states = [
                (variant, state)
                for arms in self.states.values()
                for variant in self.plan.variants
                if isinstance(state := arms.get(variant, {}).get(name), Accumulator)
            ]
            rate_view = rate_beside(states[0][1], view) if states else None
            rate = f"{name}.{rate_view}"
            rail = next(
                (guardrail for guardrail in self.plan.guardrails if guardrail.metric == rate), None
            )
            if rate_view is None or (rail is not None and rail.required):
                continue
            reasons = [
                (variant, why_no_rate(state, rate_view, planned=rail is not None))
                for variant, state in states
            ]
            if any(why for _, why in reasons):
                sentences[rate] = not_watched(name, reasons)
        return sentences

    def _dropped(self) -> UnitsResult | None:
        """The units to drop from the states; None if none must be dropped or they are unknown."""
        units = self.in_several() if self.plan.on_several_variants == "drop" else None
        return None if units is None or why_unknown(units) else units

    def _contrasts(
        self,
        watched: str,
        counted: Found,
        dropped: UnitsResult | None,
        guardrail: Safeguard | None,
    ) -> Iterator[Contrast]:
        metric, view = self._named(watched)
        arms = {
            (epoch, variant): self._arm(epoch, variant, metric, view, dropped)
            for epoch in self.states
            for variant in self.plan.variants
        }
        arm_view = next(
            (arm.view for arm in arms.values() if arm.counts.rows or arm.precision.method),
            view or "",
        )
        decides = guardrail is not None and self._decides(metric, arm_view)
        for treatment in self.plan.treatments:
            pairs = {
                epoch: _pair(arms[epoch, self.plan.control], arms[epoch, treatment])
                for epoch in self.plan.ordered(self.states)
            }
            if not pairs:
                pairs = {"": (no_arm(view or ""), no_arm(view or ""))}
            sizes = self._sizes(pairs, treatment, counted)
            pairs = {
                epoch: self._unit_arms(pair, epoch, treatment, counted)
                for epoch, pair in pairs.items()
            }
            adjusted = self._adjusted(watched, treatment, pairs, dropped)
            contrast = contrast_of(
                self.plan, watched, metric, arm_view, treatment, adjusted, sizes, guardrail, decides
            )
            rows = (
                self._rows_per_unit(contrast, counted, sizes, dropped)
                if contrast.is_per_row
                else None
            )
            yield replace(contrast, rows_per_unit=rows)

    def _rows_per_unit(
        self,
        contrast: Contrast,
        counted: Found,
        sizes: Mapping[str, int],
        dropped: UnitsResult | None,
    ) -> RowsPerUnit | None:
        """The rows of a unit in both arms; None if units are not counted."""
        arms = {}
        for epoch in self.plan.ordered(self.states):
            pair = []
            for variant in (self.plan.control, contrast.treatment_variant):
                state = self._state(epoch, variant, contrast.metric, dropped)
                units = counted.get(epoch, {}).get(variant)
                if state is not None and units is not None:
                    pair.append(arm_of_units(state, units))
            if len(pair) == 2:
                arms[epoch] = pair[0], pair[1]
        return rows_per_unit(arms, sizes, contrast.horizon) if arms else None

    def _decides(self, metric: str, view: str) -> bool:
        """Whether the plan decides by this view."""
        for name in self.plan.decision:
            its_metric, its_view = self._named(name)
            if its_metric == metric and (its_view or self._headline(its_metric)) == view:
                return True
        return False

    def _headline(self, metric: str) -> str:
        """The first view of a metric; "" if it has no state."""
        for arms in self.states.values():
            for states in arms.values():
                if metric in states:
                    return arm_of(states[metric].empty(), None, self.plan.level).view
        return ""

    def _adjusted(
        self,
        watched: str,
        treatment: str,
        pairs: Mapping[str, tuple[Arm, Arm]],
        dropped: UnitsResult | None,
    ) -> Mapping[str, tuple[Arm, Arm]]:
        """The arms of each epoch without the planned covariate of the metric, if it has one."""
        planned = self.plan.covariates.get(watched)
        if planned is None or not self.states:
            return pairs
        metric, view = self._named(planned.metric)
        arms = self.plan.control, treatment
        adjusted_pairs = {}
        for epoch, pair in pairs.items():
            x = [self._arm(epoch, variant, metric, view, dropped) for variant in arms]
            adjusted_pairs[epoch] = adjusted_arms(pair, (x[0], x[1]), planned.theta)
        return adjusted_pairs

    def _arm(
        self,
        epoch: str,
        variant: str,
        metric: str,
        view: str | None,
        dropped: UnitsResult | None,
    ) -> Arm:
        state = self._state(epoch, variant, metric, dropped)
        return no_arm(view or "") if state is None else arm_of(state, view, self.plan.level)

    def _state(
        self, epoch: str, variant: str, metric: str, dropped: UnitsResult | None
    ) -> Accumulator | None:
        """The state of a metric in one arm, without the dropped units; None if there is none."""
        state = self.states[epoch].get(variant, {}).get(metric)
        return state if state is None or dropped is None else without_units(state, dropped)

    def _named(self, watched: str) -> tuple[str, str | None]:
        """The metric and the view; the longest metric name if several match."""
        names = {
            name for arms in self.states.values() for metrics in arms.values() for name in metrics
        }
        for name in sorted(names, key=len, reverse=True):
            if watched == name:
                return name, None
            if watched.startswith(f"{name}."):
                return name, watched[len(name) + 1 :]
        if names and not any(
            watched == name or watched.startswith(f"{name}.") for name in self.metrics
        ):
            where = f"the plan's {watched!r}"
            known([watched], sorted(names | set(self.metrics)), where, "a metric of the states")
        return watched, None

    def _units(self) -> Found:
        return _results(self.units)

    def _unit_arms(
        self, pair: tuple[Arm, Arm], epoch: str, treatment: str, counted: Found
    ) -> tuple[Arm, Arm]:
        """Both arms, with their number of users as a mass where it is counted; areas have one."""
        by_variant = counted.get(epoch, {})
        named_arms = zip((self.plan.control, treatment), pair, strict=True)
        sized_arms = [
            (arm, by_variant[name].sampled if name in by_variant else None)
            for name, arm in named_arms
        ]
        if any(arm.without.replicates is None or not units for arm, units in sized_arms):
            return pair
        a, b = (
            arm
            if isinstance(arm.counts.masses.get(USERS), RowsAndUsers)
            else arm.add_basis(USERS, float(n or 0))
            for arm, n in sized_arms
        )
        return a, b

    def _sizes(
        self, pairs: Mapping[str, tuple[Arm, Arm]], treatment: str, counted: Found
    ) -> dict[str, int]:
        """The units of both arms by epoch; their rows unless units are known in every epoch. Of
        units whose window is over, only these."""
        sizes: dict[str, int] = {}
        arms_of_all = [arm for pair in pairs.values() for arm in pair if arm.counts.rows]
        if self.plan.unit_view == "closed" and all(arm.counts.unit == UNITS for arm in arms_of_all):
            return {name: a.counts.rows + b.counts.rows for name, (a, b) in pairs.items()}
        for epoch in pairs:
            arms = counted.get(epoch, {})
            results = [
                arms[variant] for variant in (self.plan.control, treatment) if variant in arms
            ]
            sampled = [result.sampled for result in results]
            if len(results) < 2 or None in sampled:
                return {name: a.counts.rows + b.counts.rows for name, (a, b) in pairs.items()}
            sizes[epoch] = sum(n for n in sampled if n is not None)
        return sizes


def needs_one_epoch(metric: Accumulator, view: str | None = None) -> bool:
    """Whether an experiment of several epochs cannot compare a view: the always-valid interval of a
    quantile is of one epoch.

    >>> from streammetrics import ExactQuantiles, Ratio
    >>> needs_one_epoch(ExactQuantiles(), "median"), needs_one_epoch(Ratio())
    (True, False)
    """
    hint = "pass an instance, such as Ratio()"
    instance(metric, Accumulator, "needs_one_epoch(metric)", "a metric", hint)  # type: ignore[type-abstract]
    return arm_of(metric.empty(), view, 0.95).quantile is not None


def _require_different(contrasts: Iterable[Contrast]) -> None:
    """SettingsError for two names of one view, whose readings would have one name in the looks."""
    names: dict[str, str] = {}
    for contrast in contrasts:
        first = names.setdefault(contrast.name, contrast.watched)
        if first != contrast.watched:
            key = "decision" if contrast.safeguard is None else "guardrails"
            hint = f"leave it out: {first!r} is the same view"
            refuse(key, "each view once", contrast.watched, hint)


def _results(units: UnitStates) -> Found:
    return {
        epoch: {variant: state.compute() for variant, state in arms.items()}
        for epoch, arms in units.items()
    }


def _pair(control: Arm, treatment: Arm) -> tuple[Arm, Arm]:
    """Control and treatment; a treatment whose view is itself an effect is compared with 0."""
    return (without_effect(treatment) if treatment.sides is not None else control), treatment


def _are_arms(arms: object, kind: type) -> bool:
    """Whether a state of this class is where those of a variant are, not those of an epoch."""
    inner = arms.values() if isinstance(arms, Mapping) else ()
    return any(
        isinstance(state, kind)
        for states in inner
        if isinstance(states, Mapping)
        for state in states.values()
    )


def _is_nested(states: object, kind: type, depth: int) -> bool:
    """Whether these are states of this class, in nested mappings of this depth."""
    if depth == 0:
        return isinstance(states, kind)
    return isinstance(states, Mapping) and all(
        _is_nested(inner, kind, depth - 1) for inner in states.values()
    )
