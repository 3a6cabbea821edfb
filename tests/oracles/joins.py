"""Joins by brute force: every impression looks at every outcome, in Python's own numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple


class Shown(NamedTuple):
    """An impression; `content` orders as its columns do."""

    id: Hashable
    time: int
    content: tuple[Any, ...] = ()


class Outcome(NamedTuple):
    """What follows one."""

    kind: str
    id: Hashable
    time: int
    value: float = 0.0
    event: Hashable = None


class Terms(NamedTuple):
    """What a join is declared with."""

    outcomes: Mapping[str, str]
    window: int
    attribution: str = "one"
    remember: int = 0


class Closed(NamedTuple):
    """Rows (impression, its labels), how many conflict, and (kind, delay) of what left."""

    rows: list[tuple[Shown, dict[str, Any]]]
    conflicts: int
    left: list[tuple[str, int]]


def standing(shown: Sequence[Shown], terms: Terms) -> list[Shown]:
    """Of each id the impressions that count, in order of time and content."""
    kept: dict[Hashable, list[Shown]] = {}
    for one in sorted(set(shown), key=lambda s: (s.time, s.content)):
        mine = kept.setdefault(one.id, [])
        horizon = terms.remember or 2 * terms.window
        if terms.attribution == "one" and mine and one.time < mine[-1].time + horizon:
            continue
        mine.append(one)
    return [one for mine in kept.values() for one in mine]


def closed(events: Sequence[Shown | Outcome], terms: Terms, before: int) -> Closed:
    """What a join of all these events gives when it is closed once."""
    shown = [event for event in events if isinstance(event, Shown)]
    outcomes = {event for event in events if isinstance(event, Outcome)}
    counted = standing(shown, terms)
    labels: dict[Shown, list[Outcome]] = {one: [] for one in counted}
    left = []
    for outcome in outcomes:
        earlier = [s for s in counted if s.id == outcome.id and s.time <= outcome.time]
        near = [s for s in earlier if outcome.time < s.time + terms.window]
        last = max(earlier, key=lambda s: (s.time, s.content), default=None)
        for one in near if terms.attribution == "every" else near and [last]:
            assert one is not None
            labels[one].append(outcome)
        if outcome.time < before:
            delay = -1 if last is None else outcome.time - last.time
            known = delay < (terms.remember or 2 * terms.window)
            left.append((outcome.kind, delay if known else -1))
    rows = [
        (one, {name: label(mine, name, how) for name, how in terms.outcomes.items()})
        for one, mine in labels.items()
        if one.time < before
    ]
    gone = sum(one.time < before for one in set(shown))
    return Closed(rows, gone - len(rows), sorted(left))


def label(outcomes: Sequence[Outcome], name: str, how: str) -> int | Fraction:
    """The label that outcomes of an impression give it."""
    mine = [outcome for outcome in outcomes if outcome.kind == name]
    if how == "sum":
        return sum((Fraction(outcome.value) for outcome in mine), Fraction())
    return len(mine) if how == "count" else min(len(mine), 1)
