"""The batches of a streaming query as the records of a log in the ledger.

An engine numbers its batches, and may repeat a batch after a failure, with the same rows. So the
query is a log whose offsets are batch numbers. Its head, the states of a batch and the refused
events of the batch change in one transaction:

    head at 7, batch 7    counted; the head moves to 8
    head at 8, batch 7    counted before: skipped
    head at 7, batch 9    batches are missing: refused (GapError)

A query that starts again with another checkpoint numbers from 0 and may read other rows: it is
another log with the same name, and is refused (LogChanged).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Literal

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.commits import ErrorBudget
from streammetrics_consumers.counting.housekeeping import IdleCompactor, floor_after
from streammetrics_consumers.engines.tasks import Job, TaskReport, combined_report
from streammetrics_consumers.ledger.ledger import LogChanged, count_from
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.generation import (
    NOTHING_REQUESTED,
    Generation,
    Requested,
    StateShard,
)
from streammetrics_consumers.model.partition import SPARK, Partition
from streammetrics_consumers.process.experiment_looks import Looker
from streammetrics_consumers.process.service import begin, open_ledger
from streammetrics_consumers.sources import GapError

log = logging.getLogger(__name__)

TRIES: Final = 10  # per batch, if windows are dropped meanwhile

Gap = Literal["stop", "skip"]


class BatchLedger:
    """A ledger to which one streaming query writes, as a worker does.

    identity: distinguishes this query from another one of the same name. It stays the same while
    the numbering of batches continues: the id in the checkpoint. on_gap: what to do if batches are
    missing, or if the query has started again.
    """

    def __init__(
        self,
        config: Config,
        identity: str,
        *,
        monotonic: Callable[[], float],
        clock: Callable[[], float],
        on_gap: Gap = "stop",
        new_generation: bool = False,
        new_source: bool = False,
        requested: Requested = NOTHING_REQUESTED,
    ) -> None:
        """Raises LedgerError; SettingsChanged if the store was counted with other settings; and
        NewSource if it has counted only from other logs and `new_source` does not allow this one.
        """
        assert config.source.query is not None
        self.config, self.on_gap = config, on_gap
        self.log = Partition(SPARK, config.source.query, identity, 0)
        self.ledger = open_ledger(config, new_generation=new_generation, requested=requested)
        # The engine marks a batch as done after our commit, and does not repeat it then.
        self.ledger.store.outlive_power_cuts()
        try:
            begun = begin(self.ledger, config, new_generation=new_generation, requested=requested)
            self.generation: Generation = begun.generation
            count_from(self.ledger.store, self.generation, [self.log], new=new_source)
            self._error_budget = ErrorBudget(config.store.max_bad_share)
            self._began = False
            self._compactor = IdleCompactor(self.ledger.store, monotonic)
            every_s = {
                name: experiment.look_every_s for name, experiment in config.experiments.items()
            }
            self._looker = Looker(
                self.ledger, self.generation.id, every_s, monotonic=monotonic, clock=clock
            )
        except BaseException:
            self.ledger.close()
            raise

    def close(self) -> None:
        """Close the store."""
        self.ledger.close()

    def count(
        self,
        batch: int,
        counted: Callable[[Job], tuple[Sequence[StateShard], Iterable[TaskReport]]],
        record_time: str | None = None,
    ) -> bool:
        """Count one batch; returns False if it was counted before. `counted` runs the tasks.

        Raises GapError, LogChanged, SettingsChanged, ErrorBudgetExceeded or StoreUnavailable, and
        then writes nothing of the batch.
        """
        for _ in range(TRIES):
            head = self._head(batch)
            if batch < head.next_offset:
                log.info("%s: batch %d is counted already", self.log, batch)
                return False
            job = Job(
                self.config,
                self.log,
                batch,
                head.greatest_event_ms,
                self.generation.floor_ms,
                record_time,
            )
            with suppress(Fenced):
                self._commit(head, batch, *counted(job))
                return True
            # Windows of the batch were dropped, or another run of the query has counted it.
            now = self.ledger.generation(self.generation.id)
            self.generation = replace(self.generation, floor_ms=now.floor_ms)
        raise Fenced(f"{self.log}: batch {batch} was refused {TRIES} times; start the query again")

    def _head(self, batch: int) -> Head:
        """The head of the query, moved according to `on_gap` if batches are missing."""
        try:
            head = self.ledger.resolve(self.generation, self.log, batch)
        except LogChanged as changed:
            if self.on_gap == "stop":
                raise
            log.warning("%s; continuing with the new log", changed)
            head = self.ledger.follow(self.generation, changed.known, self.log, batch)
        if batch > head.next_offset:
            gap = GapError(self.log, head.next_offset, batch, batch + 1)
            if self.on_gap == "stop":
                raise gap
            log.warning("%s; %d batches are skipped", gap, batch - head.next_offset)
            head = self.ledger.skip(self.generation, head, batch)
        if not self._began:  # commits from here on are added to the budget directly
            self._error_budget.began(self.ledger.store, head)
            self._began = True
        return head

    def _commit(
        self, head: Head, batch: int, shards: Sequence[StateShard], reports: Iterable[TaskReport]
    ) -> None:
        report = combined_report(reports, batch, head.greatest_event_ms)
        self._error_budget.check([(self.log, report.counters, report.refused)], last=False)
        commit = Commit(
            head,
            batch,
            batch + 1,
            report.greatest_event_ms,
            report.counters,
            shards,
            report.refused,
            floor_ms=self.generation.floor_ms if report.counters.expired else None,
        )
        moved = self.ledger.commit(self.generation, commit)
        self._error_budget.count(report.counters)
        self._compactor.committed(moved)
        self._compactor.step(idle=True)
        self._raise_floor()
        self._looker.step(math.inf)

    def _raise_floor(self) -> None:
        heads = self.ledger.heads(self.generation)
        floor_ms = floor_after(self.config, heads, self.generation.floor_ms, None)
        if floor_ms is not None:
            self.generation = self.ledger.raise_floor(self.generation, floor_ms)
