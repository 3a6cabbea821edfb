"""Every part: after any additions, merges, takes and copies it holds what plain Python says.

Buffers are tiny, so that each form of a part is entered and left again. The bytes are those of the
same rows given at once to empty states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import inf
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import Units
from streammetrics.core.codec import Reader, Writer
from streammetrics.core.ids import group_ids
from streammetrics.core.multiset import bag, bag_keys, bag_layout, bag_table, sorted_run, tiers
from streammetrics.core.multiset.bag import BagColumn
from streammetrics.core.multiset.bag_layout import Layout, Rule, layout_for
from streammetrics.core.multiset.bag_table import read_table
from streammetrics.core.parts import counts, least_times, record_set, unit_set
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_sum import ExactSum
from streammetrics.core.parts.exact_sums import ExactSums, NamedSums
from streammetrics.core.parts.extremes import Extremes
from streammetrics.core.parts.least_times import LeastTimes
from streammetrics.core.parts.part import Extreme
from streammetrics.core.parts.record_set import RecordsColumn, RecordSet
from streammetrics.core.parts.unit_set import UnitSet
from streammetrics.core.parts.weighted_counts import WeightedCounts
from streammetrics.core.rows import DictionaryColumn
from tests.core.multiset import bags
from tests.core.multiset.bags import INTEGERS, RULES, SCORES, contents, in_precision, names
from tests.depth import tries
from tests.toys import Tally

Rows = list[tuple[Any, ...]]  # slot, and what the part takes
ORDER = {7: 2, None: 3, "a": 0, "b": 1}  # of the bytes of keys


def coded(keys: Sequence[Any]) -> DictionaryColumn:
    """A column of keys, one of whose values has no row."""
    distinct_keys = tuple(dict.fromkeys([*keys, "of no record"]))
    return DictionaryColumn(
        np.array([distinct_keys.index(key) for key in keys], np.intp), distinct_keys
    )


class Kind(ABC):
    """A part under its settings: how it is fed and read, and what it should hold."""

    def __init__(self, part: Any = None, owner: Any = None) -> None:
        self.part, self.owner = part, owner or Tally()

    def empty(self, width: int) -> Any:
        return self.part.empty(self.owner, width)

    def decode(self, width: int, data: Reader) -> Any:
        return self.part.decode(self.owner, width, data)

    @abstractmethod
    def draw(self, random: Random) -> tuple[Any, ...]:
        """A row without its slot."""

    @abstractmethod
    def add(self, column: Any, slots: Any, *columns: Any) -> None:
        """slots: None for slot 0 alone."""

    @abstractmethod
    def state(self, column: Any, slot: int) -> Any: ...

    @abstractmethod
    def model(self, rows: Rows) -> Any:
        """The state that these rows of one slot make."""

    def total_count(self, rows: Rows) -> int:
        """The sum of all counts that these rows of one slot make."""
        return 0

    def feed(self, column: Any, rows: Rows, plain: bool) -> None:
        if rows:
            slots, *columns = zip(*rows, strict=True)
            self.add(column, None if plain else np.array(slots, np.intp), *columns)

    def states(self, column: Any) -> list[Any]:
        return [self.state(column, slot) for slot in range(column.width)]


class CountsKind(Kind):
    def __init__(self, cells: int, kind: Any = Counts) -> None:
        super().__init__(kind(cells))
        self.cells = cells

    def draw(self, random: Random) -> tuple[int, int]:
        return random.randrange(random.choice([1, self.cells])), random.choice([0, 1, 1, 2, 300])

    def add(self, column: Any, slots: Any, cells: Any, units: Any) -> None:
        weights = None if set(units) == {1} else np.array(units, np.int64)
        column.add(np.array(cells, np.intp), slots, weights)

    def state(self, column: Any, slot: int) -> dict[int, int]:
        count_by_cell = dict(zip(*(array.tolist() for array in column.occupied(slot)), strict=True))
        dense = column.dense(slot).tolist()
        assert dense == [count_by_cell.get(cell, 0) for cell in range(self.cells)]
        assert list(count_by_cell) == sorted(count_by_cell)
        return count_by_cell

    def model(self, rows: Rows) -> dict[int, int]:
        count_by_cell = Counter[int]()
        for _, cell, n in rows:
            count_by_cell[cell] += n
        return {cell: n for cell, n in count_by_cell.items() if n}

    def total_count(self, rows: Rows) -> int:
        return sum(n for *_, n in rows)


class WeightedCountsKind(CountsKind):
    def draw(self, random: Random) -> tuple[int, int]:
        return random.randrange(self.cells), random.choice([1, 1, 9])

    def add(self, column: Any, slots: Any, cells: Any, units: Any) -> None:
        weights = None if set(units) == {1} else np.array(units, np.int64)
        column.add_rows(np.array(cells, np.intp), slots, weights)

    def state(self, column: Any, slot: int) -> Any:
        return super().state(column, slot), int(column.surplus[slot])

    def model(self, rows: Rows) -> Any:
        return super().model(rows), sum(n - 1 for *_, n in rows)


class ExtremeKind(Kind):
    def __init__(self, best: Any) -> None:
        super().__init__(Extreme(best.__name__))
        self.best = best

    def draw(self, random: Random) -> tuple[int]:
        # All but -2**63, which has no negative.
        return (random.choice([-(2**63) + 1, -1, 0, 1, 2**63 - 1]),)

    def add(self, column: Any, slots: Any, values: Any) -> None:
        column.add(np.array(values, np.int64), slots)

    def state(self, column: Any, slot: int) -> int | None:
        return column.value(slot)  # type: ignore[no-any-return]

    def model(self, rows: Rows) -> int | None:
        return self.best([value for _, value in rows], default=None)  # type: ignore[no-any-return]


class ExtremesKind(Kind):
    def draw(self, random: Random) -> tuple[float]:
        return (random.choice([-inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 2.0, inf]),)

    def add(self, column: Any, slots: Any, values: Any) -> None:
        column.add(np.array(values, np.float64), slots)

    def state(self, column: Any, slot: int) -> tuple[float, ...]:
        return tuple(
            end.item() for end in column.extremes_of(np.array([slot])) if not np.isnan(end)
        )

    def model(self, rows: Rows) -> tuple[float, ...]:
        values = [value for _, value in rows]
        return (min(values), max(values)) if values else ()


class ExactSumKind(Kind):
    def draw(self, random: Random) -> tuple[float]:
        plain = random.choice([0.1, -0.0, 3.0, float(random.getrandbits(40))])
        return (random.choice([plain, plain, 1e300, -1e300, 5e-324, -inf, inf]),)

    def add(self, column: Any, slots: Any, values: Any) -> None:
        column.add(np.array(values, np.float64), slots)

    def state(self, column: Any, slot: int) -> Any:
        return column.finite_fraction(slot), column.infinities[slot].tolist()

    def model(self, rows: Rows) -> Any:
        values = [value for _, value in rows]
        finite = [Fraction(value) for value in values if abs(value) < inf]
        return sum(finite, Fraction(0)), [values.count(-inf), values.count(inf)]

    def total_count(self, rows: Rows) -> int:
        return sum(abs(row[1]) == inf for row in rows)


class ExactSumsKind(ExactSumKind):
    def draw(self, random: Random) -> tuple[Any, ...]:
        return (*super().draw(random), random.randrange(3))

    def add(self, column: Any, slots: Any, values: Any, cells: Any = ()) -> None:
        column.add(np.array(values, np.float64), np.array(cells, np.intp), slots)

    def state(self, column: Any, slot: int) -> Any:
        return column.finite_fractions(slot), [column.finite(cell, slot) for cell in range(3)]

    def model(self, rows: Rows) -> Any:
        cells = [
            super(ExactSumsKind, self).model([r[:2] for r in rows if r[2] == c]) for c in range(3)
        ]
        return tuple(total for total, _ in cells), [not any(infinite) for _, infinite in cells]


class NamedSumsKind(ExactSumKind):
    """Finite values in one sum, and the squares of those of ordinary size in the other."""

    def draw(self, random: Random) -> tuple[float]:
        value = inf
        while abs(value) == inf:
            (value,) = super().draw(random)
        return (value,)

    def add(self, column: Any, slots: Any, values: Any) -> None:
        small = np.array([value if abs(value) < 1e200 else 0.5 for value in values])
        finite = np.where(np.abs(small) > 1e-200, small, 0.0)
        column.add(slots, values=np.array(values, np.float64), squares=(finite, finite))

    def state(self, column: Any, slot: int) -> Any:
        return column.fractions(slot)

    def model(self, rows: Rows) -> Any:
        total, _ = super().model(rows)
        small = [value if abs(value) < 1e200 else 0.5 for _, value in rows]
        finite = [value if abs(value) > 1e-200 else 0.0 for value in small]
        return total, sum((Fraction(x) ** 2 for x in finite), Fraction(0))


class UnitSetKind(Kind):
    def __init__(self, **settings: Any) -> None:
        super().__init__(UnitSet(), Units(**settings))
        self.last = int(self.owner.share * 2**64) - 1

    def draw(self, random: Random) -> tuple[int]:
        return (random.choice([0, 1, 2, 2**63 - 1, 2**63, 2**64 - 1]),)

    def add(self, column: Any, slots: Any, words: Any) -> None:
        column.add(np.array(words, np.uint64), slots)

    def state(self, column: Any, slot: int) -> list[int] | None:
        units = column.units_of_slot(slot)
        return None if units is None else units.tolist()  # type: ignore[no-any-return]

    def model(self, rows: Rows) -> list[int] | None:
        units, limit = sorted({word for _, word in rows if word <= self.last}), self.owner.max_units
        return None if limit is not None and len(units) > limit else units


class RecordsKind(Kind):
    kinds: tuple[str, ...] = ("float32", "key")
    sets: type[RecordSet] = RecordSet

    def empty(self, width: int) -> RecordsColumn:
        sets = [self.sets(self.kinds) for _ in range(width)]
        return RecordsColumn(self.kinds, sets, self.sets)

    def decode(self, width: int, data: Reader) -> RecordsColumn:
        sets = [self.sets.decode(self.kinds, data) for _ in range(width)]
        return RecordsColumn(self.kinds, sets, self.sets)

    def draw(self, random: Random) -> tuple[Any, ...]:
        value, key = random.choice([-1.0, -0.0, 0.0, 7.0]), random.choice(["a", "b", None, 7])
        return random.choice([1, 2, 2**64 - 1]), random.choice([-9, 9]), value, key

    def add(self, column: Any, slots: Any, ids: Any, times: Any, *values: Any) -> None:
        fields = [
            coded(column) if kind == "key" else np.array(column, np.float32)
            for kind, column in zip(self.kinds, values, strict=True)
        ]
        column.add(np.array(ids, np.uint64), np.array(times, np.int64), fields, slots)

    def state(self, column: Any, slot: int) -> Any:
        table, records = column.sets[slot].settled(), column.sets[slot]
        columns = [records.column(number, slice(None)) for number in range(2)]
        of_row = [
            [c.values[code] for code in c.codes.tolist()]
            if isinstance(c, DictionaryColumn)
            else c.tolist()
            for c in columns
        ]
        return list(zip(table.ids.tolist(), table.times.tolist(), *of_row, strict=True))

    def model(self, rows: Rows) -> Any:
        return sorted({row[1:] for row in rows}, key=lambda row: (*row[:3], ORDER[row[3]]))


class LeastTimesKind(RecordsKind):
    kinds = ("key", "key")
    sets = LeastTimes

    def draw(self, random: Random) -> tuple[Any, ...]:
        keys = random.choice("ba"), random.choice(["b", None, 7])
        return random.choice([1, 2, 2**64 - 1]), random.randrange(-9, 9), *keys

    def model(self, rows: Rows) -> Any:
        least: dict[Any, int] = {}
        for _, unit, time, *keys in rows:
            least[unit, *keys] = min(time, least.get((unit, *keys), time))
        records = [(unit, time, *keys) for (unit, *keys), time in least.items()]
        return sorted(records, key=lambda row: (row[0], ORDER[row[2]], ORDER[row[3]]))


class BagKind(Kind):
    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule

    def empty(self, width: int) -> BagColumn:
        return BagColumn(self.rule, width)

    def decode(self, width: int, data: Reader) -> BagColumn:
        return BagColumn.from_table(self.rule, read_table(self.rule, width, data))

    def draw(self, random: Random) -> tuple[Any, ...]:
        value = random.choice(INTEGERS if self.rule.values == "int64" else SCORES)
        units = random.choice([1, 1, 2, 300, 1 << 40]) if self.rule.weighted else 1
        return random.choice(names(self.rule)), value, random.randrange(self.rule.labels), units

    def add(self, column: Any, slots: Any, *columns: Any) -> None:
        units = None if set(columns[-1]) == {1} else np.array(columns[-1], np.int64)
        slot_list = [0] * len(columns[0]) if slots is None else slots.tolist()
        bags.feed(column, list(zip(slot_list, *columns[:-1], strict=True)), slots is None, units)

    def state(self, column: Any, slot: int) -> Any:
        raise NotImplementedError

    def states(self, column: Any) -> list[Any]:
        count_by_row = contents(column)
        return [
            ({key: n for key, n in count_by_row.items() if key[0] == slot}, total)
            for slot, total in enumerate(column.totals.tolist())
        ]

    def model(self, rows: Rows) -> Any:
        count_by_row, limit = Counter[Any](), self.rule.max_rows
        for slot, group, value, label, units in rows if limit is None or len(rows) <= limit else ():
            exact = in_precision(self.rule, value)
            count_by_row[slot, group if self.rule.ids else None, exact, label] += units
        return count_by_row, len(rows)

    def total_count(self, rows: Rows) -> int:
        dropped = self.rule.max_rows is not None and len(rows) > self.rule.max_rows
        return len(rows) if dropped else sum(n for *_, n in rows)


KINDS: dict[str, Kind] = {
    **{f"Counts({cells})": CountsKind(cells) for cells in (1, 7, 301)},
    **{f"WeightedCounts({cells})": WeightedCountsKind(cells, WeightedCounts) for cells in (7, 301)},
    **{f"Extreme {best.__name__}": ExtremeKind(best) for best in (max, min)},
    "Extremes": ExtremesKind(Extremes()),
    "ExactSum": ExactSumKind(ExactSum()),
    "ExactSums": ExactSumsKind(ExactSums(3)),
    "NamedSums": NamedSumsKind(NamedSums("values", "squares")),
    "UnitSet": UnitSetKind(),
    "UnitSet sampled": UnitSetKind(share=0.5),
    "UnitSet limited": UnitSetKind(max_units=2),
    "Records": RecordsKind(),
    "LeastTimes": LeastTimesKind(),
    **{
        f"Bag {rule.values}-{rule.labels}-{rule.ids}-{rule.max_rows}-{rule.weighted}": BagKind(rule)
        for rule in (
            *RULES,
            *(Rule("float32", 2, ids, 10) for ids in (None, "integer", "exact")),
            Rule("int64", 1, "integer", 10),
            *(
                Rule(values, 2, ids, None, weighted=True)
                for values, ids in product(("float32", "float64"), (None, "integer"))
            ),
            Rule("float32", 2, "integer", 5, weighted=True),
        )
    },
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every buffer so small that few rows fill it."""
    for module, name, size in (
        *((counts, "_FEW_PENDING", 10), (unit_set, "FEW", 4), (record_set, "_FEW", 5)),
        *((record_set, "_BATCHES", 3), (least_times, "_MANY", 2)),
        *((tiers, "BUFFERED", 20), (tiers, "FAN", 3)),
        *((sorted_run, "_CHUNK", 9), (sorted_run, "_RANGE", 13), (bag_keys, "_CHUNK", 7)),
        *((bag, "_WAIT", 20), (bag, "_PIECE", 17), (bag_table, "_CHUNK", 5)),
        *((bag_layout, "_CHUNK", 11), (group_ids, "_BLOCK", 16), (group_ids, "_CHUNK", 8)),
    ):
        monkeypatch.setattr(module, name, size)


