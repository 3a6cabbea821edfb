"""The states of a ledger beside those of a recount, by pane of a metric.

Panes are read a few at a time, so that neither transactions nor what is held in memory are many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from consumers.ledger.audit import PaneRows, Unreadable, merged, overlapping, pane_rows, panes
from consumers.ledger.outline import Outline, few, pane_order
from consumers.ledger.store import Store
from consumers.model.commit import Head
from consumers.model.generation import Metric, Pane
from consumers.worker.recount import Recount
from consumers.worker.scratch import Scratch
from consumers.worker.verified import Verified
from streammetrics import Accumulator

TRIES: Final = 20  # of a pane whose rows are merged by a compactor while we read them
PANES: Final = 200, 4 << 20  # whose rows are read together: how many, and bytes of their states
SUMS: Final = 100, 256 << 10  # that are made and held together: how many, and bytes of their rows

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
    comparison = _Comparison(store, scratch, heads, recounts, found)
    theirs, ours = panes(store, scratch.generation), panes(scratch.ledger.store, scratch.own)
    sizes = [
        (pane, theirs.get(pane, 0) + ours.get(pane, 0))
        for pane in sorted({*theirs, *ours}, key=pane_order)
        if only is None or pane in only
    ]
    moved = [pane for some in few(sizes, *PANES) for pane in comparison.compare(some)]
    for pane in moved:
        if all(comparison.compare([pane]) for _ in range(TRIES - 1)):
            comparison.left.append(pane)
    return comparison.left


@dataclass(frozen=True, slots=True)
class _Both:
    """The rows of a pane on both sides, and what is wrong with them."""

    pane: Pane
    theirs: Mapping[Of, Sequence[Outline]]
    ours: Mapping[Of, Sequence[Outline]]
    said: defaultdict[Of, list[str]]

    @property
    def sums(self) -> set[Of]:
        return {*self.theirs, *self.ours}

    def nbytes(self, of: Of) -> int:
        """Of what is summed."""
        return sum(row.nbytes for side in (self.theirs, self.ours) for row in side.get(of, ()))


class _Comparison:
    """Of both sides. `left` are panes that were merged with what was not recounted."""

    def __init__(
        self,
        store: Store,
        scratch: Scratch,
        heads: Collection[Head],
        recounts: Sequence[Recount],
        found: Verified,
    ) -> None:
        self.store, self.scratch, self.found = store, scratch, found
        self.heads = {head.id: head for head in heads}
        self.recounts = {recount.head.id: recount for recount in recounts}
        names = {metric.name for metric in scratch.config.counted}
        self.metrics = {
            metric.name: metric
            for metric in scratch.generation.metrics
            if metric.name in names and not metric.ended
        }
        self.left: list[Pane] = []

    def compare(self, some: Collection[Pane]) -> list[Pane]:
        """Compare the states of these panes; answers those whose rows were merged meanwhile."""
        seen = pane_rows(self.store, self.scratch.generation, some)
        own = pane_rows(self.scratch.ledger.store, self.scratch.own, some).rows
        both = [one for pane in some if (one := self._both(pane, seen, own[pane])) is not None]
        moved = self._compare_sums(both)
        for one in both:
            self._look_for_holes(one)
        wrong = [one.pane for one in both if any(one.said.values()) and one.pane not in moved]
        if wrong:
            again = pane_rows(self.store, self.scratch.generation, wrong).rows
            moved |= {pane for pane in wrong if again[pane] != seen.rows[pane]}
        for one in both:
            if one.pane not in moved:
                self._say(one)
        return sorted(moved, key=pane_order)

    def _both(self, pane: Pane, seen: PaneRows, own: Sequence[Outline]) -> _Both | None:
        """What is to be compared of a pane, if anything."""
        rows, metric = seen.rows[pane], self.metrics.get(pane.metric)
        said = _overlaps(rows)
        if metric is None:  # all that can be said without the log
            self._say(_Both(pane, {}, {}, said))
            return None
        if (
            pane.start_ms is not None
            and seen.floor_ms is not None
            and pane.start_ms < seen.floor_ms
        ):
            if rows:
                self.found.differs(
                    named(pane), "it lies below the retention floor, and is still there"
                )
            return None
        theirs: dict[Of, list[Outline]] = defaultdict(list)
        for row in rows:
            recount = self.recounts.get(row.head)
            if recount is None:
                continue
            wrong = said[row.head, None]
            if row.retry is not None:
                if row.retry in recount.retries:
                    theirs[row.head, row.retry].append(row)
            elif row.end_offset > seen.next_offsets[row.head]:
                wrong.append(f"{_offsets(row)}: a delta row goes beyond the head")
            elif row.start_offset < max(
                metric.start_offsets.get(row.head, 0), recount.head.start_offset
            ):
                wrong.append(f"{_offsets(row)}: a delta row begins before the metric's start")
            elif row.end_offset <= recount.start or row.start_offset >= recount.end:
                continue  # of what is not verified, or counted since
            elif row.start_offset < recount.start or row.end_offset > recount.end:
                self.left.append(pane)
                return None
            else:
                theirs[row.head, None].append(row)
        return _Both(pane, theirs, _expected(own, self.scratch, metric), said)

    def _compare_sums(self, both: Iterable[_Both]) -> set[Pane]:
        """Say which states differ; answers the panes that lost rows before they were read."""
        moved: set[Pane] = set()
        sums = (((one, of), one.nbytes(of)) for one in both for of in one.sums)
        for some in few(sums, *SUMS):
            theirs = [one.theirs.get(of, ()) for one, of in some]
            ours = [one.ours.get(of, ()) for one, of in some]
            states = _differences(self.store, self.scratch.ledger.store, theirs, ours)
            for (one, of), texts in zip(some, states, strict=True):
                if texts is None:
                    moved.add(one.pane)
                else:
                    one.said[of][:0] = texts
        return moved

    def _look_for_holes(self, one: _Both) -> None:
        if not one.pane.is_total:
            return
        for head, retry in one.sums:
            holes = self.recounts[head].coverage.holes
            hole = holes.get((one.pane.metric, one.pane.grouping))
            if hole is not None and retry is None:
                one.said[head, retry].append(str(hole))

    def _say(self, one: _Both) -> None:
        for of in sorted(one.said, key=lambda of: (of[0], of[1] or 0)):
            if one.said[of]:
                where = named(one.pane, self.heads.get(of[0]), of[1])
                self.found.differs(where, "; ".join(one.said[of]))
        self.found.states += len(one.sums)


def _overlaps(rows: Sequence[Outline]) -> defaultdict[Of, list[str]]:
    said: defaultdict[Of, list[str]] = defaultdict(list)
    for one, other in overlapping(rows):
        said[one.head, one.retry].append(
            f"delta rows of {_offsets(one)} and {_offsets(other)} overlap"
        )
    return said


def _offsets(row: Outline) -> str:
    return f"offsets {row.start_offset} to {row.end_offset}"


def _expected(rows: Sequence[Outline], scratch: Scratch, metric: Metric) -> dict[Of, list[Outline]]:
    found: dict[Of, list[Outline]] = defaultdict(list)
    for row in rows:
        head, retry = scratch.heads[row.head]
        # What a metric does not count of a retry was left out already.
        if retry is not None or metric.counts(head, row.start_offset):
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
    [texts] = _differences(store, scratch_store, [theirs], [ours])
    if texts is None:
        raise RowsMoved
    return texts


def _differences(
    store: Store,
    scratch_store: Store,
    theirs: Sequence[Sequence[Outline]],
    ours: Sequence[Sequence[Outline]],
) -> list[list[str] | None]:
    """What is wrong with each; None where rows were merged while they were read."""
    expected = merged(scratch_store, ours)
    states = merged(store, theirs)
    return [
        None if rows and state is None else _difference(state, one)
        for rows, state, one in zip(theirs, states, expected, strict=True)
    ]


def _difference(
    state: Accumulator | Unreadable | None, expected: Accumulator | Unreadable | None
) -> list[str]:
    assert not isinstance(expected, Unreadable), expected
    if isinstance(state, Unreadable):
        return [f"a delta row cannot be read: {state.why}"]
    if state is None:
        return [] if expected is None else [f"no delta row, where the log has {expected.digest()}"]
    if expected is None:
        return [f"{state.digest()} in the ledger, where the log has nothing"]
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
