"""The canonical form of a bag, which does not depend on batching, and its bytes.

Rows are sorted by slot, group and value, and each different (slot, group, value) occurs once, with
the count of each label. Groups are sorted by their ids, never by their indices in this process.
`core/README.md` specifies the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer, damaged
from streammetrics.core.ids.group_ids import ID_KINDS, Ids, Indices
from streammetrics.core.multiset.bag_layout import U64, Layout, Rule, bits_of
from streammetrics.core.multiset.sorted_run import Run, Words, narrowed
from streammetrics.core.parts.score_bits import (
    AUTO,
    Codes,
    are_codes,
    as_float32,
    codes_of,
    scores_of,
)
from streammetrics.core.rows import distinct, exact_total, ranges, sorted_distinct

_CHUNK: Final = 1 << 15  # keys at a time: temporaries stay in the second-level cache


@dataclass(frozen=True, slots=True, eq=False)
class IdOrder:
    """The groups of a sorted run in the order of their slots and ids.

    used: uint32 [m], the indices of ids with rows, in the order of the ids. ranks: intp [g], where
    the id of each group is in `used`. starts, ends: intp [g], the keys of each group in the run.
    """

    used: Indices
    ranks: NDArray[np.intp]
    starts: NDArray[np.intp]
    ends: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of a bag with equal ones counted.

    totals: int64 [width], all rows of each slot. slots: intp [g], the slot of each group,
    ascending; without groups a slot is a group. groups: uint32 [g], indices into `ids`, or None.
    sizes: intp [g], different values of each group. codes: [k], as wide as values, ascending
    within a group. counts: [k] for each label, unsigned of any width: rows, or their units of
    weight. held: int64 [width], the sum of each slot's counts, only in a table that was read.
    order: of the ids, only in a table that was made from keys.
    """

    totals: NDArray[np.int64]
    slots: NDArray[np.intp]
    sizes: NDArray[np.intp]
    codes: Codes
    counts: list[Words]
    ids: Ids | None = None
    groups: Indices | None = None
    held: NDArray[np.int64] | None = None
    order: IdOrder | None = None

    def pieces(self, leads: U64) -> Iterator[tuple[U64, Codes, list[Words]]]:
        """The entries in pieces: their leads, codes and counts by label. leads: of each group."""
        ends = np.cumsum(self.sizes)
        for i in range(0, len(self.codes), _CHUNK):
            end = min(i + _CHUNK, len(self.codes))
            first, last = np.searchsorted(ends, [i, end - 1], "right")
            groups = slice(int(first), int(last) + 1)
            starts = np.maximum(ends[groups] - self.sizes[groups], i)
            sizes = np.minimum(ends[groups], end) - starts
            counts = [of_label[i:end] for of_label in self.counts]
            yield np.repeat(leads[groups], sizes), self.codes[i:end], counts


def group_starts(words: Words, group_shift: int) -> NDArray[np.intp]:
    """Where each group of a sorted run begins; words: the lead of each key."""
    step = words.dtype.type(1 << group_shift)
    starts = [np.zeros(min(1, len(words)), np.intp)]
    for i in range(0, len(words) - 1, _CHUNK):
        chunk = words[i : i + _CHUNK + 1]
        starts.append(np.flatnonzero((chunk[1:] ^ chunk[:-1]) >= step) + (i + 1))
    return np.concatenate(starts)