def wide_layout_for(
    value_bits: int, label_bits: int, width: int, n: int | None, before: Layout | None = None
) -> Layout:
    """Keys of two words from early on."""
    if width > 4 if n is None else n > 3:
        return Layout(value_bits, label_bits, "wide", 0 if n is None else 32)
    return layout_for(value_bits, label_bits, width, n, before)


def encoded(column: Any) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def decoded(kind: Kind, data: bytes, width: int) -> Any:
    reader = Reader(data)
    column = kind.decode(width, reader)
    reader.finish()
    return column


def random_rows(kind: Kind, random: Random, width: int) -> Rows:
    n = random.choice([0, 1, 3, 12, 40]) if width else 0
    return [(random.randrange(width), *kind.draw(random)) for _ in range(n)]


def random_column(kind: Kind, random: Random, width: int) -> tuple[Any, Rows]:
    """States that were fed, read from bytes or taken from others."""
    column, rows = kind.empty(width), []
    for _ in range(random.randrange(3)):
        batch = random_rows(kind, random, width)
        kind.feed(column, batch, plain=width == 1 and random.random() < 0.5)
        rows += batch
    if random.random() < 0.3:
        column = decoded(kind, encoded(column), width)
    return column, rows


def check(kind: Kind, column: Any, rows: Rows) -> None:
    whole = kind.empty(column.width)
    kind.feed(whole, rows, plain=False)
    of_slots = [[row for row in rows if row[0] == slot] for slot in range(column.width)]
    for candidate in (column, whole):
        assert kind.states(candidate) == [kind.model(slot_rows) for slot_rows in of_slots]
        assert candidate.bound >= candidate.total_count == sum(map(kind.total_count, of_slots))
    assert encoded(column) == encoded(whole)
    assert column.nbytes >= 0


