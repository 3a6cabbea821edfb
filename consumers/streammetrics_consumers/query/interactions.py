"""Whether the effect of one experiment of a store differs between the arms of another.

An experiment whose config has `interactions` counts the sums of its decision metrics by unit. They
are read here, and no other answer reads them. What is known of a pair is computed again when the
units of one of them change, more units of all are left out of the sample, or the sums change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import streammetrics as sm
from streammetrics import experiments
from streammetrics_consumers.ledger.delta_metadata import state_of
from streammetrics_consumers.ledger.store_view import StoreView
from streammetrics_consumers.model.generation import UNIT_SUMS
from streammetrics_consumers.query.answers import InteractionEntry
from streammetrics_consumers.query.experiment_plan import (
    DeclaredExperiment,
    sum_of_arms,
    window_panes,
)
from streammetrics_consumers.query.overlaps import (
    UNREAD,
    Member,
    RunningPair,
    declared_names,
    label_of,
)
from streammetrics_consumers.query.slices import own_metric
from streammetrics_consumers.query.turns import checkpoint

if TYPE_CHECKING:
    from streammetrics.experiments import Experiment, Interaction, Outcome, UnitMetric

MOST: Final = 1_000  # interactions that are asked for
MAX_STATE_BYTES: Final = 64 << 20  # of the stored sums of one experiment
_NO_VIEW: Final = "it is no share and no mean of a field, whose sums by unit are counted"
_NO_SUMS: Final = "no sums by unit are counted yet"


class _Measured(NamedTuple):
    """What is known by unit of the decision metrics of an experiment. made_of: what it follows
    from."""

    made_of: object
    metrics: Mapping[str, UnitMetric | str]


class Interactions:
    """What is known of the interactions of a store's experiments, kept as long as it is current."""

    def __init__(self) -> None:
        self._measured: dict[str, _Measured] = {}
        self._pairs: dict[tuple[str, str], tuple[object, tuple[Interaction, ...]]] = {}

    def entries(
        self, now: StoreView, members: Sequence[Member], pairs: Sequence[RunningPair]
    ) -> tuple[InteractionEntry, ...]:
        """The interactions of these pairs, of the experiments that count sums by unit, at most
        MOST: those of pairs that come first. P-values are adjusted for all of them."""
        names = {name for pair in pairs for name in pair.names}
        unit_members = {label_of(member.design): member for member in members if member.unit_views}
        former, self._measured = self._measured, {}
        for name in names & unit_members.keys():
            self._measured[name] = _measured(now, unit_members[name], former.get(name))
        former_pairs, self._pairs = self._pairs, {}
        interactions: list[Interaction] = []
        for pair in pairs:
            measured = {name: self._measured[name] for name in pair.names if name in self._measured}
            made_of = pair.made_of, {name: answer.made_of for name, answer in measured.items()}
            before = former_pairs.get(pair.names)
            if before is None or before[0] != made_of:
                checkpoint()
                metrics = {name: answer.metrics for name, answer in measured.items()}
                before = made_of, experiments.interactions(pair.sample, metrics)
            if len(interactions) + len(before[1]) > MOST:
                break
            self._pairs[pair.names] = before
            interactions += before[1]
        return tuple(map(_entry, _adjusted(interactions)))


def _adjusted(interactions: Iterable[Interaction]) -> Iterable[Interaction]:
    """The interactions, each with the p-value that is adjusted for all of them."""
    by_number = {str(i): interaction for i, interaction in enumerate(interactions)}
    adjusted = experiments.adjust_fwer(
        {
            i: math.nan if interaction.reason else interaction.p_value
            for i, interaction in by_number.items()
        }
    )
    return (replace(interaction, adjusted_p=adjusted[i]) for i, interaction in by_number.items())


def _entry(interaction: Interaction) -> InteractionEntry:
    return InteractionEntry(
        declared_names(interaction.experiment, interaction.other),
        interaction.metric,
        (interaction.treatment, interaction.other_arm),
        interaction.effect_size,
        interaction.lower,
        interaction.upper,
        interaction.adjusted_p,
        interaction.differs,
        interaction.sentence,
    )


def unit_views(
    declared: DeclaredExperiment, experiment: Experiment, outcome: Outcome
) -> Mapping[str, str]:
    """By each name of the decision the view of UnitSums that equals its own, "" if none does; empty
    unless interactions are asked for, and before there is a state."""
    if not declared.unit_sums:
        return {}
    states = {
        metric: state
        for arms in experiment.states.values()
        for arm in arms.values()
        for metric, state in arm.items()
    }
    decisions = {
        contrast.watched: contrast
        for contrast in outcome.contrasts
        if contrast.safeguard is None and contrast.view
    }
    return {
        name: experiments.unit_view(own_metric(states[contrast.metric]), contrast.view)
        for name, contrast in decisions.items()
        if contrast.metric in states
    }


def _measured(now: StoreView, member: Member, last: _Measured | None) -> _Measured:
    """What is known by unit of the decision metrics of an experiment; last: the answer, if it
    follows from the same rows."""
    design = member.design
    panes = [size.pane for size in now.snapshot.panes if size.pane.metric in design.unit_sums]
    rows = now.delta_metadata(window_panes(panes, None, None))
    stored = frozenset((row.id, row.end_offset, row.nbytes) for row in rows)
    # The note as in `outcome_of`.
    made_of = design, now.version.retry_note, tuple(member.unit_views.items()), stored
    if last is not None and last.made_of == made_of:
        return last
    sums: dict[str, sm.UnitSums] = {}
    why = _NO_SUMS
    if sum(row.nbytes for row in rows) > MAX_STATE_BYTES:
        rows, why = [], f"its sums by unit are more than {MAX_STATE_BYTES} bytes"
    try:
        for row, data in now.states(rows):
            state = sum_of_arms(design, state_of(row, data))
            if isinstance(state, sm.UnitSums):
                metric = row.pane.metric
                sums[metric] = sums[metric] + state if metric in sums else state
    except sm.StateError:
        sums, why = {}, UNREAD
    results = {metric: state.compute() for metric, state in sums.items()}
    metrics: dict[str, UnitMetric | str] = {}
    for name, view in member.unit_views.items():
        metric = f"{design.prefix}{UNIT_SUMS}{design.metric_of(name)}"
        if not view or metric not in design.unit_sums:
            metrics[name] = _NO_VIEW
        elif metric not in results:
            metrics[name] = why
        else:
            metrics[name] = experiments.UnitMetric(results[metric], view)
    return _Measured(made_of, metrics)
