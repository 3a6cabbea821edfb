"""Repeated events: the ids that a partition has seen, within a retention of event time.

Ids are remembered by panes of event time. The start of the newest pane so far is the clock: a pane
is remembered until the clock has passed its end by the retention. So the repeats depend on the log
alone, not on how it was cut into chunks and commits. A worker loads the seen ids of its partitions
when they are assigned, and stores new ones in the transactions of their commits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.config.tables import DedupConfig
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.write import digest_of, read_seen
from streammetrics_consumers.model.commit import Commit, Head, Seen
from streammetrics_consumers.model.partition import Partition

Ids: TypeAlias = "NDArray[np.uint64]"
Panes: TypeAlias = "NDArray[np.int64]"
MAX_ROWS: Final = 32  # of a pane in the store, before they are written as one
ROW_IDS: Final = 1 << 20  # 8 MiB
_NEVER: Final = np.iinfo(np.int64).min


class SeenIds:
    """The ids that one partition has seen, and those that the store does not have yet.

    Cost: 16 bytes of memory per id, and 8 in the store; a batch of n costs n log n and a search in
    each of the few sorted runs of ids, each at least twice as long as the next.
    """

    def __init__(self, retention_ms: int, pane_ms: int, rows: Iterable[tuple[int, bytes]] = ()):
        """rows: the rows of the store, each a pane's start and ids as returned by `take`."""
        self._retention_ms, self._pane_ms = retention_ms, pane_ms
        self._clock_ms: int | None = None
        self._runs: list[tuple[Ids, Panes]] = []
        self._new: list[tuple[Ids, Panes]] = []
        self._rows: Counter[int] = Counter()  # of the store, by pane
        runs = []
        for start_ms, stored in rows:
            ids = np.frombuffer(stored, "<u8").astype(np.uint64)
            runs.append((ids, np.full(len(ids), start_ms, np.int64)))
            self._rows[start_ms] += 1
        if runs:
            self._clock_ms = max(self._rows)
            self._runs = [run for run in [_merged(runs)] if len(run[0])]

    def __len__(self) -> int:
        """The number of ids in memory."""
        return sum(len(ids) for ids, _ in self._runs)

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return 16 * len(self) + sum(16 * len(ids) for ids, _ in self._new)

    def repeats(self, ids: Ids, times_ms: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of these events [n], in offset order, repeats an earlier one. The others
        are remembered as seen."""
        is_repeat = np.zeros(len(ids), np.bool_)
        if not len(ids):
            return is_repeat
        panes = times_ms // self._pane_ms * self._pane_ms
        first = int(panes[0]) if self._clock_ms is None else self._clock_ms
        clocks = np.maximum.accumulate(np.concatenate([np.array([first], np.int64), panes]))
        floors = clocks[:-1] - self._retention_ms - self._pane_ms
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        begins = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        unique = ordered[begins]
        newest_panes = self._panes_of(unique)
        doubtful = (np.diff(np.append(np.flatnonzero(begins), len(ids))) > 1) | (
            newest_panes != _NEVER
        )
        if doubtful.any():
            suspects = np.sort(order[doubtful[np.cumsum(begins) - 1]])
            seen_panes = dict(
                zip(unique[doubtful].tolist(), newest_panes[doubtful].tolist(), strict=True)
            )
            for i in suspects.tolist():
                id_, floor = int(ids[i]), int(floors[i])
                if seen_panes.get(id_, _NEVER) > floor:
                    is_repeat[i] = True
                else:
                    seen_panes[id_] = int(panes[i])
        fresh = ~is_repeat & (panes > floors)
        self._add(*_sorted(ids[fresh], panes[fresh]))
        self._pass(int(clocks[-1]))
        return is_repeat

    def digests(self) -> dict[int, str]:
        """The `digest_of` the remembered ids of each pane, by its start; the newest pane is
        included even without ids."""
        starts = {int(start) for _, panes in self._runs for start in np.unique(panes)}
        starts |= set() if self._clock_ms is None else {self._clock_ms}
        parts = {start: [ids[panes == start] for ids, panes in self._runs] for start in starts}
        return {
            start: digest_of(ids.astype("<u8").tobytes() for ids in parts[start])
            for start in sorted(starts)
        }

    def take(self) -> Seen:
        """The changes that a commit writes: the ids that are new since the last one."""
        floor_ms = self._floor_ms
        rows: list[tuple[int, bytes]] = []
        replaced = []
        news = [_ids_above(ids, panes, floor_ms) for ids, panes in self._new]
        starts = {int(start) for _, panes in news for start in np.unique(panes)}
        if self._clock_ms is not None and not self._rows[self._clock_ms]:
            starts.add(self._clock_ms)  # a later start reads the clock from it
        for start_ms in sorted(starts):
            source = news
            if self._rows[start_ms] >= MAX_ROWS:
                replaced.append(start_ms)
                source = self._runs
            parts = [ids[panes == start_ms] for ids, panes in source]
            ids = np.sort(np.concatenate([np.zeros(0, np.uint64), *parts]))
            for first in range(0, max(len(ids), 1), ROW_IDS):
                rows.append((start_ms, ids[first : first + ROW_IDS].astype("<u8").tobytes()))
        return Seen(floor_ms + 1, replaced, rows)

    def committed(self, changes: Seen) -> None:
        """The store has the changes returned by `take`."""
        self._new.clear()
        for start_ms in changes.replaced:
            del self._rows[start_ms]
        self._rows.update(start_ms for start_ms, _ in changes.rows)
        self._rows = Counter({p: n for p, n in self._rows.items() if p >= changes.since_ms})

    @property
    def _floor_ms(self) -> int:
        """Panes that start at or before this are forgotten."""
        if self._clock_ms is None:
            return _NEVER
        return self._clock_ms - self._retention_ms - self._pane_ms

    def _panes_of(self, ids: Ids) -> Panes:
        """The newest pane of each of these ids (ascending); _NEVER where it was not seen."""
        newest = np.full(len(ids), _NEVER, np.int64)
        for run_ids, panes in self._runs:
            indices = np.minimum(np.searchsorted(run_ids, ids), len(run_ids) - 1)
            hit = run_ids[indices] == ids
            newest[hit] = np.maximum(newest[hit], panes[indices[hit]])
        return newest

    def _add(self, ids: Ids, panes: Panes) -> None:
        if not len(ids):
            return
        self._new.append((ids, panes))
        runs = self._runs
        runs.append((ids, panes))
        while len(runs) > 1 and len(runs[-2][0]) < 2 * len(runs[-1][0]):
            last, before = runs.pop(), runs.pop()
            runs.append(_merged([before, last]))

    def _pass(self, clock_ms: int) -> None:
        if self._clock_ms == clock_ms:
            return
        self._clock_ms = clock_ms
        floor_ms = self._floor_ms
        left = [_ids_above(ids, panes, floor_ms) for ids, panes in self._runs]
        self._runs = [run for run in left if len(run[0])]


def _sorted(ids: Ids, panes: Panes) -> tuple[Ids, Panes]:
    order = np.argsort(ids, kind="stable")
    return ids[order], panes[order]


def _merged(runs: Sequence[tuple[Ids, Panes]]) -> tuple[Ids, Panes]:
    ids, panes = zip(*runs, strict=True)
    return _sorted(np.concatenate(ids), np.concatenate(panes))


def _ids_above(ids: Ids, panes: Panes, floor_ms: int) -> tuple[Ids, Panes]:
    keep = panes > floor_ms
    return (ids, panes) if keep.all() else (ids[keep], panes[keep])


@dataclass(slots=True)
class _Log:
    """An assigned partition. at: the offset up to which its ids are known; taken: the changes that
    are being committed."""

    head: int
    at: int
    ids: SeenIds
    taken: Seen | None = None


class Repeats:
    """The ids that each partition of a worker has seen."""

    def __init__(self, dedup: DedupConfig, store: Store) -> None:
        self._dedup, self._store = dedup, store
        self._logs: dict[Partition, _Log] = {}

    def begin(self, head: Head) -> None:
        """Begin or resume at a head. The ids in memory are kept if reading stands there exactly;
        else those of the store are loaded, since uncommitted records are read again."""
        log = self._logs.get(head.partition)
        if log is None or (log.head, log.at) != (head.id, head.next_offset):
            rows = read_seen(self._store, head)
            ids = SeenIds(self._dedup.retention_ms, self._dedup.pane_ms, rows)
            self._logs[head.partition] = _Log(head.id, head.next_offset, ids)
        elif log.taken is not None:
            log.ids.committed(log.taken)
            log.taken = None

    def without(self, decoded: Decoded) -> Decoded:
        """The next events of a partition, without repeats; `begin` was called for it."""
        log = self._logs[decoded.chunk.partition]
        log.at = decoded.chunk.end
        return without_repeats(decoded, log.ids)

    def with_ids(self, commit: Commit) -> Commit:
        """The same commit, which also stores the ids of its events."""
        log = self._logs[commit.head.partition]
        log.taken = log.ids.take()
        return replace(commit, seen=log.taken)

    def drop(self, partitions: Sequence[Partition]) -> None:
        """Forget these partitions, which were revoked or lost."""
        for partition in partitions:
            self._logs.pop(partition, None)


def without_repeats(decoded: Decoded, seen_ids: SeenIds) -> Decoded:
    """The events without repeats, good and refused, and the number of repeats."""
    event_ids = decoded.event_ids
    if event_ids is None:
        return decoded
    positions = event_ids.positions[seen_ids.repeats(event_ids.ids, event_ids.times_ms)]
    if not len(positions):
        return decoded
    chunk = decoded.chunk
    repeats = {
        (int(chunk.offsets[i]), 0 if chunk.indices is None else int(chunk.indices[i]))
        for i in (positions.tolist() if decoded.refused else ())
    }
    left = tuple(event for event in decoded.refused if (event.offset, event.index) not in repeats)
    new_events = decoded.take(np.flatnonzero(~np.isin(decoded.at, positions)))
    return replace(new_events, refused=left, repeated=len(positions))
