"""A seeded stream of a company that logs exposures once and outcomes later, with a known truth.

Three services write events: the site writes exposures and clicks, the shop purchases, and the app
crashes. Only exposures name an experiment and an arm; all other events name the user alone. The
experiments are

    checkout   with `new` there are three halves of the purchases: more revenue per user
    feed       with `new` there are a quarter more clicks, and five halves of the crashes: it brings
               clicks, and breaks its guardrail
    placebo    `a` and `b` are the same
    pricing    with `low`, which 5 % of the users have, amounts are three quarters of what they were
    delivery   with `later` each purchase within a week of the exposure comes later, after half of
               what is left of that week, if the user is not first shown the checkout or a price in
               that time; nothing else changes: what was bought after a week is the same

A user is in an arm by a hash of the id with a salt of the experiment, and is exposed to each
experiment with a probability of three quarters, at a time within the first 14 days. One user in
eight is never exposed to any. Users differ in activity: k times the least with a probability that
falls as 1/k, up to 64 times. Their visits are spread over 21 days, before and after their
exposures; an effect begins with the exposure. Exposures are logged again when a user comes back,
and of one exposed user in 512 later ones are in the other arm. Of all events a few are late, sent
twice, or broken.

An effect multiplies the events of one kind, independently of all else, so the lifts are exact for
the closed units of a window of a week (`TRUE_LIFTS`).

The same seed gives the same bytes on every machine: as in `Simulation`, draws are raw bits, and all
other arithmetic uses integers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.simulate.stream import (
    BATCH,
    BROKEN_PER_65536,
    JSON_FAULTS,
    LATE_PER_65536,
    LEAST_LATE_MS,
    START_MS,
    Format,
    bits_of,
    iso,
)

ARMS: Final[Mapping[str, tuple[str, str]]] = {  # of each experiment, the control first
    "checkout": ("old", "new"),
    "feed": ("old", "new"),
    "placebo": ("a", "b"),
    "pricing": ("usual", "low"),
    "delivery": ("now", "later"),
}
TREATED_PER_65536: Final = {"pricing": 3_277}  # users in the second arm; half of them by default
KINDS: Final = ("exposure", "click", "purchase", "crash")
FORMATS: Final[tuple[Format, ...]] = ("jsonl", "ndjson", "array")
TRUE_LIFTS: Final[Mapping[str, Mapping[str, Fraction]]] = {
    "checkout": {"revenue": Fraction(1, 2)},
    "feed": {"revenue": Fraction(0), "clicks": Fraction(1, 4)},
    "placebo": {"revenue": Fraction(0), "clicks": Fraction(0)},
    "pricing": {"revenue": Fraction(-1, 4)},
    "delivery": {"revenue": Fraction(0)},
}
DAY_MS: Final = 86_400_000
EXPOSED_DAYS: Final = 14
WINDOW_MS: Final = 7 * DAY_MS  # of `delivery`; and in which the lifts of closed units are exact
DAYS: Final = 21

# How many of 65,536 visits have an event of a kind, in both arms of what changes it.
CLICKS: Final = (32_768, 40_960)
PURCHASES: Final = (8_192, 12_288)
CRASHES: Final = (1_024, 2_560)
MOST_DOUBLINGS: Final = 6  # of the activity of a user
VISITS: Final = 4  # of the least active users
SEVERAL_PER_512: Final = 1  # exposed users who are later shown the other arm
TWICE_PER_256: Final = 3
FAULTS: Final[tuple[Callable[[bytes], bytes], ...]] = (*JSON_FAULTS[:4], JSON_FAULTS[9])
# By kind: an event arrives at most 2 ** (18 - shift) milliseconds after its time.
_SHIFTS: Final = np.array([7, 7, 2, 0])
_EXTRA: Final = 3 << 32  # part of the seed: separates the draws from those of other streams
_NEVER: Final = np.int64(1) << 62

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


class CompanyEvents(NamedTuple):
    """Events, columns of equal length. kinds: places in KINDS. values: cents of a purchase; twice
    the place of an experiment, plus the arm, of an exposure. words: of chance, for the arrival,
    repeats and faults."""

    kinds: Ints
    users: Ints
    times_ms: Ints
    values: Ints
    words: Words

    def chosen(self, places: Ints) -> CompanyEvents:
        """The events at these places."""
        return CompanyEvents(
            self.kinds[places],
            self.users[places],
            self.times_ms[places],
            self.values[places],
            self.words[places],
        )


@dataclass(frozen=True)
class ExposuresSimulation:
    """The first `limit` events of the stream of these users, as they arrive; see the module.

    >>> one = ExposuresSimulation(users=4)
    >>> {line[:9] for batch in one.batches() for line in batch if line.startswith(b"{")}
    {b'{"kind":"'}
    """

    users: int = 25_000
    seed: int = 1
    format: Format = "jsonl"
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.users < 0 or self.seed < 0 or (self.limit or 0) < 0:
            raise ValueError("users, events and seed must be at least 0")
        if self.users > 1_000_000:
            raise ValueError(f"users must be at most 1,000,000, got {self.users:,}")
        if self.format not in FORMATS:
            raise ValueError(
                f"expected --format {', '.join(FORMATS)}, since events of --exposures differ in "
                f"their fields, got {self.format}"
            )

    @property
    def events(self) -> int:
        """The number of events."""
        total = len(self._arrivals[0])
        return total if self.limit is None else min(total, self.limit)

    def header(self) -> None:
        """Return None: these formats have no header."""
        return

    def batches(self) -> Iterator[list[bytes]]:
        """The events, a few thousand at a time, each a record without line end."""
        order, rows = self._arrivals
        for start in range(0, self.events, BATCH):
            numbers = order[start : min(start + BATCH, self.events)]
            yield _lines(rows.chosen(numbers), numbers, self.seed)

    @cached_property
    def _arrivals(self) -> tuple[Ints, CompanyEvents]:
        """The numbers of the events in the order of their arrival, some twice; and the events."""
        bits, users = np.random.PCG64([self.seed, _EXTRA]), np.arange(self.users)
        exposed, exposures = _exposures(bits, users, self.seed)
        rows = _united([exposures, *_outcomes(bits, users, exposed)])
        numbers = np.arange(len(rows.users))
        arrived = rows.times_ms + (bits_of(rows.words, 0, 18) >> _SHIFTS[rows.kinds])
        late = bits_of(rows.words, 18, 16) < LATE_PER_65536
        arrived += late * (LEAST_LATE_MS + 2 * bits_of(rows.words, 0, 18))
        twice = bits_of(rows.words, 34, 8) < TWICE_PER_256
        repeat_times = arrived[twice] + 1 + 256 * bits_of(rows.words[twice], 42, 5)
        numbers = np.concatenate([numbers, numbers[twice]])
        return numbers[np.lexsort((numbers, np.concatenate([arrived, repeat_times])))], rows


def arms_of(experiment: str, users: int, seed: int) -> Ints:
    """The arm of each user: 0 or 1, by a hash of the id with the salt of the experiment."""
    least = TREATED_PER_65536.get(experiment, 32_768)
    salt = f"{experiment}-{seed}"
    hashes = (hashlib.sha256(f"{salt}:u{user:06d}".encode()).digest() for user in range(users))
    return np.array([int.from_bytes(digest[:2], "big") < least for digest in hashes], np.int64)


class _FirstExposures(NamedTuple):
    """Of one experiment: when each user is exposed, _NEVER of others, and the user's arm."""

    times_ms: Ints
    arms: Ints

    def is_treated(self, users: Ints, times_ms: Ints) -> Ints:
        """1 for events of users who were shown the second arm before, else 0."""
        treated: Ints = self.arms[users] * (self.times_ms[users] <= times_ms)
        return treated