def walk(kind: Kind, random: Random) -> None:
    """Random operations on a column and on the list of its rows."""
    width = random.choice([1, 1, 3])
    column, rows = random_column(kind, random, width)
    for _ in range(14):
        match random.choice(["feed", "feed", "merge", "take", "widen", "bytes"]):
            case "feed":
                batch = random_rows(kind, random, width)
                kind.feed(column, batch, plain=width == 1 and random.random() < 0.5)
                rows += batch
            case "merge" if width:
                addend, addend_rows = random_column(kind, random, random.choice([0, 1, 2, 4]))
                before = encoded(addend)
                to = [random.randrange(width) for _ in range(addend.width)]
                column.merge(addend, np.array(to, np.intp))
                rows += [(to[slot], *row) for slot, *row in addend_rows]
                assert encoded(addend) == before
            case "take" if width:
                slots = [random.randrange(width) for _ in range(random.choice([0, 1, 1, 3]))]
                old, old_bytes = column, encoded(column)
                column, width = column.take(np.array(slots, np.intp)), len(slots)
                of_slot = [[row[1:] for row in rows if row[0] == slot] for slot in slots]
                rows = [(i, *row) for i, slot_rows in enumerate(of_slot) for row in slot_rows]
                batch = random_rows(kind, random, width)
                kind.feed(column, batch, plain=False)
                rows += batch
                assert encoded(old) == old_bytes
            case "bytes":
                column = decoded(kind, encoded(column), width)
            case _:
                width += random.choice([0, 1, 5])
                column.widen(width)
        if random.random() < 0.6:
            check(kind, column, rows)
    check(kind, column, rows)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", list(KINDS))
def test_a_part_holds_what_plain_python_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = KINDS[name]
    for seed in range(3 if isinstance(kind, BagKind) else tries(6, 100)):
        if seed == 2:
            monkeypatch.setattr(bag, "layout_for", wide_layout_for)
        walk(kind, Random(seed))
