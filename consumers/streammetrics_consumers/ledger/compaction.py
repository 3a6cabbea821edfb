"""Which delta rows to merge: a plan made of offsets, key ranges and sizes alone. Pure.

The rows of one pane and one head are extents: a range of keys times a range of offsets. Extents
that share keys lie one after the other in offsets. A group of neighbours becomes one extent (or a
few, if one would be too large); what it counts stays the same, since sums are exact.

Where a row of a finer grouping counts for this pane what lies between two of its own, these stay
apart: a row says of all its offsets that it counts them.

Rows grow as they are merged, so an old row is merged again only once those after it are half as
large together: a byte is written a number of times that grows with the logarithm of the state.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Final

from streammetrics_consumers.ledger.delta_metadata import MAX_RANGES, DeltaMetadata

ABOVE: Final = 32  # rows of one head over one key of a pane: more are merged
LEAVE: Final = 4  # of the newest, so that a reader that follows seldom has to begin anew
MERGE_BYTES: Final = 32 << 20  # of the rows of one group, which are in memory together


@dataclass(frozen=True, slots=True)
class Group:
    """Rows to merge, in order of offset. What comes of them has at least `ranges` key ranges."""

    extents: tuple[DeltaMetadata, ...]
    ranges: int


def node(extent: DeltaMetadata, ranges: int) -> int:
    """Which of `ranges` equal ranges of keys a row lies in; they are no finer than its own."""
    return extent.key_range * ranges // extent.key_ranges


def depth(extents: Sequence[DeltaMetadata]) -> int:
    """How many rows hold one and the same key, at most."""
    changes: dict[int, int] = {}
    for extent in extents:
        unit = MAX_RANGES // extent.key_ranges
        first = extent.key_range * unit
        changes[first] = changes.get(first, 0) + 1
        changes[first + unit] = changes.get(first + unit, 0) - 1
    return max(accumulate(changes[at] for at in sorted(changes)), default=0)


def plan(
    extents: Sequence[DeltaMetadata],
    *,
    above: int = ABOVE,
    leave: int = LEAVE,
    merge_bytes: int = MERGE_BYTES,
    cuts: Sequence[int] = (),
) -> list[Group]:
    """Groups of rows of one pane and head to merge; none where no key has more than `above` rows.

    Groups share no row, so they can be done in any order, or not. With `above` 1 all is merged
    that can be. No group lies across one of the `cuts`, offsets in order.
    """
    groups: list[Group] = []
    for family in _stacks(extents):
        if depth(family) <= above:
            continue
        runs = _runs(family)
        if above > 1:
            runs = _old(runs, leave)
        chosen = [extent for run in runs for extent in run]
        size = _size(chosen)
        ranges = widest = min(extent.key_ranges for extent in family)
        while size * widest > merge_bytes * ranges and ranges < MAX_RANGES:
            ranges *= 2
        if any(extent.key_ranges < ranges for extent in chosen):
            groups.extend(_refined(runs, ranges, merge_bytes, cuts))
            continue  # and those that are fine enough join them next time
        for same in _by_node(chosen, ranges):
            groups.extend(
                Group(extents, ranges)
                for extents in _packed(_runs(same), merge_bytes, cuts)
                if len(extents) == 2 or (extents[2:] and _size(extents) <= merge_bytes)
            )
    return groups


def _stacks(extents: Sequence[DeltaMetadata]) -> Iterator[list[DeltaMetadata]]:
    """Rows that share keys, directly or through others."""
    family: list[DeltaMetadata] = []
    end = 0
    # Wide before narrow, so that a family begins with the range that holds all of it.
    for extent in sorted(extents, key=lambda b: (b.key_range * (MAX_RANGES // b.key_ranges),
                                            b.key_ranges)):  # fmt: skip
        unit = MAX_RANGES // extent.key_ranges
        first = extent.key_range * unit
        if family and first >= end:
            yield family
            family = []
        end = max(end, first + unit) if family else first + unit
        family.append(extent)
    if family:
        yield family


def _runs(extents: Sequence[DeltaMetadata]) -> list[list[DeltaMetadata]]:
    """Rows in order of offset; those whose offsets overlap stand together."""
    runs: list[list[DeltaMetadata]] = []
    end = -1
    for extent in sorted(extents, key=lambda b: (b.start_offset, b.key_range, b.id)):
        if runs and extent.start_offset < end:
            runs[-1].append(extent)
        else:
            runs.append([extent])
        end = max(end, extent.end_offset)
    return runs


def _old(runs: list[list[DeltaMetadata]], leave: int) -> list[list[DeltaMetadata]]:
    """The runs to merge now: not the newest, nor the old ones that are too large for it yet."""
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
) -> Iterator[Group]:
    """Groups of neighbours that are to be cut into finer ranges before others join them."""
    for of, neighbours in groupby(runs, key=_node_of_one):
        if of is None:
            for run in neighbours:
                yield from (
                    Group((extent,), ranges) for extent in run if extent.key_ranges < ranges
                )
        elif of[1] < ranges:
            packed = _packed(list(neighbours), merge_bytes, cuts)
            yield from (Group(extents, ranges) for extents in packed)


def _node_of_one(run: Sequence[DeltaMetadata]) -> tuple[int, int] | None:
    return (run[0].key_range, run[0].key_ranges) if len(run) == 1 else None


def _by_node(extents: Sequence[DeltaMetadata], ranges: int) -> Iterator[Sequence[DeltaMetadata]]:
    nodes: dict[int, list[DeltaMetadata]] = {}
    for extent in extents:
        nodes.setdefault(node(extent, ranges), []).append(extent)
    yield from (nodes[at] for at in sorted(nodes))


def _packed(
    runs: Sequence[Sequence[DeltaMetadata]], merge_bytes: int, cuts: Sequence[int]
) -> Iterator[tuple[DeltaMetadata, ...]]:
    """Neighbours that are in memory together: whole runs, so that no row is left between them."""
    group: list[DeltaMetadata] = []
    size = part = 0
    for run in runs:
        more, before = _size(run), part
        part = bisect_right(cuts, run[0].start_offset)
        if group and (part > before or (len(group) > 1 and size + more > merge_bytes)):
            yield tuple(group)
            group, size = [], 0
        group.extend(run)
        size += more
    if group:
        yield tuple(group)


def _size(extents: Sequence[DeltaMetadata]) -> int:
    return sum(extent.nbytes for extent in extents)
