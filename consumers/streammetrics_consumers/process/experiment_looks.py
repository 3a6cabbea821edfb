"""Looks at a running experiment, taken in the loop of a worker.

One process at a time takes a look, every `look_every_s`: see `ledger/looks.py`. The states and the
heads are read in one transaction. A look that fails is omitted, which invalidates no interval;
counting continues.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Final

from streammetrics import StreamMetricsError
from streammetrics.experiments import Experiment, Look
from streammetrics_consumers.ledger.delta_metadata import state_of
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger, TooLarge, View, view
from streammetrics_consumers.ledger.looks import LookRow, claim, heads_of, take
from streammetrics_consumers.query.experiment_plan import declared, experiment_of, within

log = logging.getLogger(__name__)

MAX_STATE_BYTES: Final = 512 << 20  # of stored states per look


def look_now(ledger: Ledger, generation: int, claimed_ms: int | None = None) -> bool:
    """Take a look at the experiment of a generation; returns whether a look was added.

    claimed_ms: when the look was claimed, by the claimant's clock; None without other processes.

    Raises LedgerError, and StreamMetricsError for states that the plan does not fit.
    """
    found = view(ledger, _seen, generation=generation)
    row = None if found is None else _row(*found)
    return row is not None and bool(row.look.readings) and take(ledger.store, row, claimed_ms)


def _seen(now: View) -> tuple[Look, int | None, Experiment] | None:
    """Read the states within the transaction, and build a look without readings."""
    of, seen = declared(now.version.generation), now.snapshot
    if of is None:
        return None
    panes = within(of.panes(size.pane for size in seen.panes), None, None)
    rows = now.delta_metadata(panes)
    nbytes = sum(row.nbytes for row in rows)
    if nbytes > MAX_STATE_BYTES:
        raise TooLarge(
            f"a look at the experiment needs {nbytes} bytes of states, more than the limit of "
            f"{MAX_STATE_BYTES}"
        )
    states = ((row.pane, state_of(row, stored)) for row, stored in now.states(rows))
    heads = heads_of(now.version.heads, now.version.retry)
    look = Look.at(of.fingerprint, now.version.generation.id, heads, {})
    return look, seen.greatest_event_ms, experiment_of(of, states)


def _row(look: Look, watermark_ms: int | None, experiment: Experiment) -> LookRow:
    # A metric without a counted state has no view yet, and no final name.
    contrasts = [one for one in experiment.contrasts() if one.view]
    readings = {one.name: one.anytime for one in contrasts}
    effects = {one.name: one.comparison.effect_size for one in contrasts}
    return LookRow(
        Look.at(look.experiment, look.generation, dict(look.heads), readings), watermark_ms, effects
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
            of = declared(self._ledger.generation(self._generation))
            now_ms = int(self._clock() * 1000)
            if of is not None and claim(
                self._ledger.store,
                self._generation,
                of.fingerprint,
                now_ms=now_ms,
                every_ms=int(every_s * 1000),
                last=last,
            ):
                look_now(self._ledger, self._generation, now_ms)
        except (StoreUnavailable, TooLarge, StreamMetricsError) as error:
            log.warning("%s; this look at the experiment is skipped", error)
