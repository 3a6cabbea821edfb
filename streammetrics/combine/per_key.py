"""PerKey: one state of a metric for each key, with a bound on the number of keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.combine.children import Map, MapColumn
from streammetrics.combine.panel import Computes, Panel, R, Results, part_of, require_empty
from streammetrics.core import intakes
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.buffer import SMALL
from streammetrics.core.checks import check_choice, check_number
from streammetrics.core.conversion import among, flag, instance
from streammetrics.core.errors import InputError, SettingsError, shown, unknown_key
from streammetrics.core.ids.found_keys import found_keys
from streammetrics.core.ids.key_forms import keys_among, place_of_key, stored_key
from streammetrics.core.ids.keys import encode_key, key_column, key_hash, named_column
from streammetrics.core.intakes import Intake
from streammetrics.core.parts.many_slots import MOST, NO_SLOT, ManySlots
from streammetrics.core.parts.part import SLOT_0, Slots
from streammetrics.core.rows import DictionaryColumn, Key, KeyLike
from streammetrics.core.slips import explained
from streammetrics.core.stacked import bytes_of_each, digests
from streammetrics.present.row_table import MOST as MOST_LINES
from streammetrics.present.row_table import notes_of
from streammetrics.present.views import Part

OneColumn: TypeAlias = ArrayLike | DictionaryColumn | Sequence[KeyLike]
Keys: TypeAlias = OneColumn | Mapping[str, OneColumn]
Missing: TypeAlias = Literal["error", "empty"]
MISSING: Final = ("error", "empty")  # what a key without a state gives
_AT_ONCE: Final = 1 << 24  # bytes of states that are encoded together, about
OTHER: Final = "(other)"  # the key of the overflow in tables, as in a ledger


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KeyedResult(Results[Key, R]):
    """The result of each key; `overflow` is that of all keys past `max_keys`, or None."""

    overflow: R | None

    if TYPE_CHECKING:

        def __getitem__(self, key: KeyLike) -> R: ...

    def _stored(self, key: object) -> Key:
        return stored_key(key)

    def _parts(self) -> Iterator[tuple[Part, object]]:
        yield from (
            (Part(f"[{key!r}]", keys=(key,)), result) for key, result in self.results.items()
        )
        if self.overflow is not None:
            yield Part("overflow", keys=(OTHER,)), self.overflow

    def _notes(self) -> Iterator[str]:
        """What the results of all of the first keys have below their tables."""
        first = [dict.fromkeys(notes_of(result)) for result in islice(self.values(), MOST_LINES)]
        if first:
            yield from (note for note in first[0] if all(note in notes for notes in first))

    def _other_keys(self) -> str:
        return "" if self.overflow is None else "keys past max_keys are summed in `overflow`"


class PerKey(Accumulator, Generic[R], schema="per-key/1"):
    """A metric for each key: variant, country, position, or a tuple of several.

    Settings
        metric: an empty metric.
        max_keys: the `max_keys` keys with the smallest stable hash (BLAKE2b, 64 bits) are kept; the
        rows of all others are summed into one overflow state. Which keys are kept depends on the
        set of keys, never on their order.
    Rows
        keys: [n] strings, integers, None, or tuples of these; then the metric's own columns. Also
        floats that are whole, as the integers that they equal, and dates and booleans, as their
        text: `str(key)`, such as "2026-01-31" and "True", so that True is not the key 1. Where a
        key is asked for, any of its forms finds it.
        Or a dict of such columns by name: then each row counts once for each name, under the key
        (name, value), or (name, *value) for a tuple, unless the value is None: a row without a
        variant of one experiment counts in the others alone. So one pass counts a stream by variant
        of every experiment, or by country and by device, and work on the rows is done once. For a
        table, name its columns: `update_from(table, keys={"color": "color_arm"}, ...)`. For slices
        of runs against judgments use `evaluate(..., by=...)`, which knows the relevant documents
        that were not retrieved: a RankingMetrics knows them only from n_relevant.
    State
        A map from key to the metric's state.
    Result
        A mapping from key to result, and `overflow`.
    Cost
        One lookup for each distinct key of a batch, or for each row of a long list; of a
        `DictionaryColumn` with far more values than rows, one for each value while batches share
        the tuple `values`, which the state then keeps. The metric's kernels run once for all keys.
    Source
        A map into a commutative monoid is itself one, added key by key (Boykin et al. 2014).

    >>> from streammetrics import PerKey, Ratio
    >>> ctr = PerKey(Ratio(), max_keys=100)
    >>> ctr.update(["a", "b", "a"], numerators=[1, 0, 0])
    >>> ctr.compute()["a"].ratio
    0.5
    >>> by_both = PerKey(Ratio())
    >>> by_both.update({"color": ["red", "red"], "size": ["S", None]}, numerators=[1, 0])
    >>> {key: one.ratio for key, one in by_both.compute().items()}
    {('color', 'red'): 0.5, ('size', 'S'): 1.0}
    """

    metric: Accumulator
    max_keys: int = 10_000
    states = Map()

    if TYPE_CHECKING:  # the type of the results is that of the metric

        def __init__(self, metric: Computes[R], max_keys: int = 10_000) -> None: ...

    def check_settings(self) -> None:
        self._set("metric", require_empty(self.metric, "PerKey.metric"))
        self._set("max_keys", _checked_max_keys(self.max_keys))

    def arguments(self) -> Mapping[str, bool]:
        return {"keys": True, **self.metric.arguments()}

    def stored_names(self) -> Mapping[str, str]:
        return self.metric.stored_names()

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        return self.metric.widths()

    def _roles(self) -> Mapping[str, str]:
        return self.metric._roles()

    @explained
    def update(
        self,
        keys: Keys,
        **columns: ArrayLike | DictionaryColumn | None,
    ) -> None:
        """Feed each row to the state of its key.

        keys: [n], the key of each row, or a dict of such columns by name. columns: those of the
        metric's own `update`, by name; `arguments()` lists them.
        """
        if not self._wait({"keys": keys, **columns}):
            self._update(self.check(keys, **columns))

    @property
    def _intakes(self) -> Mapping[str, Intake | None]:
        return {"keys": intakes.keys, **self.metric._intakes}

    def check(
        self,
        keys: Keys,
        **columns: ArrayLike | DictionaryColumn | None,
    ) -> Batch:
        """The keys and the metric's rows, or InputError; changes nothing."""
        key_codes = self._key_codes(keys)
        return _rows_by_key(key_codes, self.metric.check(**columns))

    def check_rows(self, keys: Keys, rows: Batch) -> Batch:
        """As `check`, of rows that the metric's own `check` accepted: so rows that count under
        several columns of keys, or in several states, are checked once.

        rows: what `metric.check(...)` returned, or some of it: `rows.take(positions)`. Of a Panel,
        rows that another one checked will do if it has these metrics and reads the same columns
        for them. keys: as in `update`, one for each of these rows.

        >>> from streammetrics import PerKey, Ratio
        >>> by_color, by_size = PerKey(Ratio()), PerKey(Ratio())
        >>> rows = by_color.metric.check(numerators=[1, 0, 1])
        >>> by_color.update_checked(by_color.check_rows(["red", "red", "blue"], rows))
        >>> by_size.update_checked(by_size.check_rows(["S", "M"], rows.take([0, 2])))
        >>> by_color.compute()["red"].ratio, by_size.compute()["M"].ratio
        (0.5, 1.0)
        """
        return _rows_by_key(self._key_codes(keys), checked(rows, "PerKey.check_rows"))

    def _key_codes(self, keys: Keys) -> dict[str, DictionaryColumn]:
        index = self.states.index[0]
        if isinstance(keys, Mapping) or not index:
            return key_columns(keys)
        column = found_keys(keys, index, SMALL, self.states.known)
        return key_columns(keys) if column is None else {"keys": column}

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        feed_by_key(self.states, batch, slots)

    def compute(self) -> KeyedResult[R]:
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[KeyedResult[R]]:
        states = self.states
        states.settle()
        keys = [states.ordered(slot) for slot in slots.tolist()]
        child_slots: list[int] = []
        for slot, slot_keys in zip(slots.tolist(), keys, strict=True):
            child_slots.extend(map(states.index[slot].__getitem__, slot_keys))
            if slot in states.other:
                child_slots.append(states.other[slot])
        child = part_of(self, states.child)
        results = iter(cast("Sequence[R]", child._compute_all(np.array(child_slots, np.intp))))
        return [
            KeyedResult(
                dict(zip(slot_keys, results, strict=False)),
                next(results) if slot in states.other else None,
            )
            for slot, slot_keys in zip(slots.tolist(), keys, strict=True)
        ]

    def _rows_text(self) -> str:
        n = len(self._settled().index[0]) if self._width == 1 else 0
        return f": {n:,} key{'s' * (n != 1)}" if n else ""

    def keys(self) -> tuple[Key, ...]:
        """The keys that have their own state, in canonical order."""
        return tuple(self._settled().ordered(0))

    def state(self, key: KeyLike, *, missing: Missing = "error") -> Accumulator:
        """The state of one key, as a separate accumulator.

        missing: what a key without a state gives: "error", an UnknownKeyError, which is a KeyError
        too and names the nearest key; or "empty", an empty state.
        """
        states = self._settled()
        slot = place_of_key(states.index[0], key)
        if slot is None:
            return without_state(self.metric, key, self.keys(), missing, bool(states.other))
        return self._child(slot)

    def digests(self) -> dict[Key, str]:
        """The digest of the state of each key, in canonical order: of all in one pass.

        >>> from streammetrics import PerKey, Ratio
        >>> ctr = PerKey(Ratio())
        >>> ctr.update(["a", "b"], numerators=[1, 0])
        >>> ctr.digests()["b"] == ctr.state("b").digest()
        True
        """
        states, keys = self._settled(), self.keys()
        return dict(zip(keys, digests(states.child, states.slots_of(keys)), strict=True))

    def _results_of(self, keys: Sequence[Key]) -> Sequence[R]:
        """The results of some keys that have their own state."""
        states = self._settled()
        child = part_of(self, states.child)
        return cast("Sequence[R]", child._compute_all(states.slots_of(keys)))

    def _bytes_by_key(self) -> Iterator[bytes]:
        """The bytes of the state of each key, in canonical order: of many in one pass."""
        states, keys = self._settled(), self.keys()
        n = 1 + len(keys) * _AT_ONCE // (states.child.nbytes + 1)
        for start in range(0, len(keys), n):
            yield from bytes_of_each(states.child, states.slots_of(keys[start : start + n]))

    def overflow_state(self) -> Accumulator | None:
        """The state of all keys past `max_keys`, or None while there are none."""
        slot = self._settled().other.get(0)
        return None if slot is None else self._child(slot)

    def rekeyed(self, key_of: Callable[[Key], Key]) -> PerKey[R]:
        """The state with `key_of(key)` in place of each key; states of equal new keys are summed.

        The overflow state is not changed.

        >>> from streammetrics import PerKey, Ratio
        >>> both = PerKey(Ratio())
        >>> both.update([("a", 1), ("a", 2), ("b", 1)], numerators=[1, 0, 0])
        >>> both.rekeyed(lambda key: key[0]).compute()["a"].ratio
        0.5
        """
        return self._with_states(self._settled().rekeyed(key_of), self._total_count)

    def limited(self, max_keys: int) -> PerKey[R]:
        """The same with another `max_keys`; rows already in the overflow state stay there.

        Under a greater one the next rows of any new key have a state of its own while there is
        room, also those of a key with earlier rows in the overflow state.
        """
        max_keys = _checked_max_keys(max_keys)
        empty = self._related(max_keys, lambda: PerKey(cast("Computes[R]", self.metric), max_keys))
        return empty._with_states(self._settled().take(SLOT_0), self._total_count)

    def project(
        self,
        name: str,
        max_keys: int | None = None,
        *,
        keys: Iterable[KeyLike] | None = None,
        key_of: Callable[[Key], Key] | None = None,
        copy: bool = True,
    ) -> PerKey:
        """The PerKey of one metric, from a PerKey of a Panel.

        max_keys: another one, as in `limited`. keys: only the states of these, as in `chosen`.
        key_of: gives the new key of each, as in `rekeyed`. All of it is one copy. copy: False: the
        state may share memory with this one. Read it before the next update, and change nothing.
        """
        if not isinstance(self.metric, Panel):
            raise SettingsError(
                expected="a PerKey of a Panel",
                got=f"a PerKey of {type(self.metric).__name__}",
                where="PerKey.project",
                hint="use the PerKey as it is",
            )
        if not among(name, self.metric.metrics):
            raise unknown_key(name, self.metric.metrics, "PerKey.project", "metrics")
        is_copied = flag(copy, "PerKey.project(copy)")
        metric, states = self.metric.metrics[name], self._settled()
        most = self.max_keys if max_keys is None else _checked_max_keys(max_keys)
        empty = self._related((name, most), lambda: PerKey(metric, most))
        view = states.child_view(cast("Panel", states.child).states.by_name[name])
        if keys is not None:
            of_one = _some(view, keys, key_of, "PerKey.project")
        elif key_of is not None:
            of_one = view.take(SLOT_0).rekeyed(key_of, moves=True)
        else:
            of_one = view.take(SLOT_0) if is_copied else view
        return empty._with_states(of_one, self._total_count)

    def _with_states(self, states: MapColumn, total: int) -> PerKey[R]:
        """The states under these settings. total: as `_total_count`."""
        states.limit(self.max_keys)
        return self._holding({"states": states}, 1, total)

    def chosen(
        self, keys: Iterable[KeyLike], key_of: Callable[[Key], Key] | None = None
    ) -> PerKey[R]:
        """The states of these keys alone, without the overflow state; unseen keys are left out.

        key_of: gives the new key of each, as in `rekeyed`, without another copy.

        >>> from streammetrics import PerKey, Ratio
        >>> ctr = PerKey(Ratio())
        >>> ctr.update(["a", "b", "a"], numerators=[1, 0, 0])
        >>> ctr.chosen(["b", "c"]).keys()
        ('b',)
        """
        chosen_states = _some(self._settled(), keys, key_of, "PerKey.chosen")
        return self._with_states(chosen_states, self._total_count)

    def split(self, n: int) -> list[PerKey[R]]:
        """`n` shards by ranges of the keys' hash, which merge back into this state.

        The overflow state goes to the last shard.
        """
        n = check_number(n, 1, 1 << 31, "PerKey.split(n)", "pass the number of shards")
        states, pieces = self._settled(), list[PerKey[R]]()
        chosen: list[list[Key]] = [[] for _ in range(n)]
        for key in states.index[0]:
            chosen[key_hash(encode_key(key)) * n >> 64].append(key)
        for i, keys in enumerate(chosen):
            overflow = states.other.get(0) if i == n - 1 else None
            piece = states.some_keys(0, keys, overflow)
            pieces.append(self._with_states(piece, self._total_count))
        return pieces

    def _child(self, slot: int) -> Accumulator:
        return part_of(self, self.states.child._take(np.array([slot], np.intp)))

    def _settled(self) -> MapColumn:
        self._flush()
        self.states.settle()
        return self.states


