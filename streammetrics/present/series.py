"""Colours and marks of series by a place that is theirs, whichever others are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

from streammetrics.present.spec import drawable
from streammetrics.present.theme import DASHES, SHAPES, Spec

_MARKS: Final[Mapping[str, Sequence[object]]] = {"strokeDash": DASHES, "shape": SHAPES}


class Place(NamedTuple):
    """Which colour a series has, and which dash or shape."""

    colour: int
    mark: int


def placed(spec: Spec, places: Mapping[str, Place]) -> Spec:
    """The same figure with its series at these places, so that what is a variant's colour in one
    figure is so in all, and in the tables beside them.

    Series of equal colour need another mark: where a figure has no dashes or shapes for them, it
    stays as it is.

    >>> scale = {"domain": ["bts"]}
    >>> spec = {"encoding": {"color": {"field": "series", "scale": scale}}}
    >>> spec |= {"config": {"range": {"category": ["blue", "orange"]}}}
    >>> placed(spec, {"bts": Place(1, 1)})["encoding"]
    {'color': {'field': 'series', 'scale': {'domain': ['bts'], 'range': ['orange']}}}
    """
    distinct = len({place.colour for place in places.values()}) == len(places)
    if not places or not (distinct or _has_marks(spec)):
        return spec
    at_place = {drawable(name): place for name, place in places.items()}
    config = cast("Mapping[str, Mapping[str, list[str]]]", spec["config"])
    category: Sequence[object] = config["range"]["category"]

    def of(channel: str, found: Spec) -> Spec:
        kinds, which = (category, 0) if channel == "color" else (_MARKS[channel], 1)
        scale = cast("Spec", found["scale"])
        names = cast("list[str]", scale["domain"])
        at = [at_place.get(name, Place(i, i))[which] for i, name in enumerate(names)]
        return {**found, "scale": {**scale, "range": [kinds[i % len(kinds)] for i in at]}}

    def walk(found: object) -> object:
        if isinstance(found, list):
            return [walk(one) for one in found]
        if not isinstance(found, dict):
            return found
        return {
            name: of(name, one)
            if (name == "color" or name in _MARKS) and _is_of_series(one)
            else walk(one)
            for name, one in found.items()
        }

    parts: Spec = {name: walk(spec[name]) for name in ("encoding", "layer") if name in spec}
    return {**spec, **parts}


def _is_of_series(channel: object) -> bool:
    if not isinstance(channel, dict) or channel.get("field") != "series":
        return False
    return "domain" in channel.get("scale", {})


def _has_marks(found: object) -> bool:
    """Whether dashes or shapes tell its series apart."""
    if isinstance(found, list):
        return any(map(_has_marks, found))
    if not isinstance(found, dict):
        return False
    if any(_is_of_series(found.get(name)) for name in _MARKS):
        return True
    return any(_has_marks(found.get(name)) for name in ("encoding", "layer"))