def _exposures(
    bits: np.random.PCG64, users: Ints, seed: int
) -> tuple[dict[str, _FirstExposures], CompanyEvents]:
    """Who is exposed to what and when, and the events that say so."""
    by_name, parts = {}, []
    span = EXPOSED_DAYS * DAY_MS
    for number, name in enumerate(ARMS):
        word, later, chance = bits.random_raw(3 * len(users)).reshape(3, -1)
        is_exposed = (bits_of(word, 0, 2) > 0) & (users % 8 < 7)
        first = START_MS + (bits_of(word, 2, 32) * span >> 32)
        arms = arms_of(name, len(users), seed)
        by_name[name] = _FirstExposures(np.where(is_exposed, first, _NEVER), arms)
        has_several_arms = bits_of(word, 36, 9) < SEVERAL_PER_512
        for repeat in range(4):
            is_sent = is_exposed & (bits_of(word, 34, 2) >= repeat)
            # Later by at most 1, 2 and 3 days; of the first exposure by nothing.
            delay = bits_of(later, 20 * max(repeat - 1, 0), 20) * repeat * DAY_MS >> 20
            arm = np.where(has_several_arms & (repeat > 0), 1 - arms, arms)
            mixed = chance * np.uint64(0x9E3779B97F4A7C15 + 2 * repeat)
            sent = CompanyEvents(
                np.zeros_like(users), users, first + delay, 2 * number + arm, mixed
            )
            parts.append(sent.chosen(np.flatnonzero(is_sent)))
    return by_name, _united(parts)