def _some(
    states: MapColumn, keys: Iterable[KeyLike], key_of: Callable[[Key], Key] | None, where: str
) -> MapColumn:
    """The states of the keys among these that have one, in separate memory."""
    chosen_states = states.some_keys(0, keys_among(keys, states.index[0], where), None)
    return chosen_states if key_of is None else chosen_states.rekeyed(key_of, moves=True)


def without_state(
    metric: Accumulator,
    key: KeyLike,
    known_keys: Collection[Key],
    missing: Missing,
    has_others: bool,
) -> Accumulator:
    """What `PerKey.state` gives for a key that is not known. has_others: others are past
    `max_keys`."""
    check_choice(missing, MISSING, "PerKey.state, missing")
    if missing == "empty":
        return metric.empty()
    instead = "keys past max_keys are summed in overflow_state()" if has_others else ""
    raise unknown_key(key, known_keys, "PerKey.state", further_hint=instead)


def feed_by_key(states: MapColumn, batch: Batch, slots: Slots | None) -> None:
    """Add the rows of a batch to the states of their keys."""
    keys = [column for column in batch.columns.values() if isinstance(column, DictionaryColumn)]
    groupings = [states.locate(column, slots) for column in keys]
    rows = batch.as_batch("rows")
    if len(groupings) == 1 and NO_SLOT not in groupings[0].slots:
        states.child._feed(rows, groupings[0].slots[groupings[0].codes])
    else:
        for start in range(0, len(groupings), MOST):
            states.child._feed(rows, ManySlots(groupings[start : start + MOST]))
    states.tidy()


