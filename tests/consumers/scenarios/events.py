"""The events of a day: arms of users, what they do, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from random import Random

from tests.consumers.scenarios.scenario import Day, Event, Value, amount, rate, visits


def arms(old: Value, new: Value, *, name: str, users: tuple[int, int] = (1_000, 1_000)) -> Day:
    """Two arms of new users each day, an event of each, whose value `name` is drawn."""

    def day(random: Random, day: int) -> Iterator[Event]:
        yield from visits("old", users[0], day=day, **{name: old})(random)
        yield from visits("new", users[1], day=day, **{name: new})(random)

    return day


def combine(*days: Day) -> Day:
    """The events of several generators on the same day."""
    return lambda random, day: chain.from_iterable(part(random, day) for part in days)


def guarded(old: tuple[float, float], new: tuple[float, float], users: tuple[int, int]) -> Day:
    """Clicks and crashes of each arm: (share of clicks, share of crashes)."""

    def day(random: Random, day: int) -> Iterator[Event]:
        for arm, shares, count in (("old", old, users[0]), ("new", new, users[1])):
            values = {"click": rate(shares[0]), "crash": rate(shares[1])}
            yield from visits(arm, count, day=day, **values)(random)

    return day


def from_day(first: int, part: Day) -> Day:
    """The events of a generator from this day on."""
    return lambda random, day: part(random, day) if day >= first else iter(())


def until_day(end: int, part: Day) -> Day:
    """The events of a generator before this day."""
    return lambda random, day: part(random, day) if day < end else iter(())


def arm(name: str, users: int, **values: Value) -> Day:
    """One arm of new users each day, an event of each."""
    return lambda random, day: visits(name, users, day=day, **values)(random)


def returning(name: str, users: int, rows: int, **values: Value) -> Day:
    """One arm of the same users each day, with several events of each."""
    return lambda random, day: visits(name, users, rows=rows, is_returning=True, **values)(random)


def heavy_clickers(name: str, users: int, rows: int, share: float, lift: float = 1.0) -> Day:
    """The same users each day, of whom a share clicks nearly always and the others hardly ever."""

    def day(random: Random, day: int) -> Iterator[Event]:
        for i in range(users):
            often = int((i + 1) * share) > int(i * share)
            click = rate(min(1.0, (0.9 if often else 0.02) * lift))
            for _ in range(rows):
                yield {"variant": name, "user": f"{name}-{i}", "click": click(random)}

    return day


def bot(name: str, rows: int, click: int) -> Day:
    """One user with many events."""
    return lambda random, day: iter(
        {"variant": name, "user": "bot", "click": click} for _ in range(rows)
    )


def changing(before: float, after: float, change: int, users: int = 1_000) -> Day:
    """Old clicks at 20 %, new at `before` and from this day on at `after`."""
    return combine(
        until_day(change, arms(rate(0.2), rate(before), name="click", users=(users, users))),
        from_day(change, arms(rate(0.2), rate(after), name="click", users=(users, users))),
    )


def shopping(name: str, users: int, rows: int, share: float, mu: float, sigma: float) -> Day:
    """New users each day with several rows each, of which a share has an amount."""
    paid = amount(share, mu, sigma)
    return lambda random, day: visits(name, users, day=day, rows=rows, paid=paid)(random)


def ramp(*users: tuple[int, int], name: str, old: Value, new: Value) -> Day:
    """The users of both arms on each day."""

    def day(random: Random, day: int) -> Iterator[Event]:
        yield from arms(old, new, name=name, users=users[day])(random, day)

    return day