def _united(parts: Sequence[CompanyEvents]) -> CompanyEvents:
    return CompanyEvents(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _outcomes(
    bits: np.random.PCG64, users: Ints, exposed: Mapping[str, _FirstExposures]
) -> Iterator[CompanyEvents]:
    """Clicks, purchases and crashes, each of a visit."""
    activity = bits.random_raw(max(len(users), 1))[: len(users)]
    ones = np.stack([bits_of(activity, i, 1) for i in range(MOST_DOUBLINGS)])
    doublings = np.cumprod(ones, axis=0).sum(axis=0)
    visitors = np.repeat(users, VISITS << doublings)
    n = len(visitors)
    when, chances, amounts, *words = bits.random_raw(6 * n).reshape(6, n)
    visits = START_MS + (bits_of(when, 0, 32) * (DAYS * DAY_MS) >> 32)

    clicked = visits + bits_of(when, 32, 16)
    treated = exposed["feed"].is_treated(visitors, clicked)
    is_click = bits_of(chances, 0, 16) < np.array(CLICKS)[treated]

    bought = visits + bits_of(when, 32, 22)
    delivery = exposed["delivery"]
    since = bought - delivery.times_ms[visitors]
    is_moved = (delivery.arms[visitors] == 1) & (since >= 0) & (since < WINDOW_MS)
    moved = bought + np.where(is_moved, (WINDOW_MS - since) // 2, 0)
    # One that passed an exposure would have its effect, and so another value than with `now`.
    for name in ("checkout", "pricing"):
        first_ms = exposed[name].times_ms[visitors]
        is_moved &= (first_ms <= bought) == (first_ms <= moved)
    bought = np.where(is_moved, moved, bought)
    treated = exposed["checkout"].is_treated(visitors, bought)
    is_purchase = bits_of(chances, 16, 16) < np.array(PURCHASES)[treated]
    cents = 4 * (125 + bits_of(amounts, 0, 11))
    cents -= exposed["pricing"].is_treated(visitors, bought) * cents // 4

    crashed = visits + bits_of(when, 40, 20)
    treated = exposed["feed"].is_treated(visitors, crashed)
    is_crash = bits_of(chances, 32, 16) < np.array(CRASHES)[treated]

    nothing = np.zeros(n, np.int64)
    for kind, (times, values, has) in enumerate(
        ((clicked, nothing, is_click), (bought, cents, is_purchase), (crashed, nothing, is_crash)),
        start=1,
    ):
        kinds = np.full(n, kind)
        yield CompanyEvents(kinds, visitors, times, values, words[kind - 1]).chosen(
            np.flatnonzero(has)
        )


def _lines(rows: CompanyEvents, numbers: Ints, seed: int) -> list[bytes]:
    """The events as JSON."""
    lines = []
    columns = zip(*(column.tolist() for column in (*rows, numbers)), strict=True)
    for kind, user, ms, value, word, number in columns:
        extra_fields = ""
        if KINDS[kind] == "exposure":
            extra_fields = _ARM_TEXTS[value]
        elif KINDS[kind] == "purchase":
            extra_fields = f',"amount":{value // 100}.{value % 100:02d}'
        line = (
            f'{{"kind":"{KINDS[kind]}","ts":"{iso(ms)}","user":"u{user:06d}"{extra_fields},'
            f'"event_id":"e{seed}-{number:09d}"}}'
        ).encode()
        if word >> 47 & 0xFFFF < BROKEN_PER_65536:
            line = FAULTS[(word >> 20) % len(FAULTS)](line)
        lines.append(line)
    return lines


_ARM_TEXTS: Final = [
    f',"experiment":"{name}","arm":"{arm}"' for name, arms in ARMS.items() for arm in arms
]
