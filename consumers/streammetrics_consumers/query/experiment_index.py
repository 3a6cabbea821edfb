"""The index of a store's experiments: of each its state, its recommendation and what that rests on.

One experiment is read again when it counted events, or a look at it was taken; the others stay as
they were. Answers depend on no clock: whether an experiment is over follows from the event time
that its store has reached.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

import streammetrics as sm
from streammetrics_consumers.ledger.former_states import is_of_another_version
from streammetrics_consumers.ledger.ledger import Ledger, TooLarge
from streammetrics_consumers.ledger.looks import heads_of, thinned
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.generation import Pane
from streammetrics_consumers.query.answers import (
    EntryEffect,
    EntryGuardrails,
    ExperimentEntry,
    ExperimentsAnswer,
    ResultsAnswer,
)
from streammetrics_consumers.query.comparisons import progress_of, verdict
from streammetrics_consumers.query.experiment_plan import (
    DeclaredExperiment,
    declared,
    experiments_of,
)
from streammetrics_consumers.query.experiment_totals import (
    Totals,
    WindowOutcome,
    days_so_far,
    first_window_ms,
    newest_of,
    period_of,
    phase_of,
    report_of,
    total_of,
)
from streammetrics_consumers.query.interactions import Interactions
from streammetrics_consumers.query.json_kinds import Phase, UnitView
from streammetrics_consumers.query.moments import Last, Moment, moment_of
from streammetrics_consumers.query.overlaps import (
    UNREAD,
    Member,
    Overlaps,
    pairs_of,
    unknown_sample,
)
from streammetrics_consumers.query.query import Query, require_generation
from streammetrics_consumers.query.rows import SINCE_THE_START, WindowFinding
from streammetrics_consumers.query.turns import checkpoint

if TYPE_CHECKING:
    from streammetrics.experiments import Report, UnitSample

COURSE: Final = 40  # looks of an effect in the index


@dataclass(frozen=True, slots=True)
class _MadeEntry:
    """An entry, and all that it was made from."""

    made_of: tuple[object, ...]
    entry: ExperimentEntry


class ExperimentIndex:
    """Reads the index of a ledger. Thread-safe. totals: those of experiments, which other readers
    may share."""

    def __init__(self, ledger: Ledger, totals: Totals | None = None) -> None:
        self._ledger, self._totals = ledger, {} if totals is None else totals
        self._lock = Lock()
        self._answers: dict[int | None, tuple[Moment, ExperimentsAnswer]] = {}
        self._entries: dict[tuple[int, str], _MadeEntry] = {}
        self._overlaps = Overlaps()
        self._interactions = Interactions()

    def answer(self, generation: int | None = None) -> ExperimentsAnswer:
        """The index; the same object as long as nothing changes. Raises QueryError for a generation
        that the store does not have."""
        if generation is not None:
            numbers = [stored.id for stored in self._ledger.generations()]
            require_generation(generation, numbers)
        with self._lock:
            moment, answer = view(
                self._ledger, lambda now: self._entries_at(now, generation), generation=generation
            )
            self._answers[generation] = moment, answer
        return answer

    def _entries_at(
        self, now: StoreView, generation: int | None
    ) -> tuple[Moment, ExperimentsAnswer]:
        moment, before = moment_of(now), self._answers.get(generation)
        if before is not None and before[0] == moment:
            return before
        stored = now.version.generation
        designs = [declared(stored, name) for name in experiments_of(stored)]
        read = [*self._read(now, filter(None, designs))]
        members = [member for _, member in read if not member.design.archived]
        pairs = tuple(pairs_of(members))
        return moment, ExperimentsAnswer(
            generation=stored.id,
            offsets=now.bare.offsets,
            incomplete=now.bare.incomplete,
            experiments=tuple(entry for entry, _ in read),
            layers=self._overlaps.layers(members),
            overlaps=self._overlaps.pairs(pairs),
            interactions=self._interactions.entries(now, members, pairs),
        )

    def _read(
        self, now: StoreView, designs: Iterable[DeclaredExperiment]
    ) -> Iterator[tuple[ExperimentEntry, Member]]:
        """Of each experiment its entry, and what may meet others."""
        panes: dict[str, list[Pane]] = {}
        for size in now.snapshot.panes:
            panes.setdefault(size.pane.metric, []).append(size.pane)
        for design in designs:
            checkpoint()
            own_panes = design.panes(
                pane for name in design.metrics for pane in panes.get(name, ())
            )
            phase, period = phase_of(now, design, own_panes), period_of(now, design, own_panes)
            made_of: object = UNREAD
            units: UnitSample | None = None
            unit_views: Mapping[str, str] = {}
            try:
                total = total_of(now, design, own_panes, self._totals)
            except (sm.StateError, TooLarge) as error:
                looks = now.looks(design.fingerprint)
                entry = _unread(design, phase, f"{_what_is_wrong(error)}: {error}.", looks)
            else:
                entry = self._entry(now, design, own_panes, phase, total)
                made_of, units, unit_views = total.made_of, total.units, total.unit_views
            sample = unknown_sample(design, UNREAD) if units is None else units
            is_running = phase == "running"
            yield entry, Member(design, made_of, sample, period, is_running, unit_views)

    def _entry(
        self,
        now: StoreView,
        design: DeclaredExperiment,
        panes: Sequence[Pane],
        phase: Phase,
        total: WindowOutcome,
    ) -> ExperimentEntry:
        key = now.version.generation.id, design.name
        looks, first_ms = now.looks(design.fingerprint), first_window_ms(now, design, panes)
        newest_ms = newest_of(now.snapshot, design, panes)
        made_of = design, total.made_of, looks, first_ms, newest_ms, phase
        before = self._entries.get(key)
        if before is not None and before.made_of == made_of:
            return before.entry
        position = sum(heads_of(now.version.heads, now.version.retry).values())
        watched = now.watched(design.fingerprint, total.outcome.alphas, position)
        days = days_so_far(now, design, panes)
        report = report_of(total, watched, days)
        rows = [WindowFinding(SINCE_THE_START, finding, 0) for finding in report.findings]
        entry = ExperimentEntry(
            name=design.name,
            title=design.title,
            hypothesis=design.hypothesis,
            state=phase,
            archived=design.archived,
            sentence=verdict(design, rows)[1],
            recommendation=report.recommendation,
            start_ms=first_ms if design.start_ms is None else design.start_ms,
            end_ms=design.end_ms,
            progress=progress_of(design, report.srm, days),
            guardrails=_guardrails(rows),
            srm=report.srm,
            effect=_effect(now, design, report, rows),
            looks=looks,
            units=unit_view(design),
        )
        self._entries[key] = _MadeEntry(made_of, entry)
        return entry


def indexed(
    index: ExperimentIndex, query: Query, last: Last[ResultsAnswer], results: ResultsAnswer
) -> ResultsAnswer:
    """The results with the index, if the query names no experiment and any has a name. last: the
    answer before, which stays if neither changed."""
    if query.experiment is not None or not any(results.tables.experiments):
        return results
    return last.result(_indexed, results, index.answer(query.generation))


def _indexed(results: ResultsAnswer, index: ExperimentsAnswer) -> ResultsAnswer:
    return replace(results, experiments=index)


def _what_is_wrong(error: sm.StateError | TooLarge) -> str:
    if isinstance(error, sm.StateError) and not is_of_another_version(error):
        return "The experiment is not shown, because a stored state of it is damaged"
    return "The experiment is not shown"


def _unread(design: DeclaredExperiment, phase: Phase, why: str, looks: int) -> ExperimentEntry:
    """An experiment whose states cannot be read."""
    return ExperimentEntry(
        name=design.name,
        title=design.title,
        hypothesis=design.hypothesis,
        state=phase,
        archived=design.archived,
        sentence=why,
        recommendation=None,
        start_ms=design.start_ms,
        end_ms=design.end_ms,
        progress=None,
        guardrails=EntryGuardrails((), 0, 0),
        srm=None,
        effect=None,
        looks=looks,
        units=unit_view(design),
    )


def unit_view(design: DeclaredExperiment) -> UnitView | UnsetType:
    """Of which exposed units the plan's means and rates are."""
    if not design.is_exposed:
        return UNSET
    return "closed" if design.is_of_closed_units else "so_far"


