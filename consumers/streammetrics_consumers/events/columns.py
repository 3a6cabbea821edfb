"""Converting the values of one field over a chunk into a column for metrics.

Values are lists of plain values (from JSON, CSV or a column store), or arrays of a column store.
The result is the column, with a placeholder at each bad row, and the reason for each bad row. The
conversion of a value depends on that value alone, never on other rows, so a chunk may be cut
anywhere.
"""

from __future__ import annotations

import json
import math
import struct
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Final, TypeAlias, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn, hash_texts
from streammetrics_consumers.config.event import MAX_TEXT, plain_text
from streammetrics_consumers.events import Unfit, shown
from streammetrics_consumers.model.chunk import end_to_end
from streammetrics_consumers.model.times import AFTER_S, FIRST_S, GREATEST_MS, LEAST_MS, iso_to_ms

_INT64: Final = 1 << 63
_NO_DOUBLE: Final = (1 << 1024) - (1 << 970)  # the least whole number that overflows
_ALL_EXACT: Final = 2.0**53  # every whole number up to this is a double
Column: TypeAlias = (
    "NDArray[np.float64] | NDArray[np.int64] | NDArray[np.bool_] | DictionaryColumn | ListColumn"
)
IDS: Final = "an array of texts or whole numbers"
IDS_OF_ITEMS: Final = "an array with an array of texts or whole numbers for each item"
Bad: TypeAlias = dict[int, Unfit]
Converted: TypeAlias = tuple[Column, Bad]
Converter: TypeAlias = Callable[[list[object], str], Converted]
MAX_NAME: Final = 480  # bytes of a slice value as JSON: eight and a bit fit into a key of 4,096

