"""Compares the states of a ledger with those counted again from its logs, by pane of a metric.

Both are in the scratch store. A few panes are read at a time, so that memory is bounded. Events
that wait for others need all logs, since an outcome or an exposure may be in another log: they are
closed again up to the same time as in the ledger, and those that are pending are compared too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from streammetrics import Accumulator
from streammetrics.engines import agree
from streammetrics_consumers.counting.closed_rows import ranges_for
from streammetrics_consumers.counting.closer import Closer
from streammetrics_consumers.counting.entering_experiments import Entering, exposed_experiments
from streammetrics_consumers.counting.exposure_closing import KNOWN
from streammetrics_consumers.ledger.audit import (
    Unreadable,
    merged,
    overlapping,
    pane_rows,
    panes,
    total_ends,
    unequal_rows,
)
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, few, pane_order
from streammetrics_consumers.model.commit import JOIN_START, Head
from streammetrics_consumers.model.generation import (
    DELAYS,
    EXPOSED_UNITS,
    PENDING,
    Metric,
    Pane,
)
from streammetrics_consumers.replay.replay import Replay
from streammetrics_consumers.replay.scratch import Scratch

PANES: Final = 200, 4 << 20  # read together: their number, and the bytes of their states
KNOWN_BYTES: Final = 64 << 20  # of known exposures that are compared together
SUMS: Final = 100, 256 << 10  # held together: their number, and the bytes of their rows

# The key of a compared sum: a pane, a head of the ledger (0: all of them together), and a retry.
Key = tuple[Pane, int, int | None]
Rows = dict[Key, list[DeltaMetadata]]


def compare_states(scratch: Scratch, replays: Collection[Replay]) -> None:
    """Compare every pane that either side has, of the logs that were read again."""
    comparison = _Comparison(scratch, replays)
    if scratch.config.closing is not None:
        comparison.close_again()
    ledger_panes = panes(scratch.store, scratch.generation)
    log_panes = panes(scratch.store, scratch.own)
    sizes = [
        (pane, ledger_panes.get(pane, 0) + log_panes.get(pane, 0))
        for pane in sorted({*ledger_panes, *log_panes}, key=pane_order)
    ]
    for few_panes in few(sizes, *PANES):
        comparison.compare(few_panes)
    if comparison.join is not None:
        comparison.compare_known(comparison.join)
        closed_ms = comparison.join.next_offset
        waiting = [
            entry
            for entry in sizes
            if entry[0].metric in PENDING and (entry[0].start_ms or 0) >= closed_ms
        ]
        for few_panes in few(waiting, *PANES):
            comparison.compare_pending(few_panes)


class _Comparison:
    """`join` is the head of closed events, None where it cannot be compared."""

    def __init__(self, scratch: Scratch, replays: Collection[Replay]) -> None:
        self.scratch, self.found = scratch, scratch.found
        self.heads = {head.id: head for head in scratch.heads}
        self.replays = {replay.head.id: replay for replay in replays}
        self.join: Head | None = None
        self.names = {metric.name for metric in scratch.config.counted}
        self.metrics = {
            metric.name: metric for metric in scratch.generation.metrics if not metric.ended
        }

    def close_again(self) -> None:
        """Close the events read again, with a stop where a metric was added, dropped or resumed, or
        an experiment with exposures ended."""
        scratch, config = self.scratch, self.scratch.config
        join = next((head for head in scratch.heads if head.is_join), None)
        logs = [h for h in scratch.heads if not h.is_join and h.next_offset > h.start_offset]
        whole = {replay.head.id for replay in self.replays.values() if replay.is_whole}
        if join is None or {head.id for head in logs} - whole:
            self.found.note(
                "closed events are not verified: they need all logs, read again from their starts"
            )
            return
        self.join = join
        self.names |= {DELAYS} if config.join is not None else set()
        self.names |= {EXPOSED_UNITS} if config.exposures is not None else set()
        of_exposures = exposed_experiments(scratch.generation)
        ended = {name: metric for name, metric in of_exposures.items() if metric.ended}
        last = total_ends(scratch.store, join, [metric.name for metric in ended.values()])
        ends = {
            name: metric.ends.get(join.id, last.get(metric.name, JOIN_START))
            for name, metric in ended.items()
        }
        entering = Entering(scratch.generation, join.id, ends)
        closer = Closer(config, scratch.ledger, scratch.own, entering=entering)
        stops = {join.next_offset, *ends.values()}
        for metric in (*self.metrics.values(), *of_exposures.values()):
            stops.add(metric.start_offsets.get(join.id, JOIN_START))
            stops |= {edge for hole in metric.holes.get(join.id, ()) for edge in hole}
        for to_ms in sorted(stop for stop in stops if stop <= join.next_offset):
            closer.close_to(to_ms)
        scratch.of[closer.head.id] = join.id, None
        stored, now = join.counters, closer.head.counters
        for name, ledger, log in (
            ("closed", stored.closed, now.closed),
            ("conflicts", stored.conflicts, now.conflicts),
            ("skipped", stored.skipped, now.skipped),
        ):
            if ledger != log:
                self.found.differs(
                    "closed events", f"{name}: {ledger} in the ledger, {log} from the log"
                )

    def compare(self, few_panes: Collection[Pane]) -> None:
        """Compare the states of these panes: those of each log, and of each retry of one."""
        scratch = self.scratch
        ledger_rows, log_rows, differences = Rows(), Rows(), defaultdict[Key, list[str]](list)
        ledger_by_pane, log_by_pane = self._rows(few_panes)
        for pane in few_panes:
            for first, second in overlapping(ledger_by_pane[pane]):
                differences[pane, first.head, first.retry].append(
                    f"delta rows of {_offsets(first)} and {_offsets(second)} overlap"
                )
            metric = self.metrics.get(pane.metric) if pane.metric in self.names else None
            if metric is None or pane == KNOWN:
                continue
            floor_ms = scratch.generation.floor_ms
            if pane.start_ms is not None and floor_ms is not None and pane.start_ms < floor_ms:
                if ledger_by_pane[pane]:
                    self.found.differs(named(pane), "rows remain below the retention floor")
                continue
            for row in ledger_by_pane[pane]:
                wrong = self._wrong(row, metric)
                if wrong:
                    differences[pane, row.head, None].append(
                        f"{_offsets(row)}: a delta row {wrong}"
                    )
                elif wrong is None:
                    ledger_rows.setdefault((pane, row.head, row.retry), []).append(row)
            for row in log_by_pane[pane]:
                head, retry = scratch.of.get(row.head, (0, None))
                # Events of a retry that a metric does not count were left out already.
                if head and (retry is not None or metric.counts(head, row.start_offset)):
                    log_rows.setdefault((pane, head, retry), []).append(row)
        for key, texts in self._differences(ledger_rows, log_rows).items():
            differences[key][:0] = texts
        for pane, head, retry in {*ledger_rows, *log_rows}:
            if pane.is_total and retry is None and head in self.replays:
                hole = self.replays[head].coverage.holes.get((pane.metric, pane.grouping))
                differences[pane, head, retry] += [] if hole is None else [str(hole)]
        for key in sorted(differences, key=_order):
            if differences[key]:
                where = named(key[0], self.heads.get(key[1]), key[2])
                self.found.differs(where, "; ".join(differences[key]))

    def _rows(self, few_panes: Collection[Pane]) -> list[dict[Pane, list[DeltaMetadata]]]:
        """The rows of these panes on both sides."""
        scratch = self.scratch
        return [
            pane_rows(scratch.store, generation, few_panes)
            for generation in (scratch.generation, scratch.own)
        ]

    def _wrong(self, row: DeltaMetadata, metric: Metric) -> str | None:
        """The error in a row's offsets; None where there is none, "" where the row counts records
        that were not read again."""
        replay = self.replays.get(row.head)
        join = self.join if self.join is not None and self.join.id == row.head else None
        head = replay.head if replay is not None else join
        if head is None:
            return ""
        if row.retry is not None:
            return None if replay is not None and row.retry in replay.retries else ""
        if row.end_offset > head.next_offset:
            return "extends past the head"
        start = metric.start_offsets.get(head.id, head.start_offset)
        if row.start_offset < max(start, head.start_offset):
            return "begins before the metric's start"
        # No row spans an edge of the range that was read again.
        is_inside = replay is None or replay.start <= row.start_offset < replay.end
        return None if is_inside else ""

    def compare_known(self, join: Head) -> None:
        """Compare the known exposures, a range of units at a time: they are the largest state."""
        metric = self.metrics.get(EXPOSED_UNITS) if EXPOSED_UNITS in self.names else None
        if metric is None:
            return
        ledger_rows, log_rows = (by_pane[KNOWN] for by_pane in self._rows([KNOWN]))
        sides = [row for row in ledger_rows if self._wrong(row, metric) is None], log_rows
        ranges = ranges_for(sum(row.nbytes for rows in sides for row in rows), KNOWN_BYTES)
        texts: dict[str, None] = {}
        for place in range(ranges):
            parts = [[row for row in rows if row.may_share_keys(place, ranges)] for rows in sides]
            states = [merged(self.scratch.store, [rows], (place, ranges))[0] for rows in parts]
            texts |= dict.fromkeys(_difference(*states))
            self.found.states += 1
        for text in texts:
            self.found.differs(named(KNOWN, join), text)

    def compare_pending(self, few_panes: Collection[Pane]) -> None:
        """Compare pending events, as the union of all logs."""
        ledger_rows, log_rows = (
            Rows(((pane, 0, None), rows) for pane, rows in by_pane.items())
            for by_pane in self._rows(few_panes)
        )
        for (pane, _, _), texts in self._differences(ledger_rows, log_rows).items():
            for text in texts:
                self.found.differs(f"{named(pane)}, pending events", text)

    def _differences(
        self,
        ledger_rows: Mapping[Key, Sequence[DeltaMetadata]],
        log_rows: Mapping[Key, Sequence[DeltaMetadata]],
    ) -> dict[Key, list[str]]:
        """The differences between the sums of both sides, a few at a time."""
        sizes = (
            (key, sum(row.nbytes for side in (ledger_rows, log_rows) for row in side.get(key, ())))
            for key in sorted({*ledger_rows, *log_rows}, key=_order)
        )
        differences: dict[Key, list[str]] = {}
        for keys in few(sizes, *SUMS):
            self.found.states += len(keys)
            whole = [(ledger_rows.get(key, ()), log_rows.get(key, ())) for key in keys]
            remaining_rows = unequal_rows(self.scratch.store, whole)
            open_ = [i for i, (a, b) in enumerate(remaining_rows) if a or b]
            unlike = self._compared([remaining_rows[i] for i in open_])
            # If the rest is equal, so is the whole; only minima and the like may agree without.
            differing = [i for i, texts in zip(open_, unlike, strict=True) if texts]
            for i, texts in zip(
                differing, self._compared([whole[i] for i in differing]), strict=True
            ):
                differences[keys[i]] = texts
        return differences

    def _compared(
        self, sides: Sequence[tuple[Sequence[DeltaMetadata], Sequence[DeltaMetadata]]]
    ) -> list[list[str]]:
        """The differences between the sums of the rows of the ledger and of the log, of each."""
        states, expected = (merged(self.scratch.store, [pair[i] for pair in sides]) for i in (0, 1))
        return [*map(_difference, states, expected)]


def _difference(
    state: Accumulator | Unreadable | None, expected: Accumulator | Unreadable | None
) -> list[str]:
    if isinstance(expected, Unreadable):
        raise AssertionError(expected.why)
    if isinstance(state, Unreadable):
        return [f"a delta row cannot be read: {state.why}"]
    if state is None:
        if expected is None:
            return []
        return [f"nothing in the ledger, {expected.digest()} from the log"]
    if expected is None:
        return [f"{state.digest()} in the ledger, nothing from the log"]
    if not agree(state, expected):
        return [f"{state.digest()} in the ledger, {expected.digest()} from the log"]
    return []


def _order(key: Key) -> tuple[object, ...]:
    pane, head, retry = key
    return (*pane_order(pane), head, retry or 0)


def _offsets(row: DeltaMetadata) -> str:
    return f"offsets {row.start_offset} to {row.end_offset}"


def named(pane: Pane, head: Head | None = None, retry: int | None = None) -> str:
    """A pane, of one log and retry or of all, as text."""
    text = f"metric {pane.metric}, grouping {pane.grouping}, "
    if pane.start_ms is None or pane.end_ms is None:
        text += "total"
    else:
        text += f"{_iso(pane.start_ms)} to {_iso(pane.end_ms)}"
    if head is not None:
        text += ", closed events" if head.is_join else f", {head.partition}"
    return text + (f", retry {retry}" if retry is not None else "")


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
