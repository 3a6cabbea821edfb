"""Objects of texts that repeat from event to event, each decoded once: the arms of a user.

The decoder of events skips such an object and leaves its bytes. Equal bytes are equal objects, so a
dictionary from bytes to a number replaces decoding, and a table by that number replaces a list of
values for each field. Both are bounded: they are emptied when they are full.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count, islice
from operator import attrgetter
from typing import Any, Final, cast

import msgspec
import numpy as np
from msgspec import Raw, Struct
from msgspec.structs import astuple
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.events.columns import dictionary_encoded
from streammetrics_consumers.events.event_structs import NO_OBJECT, struct_of

MOST_OBJECTS: Final = 1 << 16
MOST_CELLS: Final = 1 << 21  # of the table
MOST_BYTES: Final = 16 << 20
LONGEST: Final = 1 << 14  # bytes of an object that is decoded here
REFUSED: Final = -1
NO_FIELDS: Final = Raw(b"{}")  # of an event without the object
NO_JSON: Final = Raw(b"")  # which is refused


class RepeatedObjects:
    """Objects by their bytes.

    fields: the type of each field by its name, some texts or None. texts: all that they accept.
    unread: how many objects the last call was the first to have.
    """

    def __init__(self, fields: Mapping[str, object], texts: Sequence[str]) -> None:
        self.texts: tuple[str | None, ...] = (None, *dict.fromkeys(texts))
        self._decode = msgspec.json.Decoder(struct_of(fields).type | NO_OBJECT).decode
        self._width = len(fields)
        self._text_codes = {text: code for code, text in enumerate(self.texts)}
        self._most = min(MOST_OBJECTS, MOST_CELLS // self._width)
        self._empty()

    def _empty(self) -> None:
        self._numbers: defaultdict[bytes, int] = defaultdict(count().__next__)
        # The smallest integers that hold a code: the table stays in the caches.
        self._table = np.empty((64, self._width), np.min_scalar_type(-len(self.texts)))
        self._rows = self._bytes = 0

    def codes(self, objects: Sequence[object]) -> NDArray[np.intp]:
        """The positions of their fields in `texts`, [width, n]; REFUSED in all fields of an object
        that has other values or is too long. objects: as `Raw`; any other one is REFUSED."""
        if len(self._numbers) != self._rows or self._is_full():
            self._empty()
        if not set(map(type, objects)) <= {Raw}:
            objects = [value if type(value) is Raw else NO_JSON for value in objects]
        # Each copy of an object lives shortly: a list of all copies would take as long again.
        copies = map(bytes, cast("Sequence[Raw]", objects))
        numbers = np.array(list(map(self._numbers.__getitem__, copies)), np.intp)
        self.unread = len(self._numbers) - self._rows
        if self.unread:
            self._read(list(islice(reversed(self._numbers), self.unread))[::-1])
        return np.ascontiguousarray(self._table.take(numbers, axis=0).T, np.intp)

    def _is_full(self) -> bool:
        return self._rows > self._most or self._bytes > MOST_BYTES

    def columns(
        self, codes: NDArray[np.intp], refused: NDArray[np.intp], rows: list[tuple[object, ...]]
    ) -> Sequence[list[object] | DictionaryColumn]:
        """The column of each field, by the codes of all objects, [width, n]. rows: the values of
        the refused ones, which are at these positions."""
        if set(map(type, chain.from_iterable(rows))) <= {str, type(None)}:
            text_codes = self._text_codes.copy()
            for i, row in zip(refused.tolist(), cast("Any", rows), strict=True):
                codes[:, i] = [text_codes.setdefault(text, len(text_codes)) for text in row]
            return [DictionaryColumn(column, tuple(text_codes)) for column in codes]
        columns: list[list[object]] = [
            [self.texts[code] for code in column] for column in codes.tolist()
        ]
        for i, row in zip(refused.tolist(), rows, strict=True):
            for column, value in zip(columns, row, strict=True):
                column[i] = value
        return columns

    def _read(self, values: list[bytes]) -> None:
        """Add a row of codes for each of these objects to the table."""
        rows: list[tuple[object, ...]] = []
        refused: list[int] = []
        no_fields = (None,) * self._width
        for value in values:
            try:
                decoded = self._decode(value) if len(value) <= LONGEST else REFUSED
            except (msgspec.DecodeError, RecursionError):
                decoded = REFUSED
            if decoded is REFUSED:
                refused.append(len(rows))
            rows.append(astuple(decoded) if isinstance(decoded, Struct) else no_fields)
        text_codes = map(self._text_codes.__getitem__, cast("Any", chain.from_iterable(rows)))
        cells = len(rows) * self._width
        codes = np.fromiter(text_codes, self._table.dtype, cells).reshape(len(rows), self._width)
        codes[refused] = REFUSED
        first, last = self._rows, self._rows + len(rows)
        if last > len(self._table):
            larger = np.empty((2 * last, self._width), self._table.dtype)
            larger[:first] = self._table[:first]
            self._table = larger
        self._table[first:last] = codes
        self._rows = last
        self._bytes += sum(map(len, values))


def encoded_together(objects: Sequence[Struct], names: list[str]) -> list[DictionaryColumn]:
    """Some attributes, at least two, of objects as dictionary-encoded columns with the same values;
    none if some value is neither a text nor None, since others may be equal although they differ.
    """
    if not objects:
        return []
    fields = getattr(type(objects[0]), "__struct_fields__", ())
    row_of: Callable[[Struct], object] = attrgetter(*names)
    if list(fields) == names:
        row_of = astuple
    try:
        # The arms of a user are the same in each of its events.
        rows, different = dictionary_encoded(list(map(row_of, objects)))
        codes, values = dictionary_encoded(list(chain.from_iterable(cast("Any", different))))
    except TypeError:  # a value that has no hash
        return []
    if not set(map(type, values)) <= {str, type(None)}:
        return []
    by_name = np.ascontiguousarray(codes.reshape(len(different), len(names)).T)
    texts = cast("tuple[str | None, ...]", values)
    return [DictionaryColumn(column[rows], texts) for column in by_name]
