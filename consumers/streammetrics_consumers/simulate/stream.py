"""A seeded stream of impressions of an A/B test with known true click rates and AUC.

Users differ in activity (the rank-th most active has a weight near 1 / rank) and in their
propensity to click. Half of them, chosen at random, see variant `treatment`, whose clicks are more
frequent and follow the score more closely. Scores are click probabilities, mostly near 0. Some
events are late, and a few are broken in ways seen in real events. With several items a request, the
events of one request are a ranked list: one user, one time, one id in `list`, and positions in the
order of the scores.

The same seed gives the same bytes on every machine: draws are the raw bits of PCG64, and all other
arithmetic uses integers and exact powers of two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Format = Literal["jsonl", "csv", "ndjson", "array", "arrow"]
FIELDS: Final = (
    *("ts", "variant", "user", "item", "position", "score", "label"),
    *("segment", "event_id"),
)
LIST: Final = "list"  # the last field, if a request has several items
# A line of the stream, with the fields in this order.
_CSV: Final = ",".join(["{}"] * len(FIELDS))
_JSON: Final = (
    '{{"ts":"{}","variant":"{}","user":"{}","item":{},"position":{},"score":{},"label":{},'
    '"segment":"{}","event_id":"{}"'
)


def _changed(**changes: object) -> Callable[[bytes], bytes]:
    """A fault that changes fields of a JSON event; None removes the field."""

    def change(line: bytes) -> bytes:
        event = {**json.loads(line), **changes}
        fields = {name: value for name, value in event.items() if value is not None}
        return json.dumps(fields, separators=(",", ":")).encode()

    return change


def _csv_changed(field: str, text: str) -> Callable[[bytes], bytes]:
    def change(line: bytes) -> bytes:
        values = line.decode().split(",")
        values[FIELDS.index(field)] = text
        return ",".join(values).encode()

    return change


# Faults of events, as in real streams.
JSON_FAULTS: Final[tuple[Callable[[bytes], bytes], ...]] = (
    lambda line: line[: len(line) // 2],
    lambda line: line + line,
    lambda line: line.replace(b'"user":"u', b'"user":"\xff'),
    lambda line: b"[" + line + b"]",
    _changed(label=2),
    _changed(score=float("nan")),
    _changed(score="high"),
    _changed(variant=None),
    _changed(variant="treatmnet"),
    _changed(ts="2024-01-01T12:00:00"),
)
JOINED_FAULTS: Final = (  # for joined impressions, which have no label
    *JSON_FAULTS[:4],
    *JSON_FAULTS[5:],
    _changed(kind="imprssion"),
    _changed(request_id=None),
)
# A truncated event would make its whole array invalid.
ARRAY_FAULTS: Final = JSON_FAULTS[1:]
TABLE_FAULTS: Final = (  # those that a row of typed columns can have
    _changed(label=2),
    _changed(score=float("nan")),
    _changed(variant=None),
    _changed(variant="treatmnet"),
    _changed(ts=None),
)
CSV_FAULTS: Final[tuple[Callable[[bytes], bytes], ...]] = (
    lambda line: line[: len(line) // 2],
    lambda line: line.replace(b",u", b",\xff"),
    _csv_changed("label", "2"),
    _csv_changed("score", "nan"),
    _csv_changed("score", "high"),
    _csv_changed("variant", ""),
    _csv_changed("variant", "treatmnet"),
    _csv_changed("ts", "2024-01-01T12:00:00"),
)
_FAULTS: Final = {
    "jsonl": JSON_FAULTS,
    "ndjson": JSON_FAULTS,
    "array": ARRAY_FAULTS,
    "arrow": TABLE_FAULTS,
    "csv": CSV_FAULTS,
}

VARIANTS: Final = ("control", "treatment")
START_MS: Final = 1_704_067_200_000  # 2024-01-01T00:00:00Z
MEAN_GAP_MS: Final = 512  # 200,000 events take a day and four hours
LATE_PER_65536: Final = 328  # about 0.5 %
BROKEN_PER_65536: Final = 66  # about 0.1 %
LEAST_LATE_MS: Final = 20 * 60_000  # well past the usual lateness of ten minutes
ITEMS: Final = 64
POSITIONS: Final = 4
BATCH: Final = 8192

_LEVELS: Final = 2048  # scores: 8 octaves up to 1/8, in 256 steps each
_ONE: Final = 1 << 32  # the integer for probability 1


@dataclass(frozen=True, slots=True)
class VariantTruth:
    """The exact values of a variant in the limit of infinitely many good events."""

    ctr: Fraction
    auc: Fraction


@dataclass(frozen=True)
class Simulation:
    """A stream of `events` events; see the module.

    >>> one = Simulation(events=3, seed=1)
    >>> lines = [line for batch in one.batches() for line in batch]
    >>> len(lines), lines == [line for batch in one.batches() for line in batch]
    (3, True)
    """

    events: int = 200_000
    seed: int = 1
    format: Format = "jsonl"
    users: int = 20_000
    items: int = 1

    def __post_init__(self) -> None:
        if self.events < 0 or self.seed < 0 or not 2 <= self.users <= 1 << 20:
            raise ValueError("events and seed must be at least 0, and users 2 to 1,048,576")
        if not 1 <= self.items <= ITEMS:
            raise ValueError(f"items must be 1 to {ITEMS}, got {self.items}")

    def header(self) -> bytes | None:
        """The first line of a CSV stream."""
        fields = (*FIELDS, LIST) if self.items > 1 else FIELDS
        return ",".join(fields).encode() if self.format == "csv" else None

    def list_of(self, number: int) -> str | None:
        """The id of the list of an event; None if a request has one item."""
        return f"l{self.seed}-{number // self.items:09d}" if self.items > 1 else None

    def batches(self) -> Iterator[list[bytes]]:
        """The events, a few thousand at a time, each a record without line end."""
        for start, drawn in self.drawn():
            yield self._written(start, drawn)

    def drawn(self) -> Iterator[tuple[int, Draws]]:
        """Batches of draws, each with the number of its first event."""
        bits = np.random.PCG64(self.seed)
        now_ms = START_MS
        size = BATCH - BATCH % self.items  # whole lists
        for start in range(0, self.events, size):
            # Draw whole batches, so that a shorter stream is a prefix of a longer one.
            draws = bits.random_raw(3 * BATCH).reshape(3, BATCH)[:, :size]
            drawn = Draws(draws, self._activity, now_ms, self.items).first(self.events - start)
            now_ms = int(drawn.clock_ms[-1])
            yield start, drawn

    def truth(self, seen_share: Fraction = Fraction(1)) -> dict[str, VariantTruth]:
        """The true click rate and AUC of each variant, if this share of all clicks is seen."""
        # A user's readiness is independent of the score, so only its mean matters here.
        weights = np.diff(np.concatenate([np.zeros(1, np.int64), self._activity]))
        ready = sum(
            int(w) * readiness(rank) for rank, w in enumerate(weights.tolist())
        )  # in halves, of _ONE
        truths = {}
        for variant, clicks in zip(VARIANTS, _CLICKS, strict=True):
            whole = 2 * _ONE * _ONE * seen_share.denominator  # the unit of the products below
            positives = [p * ready * seen_share.numerator for p in clicks.tolist()]
            below = area = 0
            for p in positives:
                area += p * (2 * below + whole - p)
                below += whole - p
            total = sum(positives)
            truths[variant] = VariantTruth(
                Fraction(total, whole * _LEVELS), Fraction(area, 2 * total * below)
            )
        return truths

    @cached_property
    def _activity(self) -> NDArray[np.int64]:
        """Cumulative weights of the ranks, with sum _ONE. A rank is two users, one in each
        variant."""
        ranks = range(1, self.users // 2 + 1)
        shares = [_ONE // rank for rank in ranks]
        total = sum(shares)
        weights = np.array([share * _ONE // total for share in shares], np.int64)
        weights[0] += _ONE - int(weights.sum())
        return np.cumsum(weights)

    def _written(self, start: int, drawn: Draws) -> list[bytes]:
        form, many = (_CSV, ",{}") if self.format == "csv" else (_JSON, ',"list":"{}"')
        form += (many if self.items > 1 else "") + ("" if self.format == "csv" else "}}")
        faults = _FAULTS[self.format]
        lines = []
        columns = zip(
            drawn.times_ms.tolist(),
            drawn.variants.tolist(),
            drawn.ranks.tolist(),
            drawn.levels.tolist(),
            drawn.labels.tolist(),
            drawn.shown.tolist(),
            drawn.positions.tolist(),
            strict=True,
        )
        for number, (ms, variant, rank, level, label, item, position) in enumerate(columns, start):
            user = 2 * rank + variant
            line = form.format(
                iso(ms),
                VARIANTS[variant],
                f"u{user:06d}",
                item,
                position,
                SCORE_TEXTS[level],
                label,
                segment_of(user),
                f"e{self.seed}-{number:09d}",
                self.list_of(number),
            )
            lines.append(line.encode())
        for i in np.flatnonzero(drawn.broken).tolist():
            lines[i] = faults[int(drawn.faults[i]) % len(faults)](lines[i])
        return lines


def segment_of(user: int) -> str:
    """The segment of a user."""
    return "new" if user % 3 == 0 else "returning"


def readiness(rank: int) -> int:
    """The click propensity of the users of a rank, in halves: 1 or 3."""
    return 3 if rank % 2 else 1


class Draws:
    """The random choices of one batch. draws: uint64 [3, n]; items: the length of a list, of which
    n is a multiple. A list has one user, variant and time, and its scores descend."""

    def __init__(
        self, draws: NDArray[np.uint64], activity: NDArray[np.int64], now: int, items: int
    ) -> None:
        whom, click, when = draws
        index = np.arange(whom.size) % items
        first = np.arange(whom.size) - index  # the first event of each list
        # Each choice uses its own bits, so all are independent.
        self.ranks = np.searchsorted(activity, bits_of(whom, 0, 32), side="right")[first]
        self.variants = bits_of(whom, 32, 1)[first]
        self.levels = -np.sort(-bits_of(whom, 33, 11).reshape(-1, items)).ravel()
        place = bits_of(whom, 44, 20)[first]
        self.shown = 1 + (place // POSITIONS + 7 * index) % ITEMS  # different in a list: 7 is odd
        self.positions = 1 + (index if items > 1 else place % POSITIONS)
        chance = np.stack(_CLICKS)[self.variants, self.levels]
        ready = np.where(self.ranks % 2 == 1, readiness(1), readiness(0))
        self.labels = (bits_of(click, 0, 32) < chance * ready // 2).astype(np.int64)
        self.broken = bits_of(click, 32, 16) < BROKEN_PER_65536
        self.faults = bits_of(click, 48, 16)
        gaps = 1 + bits_of(when, 0, 10) % (2 * MEAN_GAP_MS)
        self.clock_ms = now + np.cumsum(np.where(index == 0, gaps * items, 0))
        late = bits_of(when, 10, 16) < LATE_PER_65536
        self.times_ms = self.clock_ms - (late * (LEAST_LATE_MS + bits_of(when, 26, 21)))[first]

    def first(self, n: int) -> Draws:
        """The choices of the first `n` events."""
        draws = copy(self)
        vars(draws).update({name: column[:n] for name, column in vars(self).items()})
        return draws


def bits_of(draws: NDArray[np.uint64], first: int, n: int) -> NDArray[np.int64]:
    """`n` bits of each word, from bit `first` on."""
    return ((draws >> np.uint64(first)) & np.uint64((1 << n) - 1)).astype(np.int64)


def _scores() -> NDArray[np.float64]:
    """The scores, ascending; octaves and their 256 steps are exact in binary."""
    octaves, steps = np.divmod(np.arange(_LEVELS), 256)
    scores: NDArray[np.float64] = np.ldexp(1 + steps / 256, octaves - 11)
    return scores


def _clicks() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Click probabilities by score for both variants, in units of 1 / _ONE, even.

    Control averages the score with the mean score; treatment gives the score a weight of three
    quarters, and has an eighth more clicks.
    """
    scores = (_scores() * _ONE).astype(np.int64)  # exact: multiples of 2**-19
    mean = int(scores.sum()) // _LEVELS
    control = (scores + mean) // 2
    treatment = (3 * scores + mean) // 4 * 9 // 8
    return control // 2 * 2, treatment // 2 * 2


_CLICKS: Final = _clicks()
SCORE_TEXTS: Final = [repr(score) for score in _scores().tolist()]


def iso(ms: int) -> str:
    """A time in the format of events."""
    whole = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
