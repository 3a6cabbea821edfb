"""A seeded stream of ranked lists in which three experiments run at once, each with a known truth.

A request shows a list of items to a user, and each item is an event. `experiments` has the arms of
the user by experiment, `label` whether the item was clicked, and `bounced` whether the user left
the site at once, the same in all events of the list. The experiments are

    ranker     with `new` the clicks follow the score more closely, and there are three sixteenths
               more of them; as many requests as with `control` bounce
    autoplay   with `on` there are an eighth more clicks, and 30 of 256 requests bounce instead of
               13: it brings clicks and drives users away
    placebo    `a` and `b` are the same

The effects do not depend on one another: clicks are multiplied by both, so the effect of `ranker`
on the click rate is 17/16 of what it is where `autoplay` is off. A user is in an arm by a hash of
the id with a salt of the experiment, so the three assignments are independent of one another, and
of all that users do. Users differ in activity, and in their propensity to click: half of them click
three times as often as the others. Some events are late, and a few are broken, as in `Simulation`.

The same seed gives the same bytes on every machine: as in `Simulation`, draws are raw bits, and all
other arithmetic uses integers and exact powers of two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.simulate.stream import (
    BATCH,
    BROKEN_PER_65536,
    ITEMS,
    JSON_FAULTS,
    LATE_PER_65536,
    LEAST_LATE_MS,
    START_MS,
    Format,
    bits_of,
    iso,
    readiness,
    segment_of,
)

ARMS: Final[Mapping[str, tuple[str, str]]] = {  # of each experiment, the control first
    "ranker": ("control", "new"),
    "autoplay": ("off", "on"),
    "placebo": ("a", "b"),
}
FORMATS: Final[tuple[Format, ...]] = ("jsonl", "ndjson", "array")  # those with objects in events
USERS: Final = 1 << 13
REQUEST_MS: Final = 1 << 17  # twice the mean time between two requests: 20,000 take 15 days
BOUNCES_PER_256: Final = (13, 30)  # requests that bounce, by arm of `autoplay`
FAULTS: Final = (*JSON_FAULTS[:7], *JSON_FAULTS[9:])  # without those of an arm in the event itself

_LEVELS: Final = 2048  # scores: 8 octaves up to 1/2, in 256 steps each
_ONE: Final = 1 << 32  # the integer for probability 1
_EXTRA: Final = 2 << 32  # part of the seed: separates the draws from those of other streams


@dataclass(frozen=True, slots=True)
class ArmTruth:
    """The exact values of an arm in the limit of infinitely many good events of users like these,
    with half of them in each arm of the other experiments."""

    ctr: Fraction
    bounce_rate: Fraction


@dataclass(frozen=True)
class ExperimentsSimulation:
    """A stream of `events` events, with lists of `items`; see the module.

    >>> one = ExperimentsSimulation(events=3, seed=1)
    >>> [line[2:5] for batch in one.batches() for line in batch]
    [b'ts"', b'ts"', b'ts"']
    """

    events: int = 200_000
    seed: int = 1
    format: Format = "jsonl"
    items: int = 10

    def __post_init__(self) -> None:
        if self.events < 0 or self.seed < 0:
            raise ValueError("events and seed must be at least 0")
        if not 1 <= self.items <= ITEMS:
            raise ValueError(f"items must be 1 to {ITEMS}, got {self.items}")
        if self.format not in FORMATS:
            raise ValueError(
                f"expected --format {', '.join(FORMATS)}, since events of --experiments have an "
                f"object of arms, got {self.format}"
            )

    def header(self) -> None:
        """Return None: these formats have no header."""
        return

    def batches(self) -> Iterator[list[bytes]]:
        """The events, a few thousand at a time, each a record without line end."""
        bits = np.random.PCG64([self.seed, _EXTRA])
        arms = {name: arms_of(name, self.seed) for name in ARMS}
        texts = _arm_texts(arms)
        now_ms = START_MS
        size = BATCH - BATCH % self.items  # whole lists
        for start in range(0, self.events, size):
            # Draw whole batches, so that a shorter stream is a prefix of a longer one.
            draws = bits.random_raw(4 * BATCH).reshape(4, BATCH)[:, :size]
            drawn = _Requests(draws, arms, now_ms, self.items)
            now_ms = drawn.end_ms
            yield self._written(start, drawn, texts)[: self.events - start]

    def _written(self, start: int, drawn: _Requests, texts: Sequence[str]) -> list[bytes]:
        """The lines of a batch. texts: the arms of each user."""
        columns = zip(
            drawn.times_ms.tolist(),
            drawn.users.tolist(),
            drawn.levels.tolist(),
            drawn.labels.tolist(),
            drawn.bounced.tolist(),
            drawn.shown.tolist(),
            drawn.positions.tolist(),
            strict=True,
        )
        lines = [
            (
                f'{{"ts":"{iso(ms)}","user":"u{user:06d}","experiments":{texts[user]},'
                f'"list":"l{self.seed}-{number // self.items:09d}","item":{item},'
                f'"position":{position},"score":{_SCORE_TEXTS[level]},"label":{label},'
                f'"bounced":{bounced},"segment":"{segment_of(user)}",'
                f'"event_id":"e{self.seed}-{number:09d}"}}'
            ).encode()
            for number, (ms, user, level, label, bounced, item, position) in enumerate(
                columns, start
            )
        ]
        for i in np.flatnonzero(drawn.broken).tolist():
            lines[i] = FAULTS[int(drawn.faults[i]) % len(FAULTS)](lines[i])
        return lines


def true_rates() -> dict[str, dict[str, ArmTruth]]:
    """The true values of each arm, by experiment."""
    ready = _mean_readiness()
    clicks = [Fraction(int(chance.sum()), _LEVELS * _ONE) * ready for chance in _CLICKS]
    factors = [Fraction(8 + arm, 8) for arm in (0, 1)]  # by arm of `autoplay`
    bounces = [Fraction(n, 256) for n in BOUNCES_PER_256]
    values = {
        "ranker": [ArmTruth(ctr * _mean(factors), _mean(bounces)) for ctr in clicks],
        "autoplay": [
            ArmTruth(_mean(clicks) * factor, bounce_rate)
            for factor, bounce_rate in zip(factors, bounces, strict=True)
        ],
        "placebo": [ArmTruth(_mean(clicks) * _mean(factors), _mean(bounces))] * 2,
    }
    return {name: dict(zip(arms, values[name], strict=True)) for name, arms in ARMS.items()}


def arms_of(experiment: str, seed: int) -> NDArray[np.int64]:
    """The arm of each user: 0 or 1, a bit of a hash of the id with the salt of the experiment."""
    salt = f"{experiment}-{seed}"
    hashes = (hashlib.sha256(f"{salt}:u{user:06d}".encode()).digest() for user in range(USERS))
    return np.array([digest[0] & 1 for digest in hashes], np.int64)


def _arm_texts(arms: Mapping[str, NDArray[np.int64]]) -> list[str]:
    """The arms of each user as JSON."""
    arm_names = (np.array(ARMS[name])[by_user].tolist() for name, by_user in arms.items())
    return [
        json.dumps(dict(zip(arms, names, strict=True)), separators=(",", ":"))
        for names in zip(*arm_names, strict=True)
    ]


class _Requests:
    """The random choices of one batch. draws: uint64 [4, n]; items: the length of a list, of which
    n is a multiple. A list has one user, time and bounce, and its scores descend."""

    def __init__(
        self,
        draws: NDArray[np.uint64],
        arms: Mapping[str, NDArray[np.int64]],
        now_ms: int,
        items: int,
    ) -> None:
        whom, item, click, when = draws
        index = np.arange(whom.size) % items
        first = np.arange(whom.size) - index  # the first event of each list
        # Each choice uses its own bits, so all are independent.
        self.users = np.minimum(bits_of(whom, 0, 13), bits_of(whom, 13, 13))[first]
        ranker, autoplay = (arms[name][self.users] for name in ("ranker", "autoplay"))
        self.bounced = (bits_of(whom, 26, 8)[first] < np.array(BOUNCES_PER_256)[autoplay]).astype(
            np.int64
        )
        self.levels = -np.sort(-bits_of(item, 0, 11).reshape(-1, items)).ravel()
        self.shown = 1 + (bits_of(item, 11, 16)[first] + 7 * index) % ITEMS  # different in a list
        self.positions = 1 + index
        chance = np.stack(_CLICKS)[ranker, self.levels] * (8 + autoplay) // 8
        ready = np.where(self.users % 2 == 1, readiness(1), readiness(0))
        self.labels = (bits_of(click, 0, 32) < chance * ready // 2).astype(np.int64)
        self.broken = bits_of(click, 32, 16) < BROKEN_PER_65536
        self.faults = bits_of(click, 48, 16)
        gaps = 1 + bits_of(when, 0, 17)
        clock_ms = now_ms + np.cumsum(np.where(index == 0, gaps, 0))
        self.end_ms = int(clock_ms[-1])
        late = bits_of(when, 17, 16) < LATE_PER_65536
        self.times_ms = clock_ms - (late * (LEAST_LATE_MS + bits_of(when, 33, 21)))[first]


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction()) / len(values)


def _mean_readiness() -> Fraction:
    """The mean propensity to click over requests: of the n users, number u has a share of
    2 (n - u) - 1 of n ** 2, as the lesser of two numbers."""
    total = sum((2 * (USERS - user) - 1) * readiness(user) for user in range(USERS))
    return Fraction(total, 2 * USERS**2)


def _scores() -> NDArray[np.float64]:
    """The scores, ascending; octaves and their 256 steps are exact in binary."""
    octaves, steps = np.divmod(np.arange(_LEVELS), 256)
    scores: NDArray[np.float64] = np.ldexp(1 + steps / 256, octaves - 9)
    return scores


def _clicks() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Click probabilities by score for both arms of `ranker`, in units of 1 / _ONE, multiples of
    16, which `autoplay` and the readiness of a user divide.

    Control averages the score with the mean score; `new` gives the score a weight of three
    quarters, and has three sixteenths more clicks.
    """
    scores = (_scores() * _ONE).astype(np.int64)  # exact: multiples of 2**-17
    mean = int(scores.sum()) // _LEVELS
    control = (scores + mean) // 2
    new = (3 * scores + mean) // 4 * 19 // 16
    return control // 16 * 16, new // 16 * 16


_CLICKS: Final = _clicks()
_SCORE_TEXTS: Final = [repr(score) for score in _scores().tolist()]
