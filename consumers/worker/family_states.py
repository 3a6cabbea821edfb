"""What the events of one partition add to the states of one family of metrics. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from consumers.config.family import Family
from consumers.events.decoder import Decoded
from consumers.ledger.outline import Groupings, finest, summed
from streammetrics import Coded, PerKey, Windows

Columns: TypeAlias = "Mapping[str, NDArray[np.generic] | Coded]"
Span: TypeAlias = "tuple[int, int] | tuple[None, None]"  # [start_ms, end_ms), or all of time


class Piece(NamedTuple):
    """One state to be stored: a metric of one pane [start_ms, end_ms), or of all rows since the
    last commit where both are None. Keys of `state` are (grouping, value, ...): the grouping's
    place in the family, and the text of each of its fields, None where an event had none. A
    grouping has states of its own, so that its keys never push those of another into (other). A
    coarser grouping `follows` from the last piece before it that does not; that one `stands` for
    it, if the rest allows that."""

    metric: str
    grouping: int
    start_ms: int | None
    end_ms: int | None
    make: Callable[[], PerKey]
    follows: bool
    stands: bool

    @property
    def state(self) -> PerKey:
        """Made when it is asked for; the state of several spans is one object."""
        return self.make()


class FamilyStates:
    """The states of the finest groupings alone; those of the coarser ones follow from them."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._coarser = finest(family.slices.by)
        self._windows = {place: family.empty() for place in self._coarser}
        self._expired = {place: family.per_key() for place in self._coarser}

    @property
    def nbytes(self) -> int:
        """Bytes of memory that they hold, roughly."""
        held = (*self._windows.values(), *self._expired.values())
        return int(sum(state.nbytes for state in held))

    def absorb(self, decoded: Decoded, columns: Columns) -> None:
        """Add events to their windows."""
        mine = self._mine(columns)
        for place, windows in self._windows.items():
            windows.update(decoded.times_ms, keys=self._keys(decoded, place), **mine)

    def absorb_expired(self, decoded: Decoded, columns: Columns) -> None:
        """Add events to the totals alone."""
        mine = self._mine(columns)
        for place, state in self._expired.items():
            state.update(self._keys(decoded, place), **mine)

    def bare(self, grouping: int) -> tuple[bytes, bytes]:
        """The states of a finest grouping as they are, by window and below the floor, for `join`
        in another process."""
        return self._windows[grouping].to_bytes(), self._expired[grouping].to_bytes()

    def join(self, grouping: int, windows: bytes, expired: bytes) -> None:
        """Add what `bare` wrote of other events. Raises StateError or SettingsError."""
        self._windows[grouping].merge(Windows.from_bytes(windows))
        self._expired[grouping].merge(PerKey.from_bytes(expired))

    @property
    def groupings(self) -> tuple[int, ...]:
        """The places of the finest groupings."""
        return tuple(self._windows)

    def check(self, decoded: Decoded, columns: Columns) -> None:
        """Raise InputError where a metric refuses one of these events; changes nothing."""
        # Keys are bounded by the decoder, so what one grouping accepts all accept.
        place, state = next(iter(self._expired.items()))
        state.check(self._keys(decoded, place), **self._mine(columns))

    def pieces(self) -> Iterator[Piece]:
        """Every state to be stored, in an order that depends on nothing but what it holds. One
        that is the state of several spans comes once for each of them."""
        by, max_keys = self.family.slices.by, self.family.slices.max_keys
        for base, coarser in self._coarser.items():
            for whole, times in self._spans(base):
                for metric in self.family.metrics:
                    one = whole.project(metric.name)
                    for place in (base, *coarser):
                        make = _once(one, by, base, place, max_keys)
                        stands = place == base and bool(coarser)
                        for start_ms, end_ms in times:
                            yield Piece(
                                metric.name, place, start_ms, end_ms, make, place != base, stands
                            )

    def _spans(self, base: int) -> Iterator[tuple[PerKey, list[Span]]]:
        """Each different state of a finest grouping, with what it is the state of."""
        windows, expired = self._windows[base], self._expired[base]
        pane_ms = self.family.windows.pane_ms
        panes = windows.panes()
        total: list[Span] = [(None, None)]
        if len(panes) > 1 or expired != expired.empty():
            state = windows.total_state()
            assert isinstance(state, PerKey)
            state.merge(expired)
            yield state, total
            total = []
        for start_ms, pane in panes.items():
            assert isinstance(pane, PerKey)
            yield pane, [*total, (start_ms, start_ms + pane_ms)]

    def _mine(self, columns: Columns) -> dict[str, NDArray[np.generic] | Coded]:
        takes = self.family.takes
        return {name: column for name, column in columns.items() if name in takes}

    def _keys(self, decoded: Decoded, grouping: int) -> Coded:
        """The key of each event in one grouping: (grouping, value, ...)."""
        codes = np.zeros(len(decoded), np.intp)
        keys: list[tuple[str | int | None, ...]] = [(grouping,)]
        for name in self.family.slices.by[grouping]:
            column = decoded.keys[self.family.columns[name]]
            width = max(len(column.values), 1)
            present, codes = _distinct(codes * width + column.codes, len(keys) * width)
            firsts, seconds = np.divmod(present, width)
            keys = [
                (*keys[i], column.values[j])
                for i, j in zip(firsts.tolist(), seconds.tolist(), strict=True)
            ]
        return Coded(codes, tuple(keys))


def _once(
    whole: PerKey, by: Groupings, base: int, place: int, max_keys: int
) -> Callable[[], PerKey]:
    """What makes the state of grouping `place` out of that of `base`, where all keys are kept."""

    @cache
    def make() -> PerKey:
        mine = whole if place == base else summed(whole, by, base, place)
        return mine.limited(max_keys)

    return make


def _distinct(codes: NDArray[np.intp], size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The distinct codes, ascending, and the place of each row's code among them.

    codes: [n] below `size`. Counting instead of sorting where there are few possible codes.
    """
    if size > 4 * len(codes) + 1024:
        present, places = np.unique(codes, return_inverse=True)
        return present, places.astype(np.intp)
    present = np.flatnonzero(np.bincount(codes, minlength=size))
    table = np.zeros(size, np.intp)
    table[present] = np.arange(len(present))
    return present, table[codes]
