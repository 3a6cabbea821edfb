"""How a row becomes a key, whose order is (slot, group, value, label).

tail   code of the value, then label: 33 bits for float32 and a binary label, 65 for float64
lead   slot, then group index
narrow   one uint64: lead, tail                         while both fit
wide     two uint64: high = lead and the bits of the tail above 64; low = the rest
planes   one slot, no groups, two labels: the top bit of the tail is the sign of the value, so
         negative values and others have a store each and the sign is not stored: a key is a
         uint32 for float32 (half the time to sort) and a uint64 for float64
plain    one slot, no groups, one label: a key is the code of the value, as wide as it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.ids.group_ids import ID_KINDS, Ids
from streammetrics.core.multiset.sorted_run import Run, Words
from streammetrics.core.parts.score_bits import AUTO, Codes, Values, codes_of

U64 = NDArray[np.uint64]
_CHUNK: Final = 1 << 15  # rows at a time: temporaries stay in the second-level cache
_SLOT_STEP: Final = 4  # bits; slots grow in steps, so that keys are seldom laid out again


@dataclass(frozen=True, slots=True)
class Rule:
    """What a bag holds: values of a type ("float32", "float64", "int64", or "auto": floats as they
    are, in 32 bits while float32 represents all of them), labels from 0 to
    `labels` - 1, group ids of a kind (of `ID_KINDS`, or None for no groups), and
    at most `max_rows` rows a slot; `repeats`: few different rows repeat; `weighted`: a row may
    count as several."""

    values: str
    labels: int
    ids: str | None
    max_rows: int | None
    repeats: bool = False
    weighted: bool = False

    @property
    def first_type(self) -> str:
        """The type of the values of an empty bag."""
        return "float32" if self.values == AUTO else self.values

    @property
    def label_bits(self) -> int:
        """Bits that hold any of the labels; 0 if there is only one."""
        return (self.labels - 1).bit_length()

    def no_ids(self) -> Ids | None:
        """The empty set of ids of this kind."""
        return None if self.ids is None else ID_KINDS[self.ids]()


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """The fields of keys: lead; the tail's bits above 64 (None: no such bits); its lower 64."""

    lead: U64
    over: U64 | None
    tail: U64

    def led_by(self, lead: U64) -> Fields:
        """The same tails under other leads."""
        return Fields(lead, self.over, self.tail)

    def take(self, positions: NDArray[np.intp]) -> Fields:
        """These keys."""
        return Fields(
            self.lead[positions],
            None if self.over is None else self.over[positions],
            self.tail[positions],
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to lay out keys."""

    value_bits: int
    label_bits: int
    form: str
    group_bits: int = 0

    @property
    def tail_bits(self) -> int:
        return self.value_bits + self.label_bits

    @property
    def high_bits(self) -> int:
        """Number of bits of the tail above 64, which are in `high`."""
        return max(0, self.tail_bits - 64)

    @property
    def group_shift(self) -> int:
        """Where the group begins: in `low` of a narrow key, in `high` of a wide one."""
        return self.high_bits if self.form == "wide" else self.tail_bits

    @property
    def stores(self) -> int:
        return 2 if self.form == "planes" else 1

    @property
    def kind(self) -> type[np.uint32] | type[np.uint64]:
        """The type of the (lower) words."""
        narrow = self.value_bits == 32 and self.form in ("planes", "plain")
        return np.uint32 if narrow else np.uint64

    def lead(self, slots: U64, groups: U64 | None) -> U64:
        """The leads of these slots and groups."""
        return slots if groups is None else slots << np.uint64(self.group_bits) | groups

    def parts(self, lead: U64) -> tuple[U64, U64]:
        """The slots and the groups of leads."""
        bits = np.uint64(self.group_bits)
        return lead >> bits, lead & np.uint64((1 << self.group_bits) - 1)

    def build(
        self,
        values: Values,
        labels: NDArray[np.uint8] | None,
        slots: NDArray[np.intp] | None,
        groups: NDArray[np.uint32] | None,
    ) -> list[Run]:
        """Unsorted keys of rows [n], one Run for each store; all arrays are new. labels: None if
        there is only one."""
        if self.form == "planes":
            assert labels is not None
            return self._planes(values, labels)
        n = len(values)
        if self.form == "plain":
            keys = np.empty(n, self.kind)
            for i in range(0, n, _CHUNK):
                keys[i : i + _CHUNK] = codes_of(values[i : i + _CHUNK])
            return [Run(keys)]
        low = np.empty(n, np.uint64)
        high = np.empty(n, np.uint64) if self.form == "wide" else None
        label_bits, over_bits = np.uint64(self.label_bits), np.uint64(self.high_bits)
        for i in range(0, n, _CHUNK):
            chunk = slice(i, i + _CHUNK)
            code = codes_of(values[chunk])
            out = low[chunk]
            if high is None:
                self._write_lead(out, None if slots is None else slots[chunk], groups, chunk)
                out <<= np.uint64(self.value_bits)
                out |= code
            else:
                lead = high[chunk]
                self._write_lead(lead, None if slots is None else slots[chunk], groups, chunk)
                if over_bits:
                    lead <<= over_bits
                    lead |= code >> np.uint64(self.value_bits - self.high_bits)
                np.copyto(out, code)
            if labels is not None:
                out <<= label_bits
                out |= labels[chunk]
        return [Run(low, high)]

    def _write_lead(
        self,
        out: U64,
        slots: NDArray[np.intp] | None,
        groups: NDArray[np.uint32] | None,
        chunk: slice,
    ) -> None:
        if slots is None:
            np.copyto(out, np.uint64(0) if groups is None else groups[chunk])
            return
        np.copyto(out, slots, casting="unsafe")
        if groups is not None:
            out <<= np.uint64(self.group_bits)
            out |= groups[chunk]

    def _planes(self, values: Values, labels: NDArray[np.uint8]) -> list[Run]:
        """Keys of the negative values, and of the others: the tail without the sign bit."""
        signed = np.int32 if values.dtype == np.float32 else np.int64
        n, kind = len(values), self.kind
        bits = values.view(signed)
        if not n or np.minimum.reduce(bits) >= 0:
            low = np.empty(n, kind)
            for i in range(0, n, _CHUNK):
                np.left_shift(bits[i : i + _CHUNK].view(kind), kind(1), out=low[i : i + _CHUNK])
                low[i : i + _CHUNK] |= labels[i : i + _CHUNK]
            return [Run(np.empty(0, kind)), Run(low)]
        n_below = int(np.count_nonzero(values < 0))
        below, above = np.empty(n_below, kind), np.empty(n - n_below, kind)
        a = b = 0
        for i in range(0, n, _CHUNK):
            code = codes_of(values[i : i + _CHUNK])
            negative = values[i : i + _CHUNK] < 0
            code <<= kind(1)  # shifts the sign out
            code |= labels[i : i + _CHUNK]
            keys = np.compress(negative, code)  # a sixth of the time of code[negative]
            below[a : a + len(keys)] = keys
            a += len(keys)
            keys = np.compress(~negative, code)
            above[b : b + len(keys)] = keys
            b += len(keys)
        return [Run(below), Run(above)]

    def apart(self, values: Values, column: Words) -> list[Words]:
        """Another column of the rows given to `build`, in the order of its keys."""
        if self.form != "planes":
            return [column]
        negative = values < 0
        return [np.compress(negative, column), np.compress(~negative, column)]

    def bounds(
        self, run: Run, slots: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where the sorted keys of each slot begin and end."""
        if self.form in ("planes", "plain"):
            return np.zeros(len(slots), np.intp), np.full(len(slots), len(run))
        bits = self.group_bits + (self.tail_bits if run.high is None else self.high_bits)
        words = run.low if run.high is None else run.high
        least = slots.astype(np.uint64) << np.uint64(bits)
        most = least | np.uint64((1 << bits) - 1)
        return np.searchsorted(words, least, "left"), np.searchsorted(words, most, "right")

    def open(self, run: Run, store: int = 0) -> Fields:
        """The fields of keys."""
        n = len(run)
        if run.high is not None:
            over = np.uint64(self.high_bits)
            lead = run.high >> over
            low = run.low.astype(np.uint64, copy=False)
            if not self.high_bits:
                return Fields(lead, None, low)
            return Fields(lead, run.high & np.uint64((1 << self.high_bits) - 1), low)
        if self.form == "narrow":
            bits = np.uint64(self.tail_bits)
            tail = run.low & np.uint64((1 << self.tail_bits) - 1)
            return Fields(run.low >> bits, None, tail.astype(np.uint64, copy=False))
        tail = run.low.astype(np.uint64)
        if self.form == "plain":
            return Fields(np.zeros(n, np.uint64), None, tail)
        if self.value_bits == 32:
            tail |= np.uint64(store << 32)
            return Fields(np.zeros(n, np.uint64), None, tail)
        return Fields(np.zeros(n, np.uint64), np.full(n, store, np.uint64), tail)

    def close(self, fields: Fields, counts: Words | None) -> list[Run]:
        """The keys of fields, one Run for each store, in the given order; the arrays of words are
        new."""
        lead, over, tail = fields.lead, fields.over, fields.tail
        if self.form == "wide":
            high = lead << np.uint64(self.high_bits)
            return [Run(tail.copy(), high if over is None else high | over, counts)]
        if self.form == "narrow":
            low = lead << np.uint64(self.tail_bits)
            low |= tail
            return [Run(low, None, counts)]
        if self.form == "plain":
            return [Run(tail.astype(self.kind), None, counts)]
        sign = (tail >> np.uint64(32) if over is None else over) != 0
        words: Words = tail.astype(self.kind)
        positions = np.flatnonzero(~sign), np.flatnonzero(sign)
        return [Run(words, None, counts).take(store_positions) for store_positions in positions]

    def codes(self, fields: Fields) -> tuple[U64, NDArray[np.uint8]]:
        """Codes of values, and labels."""
        codes = fields.tail >> np.uint64(self.label_bits)
        if fields.over is not None:
            codes |= fields.over << np.uint64(64 - self.label_bits)
        labels = fields.tail & np.uint64((1 << self.label_bits) - 1)
        return codes, labels.astype(np.uint8)

    def fields(self, lead: U64, codes: Codes, labels: NDArray[np.uint8]) -> Fields:
        """The inverse of `codes`."""
        wide = codes.astype(np.uint64, copy=False)
        tail = wide << np.uint64(self.label_bits) | labels
        over = wide >> np.uint64(64 - self.label_bits) if self.high_bits else None
        return Fields(lead, over, tail)


def bits_of(values: str) -> int:
    """Bits of the code of a value of this type."""
    return 32 if values == "float32" else 64


def layout_for(
    value_bits: int, label_bits: int, width: int, n_groups: int | None, before: Layout | None = None
) -> Layout:
    """The layout for `width` slots and `n_groups` groups (None: no groups), never narrower than
    `before`."""
    free = 64 - value_bits - label_bits  # bits of a narrow key that are left for the lead
    slot_bits = -(-(max(width, 1) - 1).bit_length() // _SLOT_STEP) * _SLOT_STEP
    if n_groups is None:
        if width <= 1 and label_bits == 1 and (before is None or before.form == "planes"):
            return Layout(value_bits, label_bits, "planes")
        if width <= 1 and not label_bits and (before is None or before.form == "plain"):
            return Layout(value_bits, label_bits, "plain")
        return Layout(value_bits, label_bits, "narrow" if slot_bits <= free else "wide")
    group_bits = free - slot_bits
    fits = group_bits > 0 and n_groups <= 1 << group_bits
    if fits and (before is None or before.form == "narrow"):
        return Layout(value_bits, label_bits, "narrow", group_bits)
    return Layout(value_bits, label_bits, "wide", 32)
