"""Which groupings follow from which: a state by variant is a sum of states by variant and segment.

A grouping is a tuple of names, and its keys are (place in `[slices] by`, value, ...). The *finest*
groupings are those whose names no other grouping has among its own. Every other grouping is
*coarser* than one of them, and each of its states the sum, over keys, of that one's. So a delta
row of a finest grouping that keeps all its keys apart stands for those of the coarser ones too,
and they are made when someone reads them. Where it cannot (`max_keys`), they have their own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from consumers.model.generation import Generation
from streammetrics import PerKey

Groupings: TypeAlias = "Sequence[tuple[str, ...]]"
Key: TypeAlias = "str | int | tuple[str | int | None, ...] | None"


def finest(by: Groupings) -> dict[int, tuple[int, ...]]:
    """The place of each finest grouping, with the places of the coarser ones that follow from it.
    A grouping that follows from several does from the one with the fewest names.

    >>> finest([(), ("variant",), ("segment",), ("variant", "segment"), ("hour",)])
    {3: (1, 2), 4: (0,)}
    """
    names = [frozenset(grouping) for grouping in by]
    coarser: dict[int, list[int]] = {}
    follows: list[tuple[int, int]] = []
    for place, mine in enumerate(names):
        others = [
            i
            for i, theirs in enumerate(names)
            if mine < theirs and not any(theirs < more for more in names)
        ]
        if others:
            follows.append((min(others, key=lambda i: (len(names[i]), i)), place))
        else:
            coarser[place] = []
    for base, place in follows:
        coarser[base].append(place)
    return {base: tuple(places) for base, places in coarser.items()}


def bases(by: Groupings) -> dict[int, int]:
    """By the place of each coarser grouping, that of the finest one that it follows from."""
    return {place: base for base, places in finest(by).items() for place in places}


def summed(state: PerKey, by: Groupings, base: int, place: int) -> PerKey:
    """The state of grouping `place`, which follows from that of grouping `base`."""
    return state.rekeyed(_shorter(by, base, place))


def groupings_of(of: Generation) -> Mapping[str, Groupings]:
    """The groupings of each metric of a generation, in their order."""
    found = {}
    for metric in of.metrics:
        slices = cast("Sequence[Sequence[tuple[str, str]]]", metric.description.get("slices", ()))
        found[metric.name] = [tuple(name for name, _ in grouping) for grouping in slices]
    return found


def coarser_of(of: Generation) -> Mapping[tuple[str, int], tuple[int, ...]]:
    """By the name of a metric and the place of a finest grouping, those that follow from it."""
    return {
        (name, base): places
        for name, by in groupings_of(of).items()
        for base, places in finest(by).items()
    }


def _shorter(by: Groupings, base: int, place: int) -> Callable[[Key], Key]:
    at = [1 + by[base].index(name) for name in by[place]]

    def key_of(key: Key) -> Key:
        assert isinstance(key, tuple)
        return (place, *(key[i] for i in at))

    return key_of