def table_of(
    rule: Rule, layout: Layout, runs: Sequence[Run], totals: NDArray[np.int64], ids: Ids | None
) -> Table:
    """Count equal rows of sorted runs, a run for each store; of a single one if there are ids."""
    if layout.form == "plain":
        return _plain_table(runs[0], totals)
    order = None if ids is None else _id_order(layout, runs[0], ids)
    labels = rule.labels
    kind = np.uint32 if layout.value_bits == 32 else np.uint64
    codes: list[Codes] = []
    counts: list[list[Words]] = [[np.empty(0, np.uint8)] for _ in range(labels)]
    leads, starts = [np.empty(0, np.uint64)], [np.empty(0, np.intp)]
    n_done, last = 0, None
    for store, run in enumerate(runs):
        first = run.firsts(layout.label_bits)
        of_run: Codes = np.empty(int(np.count_nonzero(first)), kind)
        codes.append(of_run)
        filled = 0
        for piece in _pieces(run, first, order):
            positions = np.flatnonzero(piece.firsts(layout.label_bits))
            fields = layout.open(piece, store)
            code, label = layout.codes(fields)
            of_run[filled : filled + len(positions)] = code[positions]
            filled += len(positions)
            ends = np.append(positions[1:], len(label))
            repeats = np.flatnonzero(ends - positions > 1)
            left = ends - positions
            if piece.counts is not None:
                left = _sums(piece.counts, positions, ends, repeats).astype(np.int64)
            for value in range(1, labels):
                amounts: Words = (label == value).view(np.uint8)
                if piece.counts is not None:
                    amounts = amounts * piece.counts
                counts[value].append(_sums(amounts, positions, ends, repeats))
                left -= counts[value][-1].astype(np.int64)
            counts[0].append(narrowed(left))
            lead = fields.lead[positions]
            new = np.ones(len(lead), np.bool_)
            new[1:] = lead[1:] != lead[:-1]
            new[0] = last is None or lead[0] != last
            last = lead[-1]
            leads.append(lead[new])
            starts.append(np.flatnonzero(new) + n_done)
            n_done += len(positions)
    lead = np.concatenate(leads)
    bits = layout.group_bits
    return Table(
        totals,
        slots=(lead >> np.uint64(bits)).astype(np.intp),
        sizes=np.diff(np.append(np.concatenate(starts), n_done)),
        codes=codes[0] if len(codes) == 1 else np.concatenate(codes),
        counts=[np.concatenate(of_label) for of_label in counts],
        ids=ids,
        groups=None if ids is None else (lead & np.uint64((1 << bits) - 1)).astype(np.uint32),
        order=order,
    )


def _plain_table(run: Run, totals: NDArray[np.int64]) -> Table:
    """The same of keys that are the codes of the values of one slot."""
    codes, counts = run.low, run.counts
    if counts is None:
        positions = np.flatnonzero(run.firsts())
        if len(positions) == len(codes):
            counts = np.ones(len(codes), np.uint8)
        else:
            codes = codes[positions]
            counts = narrowed(np.diff(positions, append=len(run)))
    slots = np.zeros(min(1, len(codes)), np.intp)
    return Table(totals, slots, np.full(len(slots), len(codes)), codes, [counts])


def _id_order(layout: Layout, run: Run, ids: Ids) -> IdOrder:
    starts = group_starts(run.lead, layout.group_shift)
    slots, groups = layout.parts(
        (run.lead[starts] >> np.uint64(layout.group_shift)).astype(np.uint64)
    )
    present, positions = distinct(groups.astype(np.intp), ids.n)
    ranks = ids.ranks(present.astype(np.uint32))
    used = np.empty(len(present), np.uint32)
    used[ranks] = present
    by_rank = slots.astype(np.intp) * len(used) + ranks[positions]
    order = np.argsort(by_rank)
    by_rank = by_rank[order]
    return IdOrder(
        used, by_rank % max(1, len(used)), starts[order], np.append(starts[1:], len(run))[order]
    )


def _pieces(run: Run, first: NDArray[np.bool_], order: IdOrder | None) -> Iterator[Run]:
    """The keys in pieces of about `_CHUNK`, group by group; first: where a value begins, which is
    in one piece."""
    if order is None or bool((order.starts[1:] > order.starts[:-1]).all()):
        yield from _slices(run, first, 0, len(run))
        return
    sizes = order.ends - order.starts
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, np.arange(0, len(run), _CHUNK))
    large = cuts[sizes[cuts] > _CHUNK]  # groups that are cut themselves
    edges = sorted_distinct(np.concatenate([cuts, large + 1, [len(sizes)]])).tolist()
    for start, end in pairwise(edges):
        if end - start == 1:
            yield from _slices(run, first, int(order.starts[start]), int(order.ends[start]))
        else:
            yield run.take(ranges(order.starts[start:end], order.ends[start:end])[0])


