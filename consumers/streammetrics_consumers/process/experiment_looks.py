"""Looks at a running experiment, taken in the loop of a worker.

One process at a time takes a look, every `look_every_s`: see `ledger/looks.py`. The states and the
heads are read in one transaction. A look that fails is omitted, which invalidates no interval;
counting continues.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from streammetrics import StreamMetricsError
from streammetrics.experiments import Anytime, Experiment, Look
from streammetrics_consumers.ledger.delta_metadata import state_of
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger, TooLarge
from streammetrics_consumers.ledger.looks import LookRow, claim, heads_of, take
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.generation import Pane
from streammetrics_consumers.model.times import DAY_MS
from streammetrics_consumers.query.experiment_plan import (
    EXPERIMENT,
    UNITS,
    UnitsByEpoch,
    add_units,
    declared,
    experiment_of,
    within,
)

log = logging.getLogger(__name__)

MAX_STATE_BYTES: Final = 512 << 20  # of stored states per look
MAX_DAYS_BYTES: Final = 64 << 20  # of the units by day, which every look sorts: 2 s


def look_now(ledger: Ledger, generation: int, claimed_ms: int | None = None) -> bool:
    """Take a look at the experiment of a generation; returns whether a look was added.

    claimed_ms: when the look was claimed, by the claimant's clock; None without other processes.

    Raises LedgerError, and StreamMetricsError for states that the plan does not fit.
    """
    basis = view(ledger, _seen, generation=generation)
    row = None if basis is None else _row(basis)
    return row is not None and bool(row.look.readings) and take(ledger.store, row, claimed_ms)


@dataclass(frozen=True, slots=True)
class _LookBase:
    """What a look reads in one transaction: the look without its readings, the states, and the
    readings of the look before."""

    look: Look
    watermark_ms: int | None
    experiment: Experiment
    last: Mapping[str, Anytime]


def _seen(now: StoreView) -> _LookBase | None:
    declaration, snapshot = declared(now.version.generation), now.snapshot
    if declaration is None:
        return None
    panes = declaration.panes(size.pane for size in snapshot.panes)
    rows = now.delta_metadata(within(panes, None, None))
    nbytes = sum(row.nbytes for row in rows)
    if nbytes > MAX_STATE_BYTES:
        raise TooLarge(
            f"a look at the experiment needs {nbytes} bytes of states, more than the limit of "
            f"{MAX_STATE_BYTES}"
        )
    states = ((row.pane, state_of(row, stored)) for row, stored in now.states(rows))
    experiment = experiment_of(declaration, states)
    look = Look.at(
        declaration.fingerprint,
        now.version.generation.id,
        heads_of(now.version.heads, now.version.retry),
        {},
    )
    days = _days(now, declaration.fingerprint, panes, MAX_DAYS_BYTES)
    experiment = replace(experiment, days=days)
    return _LookBase(
        look, snapshot.greatest_event_ms, experiment, now.last_look(declaration.fingerprint)
    )


def _days(
    now: StoreView, fingerprint: str, panes: Sequence[Pane], limit: int
) -> Mapping[int, UnitsByEpoch]:
    """The units of each day, by days since 1970: those of the windows of each day. None if they
    are not known: a window is longer than a day, an earlier one may have been dropped, so that
    a unit that returns would seem to be new, or they are larger than `limit` bytes."""
    units = [pane for pane in panes if pane.metric == f"{EXPERIMENT}/{UNITS}" and not pane.is_total]
    floor_ms, first_ms = now.version.generation.floor_ms, now.first_look_ms(fingerprint)
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
        add_units(units_by_day.setdefault(start_ms // DAY_MS, {}), state_of(row, stored))
    return units_by_day


def _row(basis: _LookBase) -> LookRow:
    outcome = basis.experiment.outcome()
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


class Looker:
    """Takes a look when one is due and no other process takes it.

    every_s: between two looks of all processes; None without an experiment, then it does nothing.
    clock: seconds since 1970, common to all processes.
    """

    def __init__(
        self,
        ledger: Ledger,
        generation: int,
        every_s: float | None,
        *,
        monotonic: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._ledger, self._generation, self._every_s = ledger, generation, every_s
        self._monotonic, self._clock = monotonic, clock
        self._asked_s = -math.inf

    def step(self) -> None:
        """Take a look if one is due."""
        if self._every_s is None:
            return
        now_s = self._monotonic()
        if now_s - self._asked_s >= self._every_s:
            self._asked_s = now_s
            self._look(self._every_s, last=False)

    def last(self) -> None:
        """Take the final look, regardless of the time of the last one."""
        if self._every_s is not None:
            self._look(self._every_s, last=True)

    def _look(self, every_s: float, *, last: bool) -> None:
        try:
            declaration = declared(self._ledger.generation(self._generation))
            now_ms = int(self._clock() * 1000)
            if declaration is not None and claim(
                self._ledger.store,
                self._generation,
                declaration.fingerprint,
                now_ms=now_ms,
                every_ms=int(every_s * 1000),
                last=last,
            ):
                look_now(self._ledger, self._generation, now_ms)
        except (StoreUnavailable, TooLarge, StreamMetricsError) as error:
            log.warning("%s; this look at the experiment is skipped", error)
