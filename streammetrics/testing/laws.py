"""The algebra that every metric obeys, as small functions that raise AssertionError.

Each law takes a case, some rows and a source of randomness. `check_laws` runs all of them.
"""

from __future__ import annotations

import copy
import operator
import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from random import Random
from typing import Final

import numpy as np

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError, SettingsError, StateError
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.settings import Content, nested_settings
from streammetrics.core.updates import MAX_TOTAL_COUNT
from streammetrics.present.views import views_of
from streammetrics.testing.case import Case, Row, compare

# The caller's side of an update: arrays of the types that callers use, and later changes to them.

_NARROW: Final = {"i": np.uint8, "f": np.float32}


def as_array(column: object, *, narrow: bool) -> object:
    """A list as the array that a caller would have; anything else as a copy.

    Mixed values become an array of objects. `narrow`: use a narrower type if it holds the same
    values, because some types are used without a copy.
    """
    if not isinstance(column, list):
        return copy.deepcopy(column)
    kinds = set(map(type, column))
    short = kinds == {int} and all(-(1 << 63) <= value < 1 << 63 for value in column)
    if not short and kinds not in ({bool}, {float}, {str}):
        objects = np.empty(len(column), object)
        objects[:] = column
        return objects
    array = np.array(column)
    if narrow and array.dtype.kind in _NARROW:
        with np.errstate(all="ignore"):
            smaller = array.astype(_NARROW[array.dtype.kind])
        if smaller.astype(array.dtype).tobytes() == array.tobytes():
            return smaller
    return array


def is_kept(column: object, before: object) -> bool:
    """Whether an update left a column unchanged."""
    if isinstance(column, DictionaryColumn) and isinstance(before, DictionaryColumn):
        return column.values == before.values and column.codes.tolist() == before.codes.tolist()
    if isinstance(column, np.ndarray) and isinstance(before, np.ndarray):
        if column.dtype != before.dtype or column.dtype.hasobject:
            return column.dtype == before.dtype and repr(column.tolist()) == repr(before.tolist())
        return column.shape == before.shape and column.tobytes() == before.tobytes()
    return column is before or repr(column) == repr(before)


def overwrite(column: object) -> None:
    """Overwrite an array, as a caller that reuses it may."""
    array = column.codes if isinstance(column, DictionaryColumn) else column
    if isinstance(array, np.ndarray):
        array[...] = array[::-1].copy() if array.dtype.kind in "OU" else 1


def completed(state: Accumulator, empty: Accumulator, columns: Mapping[str, object]) -> Accumulator:
    """A state from bytes, ready for an update with these columns.

    Bytes have only the hash of some settings: an update must then refuse, and is possible after a
    merge into the metric that has their content.
    """
    if all(v.known for v in nested_settings(state) if isinstance(v, Content)):
        return state
    before = state.to_bytes()
    try:
        state.update(**columns)
    except StateError:
        assert state.to_bytes() == before, (
            "an update without the content of a setting changed the state"
        )
        return empty + state
    raise AssertionError("an update without the content of a setting was accepted")


_READ_SHARE: Final = 0.6  # the share of steps after which a state is written and read again