def _slices(run: Run, first: NDArray[np.bool_], start: int, end: int) -> Iterator[Run]:
    """The keys from `start` to `end` in pieces."""
    while start < end:
        cut = min(_next(first, start + _CHUNK), end)
        yield run.slice(start, cut)
        start = cut


def _next(first: NDArray[np.bool_], start: int) -> int:
    """The first True from here on, or the end."""
    tail = first[start:]
    step = int(tail.argmax()) if len(tail) else 0
    return start + step if len(tail) and tail[step] else len(first)


def _sums(
    amounts: Words, starts: NDArray[np.intp], ends: NDArray[np.intp], repeats: NDArray[np.intp]
) -> Words:
    """The sum of the amounts from each start to its end; repeats: those with several."""
    if 8 * len(repeats) > len(starts):
        return narrowed(np.add.reduceat(amounts.astype(np.int64), starts))
    sums = amounts[starts]
    if len(repeats):
        between = np.stack([starts[repeats], ends[repeats]], axis=1).ravel()
        several = narrowed(np.add.reduceat(np.append(amounts.astype(np.int64), 0), between)[::2])
        sums = sums.astype(np.promote_types(sums.dtype, several.dtype), copy=False)
        sums[repeats] = several
    return sums


def write_table(rule: Rule, table: Table, out: Writer) -> None:
    """Write the canonical bytes."""
    width, codes, order = len(table.totals), table.codes, table.order
    if rule.values == AUTO:
        codes = _narrowest(codes)
        out.uint(int(codes.dtype == np.uint64))
    out.ints(table.totals)
    if table.ids is None or order is None:
        per_slot = np.zeros(width, np.int64)
        per_slot[table.slots] = table.sizes
        out.ints(per_slot)
    else:
        slots, ranks = table.slots, order.ranks
        first = np.ones(len(slots), np.bool_)
        first[1:] = slots[1:] != slots[:-1]
        out.uint(len(order.used))
        table.ids.encode(order.used, out)
        out.ints(np.bincount(slots, minlength=width))
        out.ints(np.where(first, ranks, np.diff(ranks, prepend=0) - 1))
        out.ints(table.sizes)
    if codes.dtype == np.uint64:
        out.words(codes.astype(np.uint64, copy=False))
    else:
        out.ints(codes)
    for of_label in table.counts:
        out.ints(of_label)


def read_table(rule: Rule, width: int, data: Reader) -> Table:
    """The table that `write_table` wrote; StateError for others, before any large allocation."""
    values = rule.values
    if values == AUTO:
        values = "float64" if data.uint(1) else "float32"
    totals = data.ints(width)
    ids, groups = None, None
    if rule.ids is None:
        slots = np.arange(width)
        sizes = _bounded(data.ints(width), data)
    else:
        ids, slots, groups = _read_groups(rule, width, data)
        sizes = _bounded(data.ints(len(slots)), data)
        if len(sizes) and not sizes.min():
            raise damaged("a group without values")
    k = int(sizes.sum())
    # All arrays stay as narrow as the bytes are: wider ones of many rows are new pages of memory.
    codes = data.words(k) if bits_of(values) == 64 else data.narrow(k)[0]
    if not all(are_codes(codes[i : i + _CHUNK], values) for i in range(0, k, _CHUNK)):
        raise damaged("a value that is not a number")
    if values != rule.values and values == "float64" and _narrowest(codes).dtype == np.uint32:
        raise damaged("values as float64 that all are float32")
    if not _ascend(codes, np.cumsum(sizes)):
        raise damaged("values out of order")
    counts, most, total = list[Words](), 0, 0
    for _ in range(rule.labels):
        label_counts, top = data.narrow(k)
        total += exact_total(label_counts)
        if total >= 1 << 63:
            raise damaged("counts of 2**63 rows or more")
        most += top
        counts.append(label_counts)
    if exact_total(totals) >= 1 << 63:
        raise damaged("counts of 2**63 rows or more")
    kind = np.min_scalar_type(most)
    if not all(rows.min() for rows in _rows(counts, kind)):
        raise damaged("a value without rows")
    units = np.zeros(width, np.int64)
    np.add.at(units, slots, sizes)
    if total != k:  # some value has several rows
        units = _sums_of_runs(_rows(counts, kind), units)
    over = np.zeros(width, np.bool_) if rule.max_rows is None else totals > rule.max_rows
    n_rows = np.where(over, 0, totals)
    if not bool((units == n_rows).all()):
        different = np.zeros(width, np.int64)
        for of_label in counts:
            np.add.at(different, np.repeat(slots, sizes), of_label > 0)
        # Each weighted row has at least one unit, and each different row occurred.
        if not (rule.weighted and bool(((different <= n_rows) & (n_rows <= units)).all())):
            raise damaged("totals that do not match the rows")
    narrow: Codes = codes.astype(np.uint32, copy=False) if bits_of(values) == 32 else codes
    return Table(totals, slots, sizes, narrow, counts, ids, groups, units)


