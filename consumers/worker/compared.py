"""The states of a ledger beside those of a recount, a pane of a metric at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from consumers.ledger.audit import PaneRows, Unreadable, merged, pane_rows, panes
from consumers.ledger.outline import Outline, pane_order
from consumers.ledger.rows import Head, Pane
from consumers.ledger.store import Store
from consumers.worker.recount import Recount, Scratch
from consumers.worker.verified import Verified

TRIES: Final = 20  # of a pane whose rows are merged by a compactor while we read them

Of = tuple[int, int | None]  # a head of the ledger, and a retry of it or None


class _Moved(Exception):
    """Rows were merged while they were read."""


def compare_panes(
    store: Store,
    scratch_store: Store,
    scratch: Scratch,
    recounts: Sequence[Recount],
    found: Verified,
) -> None:
    """Compare every pane that either side has."""
    names = {metric.name for metric in scratch.config.metrics}
    known = {metric.name: metric for metric in scratch.generation.metrics}
    both = {
        pane
        for pane in (*panes(store, scratch.generation), *panes(scratch_store, scratch.own))
        if pane.metric in names and pane.metric in known and not known[pane.metric].ended
    }
    for pane in sorted(both, key=pane_order):
        starts = known[pane.metric].start_offsets
        for _ in range(TRIES):
            try:
                _compare(store, scratch_store, scratch, recounts, pane, dict(starts), found)
                break
            except _Moved:
                continue
        else:
            found.note(f"{_named(pane)}: its rows changed all the time, and are not verified")


def _compare(
    store: Store,
    scratch_store: Store,
    scratch: Scratch,
    recounts: Sequence[Recount],
    pane: Pane,
    starts: dict[int, int],
    found: Verified,
) -> None:
    seen = pane_rows(store, scratch.generation, pane)
    if pane.start_ms is not None and seen.floor_ms is not None and pane.start_ms < seen.floor_ms:
        if seen.rows:
            found.differs(_named(pane), "it lies below the retention floor, and is still there")
        return
    ours = _expected(pane_rows(scratch_store, scratch.own, pane), scratch, starts)
    theirs: dict[Of, list[Outline]] = defaultdict(list)
    said: list[tuple[str, str]] = []
    by_id = {recount.head.id: recount for recount in recounts}
    for row in seen.rows:
        recount = by_id.get(row.head)
        if recount is None:
            continue
        where = f"{_named(pane)} {recount.head.partition} offsets {row.start_offset} to " + str(
            row.end_offset
        )
        if row.retry is not None:
            if row.retry in scratch.retries:
                theirs[row.head, row.retry].append(row)
        elif row.end_offset > seen.next_offsets[row.head]:
            said.append((where, "a delta row goes beyond the head"))
        elif row.start_offset < max(starts.get(row.head, 0), recount.head.start_offset):
            said.append((where, "a delta row begins before the metric's start"))
        elif row.end_offset <= recount.start or row.start_offset >= recount.head.next_offset:
            continue  # before what can be read again, or counted since
        elif row.end_offset > recount.head.next_offset:
            found.note(f"{where}: merged with what was counted since; verify again")
            return
        else:
            theirs[row.head, None].append(row)
    of_heads = {recount.head.id: recount.head for recount in recounts}
    for of in sorted(theirs.keys() | ours.keys(), key=lambda of: (of[0], of[1] or 0)):
        said += _differences(store, scratch_store, theirs.get(of, []), ours.get(of, []),
                             _named(pane, of_heads[of[0]], of[1]))  # fmt: skip
    if said and pane_rows(store, scratch.generation, pane).rows != seen.rows:
        raise _Moved
    found.states += len(theirs.keys() | ours.keys())
    for where, what in said:
        found.differs(where, what)


def _expected(seen: PaneRows, scratch: Scratch, starts: dict[int, int]) -> dict[Of, list[Outline]]:
    found: dict[Of, list[Outline]] = defaultdict(list)
    for row in seen.rows:
        head, retry = scratch.heads[row.head]
        # What a metric does not count of a retry was left out already.
        if retry is not None or row.start_offset >= starts.get(head, 0):
            found[head, retry].append(row)
    return found


def _differences(
    store: Store,
    scratch_store: Store,
    theirs: Sequence[Outline],
    ours: Sequence[Outline],
    where: str,
) -> list[tuple[str, str]]:
    expected = merged(scratch_store, ours) if ours else None
    try:
        state = merged(store, theirs) if theirs else None
    except Unreadable as error:
        return [(where, f"a delta row cannot be read: {error}")]
    if theirs and state is None:
        raise _Moved
    if state is None and expected is not None:
        return [(where, f"no delta row, where the log has {expected.digest()}")]
    if state is not None and expected is None:
        return [(where, f"{state.digest()} in the ledger, where the log has nothing")]
    assert state is not None and expected is not None
    if state.to_bytes() != expected.to_bytes():
        return [(where, f"{state.digest()} in the ledger, {expected.digest()} from the log")]
    return []


def _named(pane: Pane, head: Head | None = None, retry: int | None = None) -> str:
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