def readable(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """`from_bytes` reads all bytes written by `to_bytes`, after any sequence of operations, and the
    state read behaves as the state written."""
    n = random.randint(2, 4)
    shards: list[list[Row]] = [[] for _ in range(n)]
    for row in rows:
        random.choice(shards).append(row)
    pairs = [_fed(case, shard, random) for shard in shards]
    while len(pairs) > 1:
        state, twin = pairs.pop(random.randrange(len(pairs)))
        other_state, its_twin = pairs.pop(random.randrange(len(pairs)))
        state.merge(other_state)
        twin.merge(its_twin)
        pairs.append((_read(state, "merges", random), twin))
    ((state, twin),) = pairs
    assert _again(state, "merges").to_bytes() == twin.to_bytes(), (
        "a state written and read in between differs from one that was not"
    )


def _fed(case: Case[Row], rows: Sequence[Row], random: Random) -> tuple[Accumulator, Accumulator]:
    """The state of these rows, written and read in between, and its twin that was not."""
    state, twin = _read(case.empty.empty(), "nothing", random), case.empty.empty()
    while rows:
        cut = random.randint(1, len(rows))
        columns, rows = case.columns(rows[:cut]), rows[cut:]
        state = completed(state, case.empty, columns)
        state.update(**columns)
        twin.update(**columns)
        state = _read(state, "updates", random)
    return state, twin


def _read(state: Accumulator, after: str, random: Random) -> Accumulator:
    """The state, or by chance the state read from its bytes."""
    return _again(state, after) if random.random() < _READ_SHARE else state


def _again(state: Accumulator, after: str) -> Accumulator:
    data = state.to_bytes()
    try:
        back = type(state).from_bytes(data)
    except StateError as error:
        raise AssertionError(f"from_bytes refuses what to_bytes wrote after {after}") from error
    assert back.to_bytes() == data, f"after {after}, a state read from bytes writes other bytes"
    return back


def idempotence(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """If a metric is declared idempotent, `a + a` is `a`, and repeated rows count once."""
    if not case.empty.idempotent:
        return
    state = case.fed(rows)
    _equal(state + state, state, "a + a", "a")
    repeated = random.sample(list(rows), random.randint(0, len(rows)))
    _equal(state + case.fed(repeated), state, "a and some of its rows", "a")
    if repeated:
        twice_fed = state.copy()
        twice_fed.update(**case.columns(repeated))
        _equal(twice_fed, state, "a fed with some of its rows", "a")


def _equal(a: Accumulator, b: Accumulator, name_a: str, name_b: str) -> None:
    assert a.to_bytes() == b.to_bytes(), f"{name_a} is not {name_b}"


def intervals(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """Every field of every interval has the same bits however rows are split; sparse or no data is
    no error."""
    whole = case.fed(rows)
    if not hasattr(whole.compute(), "interval"):
        return
    shuffled = list(rows)
    random.shuffle(shuffled)
    cut = random.randint(0, len(rows))
    parts = case.fed(shuffled[cut:]) + case.fed(shuffled[:cut])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at_once, resharded = _intervals(whole), _intervals(parts)
        nothing = _intervals(case.empty.empty())
    for view, interval in at_once.items():
        assert resharded[view] == interval, f"{view}: {resharded[view]} sharded, {interval} at once"
    assert all("-inf to inf" in printed for _, printed in nothing.values()), (
        "an interval of no rows"
    )


def _intervals(state: Accumulator) -> dict[str, tuple[str, str]]:
    """The interval of each view: its fields, whose text is equal if the bits are, and its text."""
    views = views_of(state.compute())
    by_view = {view: state.confidence_interval(view=view) for view in views}
    return {view: (exact_text(interval), str(interval)) for view, interval in by_view.items()}


_LARGE_BATCH: Final = 9_000  # rows that bypass the buffer
# Doublings after which a small count is just above 2**24 or 2**53, where floats lose units; after
# 32 an int32 would overflow to 0. With few rows all stay below the limit of 2**63.
_HUGE: Final = (*range(19, 26), 32, *range(48, 55))


def monoid(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """`+` is associative and commutative, `empty` is its identity."""
    shards = _shards(rows, 3, random)
    a, b, c = map(case.fed, shards)
    same(a + b, b + a, "a + b", "b + a")
    same((a + b) + c, a + (b + c), "(a + b) + c", "a + (b + c)")
    same(a + a.empty(), a, "a + empty", "a")
    same(a.empty() + a, a, "empty + a", "a")
    same(sum([a, b, c], start=a.empty()), a + b + c, "sum of states", "a + b + c")
    if random.random() < 0.2:
        first_row = case.fed(shards[0][:1])  # a float loses the least counts first
        _huge_counts(a, (b, c), (first_row, first_row))
    twice = a + a
    a.merge(a)
    same(a, twice, "a merged into itself", "a + a")


def _huge_counts(a: Accumulator, *pairs: tuple[Accumulator, Accumulator]) -> None:
    sums = [(b, c, b + c) for b, c in pairs]
    huge, empty = a, a.empty().to_bytes()
    most = max(total._exact_total_count() for _, _, total in sums)
    is_filled = a.to_bytes() != empty
    for doublings in range(1, _HUGE[-1] + 1):
        # A merge would be refused.
        full = 2 * huge._exact_total_count() + most > MAX_TOTAL_COUNT
        if full or huge.nbytes > 1 << 16:  # a state that holds every row would grow too large
            return
        huge = huge + huge
        if doublings in _HUGE:
            name = f"a doubled {doublings} times"
            for b, c, total in sums:
                assert ((huge + b) + c).to_bytes() == (huge + total).to_bytes(), f"({name} + b) + c"
            assert (huge.to_bytes() != empty) is is_filled, f"{name} is empty"


def sharding(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """Any split of any permutation, updated and merged in any tree, equals one update."""
    whole = case.fed(rows)
    shuffled = list(rows)
    random.shuffle(shuffled)
    states = []
    for shard in _shards(shuffled, random.randint(1, 4), random):
        state = case.empty.empty()
        for batch in _shards(shard, random.randint(1, 3), random):
            if batch:
                state.update(**case.columns(batch))
            if random.random() < 0.3:
                state.compute()  # a compute in between changes nothing
        states.append(state)
    while len(states) > 1:
        b = states.pop(random.randrange(len(states)))
        a = states.pop(random.randrange(len(states)))
        if random.random() < 0.5:
            states.append(a + b)
        else:
            a.merge(iter([b]))
            states.append(a)
    same(states[0], whole, "sharded", "at once")
    _same_result(states[0], whole)


def pending_rows(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """Every operation that reads a state includes its pending rows, and `reset` drops them."""

    def fresh() -> Accumulator:
        state = case.empty.empty()
        for row in rows[:8]:  # more rows would only take longer
            state.update(**case.columns([row]))
        return state

    settled = fresh()
    data = settled.to_bytes()
    text = exact_text(settled.compute())
    assert exact_text(fresh().compute()) == text, "compute ignores pending rows"
    empty = case.empty.empty()
    for name, state in (
        ("the left of +", fresh() + empty),
        ("the right of +", empty + fresh()),
        ("copy", fresh().copy()),
        ("pickle", pickle.loads(pickle.dumps(fresh()))),
    ):
        assert state.to_bytes() == data, f"{name} ignores pending rows"
    reset_state = fresh()
    reset_state.reset()
    same(reset_state, empty, "after reset", "empty")
    for row in rows[:8]:
        reset_state.update(**case.columns([row]))
    assert reset_state.to_bytes() == data, "a state counts otherwise after reset"


def operands_kept(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """`merge` and `update` do not change their arguments; later changes to these do not reach the
    state."""
    first, second = _shards(rows, 2, random)
    a, b = case.fed(first), case.fed(second)
    before = b.to_bytes()
    a.merge(b)
    assert b.to_bytes() == before, "merge changed its argument"
    if not rows:
        return
    for merged in (a, a.empty() + b):
        joined, before = merged.to_bytes(), _updated(b, case, rows)
        assert merged.to_bytes() == joined, "a later update of the argument changed the sum"
        _updated(merged, case, rows)
        assert b.to_bytes() == before, "a later update of the sum changed the argument"
    for narrow in (False, True):
        _arrays_are_kept(case, rows, narrow)
    if random.random() < 0.1:
        _arrays_are_kept(case, list(rows) * (_LARGE_BATCH // len(rows) + 1), random.random() < 0.5)


def _updated(state: Accumulator, case: Case[Row], rows: Sequence[Row]) -> bytes:
    """The bytes of a state after one more update, without pending rows."""
    state.update(**case.columns(rows))
    return state.to_bytes()


def _arrays_are_kept(case: Case[Row], rows: Sequence[Row], narrow: bool) -> None:
    arrays = {name: as_array(column, narrow=narrow) for name, column in case.columns(rows).items()}
    copies = copy.deepcopy(arrays)
    state = case.empty.empty()
    state.update(**arrays)
    for name, array in arrays.items():
        assert is_kept(array, copies[name]), f"update changed {name}"
        overwrite(array)
    same(state, case.fed(rows), "a state whose arrays changed after the update", "a fresh one")


def atomic(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """An update that raises leaves the digest unchanged."""
    state = case.fed(rows)
    before = state.digest()
    for columns in case.refused:
        for refuse in (state.update, state.check):
            try:
                refuse(**columns)
            except InputError as error:
                parts = (error.expected, error.got, error.where, error.hint)
                assert all(parts), f"an error without all four parts: {parts}"
            else:
                raise AssertionError(f"{case} accepted {columns}")
        assert state.digest() == before, f"{case} changed although it refused {columns}"


def settings_differ(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """States with unequal settings refuse to merge, and stay unchanged."""
    state = case.fed(rows)
    before = state.digest()
    for other_state in case.others:
        other_digest = other_state.digest()
        merges: tuple[Callable[[], object], ...] = (
            partial(state.merge, other_state),
            partial(state.merge, [state.copy(), other_state]),
            partial(other_state.merge, state),
            partial(operator.add, state, other_state),
        )
        for merge in merges:
            try:
                merge()
            except SettingsError as error:
                assert error.expected != error.got, "the error does not name the difference"
            else:
                raise AssertionError(f"{state!r} merged {other_state!r}")
        assert state.digest() == before, "a refused merge changed the state"
        assert other_state.digest() == other_digest, "a refused merge changed its argument"
        assert state != other_state, f"{state!r} equals {other_state!r}"


def canonical(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """The state read from bytes is equal, and equal states have equal bytes."""
    state = case.fed(rows)
    data = state.to_bytes()
    assert state.to_bytes() == data, "a second to_bytes differs"
    back = type(state).from_bytes(data)
    same(back, state, "from_bytes(to_bytes(m))", "m")
    assert back == state and state == back, "equal bytes, but not equal"
    _same_result(back, state)
    pickled = pickle.loads(pickle.dumps(state))
    same(pickled, state, "pickled", "m")
    same(copy.deepcopy(state), state, "deepcopy", "m")
    if rows:
        twice = state + state
        back = completed(back, case.empty, case.columns(rows))
        back.update(**case.columns(rows))
        same(back, twice, "a state read from bytes and updated", "m + m")
        pickled.update(**case.columns(rows))
        same(pickled, twice, "a pickled state, updated", "m + m")
    for damaged in (data[:-1], data + b"\0", _flipped(data, random)):
        try:
            type(state).from_bytes(damaged)
        except StateError:
            continue
        raise AssertionError("damaged bytes were read as a state")


def pure(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """`compute` gives the same result twice, changes nothing and caches nothing: the next result
    includes later merges and updates. On an empty state it gives no warning."""
    state = case.fed(rows)
    before = state.to_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = state.compute()
        text = exact_text(result)
        assert exact_text(state.compute()) == text, "a second compute differs"
        case.empty.compute()
    assert state.to_bytes() == before, "compute changed the state"
    if rows:
        state.update(**case.columns(rows))
        state.to_bytes()
        assert exact_text(result) == text, "a later update changed an earlier result"
        fresh, merged = exact_text((case.fed(rows) + case.fed(rows)).compute()), case.fed(rows)
        merged.compute()
        merged.merge(case.fed(rows))
        text_after = exact_text(merged.compute())
        assert text_after == fresh, "compute ignores a merge after an earlier compute"


def bound(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """Each value is the exact one, correctly rounded, or its bounds contain the exact value."""
    if case.oracle is not None:
        compare(str(case), case.fed(rows).compute(), case.oracle(rows))


LAWS: Final[tuple[Callable[..., None], ...]] = (
    monoid,
    sharding,
    idempotence,
    pending_rows,
    operands_kept,
    atomic,
    settings_differ,
    canonical,
    readable,
    pure,
    bound,
    intervals,
)


def _shards(rows: Sequence[Row], n: int, random: Random) -> list[list[Row]]:
    owners = [random.randrange(n) for _ in rows]
    return [[r for r, o in zip(rows, owners, strict=True) if o == i] for i in range(n)]


def same(a: Accumulator, b: Accumulator, name_a: str, name_b: str) -> None:
    """Check that both states have equal bytes and compare equal."""
    assert a.to_bytes() == b.to_bytes(), f"{name_a} is not {name_b}"
    if type(a) is not type(b) or type(a).__eq__ is not Accumulator.__eq__:
        assert a == b, f"{name_a} has the bytes of {name_b}, but is not equal"


def _same_result(a: Accumulator, b: Accumulator) -> None:
    text_a, text_b = exact_text(a.compute()), exact_text(b.compute())
    assert text_a == text_b, "equal states, different results"


def exact_text(result: object) -> str:
    """All fields of a result with all of their bits, also nan and those of results within it."""
    if isinstance(result, np.ndarray):
        return f"{result.dtype}{result.shape}{result.tolist()}"
    if is_dataclass(result) and not isinstance(result, type):
        named_values = [(f.name, getattr(result, f.name)) for f in fields(result) if f.repr]
        texts = ", ".join(f"{name}={exact_text(value)}" for name, value in named_values)
        return f"{type(result).__name__}({texts})"
    if isinstance(result, Mapping):
        return str([(repr(key), exact_text(value)) for key, value in result.items()])
    if isinstance(result, (tuple, list)):
        return str([*map(exact_text, result)])
    return repr(result)


def _flipped(data: bytes, random: Random) -> bytes:
    index = random.randrange(len(data))
    return data[:index] + bytes((data[index] ^ 1 << random.randrange(8),)) + data[index + 1 :]
