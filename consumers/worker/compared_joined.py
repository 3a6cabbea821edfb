"""What came of joined events: the ledger's, beside what the logs say when they are joined again.

All logs are needed for it, since an outcome may stand in another one than its impression. The
scratch store of a recount holds their events as sets. Its label windows are closed up to where
those of the ledger are, and then each pane is compared as bytes, and what still waits with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from consumers.config.config import Config
from consumers.config.states import DELAYS, ROWS
from consumers.counting.label_windows import Closer
from consumers.ledger.audit import pane_rows, panes
from consumers.ledger.ledger import Ledger
from consumers.ledger.outline import Outline, pane_order
from consumers.model.commit import JOIN_START, Head
from consumers.model.generation import Pane
from consumers.worker.compared import RowsMoved, differences, named
from consumers.worker.recount import Recount
from consumers.worker.scratch import Scratch
from consumers.worker.verified import Verified

TRIES: Final = 20  # of a pane whose rows are merged by a compactor while we read them


def compare_joined(
    config: Config,
    ledger: Ledger,
    scratch: Scratch,
    heads: Sequence[Head],
    recounts: Collection[Recount],
    found: Verified,
) -> None:
    """Compare all that is counted of joined events. heads: of the ledger, as the recount began."""
    join = next((head for head in heads if head.is_join), None)
    logs = [head for head in heads if not head.is_join and head.next_offset > head.start_offset]
    whole = {one.head.id for one in recounts if one.is_whole and one.end == one.head.next_offset}
    if join is None or {head.id for head in logs} - whole:
        found.note("not all logs were read again from their starts, and events that are joined "
                   "need all of them: what was counted of these is not verified")  # fmt: skip
        return
    both = _Both(config, ledger, scratch, join)
    both.close()
    both.compare_counters(found)
    for pane in both.panes():
        both.compare(pane, found)
    now = {head.id: head.next_offset for head in ledger.snapshot().heads}
    if now == {head.id: head.next_offset for head in heads}:
        both.compare_waiting(found)
    else:
        found.note("events came meanwhile; those that wait to be joined are not verified")


class _Both:
    """The ledger and the scratch store."""

    def __init__(self, config: Config, ledger: Ledger, scratch: Scratch, join: Head) -> None:
        self.ledger, self.scratch, self.join = ledger, scratch, join
        self.names = {metric.name for metric in config.counted} | {DELAYS}
        self.metrics = {one.name: one for one in scratch.generation.metrics if not one.ended}
        self.closer = Closer(config, scratch.ledger, scratch.own)

    def close(self) -> None:
        """Close the label windows of the scratch store, with a stop where a metric was added, was
        dropped or went on."""
        stops = {self.join.next_offset}
        for one in self.metrics.values():
            stops.add(one.start_offsets.get(self.join.id, JOIN_START))
            stops |= {edge for hole in one.holes.get(self.join.id, ()) for edge in hole}
        for to_ms in sorted(stops):
            if to_ms <= self.join.next_offset:
                self.closer.close_to(to_ms)

    def compare_counters(self, found: Verified) -> None:
        """How many impressions were counted, and left out."""
        was, now = self.join.counters, self.closer.head.counters
        for name, ledger, log in (
            ("closed", was.closed, now.closed),
            ("conflicts", was.conflicts, now.conflicts),
        ):
            if ledger != log:
                found.differs(
                    "joined events", f"{name}: {ledger} in the ledger, {log} from the log"
                )

    def panes(self) -> list[Pane]:
        """Those that are counted on either side, but for what waits."""
        store, scratch = self.ledger.store, self.scratch
        both = {*panes(store, scratch.generation), *panes(scratch.ledger.store, scratch.own)}
        mine = (pane for pane in both if pane.metric in self.names and pane.metric in self.metrics)
        return sorted(mine, key=pane_order)

    def compare(self, pane: Pane, found: Verified) -> None:
        """Compare one pane of what was counted."""
        for _ in range(TRIES):
            seen = pane_rows(self.ledger.store, self.scratch.generation, [pane])
            floor_ms, start_ms = seen.floor_ms, pane.start_ms
            if floor_ms is not None and start_ms is not None and start_ms < floor_ms:
                return
            theirs = [row for row in seen.rows[pane] if row.head == self.join.id]
            theirs = [row for row in theirs if row.start_offset < self.join.next_offset]
            if any(row.end_offset > self.join.next_offset for row in theirs):
                break
            try:
                said = differences(
                    self.ledger.store, self.scratch.ledger.store, theirs, self._ours(pane)
                )
            except RowsMoved:
                continue
            found.states += 1
            for what in said:
                found.differs(f"{named(pane)}, joined events", what)
            return
        found.skips(f"{named(pane)}: merged with what was counted since; verify again")

    def _ours(self, pane: Pane) -> list[Outline]:
        rows = pane_rows(self.scratch.ledger.store, self.scratch.own, [pane]).rows
        return [
            row
            for row in rows[pane]
            if row.head == self.closer.head.id
            and self.metrics[pane.metric].counts(self.join.id, row.start_offset)
        ]

    def compare_waiting(self, found: Verified) -> None:
        """Compare what waits to be joined, as the union of all logs, by pane."""
        sides: list[dict[Pane, list[Outline]]] = []
        for store, of in (
            (self.ledger.store, self.scratch.generation),
            (self.scratch.ledger.store, self.scratch.own),
        ):
            rows: dict[Pane, list[Outline]] = defaultdict(list)
            for pane in panes(store, of):
                if pane.metric == ROWS and (pane.start_ms or 0) >= self.join.next_offset:
                    rows[pane] = list(pane_rows(store, of, [pane]).rows[pane])
            sides.append(rows)
        theirs, ours = sides
        for pane in sorted({*theirs, *ours}, key=pane_order):
            try:
                said = differences(self.ledger.store, self.scratch.ledger.store,
                                   theirs.get(pane, []), ours.get(pane, []))  # fmt: skip
            except RowsMoved:
                found.skips(f"{named(pane)}: merged while it was read; verify again")
                continue
            found.states += 1
            for what in said:
                found.differs(f"{named(pane)}, events that wait", what)
