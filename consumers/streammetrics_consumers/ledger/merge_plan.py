"""The delta rows to merge, planned from offsets, key ranges and sizes alone: see compact.py."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Final

from streammetrics_consumers.ledger.delta_metadata import MAX_RANGES, DeltaMetadata
from streammetrics_consumers.model.commit import JOIN_START

ABOVE: Final = 32  # rows of one head that hold one key of a pane; if there are more, merge
LEAVE: Final = 4  # of the newest, so that an incremental reader seldom has to start again
MERGE_BYTES: Final = 32 << 20  # of the rows of one group, which are in memory together


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Rows to merge, in order of offset. The resulting rows have at least `ranges` key ranges."""

    extents: tuple[DeltaMetadata, ...]
    ranges: int


def node(extent: DeltaMetadata, ranges: int) -> int:
    """The index of a row's range among `ranges` equal key ranges, no finer than its own."""
    return extent.key_range * ranges // extent.key_ranges


def depth(extents: Sequence[DeltaMetadata]) -> int:
    """The greatest number of rows that hold the same key."""
    changes: dict[int, int] = {}
    for extent in extents:
        keys = _keys(extent)
        changes[keys.start] = changes.get(keys.start, 0) + 1
        changes[keys.stop] = changes.get(keys.stop, 0) - 1
    return max(accumulate(changes[index] for index in sorted(changes)), default=0)


def _keys(extent: DeltaMetadata) -> range:
    """The keys of a row, as indices of the finest possible ranges."""
    unit = MAX_RANGES // extent.key_ranges
    return range(extent.key_range * unit, extent.key_range * unit + unit)


def plan(
    extents: Sequence[DeltaMetadata],
    *,
    above: int = ABOVE,
    leave: int = LEAVE,
    merge_bytes: int = MERGE_BYTES,
    cuts: Sequence[int] = (),
) -> list[MergeGroup]:
    """Groups of rows of one pane and head to merge; none where no key has more than `above` rows.

    Groups share no row, so any of them can be merged, in any order. With `above` 1 everything
    mergeable is merged. No group spans one of the `cuts`, which are ascending offsets.
    """
    groups: list[MergeGroup] = []
    for stack in _stacks(extents):
        if depth(stack) <= above:
            continue
        runs = _runs(stack)
        if above > 1:
            runs = _old(runs, leave)
        chosen = [extent for run in runs for extent in run]
        size = _size(chosen)
        ranges = widest = min(extent.key_ranges for extent in stack)
        while size * widest > merge_bytes * ranges and ranges < MAX_RANGES:
            ranges *= 2
        if any(extent.key_ranges < ranges for extent in chosen):
            groups.extend(_refined(runs, ranges, merge_bytes, cuts))
            continue  # rows that are fine enough join them next time
        for same in _node_groups(chosen, ranges):
            groups.extend(
                MergeGroup(extents, ranges)
                for extents in _packed(_runs(same), merge_bytes, cuts)
                if len(extents) == 2 or (extents[2:] and _size(extents) <= merge_bytes)
            )
    return groups


def _stacks(extents: Sequence[DeltaMetadata]) -> Iterator[list[DeltaMetadata]]:
    """Groups of rows that share keys, directly or through other rows."""
    stack: list[DeltaMetadata] = []
    end = 0
    # Wide before narrow, so that the first range of a group contains all others.
    for extent in sorted(extents, key=lambda b: (_keys(b).start, b.key_ranges)):
        keys = _keys(extent)
        if stack and keys.start >= end:
            yield stack
            stack = []
        end = max(end, keys.stop)
        stack.append(extent)
    if stack:
        yield stack


def _runs(extents: Sequence[DeltaMetadata]) -> list[list[DeltaMetadata]]:
    """Rows in order of offset; rows whose offsets overlap are in one run."""
    runs: list[list[DeltaMetadata]] = []
    end = JOIN_START  # no row begins earlier; offsets of closed events are times, also before 1970
    for extent in sorted(extents, key=lambda b: (b.start_offset, b.key_range, b.id)):
        if runs and extent.start_offset < end:
            runs[-1].append(extent)
        else:
            runs.append([extent])
        end = max(end, extent.end_offset)
    return runs


def _old(runs: list[list[DeltaMetadata]], leave: int) -> list[list[DeltaMetadata]]:
    """The runs to merge now: not the newest, nor old ones that are still too large for it."""
    runs = runs[: max(len(runs) - leave, 2)]
    sizes = [_size(run) for run in runs]
    later = sum(sizes)
    for i, size in enumerate(sizes[:-1]):
        later -= size
        if size <= 2 * later:
            return runs[i:]
    return runs[-2:]


def _refined(
    runs: Sequence[Sequence[DeltaMetadata]], ranges: int, merge_bytes: int, cuts: Sequence[int]
) -> Iterator[MergeGroup]:
    """Groups of neighbours to split into finer key ranges before others join them."""
    for shared_range, neighbours in groupby(runs, key=_node_of_one):
        if shared_range is None:
            for run in neighbours:
                yield from (
                    MergeGroup((extent,), ranges) for extent in run if extent.key_ranges < ranges
                )
        elif shared_range[1] < ranges:
            packed = _packed(list(neighbours), merge_bytes, cuts)
            yield from (MergeGroup(extents, ranges) for extents in packed)


def _node_of_one(run: Sequence[DeltaMetadata]) -> tuple[int, int] | None:
    return (run[0].key_range, run[0].key_ranges) if len(run) == 1 else None


def _node_groups(
    extents: Sequence[DeltaMetadata], ranges: int
) -> Iterator[Sequence[DeltaMetadata]]:
    nodes: dict[int, list[DeltaMetadata]] = {}
    for extent in extents:
        nodes.setdefault(node(extent, ranges), []).append(extent)
    yield from (nodes[index] for index in sorted(nodes))


def _packed(
    runs: Sequence[Sequence[DeltaMetadata]], merge_bytes: int, cuts: Sequence[int]
) -> Iterator[tuple[DeltaMetadata, ...]]:
    """Neighbours to merge in memory together: whole runs, so that no row is left between them."""
    group: list[DeltaMetadata] = []
    size = part = 0
    for run in runs:
        run_size, before = _size(run), part
        part = bisect_right(cuts, run[0].start_offset)
        if group and (part > before or (len(group) > 1 and size + run_size > merge_bytes)):
            yield tuple(group)
            group, size = [], 0
        group.extend(run)
        size += run_size
    if group:
        yield tuple(group)


def _size(extents: Sequence[DeltaMetadata]) -> int:
    return sum(extent.nbytes for extent in extents)