def _guardrails(rows: Sequence[WindowFinding]) -> EntryGuardrails:
    """The guardrails; of one that is only watched, whether it is broken."""
    rails = [row for row in rows if row.guardrail]
    broken = [row.contrast.watched for row in rails if row.finding.verdict == "broken"]
    required = [row.finding.verdict for row in rails if row.required]
    n_kept = sum(verdict == "kept" for verdict in required)
    n_broken = sum(verdict == "broken" for verdict in required)
    return EntryGuardrails(tuple(dict.fromkeys(broken)), n_kept, len(required) - n_kept - n_broken)


def _effect(
    now: StoreView, design: DeclaredExperiment, report: Report, rows: Sequence[WindowFinding]
) -> EntryEffect | None:
    decisions = [row for row in rows if not row.guardrail and row.contrast.view]
    if not decisions:
        return None
    first = [row for row in decisions if row.contrast.watched == decisions[0].contrast.watched]
    recommended = report.recommendation.treatments
    row = next((row for row in first if row.contrast.treatment_variant in recommended), first[0])
    points = now.points(design.fingerprint, row.finding.contrast.name)
    contrast, finding = row.contrast, row.finding
    return EntryEffect(
        metric=contrast.metric,
        view=contrast.view,
        variant=contrast.treatment_variant,
        estimate=contrast.comparison.effect_size,
        relative=contrast.comparison.rel_effect_size,
        lower=math.nan if finding.reason else finding.anytime_lower,
        upper=math.nan if finding.reason else finding.anytime_upper,
        reason=finding.reason,
        verdict=finding.verdict,
        course=tuple(point.effect for point in thinned(points, COURSE)),
    )