_EXACT_DIGITS: Final = 15  # a double represents every whole number of this many digits
# The kinds that a text of CSV is read as unchanged.
_TEXTS: Final = frozenset(
    (
        *(
            "variant",
            "arm",
            "slice",
            "name",
            "text_id",
            "hashed_id",
            "has_id",
            "condition",
            "time_iso",
        ),
        *("plain_text", "plain"),
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class ListColumn:
    """A column whose rows are lists: row i is `values[offsets[i]:offsets[i + 1]]`.

    values: float64, int64 or bool [m], or the ids of each item as objects; offsets: intp [n + 1].
    """

    values: NDArray[np.float64] | NDArray[np.int64] | NDArray[np.bool_] | NDArray[np.object_]
    offsets: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, positions: NDArray[np.intp]) -> ListColumn:
        """The rows at these positions."""
        sizes = np.diff(self.offsets)[positions]
        offsets = np.concatenate([np.zeros(1, np.intp), np.cumsum(sizes)]).astype(np.intp)
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        return ListColumn(
            self.values[np.repeat(self.offsets[:-1][positions], sizes) + inside], offsets
        )


def missing(path: str) -> Unfit:
    """The refusal of an event without this field."""
    return Unfit("missing_field", path, "the event has no such field")


class HugeNumber(str):
    """A text of a number that is beyond all doubles."""

    __slots__ = ()


def wrong(path: str, expected: str, value: object) -> Unfit:
    """The refusal of a value of another type."""
    if value is None:
        return Unfit("missing_field", path, f"expected {expected}, got null")
    if isinstance(value, HugeNumber):
        return Unfit("out_of_range", path, f"{shown(value)} is too large")
    return Unfit("wrong_type", path, f"expected {expected}, got {shown(value)}")


def _sorted_out(
    values: list[object], path: str, types: tuple[type, ...], expected: str, stand_in: object
) -> tuple[list[object], Bad]:
    """The values, with `stand_in` for each that has none of these exact types, and the reasons."""
    if set(map(type, values)) <= set(types):
        return values, {}
    bad = {i: wrong(path, expected, v) for i, v in enumerate(values) if type(v) not in types}
    return _replaced(values, bad, stand_in), bad


def _replaced(values: list[object], bad: Bad, stand_in: object) -> list[object]:
    """The values, with `stand_in` for each bad one."""
    values = values.copy()
    for i in bad:
        values[i] = stand_in
    return values


def _floats(values: list[object], path: str, bad: Bad) -> NDArray[np.float64]:
    """Numbers as doubles. NaN is bad, and so is a whole number that no double represents."""
    pack = struct.Struct(f"{len(values)}d").pack
    try:
        data = pack(*values)
    except struct.error:
        huge = [i for i, v in enumerate(values) if isinstance(v, int) and abs(v) >= _NO_DOUBLE]
        for i in huge:
            bad[i] = Unfit("out_of_range", path, f"{shown(values[i])} is too large for a double")
        values = _replaced(values, dict.fromkeys(huge, bad[huge[0]]), 0.0)
        data = pack(*values)
    array = np.frombuffer(data).copy()
    for i in np.flatnonzero(np.isnan(array)).tolist():
        bad[i] = Unfit("not_a_number", path, "NaN")
        array[i] = 0.0
    bad.update(rounded(values, array, path))
    return array


def rounded(
    values: Sequence[object] | NDArray[np.generic], doubles: NDArray[np.float64], path: str
) -> Bad:
    """The whole numbers among `values` [n] that differ from `doubles` [n]."""
    bad: Bad = {}
    for i in np.flatnonzero(np.abs(doubles) >= _ALL_EXACT).tolist():
        value, double = values[i], float(doubles[i])
        if isinstance(value, int | np.integer) and int(value) != int(double):
            detail = f"no double holds {shown(int(value))}; send a smaller number, or {double!r}"
            bad[i] = Unfit("out_of_range", path, detail)
    return bad


def reals(values: list[object], path: str, *, typed: bool = False) -> Converted:
    """Numbers as float64 [n]. typed: all values are numbers, since the field is read as one."""
    bad: Bad = {}
    if not typed:
        values, bad = _sorted_out(values, path, (float, int), "a number", 0.0)
    return _floats(values, path, bad), bad


def labels(values: list[object], path: str) -> Converted:
    """Numbers or booleans as float64 [n]. A metric decides which numbers are valid labels."""
    try:
        return np.frombuffer(bytes(values), np.uint8).astype(np.float64), {}  # type: ignore[arg-type]
    except (TypeError, ValueError):  # not whole numbers from 0 to 255, true and false alone
        pass
    values, bad = _sorted_out(values, path, (float, int, bool), "a number, true or false", 0.0)
    return _floats(values, path, bad), bad


def flags(values: list[object], path: str) -> Converted:
    """Booleans as bool [n]."""
    values, bad = _sorted_out(values, path, (bool,), "true or false", False)
    return np.array(values, np.bool_), bad


def integers(values: list[object], path: str) -> Converted:
    """Whole numbers as int64 [n]."""
    values, bad = _sorted_out(values, path, (int,), "a whole number", 0)
    try:
        return np.array(values, np.int64), bad
    except OverflowError:
        whole = cast("list[int]", values)
        for i in [i for i, value in enumerate(whole) if not -_INT64 <= value < _INT64]:
            bad[i] = Unfit("out_of_range", path, f"{shown(values[i])} does not fit 64 bits")
        return np.array(_replaced(values, bad, 0), np.int64), bad


def lists(values: list[object], path: str, *, booleans: bool) -> Converted:
    """Arrays of numbers as one flat column of float64."""
    kinds = (float, int, bool) if booleans else (float, int)
    rows, bad = _arrays(values, path, kinds, "an array of numbers")
    inner: Bad = {}
    flat = _floats(list(chain.from_iterable(rows)), path, inner)
    return _lists(flat, rows, bad, inner)


def integer_lists(values: list[object], path: str) -> Converted:
    """Arrays of whole numbers as one flat column of int64."""
    rows, bad = _arrays(values, path, (int,), "an array of whole numbers")
    flat, inner = integers(list(chain.from_iterable(rows)), path)
    assert isinstance(flat, np.ndarray)
    return _lists(flat, rows, bad, inner)


def flag_lists(values: list[object], path: str) -> Converted:
    """Arrays of booleans as one flat column of bool."""
    rows, bad = _arrays(values, path, (bool,), "an array of true and false")
    return _lists(np.array(list(chain.from_iterable(rows)), np.bool_), rows, bad, {})


def id_lists(values: list[object], path: str) -> Converted:
    """Arrays of the ids of each item as one flat column of lists."""
    rows, bad = _arrays(values, path, (list,), IDS_OF_ITEMS)
    for i, row in enumerate(rows):
        for ids in cast("list[list[object]]", row):
            unfit = _unfit_id(ids, path, f"{IDS_OF_ITEMS}; an inner one holds")
            if unfit is not None:
                bad[i] = unfit
    good = [[] if i in bad else ids for i, row in enumerate(rows) for ids in row]
    return _lists(np.fromiter(good, object, len(good)), rows, bad, {})


def id_list(values: list[object], path: str) -> Converted:
    """Arrays of ids as lists, [n]."""
    arrays, bad = _arrays(values, path, (str, int), IDS)
    for i, ids in enumerate(arrays):
        unfit = _unfit_id(ids, path, f"{IDS}; one holds")
        if unfit is not None:
            bad[i] = unfit
    good = [[] if i in bad else ids for i, ids in enumerate(arrays)]
    return np.fromiter(good, object, len(good)), bad


def _unfit_id(ids: list[object], path: str, expected: str) -> Unfit | None:
    """Why an array has no valid ids; None if it has."""
    for element in ids:
        if type(element) not in (str, int):
            return Unfit("wrong_type", path, f"expected {expected} {shown(element)}")
        if isinstance(element, str) and len(element) > MAX_TEXT:
            detail = f"an id of {len(element)} characters; at most {MAX_TEXT}"
            return Unfit("out_of_range", path, detail)
        if isinstance(element, int) and not -_INT64 <= element < _INT64:
            return Unfit("out_of_range", path, f"{shown(element)} does not fit 64 bits")
    return None


def rows(values: list[object], path: str, *, width: int, booleans: bool, or_one: bool) -> Converted:
    """Arrays of `width` numbers as one flat column of float64; an array of another length is bad.

    or_one: a single number is valid too, as a row of one value."""
    kinds = (float, int, bool) if booleans else (float, int)
    expected = f"{'a number, or ' if or_one else ''}an array of {width} numbers"
    # Check the lengths before concatenation, so that overlong arrays are never copied.
    bad: Bad = {
        i: Unfit(
            "wrong_type",
            path,
            f"expected {expected}, got an array of {len(v)}; send one for each class or label",
        )
        for i, v in enumerate(values)
        if type(v) is list and len(v) != width
    }
    if bad or or_one:
        values = [
            [] if i in bad else [v] if or_one and type(v) in kinds else v
            for i, v in enumerate(values)
        ]
    arrays, not_arrays = _arrays(values, path, kinds, expected)
    inner: Bad = {}
    flat = _floats(list(chain.from_iterable(arrays)), path, inner)
    return _lists(flat, arrays, bad | not_arrays, inner)


def _arrays(
    values: list[object], path: str, kinds: tuple[type, ...], expected: str
) -> tuple[list[list[object]], Bad]:
    """The arrays, empty for a value that is not an array of these exact types, and the reasons."""
    values, bad = _sorted_out(values, path, (list,), expected, [])
    rows: list[list[object]] = values  # type: ignore[assignment]
    if not set(map(type, chain.from_iterable(rows))) <= set(kinds):
        for i, row in enumerate(rows):
            for value in row:
                if type(value) not in kinds:
                    bad[i] = Unfit("wrong_type", path, f"an array holds {shown(value)}")
                    break
    return ([[] if i in bad else row for i, row in enumerate(rows)] if bad else rows), bad


def _lists(
    flat: NDArray[np.float64] | NDArray[np.int64] | NDArray[np.bool_] | NDArray[np.object_],
    rows: list[list[object]],
    bad: Bad,
    inner: Bad,
) -> Converted:
    """The column, with the faults of single values assigned to their rows."""
    offsets = np.zeros(len(rows) + 1, np.intp)
    np.cumsum(list(map(len, rows)), out=offsets[1:])
    for position, unfit in inner.items():
        bad[int(np.searchsorted(offsets, position, side="right")) - 1] = unfit
    return ListColumn(flat, offsets), bad


def times_iso(values: list[object], path: str) -> Converted:
    """ISO texts as milliseconds, int64 [n]."""
    bad: Bad = {}
    texts = cast("list[str]", values)
    try:
        ms, good = iso_to_ms(texts)
    except TypeError:
        expected = "a text with an ISO time and its zone"
        values, bad = _sorted_out(values, path, (str,), expected, "")
        texts = cast("list[str]", values)
        ms, good = iso_to_ms(texts)
    for i in np.flatnonzero(~good).tolist():
        bad.setdefault(
            i, Unfit("bad_time", path, f"expected an ISO time with a zone, got {shown(texts[i])}")
        )
    return ms, bad


def times_from_store(values: NDArray[np.datetime64], path: str) -> Converted:
    """Timestamps of a column store, datetime64[ms] [n], as milliseconds, int64 [n]."""
    bad: Bad = {i: missing(path) for i in np.flatnonzero(np.isnat(values)).tolist()}
    ms = np.where(np.isnat(values), 0, values.astype(np.int64))
    for i in np.flatnonzero((ms < LEAST_MS) | (ms > GREATEST_MS)).tolist():
        bad[i] = Unfit("out_of_range", path, f"{ms[i]} ms is outside of the years 1 to 9999")
        ms[i] = 0
    return ms, bad


def times_in(unit_ms: int) -> Converter:
    """A converter of whole numbers in units of `unit_ms` to milliseconds, int64 [n]."""
    low, high = LEAST_MS // unit_ms, GREATEST_MS // unit_ms

    def convert(values: list[object], path: str) -> Converted:
        array, bad = integers(values, path)
        assert isinstance(array, np.ndarray)
        for i in np.flatnonzero((array < low) | (array > high)).tolist():
            detail = f"{array[i]} is outside of the years 1 to 9999"
            if unit_ms == 1000 and FIRST_S <= array[i] // 1000 < AFTER_S:
                detail += ', and a likely time in milliseconds: see event.time_unit = "ms"'
            bad[i] = Unfit("out_of_range", path, detail)
            array[i] = 0
        if unit_ms == 1:
            for i in np.flatnonzero((array >= FIRST_S) & (array < AFTER_S)).tolist():
                detail = f'{array[i]} is a likely time in seconds: see event.time_unit = "s"'
                bad[i] = Unfit("bad_time", path, detail)
                array[i] = 0
        return array.astype(np.int64) * unit_ms, bad

    return convert


def encoded_texts(
    values: list[object], path: str, *, name: bool = True, nullable: bool = False
) -> Converted:
    """Texts as a dictionary-encoded column. Numbers and booleans become their texts, so that JSON
    and CSV agree. nullable: a missing or null field is None.

    name: whether the text is the name of a slice, rather than an id."""
    bad: Bad = {}
    try:
        codes, distinct = dictionary_encoded(values)
        # Only a text equals a text, and only null equals null; 1, 1.0 and true are equal.
        plain = set(map(type, distinct)) <= ({str, type(None)} if nullable else {str})
    except TypeError:
        plain = False
    if not plain:
        values, bad = _texts(values, path, nullable=nullable)
        codes, distinct = dictionary_encoded(values)
    for code, value in enumerate(distinct):
        if isinstance(value, str) and len(value) > 40 and _too_long(value, name=name):
            unfit = Unfit("too_long", path, f"a text of {len(value)} characters")
            bad.update(dict.fromkeys(np.flatnonzero(codes == code).tolist(), unfit))
    return DictionaryColumn(codes, cast("tuple[str | None, ...]", distinct)), bad


def hashed_texts(values: list[object], path: str) -> Converted:
    """The hashes of texts that are ids; accepts and refuses the same values as `encoded_texts`."""
    bad: Bad = {}
    texts = cast("list[str]", values)
    try:
        data, offsets = end_to_end(texts)
    except TypeError:
        values, bad = _texts(values, path)
        texts = cast("list[str]", _replaced(values, bad, ""))
        data, offsets = end_to_end(texts)
    for i in np.flatnonzero(np.diff(offsets) > MAX_TEXT).tolist():
        if _too_long(texts[i], name=False):
            bad[i] = Unfit("too_long", path, f"a text of {len(texts[i])} characters")
    return hash_texts(data, offsets), bad


def dictionary_encoded(values: list[object]) -> tuple[NDArray[np.intp], tuple[object, ...]]:
    """The index of each value among the distinct ones, in the order of their first occurrences."""
    numbers: defaultdict[object, int] = defaultdict(count().__next__)
    codes = list(map(numbers.__getitem__, values))
    if len(numbers) <= 256:
        return np.frombuffer(bytes(codes), np.uint8).astype(np.intp), tuple(numbers)  # faster
    return np.array(codes, np.intp), tuple(numbers)


def _texts(values: list[object], path: str, *, nullable: bool = False) -> tuple[list[object], Bad]:
    """The values as texts, None for a null or bad one, and the reason for each bad one."""
    bad: Bad = {}
    texts = values.copy()
    for i in [i for i, value in enumerate(values) if type(value) is not str]:
        text = _text(values[i], path, nullable=nullable)
        if isinstance(text, Unfit):
            bad[i], text = text, None
        texts[i] = text
    return texts, bad


def _text(value: object, path: str, *, nullable: bool) -> str | Unfit | None:
    text = plain_text(value)
    if text is not None or (value is None and nullable):
        return text
    if isinstance(value, int):
        return Unfit("out_of_range", path, f"{shown(value)} does not fit 64 bits")
    return wrong(path, "a text or a whole number", value)


def _too_long(text: str, *, name: bool) -> bool:
    return len(json.dumps(text)) > MAX_NAME if name else len(text) > MAX_TEXT


def variants(variant_names: tuple[str, ...] | None) -> Converter:
    """A converter of texts from a declared set; the values of the column are that set, in order."""
    if variant_names is None:
        return encoded_texts
    positions = {name: i for i, name in enumerate(variant_names)}

    def convert(values: list[object], path: str) -> Converted:
        column, bad = encoded_texts(values, path)
        assert isinstance(column, DictionaryColumn)
        indices = [
            -1 if value is None else positions.get(str(value), -1) for value in column.values
        ]
        codes = np.array(indices, np.intp)[column.codes]
        for i in np.flatnonzero(codes < 0).tolist():
            got = shown(column.values[column.codes[i]])
            detail = f"expected one of {len(positions)} variants, got {got}"
            bad.setdefault(i, Unfit("unknown_variant", path, detail))
        return DictionaryColumn(np.maximum(codes, 0), variant_names), bad

    return convert


def from_text(kind: str, text: str) -> object:
    """The value of a CSV text for a column of this kind; the text itself if it has none."""
    if kind in _TEXTS:
        return text or None
    stripped = text.strip(" \t")
    if not stripped:
        return None
    logical = kind in ("flag", "truth") or kind.startswith("label")
    if logical and stripped in ("true", "false", "True", "False"):
        return stripped in ("true", "True")
    if kind.endswith(("_list", "_row")) and ("_or_" not in kind or stripped[0] == "["):
        try:
            return msgspec.json.decode(stripped)
        except msgspec.DecodeError:
            return text
    is_whole = kind == "number" and _is_whole(stripped)
    return _number(stripped, whole=is_whole or kind in ("int_id", "count", "time_s", "time_ms"))


def _number(text: str, *, whole: bool) -> object:
    # float() and int() also accept underscores and digits of other alphabets.
    if not text.isascii() or "_" in text:
        return text
    try:
        # Parse a whole number as int if no double may represent it.
        if whole or (len(text) > _EXACT_DIGITS and _is_whole(text)):
            return int(text)
        number = float(text)
    except ValueError:  # of a whole number if it has more digits than int() reads
        return HugeNumber(text) if _is_whole(text) else text
    if math.isinf(number) and not text.lstrip("+-").isalpha():
        return HugeNumber(text)
    return number


def _is_whole(text: str) -> bool:
    return (text[1:] if text[:1] in ("+", "-") else text).isdigit()


def taken(column: Column, positions: NDArray[np.intp]) -> Column:
    """The rows of a column at these positions."""
    if isinstance(column, DictionaryColumn):
        return DictionaryColumn(column.codes.take(positions), column.values)
    return column.take(positions) if isinstance(column, ListColumn) else column[positions]
