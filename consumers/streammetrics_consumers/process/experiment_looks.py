"""Looks at running experiments, taken in the loop of a worker.

Each experiment has its own looks: one process at a time takes one, every `look_every_s`: see
`ledger/looks.py`. The states and the heads are read in one transaction. A look that fails is
omitted, which invalidates no interval; counting continues. One whose declared end has passed has a
look whenever it got rows since the last one, and no other.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from sqlalchemy import Connection

from streammetrics import StreamMetricsError
from streammetrics.experiments import Anytime, Experiment, Look, Outcome
from streammetrics_consumers.config.hooks import HookConfig
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, state_of
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger, TooLarge
from streammetrics_consumers.ledger.looks import (
    LookRow,
    claim,
    count_looks,
    heads_of,
    heads_sha256,
    read_watched,
    take,
)
from streammetrics_consumers.ledger.outbox import HookMessage, add, last_message
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.generation import UNITS, Pane
from streammetrics_consumers.model.hook_events import LookPlace
from streammetrics_consumers.model.times import DAY_MS
from streammetrics_consumers.query.experiment_plan import (
    DeclaredExperiment,
    UnitsByEpoch,
    add_units,
    declared,
    experiment_of,
    experiments_of,
)
from streammetrics_consumers.query.experiment_totals import days_so_far
from streammetrics_consumers.query.hook_content import messages_of

log = logging.getLogger(__name__)

MAX_STATE_BYTES: Final = 512 << 20  # of stored states per look
MAX_DAYS_BYTES: Final = 64 << 20  # of the units by day, which every look sorts: 2 s
STEP_S: Final = 0.1  # of looks between two steps of a worker


def look_now(
    ledger: Ledger,
    generation: int,
    claimed_ms: int | None = None,
    name: str | None = None,
    hooks: Sequence[HookConfig] = (),
) -> bool:
    """Take a look at an experiment of a generation; returns whether a look was added.

    claimed_ms: when the look was claimed, by the claimant's clock; None without other processes.
    name: of the experiment; None: the one without a name, if there is one. hooks: the messages
    that follow from the look are added to the ledger with it.

    Raises LedgerError, and StreamMetricsError for states that the plan does not fit.
    """
    basis = view(ledger, lambda now: look_base(now, name, may_repeat=False), generation=generation)
    if basis is None:
        return False
    outcome = basis.experiment.outcome()
    row = _row(basis, outcome)
    if not row.look.readings:
        return False

    def follow(connection: Connection) -> None:
        place = LookPlace(
            ledger.store.id,
            generation,
            count_looks(connection, generation, row.look.experiment),
            row.look.place[0],
            heads_sha256(row.look),
            row.watermark_ms,
            claimed_ms or 0,
        )
        looks = read_watched(connection, generation, row.look.experiment, outcome.alphas)
        report = outcome.report(looks, days=basis.days)
        last = partial(last_message, connection, generation, row.look.experiment)
        add(connection, messages_of(last, hooks, basis.design, report, place))

    return take(ledger.store, row, claimed_ms, follow if hooks else None)


@dataclass(frozen=True, slots=True)
class LookBase:
    """What a look reads in one transaction: the look without its readings, the states, the
    readings of the look before, and the days since the start."""

    look: Look
    watermark_ms: int | None
    experiment: Experiment
    last: Mapping[str, Anytime]
    design: DeclaredExperiment
    days: float | None


def look_base(now: StoreView, name: str | None, *, may_repeat: bool = True) -> LookBase | None:
    """What a look now would read; None where there is no such experiment, or it has ended.
    may_repeat: whether to read what a look has read before: nothing was counted since."""
    version = now.version
    declaration = declared(version.generation, name)
    if declaration is None or declaration.ended:
        return None
    heads = heads_of(version.heads, version.retry)
    look = Look.at(declaration.fingerprint, version.generation.id, heads, {})
    if not may_repeat and now.is_taken(look):
        return None
    snapshot = now.snapshot
    panes = declaration.panes(size.pane for size in snapshot.panes)
    rows = now.delta_metadata(declaration.total_panes(panes))
    nbytes = sum(row.nbytes for row in rows)
    if nbytes > MAX_STATE_BYTES:
        raise TooLarge(
            f"a look at the experiment needs {nbytes} bytes of states, more than the limit of "
            f"{MAX_STATE_BYTES}"
        )
    states = ((row.pane, state_of(row, stored)) for row, stored in now.states(rows))
    closed_ms = declaration.closed_by(snapshot.closed_ms)
    experiment = experiment_of(declaration, states, closed_ms)
    days = _days(now, declaration, panes, MAX_DAYS_BYTES)
    experiment = replace(experiment, days=days)
    return LookBase(
        look,
        snapshot.greatest_event_ms,
        experiment,
        now.last_look(declaration.fingerprint),
        declaration,
        days_so_far(now, declaration, panes),
    )


def _days(
    now: StoreView, declaration: DeclaredExperiment, panes: Sequence[Pane], limit: int
) -> Mapping[int, UnitsByEpoch]:
    """The units of each day, by days since 1970: those of the windows of each day. None if they
    are not known: a window is longer than a day, an earlier one may have been dropped, so that
    a unit that returns would seem to be new, or they are larger than `limit` bytes."""
    name = declaration.prefix + UNITS
    units = [pane for pane in panes if pane.metric == name and not pane.is_total]
    floor_ms = now.version.generation.floor_ms
    first_ms = now.first_look_ms(declaration.fingerprint)
    starts = [ms for ms in (first_ms, *(pane.start_ms for pane in units)) if ms is not None]
    if not units or (floor_ms is not None and min(starts) <= floor_ms):
        return {}
    if any((pane.end_ms or 0) - (pane.start_ms or 0) > DAY_MS for pane in units):
        return {}
    rows = now.delta_metadata(units)
    if sum(row.nbytes for row in rows) > limit:
        return {}
    units_by_day: dict[int, UnitsByEpoch] = {}
    for row, stored in now.states(rows):
        start_ms = row.pane.start_ms
        assert start_ms is not None
        units_by_epoch = units_by_day.setdefault(start_ms // DAY_MS, {})
        add_units(declaration, units_by_epoch, state_of(row, stored))
    return units_by_day


def _row(basis: LookBase, outcome: Outcome) -> LookRow:
    # A metric without a counted state has no view yet, and no final name.
    outcome = replace(
        outcome, contrasts=tuple(contrast for contrast in outcome.contrasts if contrast.view)
    )
    readings, look = outcome.readings(basis.last), basis.look
    effects = {contrast.name: contrast.comparison.effect_size for contrast in outcome.contrasts}
    return LookRow(
        Look.at(look.experiment, look.generation, dict(look.heads), readings),
        basis.watermark_ms,
        effects,
    )


def hook_preview(ledger: Ledger, hooks: Sequence[HookConfig], now_ms: int) -> list[HookMessage]:
    """The messages that the store does not have yet, by experiment. Reads, and changes nothing.

    Raises LedgerError, and StreamMetricsError for states that a plan does not fit.
    """

    def read(now: StoreView) -> list[HookMessage]:
        names = experiments_of(now.version.generation)
        return [
            message for name in names for message in _preview_of(ledger, now, hooks, name, now_ms)
        ]

    return view(ledger, read)


def _preview_of(
    ledger: Ledger, now: StoreView, hooks: Sequence[HookConfig], name: str, now_ms: int
) -> list[HookMessage]:
    basis = look_base(now, name)
    if basis is None:
        return []
    outcome, look = basis.experiment.outcome(), basis.look
    watched = now.watched(look.experiment, outcome.alphas, look.place[0])
    place = LookPlace(
        ledger.store.id,
        look.generation,
        now.looks(look.experiment) + 1,
        look.place[0],
        heads_sha256(look),
        basis.watermark_ms,
        now_ms,
    )
    report = outcome.report(watched, days=basis.days)
    messages = messages_of(
        partial(now.last_hook, look.experiment), hooks, basis.design, report, place
    )
    return [message for message in messages if not now.has_hook(message)]


class Looker:
    """Takes looks that are due and that no other process takes.

    every_s: between two looks of all processes, by the name of the experiment. clock: seconds since
    1970, common to all processes. hooks: see `look_now`.
    """

    def __init__(
        self,
        ledger: Ledger,
        generation: int,
        every_s: Mapping[str, float],
        *,
        monotonic: Callable[[], float],
        clock: Callable[[], float],
        hooks: Sequence[HookConfig] = (),
    ) -> None:
        self._ledger, self._generation, self._every_s = ledger, generation, every_s
        self._hooks = hooks
        self._monotonic, self._clock = monotonic, clock
        self._asked_s = dict.fromkeys(every_s, -math.inf)
        self._ends: dict[str, _Counted] = {}  # of experiments whose end has passed

    def step(self, most_s: float = STEP_S) -> None:
        """Take the looks that are due, the longest first, until they have taken this long."""
        start_s = self._monotonic()
        for name in self._due():
            self._look_if_due(name)
            if self._monotonic() - start_s >= most_s:
                return

    def last(self) -> None:
        """Take the final look at each experiment, regardless of the time of the last one."""
        for name in self._every_s:
            self._look(name, last=True)

    def _due(self) -> list[str]:
        """The experiments whose looks are due, the longest first."""
        now_s = self._monotonic()
        due_s = {name: self._asked_s[name] + every_s for name, every_s in self._every_s.items()}
        return sorted((name for name, at_s in due_s.items() if now_s >= at_s), key=due_s.get)  # type: ignore[arg-type]

    def _look_if_due(self, name: str) -> None:
        self._asked_s[name] = self._monotonic()
        self._look(name, last=False)

    def _look(self, name: str, *, last: bool) -> None:
        try:
            declaration = declared(self._ledger.generation(self._generation), name)
            if declaration is None or declaration.ended:
                return
            counted = self._counted_at_the_end(declaration)
            if counted is not None and counted == self._ends.get(name):
                return
            now_ms = int(self._clock() * 1000)
            if claim(
                self._ledger.store,
                self._generation,
                declaration.fingerprint,
                now_ms=now_ms,
                every_ms=int(self._every_s[name] * 1000),
                last=last,
            ):
                look_now(self._ledger, self._generation, now_ms, name, self._hooks)
                if counted is not None:
                    self._ends[name] = counted
        except (StoreUnavailable, TooLarge, StreamMetricsError) as error:
            subject = f"the experiment {name}" if name else "the experiment"
            log.warning("%s; this look at %s is skipped", error, subject)

    def _counted_at_the_end(self, declaration: DeclaredExperiment) -> _Counted | None:
        """How far an experiment was counted whose end has passed; None of any other."""
        end_ms = declaration.end_ms
        if end_ms is None:
            return None

        def read(now: StoreView) -> _Counted | None:
            newest_ms = now.snapshot.greatest_event_ms
            if newest_ms is None or newest_ms < end_ms:
                return None
            panes = declaration.total_panes(size.pane for size in now.snapshot.panes)
            closed_ms = declaration.closed_by(now.snapshot.closed_ms)
            rows = now.delta_metadata(panes)
            return _counted(rows), declaration.closed_days(closed_ms)

        return view(self._ledger, read, generation=self._generation)


_Ends: TypeAlias = frozenset[tuple[int, int, int | None]]  # heads, offsets, and retries
_Counted: TypeAlias = tuple[_Ends, int | None]  # and the days of closed units


def _counted(rows: Iterable[DeltaMetadata]) -> _Ends:
    """How far rows were counted, which merging them does not change."""
    ends: dict[tuple[int, int | None], int] = {}
    for row in rows:
        key = row.head, row.retry
        ends[key] = max(row.end_offset, ends.get(key, row.end_offset))
    return frozenset((head, end, retry) for (head, retry), end in ends.items())