def _checked_max_keys(max_keys: int) -> int:
    hint = "pass the maximum number of keys"
    return check_number(max_keys, 1, 1 << 31, "PerKey.max_keys", hint)


def checked(rows: object, where: str) -> Batch:
    """The rows, if they are some that a `check` returned; else InputError."""
    return instance(rows, Batch, where, "rows that metric.check(...) returned", "pass them")


def _rows_by_key(codes: Mapping[str, DictionaryColumn], rows: Batch) -> Batch:
    for name, column in codes.items():
        require_as_many(len(column), rows.n, name)
    return Batch(rows.n, {**codes, "rows": rows}, rows.total * len(codes))


def key_columns(keys: Keys) -> dict[str, DictionaryColumn]:
    """The columns of keys of a batch by name, of which each row has a key in each."""
    if not isinstance(keys, Mapping):
        return {"keys": key_column(keys)}
    if not keys:
        raise InputError(
            expected="a column of keys, or at least one in a dict by name",
            got="none",
            where="keys",
            hint='pass keys=column, or keys={"variant": column, "country": other}',
        )
    columns = {}
    for name, column in keys.items():
        if type(name) is not str:
            raise InputError(
                expected="names of columns of keys that are strings",
                got=f"{shown(name)} ({type(name).__name__})",
                where="keys",
                hint='pass keys={"variant": column, "country": other}',
            )
        where = f"keys[{shown(name)}]"
        columns[where] = named_column(key_column(column, where), name, where)
    return columns


def require_as_many(n: int, n_rows: int, name: str) -> None:
    """Refuse a column of keys or times whose length is not the number of rows."""
    if n != n_rows:
        raise InputError(
            expected=f"{n_rows} values, one for each row (or list)",
            got=f"{n}",
            where=name,
            hint="pass columns of equal length",
        )
