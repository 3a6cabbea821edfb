"""The states of a ledger beside those of a recount, a pane of a metric at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from consumers.ledger.audit import PaneRows, Unreadable, merged, overlapping, pane_rows, panes
from consumers.ledger.outline import Outline, pane_order
from consumers.ledger.rows import Head, Pane
from consumers.ledger.store import Store
from consumers.worker.recount import Recount, Scratch
from consumers.worker.verified import Verified

TRIES: Final = 20  # of a pane whose rows are merged by a compactor while we read them

Of = tuple[int, int | None]  # a head of the ledger, and a retry of it or None


class RowsMoved(Exception):
    """Rows were merged while they were read."""


def compare_panes(
    store: Store,
    scratch: Scratch,
    heads: Collection[Head],
    recounts: Sequence[Recount],
    only: Collection[Pane] | None,
    found: Verified,
) -> list[Pane]:
    """Compare every pane that either side has, or these. Answers those that have rows which count
    more than what was recounted: they were merged since."""
    names = {metric.name for metric in scratch.config.counted}
    known = {metric.name: metric for metric in scratch.generation.metrics}
    theirs = panes(store, scratch.generation)
    left = []
    for pane in sorted({*theirs, *panes(scratch.ledger.store, scratch.own)}, key=pane_order):
        if only is not None and pane not in only:
            continue
        one = _Pane(store, scratch, heads, recounts, pane)
        metric = known.get(pane.metric)
        if pane.metric not in names or metric is None or metric.ended:
            one.look(found)
            continue
        for _ in range(TRIES):
            try:
                if not one.compare(metric.start_offsets, found):
                    left.append(pane)
                break
            except RowsMoved:
                continue
        else:
            left.append(pane)
    return left


class _Pane:
    """A pane of both sides."""

    def __init__(
        self,
        store: Store,
        scratch: Scratch,
        heads: Collection[Head],
        recounts: Sequence[Recount],
        pane: Pane,
    ) -> None:
        self.store, self.scratch, self.pane = store, scratch, pane
        self.heads = {head.id: head for head in heads}
        self.recounts = {recount.head.id: recount for recount in recounts}

    def look(self, found: Verified) -> None:
        """Say what can be said without the log."""
        rows = pane_rows(self.store, self.scratch.generation, self.pane).rows
        for of, texts in self._overlaps(rows).items():
            found.differs(self._named(of), "; ".join(texts))

    def compare(self, starts: Mapping[int, int], found: Verified) -> bool:
        """Compare the states; False where rows count more than what was recounted.

        Raises RowsMoved where rows were merged while they were read.
        """
        scratch, pane = self.scratch, self.pane
        seen = pane_rows(self.store, scratch.generation, pane)
        if (
            pane.start_ms is not None
            and seen.floor_ms is not None
            and pane.start_ms < seen.floor_ms
        ):
            if seen.rows:
                found.differs(named(pane), "it lies below the retention floor, and is still there")
            return True
        ours = _expected(pane_rows(scratch.ledger.store, scratch.own, pane), scratch, starts)
        theirs: dict[Of, list[Outline]] = defaultdict(list)
        said = self._overlaps(seen.rows)
        for row in seen.rows:
            recount = self.recounts.get(row.head)
            if recount is None:
                continue
            own = said[row.head, None]
            if row.retry is not None:
                if row.retry in recount.retries:
                    theirs[row.head, row.retry].append(row)
            elif row.end_offset > seen.next_offsets[row.head]:
                own.append(f"{_offsets(row)}: a delta row goes beyond the head")
            elif row.start_offset < max(starts.get(row.head, 0), recount.head.start_offset):
                own.append(f"{_offsets(row)}: a delta row begins before the metric's start")
            elif row.end_offset <= recount.start or row.start_offset >= recount.end:
                continue  # of what is not verified, or counted since
            elif row.start_offset < recount.start or row.end_offset > recount.end:
                return False
            else:
                theirs[row.head, None].append(row)
        for of in {*theirs, *ours}:
            said[of][:0] = differences(
                self.store, scratch.ledger.store, theirs.get(of, []), ours.get(of, [])
            )
            hole = self.recounts[of[0]].coverage.holes.get((pane.metric, pane.grouping))
            if hole is not None and pane.is_total and of[1] is None:
                said[of].append(str(hole))
        if any(said.values()):
            if pane_rows(self.store, scratch.generation, pane).rows != seen.rows:
                raise RowsMoved
            for of in sorted(said, key=lambda of: (of[0], of[1] or 0)):
                if said[of]:
                    found.differs(self._named(of), "; ".join(said[of]))
        found.states += len({*theirs, *ours})
        return True

    def _overlaps(self, rows: Sequence[Outline]) -> defaultdict[Of, list[str]]:
        said: defaultdict[Of, list[str]] = defaultdict(list)
        for one, other in overlapping(rows):
            said[one.head, one.retry].append(
                f"delta rows of {_offsets(one)} and {_offsets(other)} overlap"
            )
        return said

    def _named(self, of: Of) -> str:
        return named(self.pane, self.heads.get(of[0]), of[1])


def _offsets(row: Outline) -> str:
    return f"offsets {row.start_offset} to {row.end_offset}"


def _expected(
    seen: PaneRows, scratch: Scratch, starts: Mapping[int, int]
) -> dict[Of, list[Outline]]:
    found: dict[Of, list[Outline]] = defaultdict(list)
    for row in seen.rows:
        head, retry = scratch.heads[row.head]
        # What a metric does not count of a retry was left out already.
        if retry is not None or row.start_offset >= starts.get(head, 0):
            found[head, retry].append(row)
    return found


def differences(
    store: Store,
    scratch_store: Store,
    theirs: Sequence[Outline],
    ours: Sequence[Outline],
) -> list[str]:
    """What is wrong with the rows of a ledger, beside those that a recount gives.

    Raises RowsMoved where they were merged while they were read.
    """
    expected = merged(scratch_store, ours) if ours else None
    try:
        state = merged(store, theirs) if theirs else None
    except Unreadable as error:
        return [f"a delta row cannot be read: {error}"]
    if theirs and state is None:
        raise RowsMoved
    if state is None and expected is not None:
        return [f"no delta row, where the log has {expected.digest()}"]
    if state is not None and expected is None:
        return [f"{state.digest()} in the ledger, where the log has nothing"]
    assert state is not None and expected is not None
    if state.to_bytes() != expected.to_bytes():
        return [f"{state.digest()} in the ledger, {expected.digest()} from the log"]
    return []


def named(pane: Pane, head: Head | None = None, retry: int | None = None) -> str:
    """A pane, of one log and retry or of all, for whoever reads."""
    text = f"metric {pane.metric}, grouping {pane.grouping}, "
    if pane.start_ms is None or pane.end_ms is None:
        text += "total"
    else:
        text += f"{_iso(pane.start_ms)} to {_iso(pane.end_ms)}"
    if head is not None:
        text += f", {head.partition}"
    return text + (f", retry {retry}" if retry is not None else "")


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
