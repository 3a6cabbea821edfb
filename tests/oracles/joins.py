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
    impressions_by_id: dict[Hashable, list[Shown]] = {}
    for impression in sorted(set(shown), key=lambda s: (s.time, s.content)):
        impressions = impressions_by_id.setdefault(impression.id, [])
        horizon = terms.remember or 2 * terms.window
        if (
            terms.attribution == "one"
            and impressions
            and impression.time < impressions[-1].time + horizon
        ):
            continue
        impressions.append(impression)
    return [event for group in impressions_by_id.values() for event in group]


def closed(events: Sequence[Shown | Outcome], terms: Terms, before: int) -> Closed:
    """What a join of all these events gives when it is closed once."""
    shown = [event for event in events if isinstance(event, Shown)]
    outcomes = {event for event in events if isinstance(event, Outcome)}
    counted = standing(shown, terms)
    labels: dict[Shown, list[Outcome]] = {event: [] for event in counted}
    left = []
    for outcome in outcomes:
        earlier = [s for s in counted if s.id == outcome.id and s.time <= outcome.time]
        near = [s for s in earlier if outcome.time < s.time + terms.window]
        last = max(earlier, key=lambda s: (s.time, s.content), default=None)
        for impression in near if terms.attribution == "every" else near and [last]:
            assert impression is not None
            labels[impression].append(outcome)
        if outcome.time < before:
            delay = -1 if last is None else outcome.time - last.time
            is_recent = delay < (terms.remember or 2 * terms.window)
            left.append((outcome.kind, delay if is_recent else -1))
    rows = [
        (event, {name: label(matches, name, how) for name, how in terms.outcomes.items()})
        for event, matches in labels.items()
        if event.time < before
    ]
    gone = sum(event.time < before for event in set(shown))
    return Closed(rows, gone - len(rows), sorted(left))


def label(outcomes: Sequence[Outcome], name: str, how: str) -> int | Fraction:
    """The label that outcomes of an impression give it."""
    matches = [outcome for outcome in outcomes if outcome.kind == name]
    if how == "sum":
        return sum((Fraction(outcome.value) for outcome in matches), Fraction())
    return len(matches) if how == "count" else min(len(matches), 1)
