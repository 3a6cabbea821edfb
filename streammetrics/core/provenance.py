"""Provenance: the ranges of named sources that a state counted, each for a piece selected from it.

It is kept beside a state and not in it: bytes, digest and `==` ignore it, a state file keeps it.
Different pieces (a window, a key) of one range unite; the same piece of the same range is refused,
so that a retry or a second delivery cannot count twice unnoticed.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import index
from typing import Final

from streammetrics.core.codec import damaged
from streammetrics.core.errors import InputError, OverlapError, shown

_JSON: Final = json.JSONEncoder(separators=(",", ":"))
Ranges = list[tuple[int, int]]  # sorted, disjoint, not adjacent, [start, end)


class Provenance:
    """The ranges of each (source, piece) that a state counted.

    >>> seen = Provenance()
    >>> seen.add("clicks/0", 0, 500)
    >>> seen.add("clicks/0", 500, 900)
    >>> list(seen)
    [('clicks/0', '', 0, 900)]
    """

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: dict[tuple[str, str], Ranges] = {}

    def add(self, source: str, start: int, end: int, piece: str = "") -> None:
        """Record that rows [start, end) of `source` were counted, or raise OverlapError."""
        are_texts = all(isinstance(name, str) for name in (source, piece))
        if not (are_texts and all(hasattr(offset, "__index__") for offset in (start, end))):
            got = f"{shown(source)}, {shown(piece)}, {shown(start)}, {shown(end)}"
            raise _bad_range("string names and integer offsets", got)
        start, end = index(start), index(end)
        if not 0 <= start <= end:
            raise _bad_range("0 <= start <= end", f"[{start}, {end})")
        if start < end:
            _unite(self._ranges.setdefault((source, piece), []), start, end, source, piece)

    def united(self, other: Provenance) -> Mapping[tuple[str, str], Ranges]:
        """The ranges that change when `other` is added, or OverlapError; for `accept`."""
        changed: dict[tuple[str, str], Ranges] = {}
        for key, ranges in other._ranges.items():
            own_ranges = list(self._ranges.get(key, ()))
            for start, end in ranges:
                _unite(own_ranges, start, end, *key)
            changed[key] = own_ranges
        return changed

    def accept(self, changed: Mapping[tuple[str, str], Ranges]) -> None:
        """Store the result of `united`. Two steps, so that an OverlapError changes nothing."""
        self._ranges.update(changed)

    def covers(self, other: Provenance) -> bool:
        """Whether all ranges of `other` are counted here, piece by piece; True if it has none.

        >>> seen, replay = Provenance(), Provenance()
        >>> seen.add("clicks/0", 0, 900)
        >>> replay.add("clicks/0", 500, 900)
        >>> seen.covers(replay), replay.covers(seen)
        (True, False)
        """
        return all(
            _covers(self._ranges.get(key, []), start, end)
            for key, ranges in other._ranges.items()
            for start, end in ranges
        )

    def copy(self) -> Provenance:
        """An independent copy."""
        twin = Provenance()
        twin._ranges = {key: list(ranges) for key, ranges in self._ranges.items()}
        return twin

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def __iter__(self) -> Iterator[tuple[str, str, int, int]]:
        """(source, piece, start, end), sorted."""
        for source, piece in sorted(self._ranges):
            for start, end in self._ranges[source, piece]:
                yield source, piece, start, end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Provenance) and self._ranges == other._ranges

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Provenance({', '.join(_shown(*row) for row in self)})"

    def to_json(self) -> bytes:
        """Canonical JSON, for a state file."""
        return encoded_ranges(list(self))

    @staticmethod
    def from_json(data: bytes) -> Provenance:
        """Read `to_json`; anything else is a StateError."""
        try:
            rows = json.loads(data)
            provenance = Provenance()
            for source, piece, start, end in rows:
                provenance.add(source, start, end, piece)
        except (ValueError, TypeError, RecursionError) as error:
            why = shown(str(error))
            raise damaged(f"provenance that cannot be read ({why})", "state file") from None
        if provenance.to_json() != data:
            raise damaged("provenance that is not in its canonical form", "state file")
        return provenance


def encoded_ranges(ranges: Sequence[tuple[str, str, int, int]]) -> bytes:
    """`to_json` of a Provenance that lists these rows (source, piece, start, end)."""
    return _JSON.encode(ranges).encode()


def _covers(ranges: Ranges, start: int, end: int) -> bool:
    position = bisect_right(ranges, start, key=lambda span: span[0])
    return position > 0 and end <= ranges[position - 1][1]


def _unite(ranges: Ranges, start: int, end: int, source: str, piece: str) -> None:
    """Insert [start, end) into the ranges, in place: a million in order take a second."""
    position = bisect_left(ranges, (start, end))
    for s, e in ranges[max(position - 1, 0) : position + 1]:
        if s < end and start < e:
            raise OverlapError(
                expected="rows that were not counted before",
                got=f"[{max(s, start)}, {min(e, end)}) twice",
                where=f"{source}{f', {piece}' if piece else ''}",
                hint="merge each state once; leave out the one that repeats these rows",
            )
    first = last = position
    if position < len(ranges) and ranges[position][0] == end:
        end, last = ranges[position][1], position + 1
    if position and ranges[position - 1][1] == start:
        start, first = ranges[position - 1][0], position - 1
    ranges[first:last] = [(start, end)]


def _bad_range(expected: str, got: str) -> InputError:
    return InputError(
        expected=expected,
        got=got,
        where="Provenance.add",
        hint="pass a source, its first offset and the offset after its last",
    )


def _shown(source: str, piece: str, start: int, end: int) -> str:
    return f"{source}{' ' if piece else ''}{piece}: [{start}, {end})"