def _ascend(codes: Codes, ends: NDArray[np.int64]) -> bool:
    """Whether the codes of each group, up to its end, ascend."""
    for i in range(1, len(codes), _CHUNK):
        chunk = codes[i - 1 : i + _CHUNK]
        above = chunk[1:] > chunk[:-1]
        first, last = np.searchsorted(ends, [i, i + len(above)])
        above[ends[first:last] - i] = True  # where the next group begins
        if not above.all():
            return False
    return True


def _rows(counts: Sequence[Words], kind: np.dtype[np.generic]) -> Iterator[Words]:
    """The rows of all labels of each entry, in pieces. kind: a type that holds them."""
    for i in range(0, len(counts[0]), _CHUNK):
        rows: Words = counts[0][i : i + _CHUNK].astype(kind)
        for of_label in counts[1:]:
            rows += of_label[i : i + _CHUNK]
        yield rows


def _sums_of_runs(pieces: Iterable[Words], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of each run of values, of these sizes; [r]. pieces: the values, each piece but the
    last of `_CHUNK`."""
    sums, used = np.zeros(len(sizes), np.int64), np.flatnonzero(sizes)
    ends = np.cumsum(sizes[used])
    starts = ends - sizes[used]
    for i, chunk in zip(count(0, _CHUNK), pieces, strict=False):
        first, last = np.searchsorted(ends, [i, i + len(chunk) - 1], "right")
        runs = slice(int(first), int(last) + 1)
        begins = np.maximum(starts[runs] - i, 0)
        sums[used[runs]] += np.add.reduceat(chunk, begins, dtype=np.int64)
    return sums


def _read_groups(rule: Rule, width: int, data: Reader) -> tuple[Ids, NDArray[np.intp], Indices]:
    """The ids, and slot and index of each group in turn."""
    assert rule.ids is not None
    m = data.uint(data.left)
    ids, indices = ID_KINDS[rule.ids].decode(m, data)
    per_slot = _bounded(data.ints(width), data)
    of_slot = np.repeat(np.arange(width), per_slot)
    steps = data.ints(len(of_slot))
    if len(steps) and int(steps.max()) >= m:
        raise damaged("a group with an unknown id")
    ranks = np.cumsum(steps + 1) - 1
    before = np.concatenate([[0], ranks + 1])[np.cumsum(per_slot) - per_slot]
    ranks -= np.repeat(before, per_slot)
    if len(ranks) and int(ranks.max()) >= m:
        raise damaged("a group with an unknown id")
    if not bool((np.bincount(ranks, minlength=m) > 0).all()):
        raise damaged("an id without a group")
    return ids, of_slot, indices[ranks]


def _narrowest(codes: Codes) -> Codes:
    """The codes of the same floats, as float32 if that changes none of them."""
    if codes.dtype == np.uint32 or as_float32(scores_of(codes[:256])) is None:  # most, by a sample
        return codes
    narrow = as_float32(scores_of(codes))
    return codes if narrow is None else codes_of(narrow)


def _bounded(sizes: NDArray[np.int64], data: Reader) -> NDArray[np.int64]:
    """The sizes, if the items that they count, of at least a byte each, fit into the bytes left."""
    n = exact_total(sizes)
    if n > data.left:
        raise damaged(f"{n} entries in {data.left} bytes")
    return sizes
