"""The simulated stream in the form of production logs: an impression is one event, and its click a
separate event, seconds to half an hour later.

A quarter of all clicks lead to a purchase, with an amount. Some events are sent twice, a few
impressions are lost, and a click or purchase may arrive after its label window has closed. None of
this depends on the variant or the score, so the true values are known: those of `Simulation`, with
the share of clicks within the label window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.simulate.stream import (
    BATCH,
    JOINED_FAULTS,
    LIST,
    SCORE_TEXTS,
    VARIANTS,
    Draws,
    Format,
    Simulation,
    VariantTruth,
    bits_of,
    iso,
    segment_of,
)

FORMATS: Final[tuple[Format, ...]] = ("jsonl", "ndjson", "array")  # events may differ in fields
# How many of 64 outcomes are delayed by 2**k to 2**(k + 1) seconds, for each k, uniformly within.
OCTAVES: Final = (1, 2, 4, 7, 10, 12, 11, 8, 5, 3, 1)
MISSING_PER_256: Final = 1  # impressions that are lost
TWICE_PER_256: Final = 3  # events of each kind that are sent again
BUYS_PER_256: Final = 64  # clicks that lead to a purchase
_EXTRA: Final = 1 << 32  # part of the seed: separates the draws from those of `Simulation`
_STEPS: Final = 1 << 16  # within an octave
_OUTCOMES: Final = (b'{"kind":"click"', b'{"kind":"purchase"')


@dataclass(frozen=True)
class JoinedSimulation:
    """The first `events` events in the order of their arrival; see the module.

    >>> one = JoinedSimulation(Simulation(events=3, seed=1))
    >>> [line[:20] for batch in one.batches() for line in batch]
    [b'{"kind":"impression"', b'{"kind":"impression"', b'{"kind":"impression"']
    """

    base: Simulation

    def __post_init__(self) -> None:
        if self.base.format not in FORMATS:
            raise ValueError(
                f"expected --format {', '.join(FORMATS)}, since events of --join differ in their "
                f"fields, got {self.base.format}"
            )

    @property
    def events(self) -> int:
        """The number of events of all kinds."""
        return self.base.events

    @property
    def format(self) -> Format:
        """The format of the output."""
        return self.base.format

    def header(self) -> None:
        """Return None: these formats have no header."""
        return

    def batches(self) -> Iterator[list[bytes]]:
        """The events, a few thousand at a time, each a record without line end."""
        left, number = self.events, 0
        waiting: list[tuple[int, int, bytes]] = []  # arrival time, number and line of an event
        for start, drawn, later in self._drawn():
            for at_ms, line in _events(self.base, start, drawn, later):
                heappush(waiting, (at_ms, number, line))
                number += 1
            now_ms = int(drawn.clock_ms[-1])
            batch: list[bytes] = []
            while waiting and waiting[0][0] <= now_ms and len(batch) < left:
                batch.append(heappop(waiting)[2])
            left -= len(batch)
            yield batch
            if not left:
                return

    def truth(self, label_window_s: int) -> dict[str, VariantTruth]:
        """The true click rate and AUC of each variant, of clicks within the label window."""
        return self.base.truth(share_within(label_window_s))

    def _drawn(self) -> Iterator[tuple[int, Draws, NDArray[np.uint64]]]:
        bits = np.random.PCG64([self.base.seed, _EXTRA])
        # Most impressions give at least one event, so reading stops well before the end.
        endless = replace(self.base, events=2 * self.events + BATCH)
        for start, drawn in endless.drawn():
            later = bits.random_raw(3 * BATCH).reshape(3, BATCH)[:, : len(drawn.labels)]
            yield start, drawn, later


def is_outcome(line: bytes) -> bool:
    """Whether an event of the stream is a click or a purchase; broken ones are impressions."""
    return line.startswith(_OUTCOMES)


def share_within(label_window_s: int) -> Fraction:
    """The share of clicks that come less than `label_window_s` after their impressions.

    >>> float(share_within(600)), float(share_within(2048))
    (0.945556640625, 1.0)
    """
    share = Fraction(0)
    for k, weight in enumerate(OCTAVES):
        steps = -(-(label_window_s * 1000 - (1000 << k)) * _STEPS // (1000 << k))
        share += Fraction(weight * min(max(steps, 0), _STEPS), _STEPS * sum(OCTAVES))
    return share


def _events(
    base: Simulation, start: int, drawn: Draws, later: NDArray[np.uint64]
) -> Iterator[tuple[int, bytes]]:
    """The events of a batch of impressions with their arrival times. later: uint64 [3, n]."""
    clicked, bought, chance = later
    to_click, to_buy = _delays_ms(clicked), _delays_ms(bought)
    columns = zip(
        drawn.times_ms.tolist(),
        drawn.clock_ms.tolist(),
        drawn.variants.tolist(),
        drawn.ranks.tolist(),
        drawn.levels.tolist(),
        drawn.labels.tolist(),
        drawn.shown.tolist(),
        drawn.positions.tolist(),
        to_click.tolist(),
        to_buy.tolist(),
        chance.tolist(),
        (bought >> np.uint64(22)).tolist(),
        strict=True,
    )
    broken = {i: int(drawn.faults[i]) for i in np.flatnonzero(drawn.broken).tolist()}
    for i, row in enumerate(columns):
        ms, clock, variant, rank, level, label, item, position, click, buy, *words = row
        draw = _Bits(words[0] | words[1] << 64)
        user, number = 2 * rank + variant, f"{base.seed}-{start + i:09d}"
        list_id = base.list_of(start + i)
        of_list = f',"{LIST}":"{list_id}"' if list_id else ""
        if draw(8) >= MISSING_PER_256:
            line = (
                f'{{"kind":"impression","ts":"{iso(ms)}","request_id":"r{number}",'
                f'"variant":"{VARIANTS[variant]}","user":"u{user:06d}","item":{item},'
                f'"position":{position},"score":{SCORE_TEXTS[level]},'
                f'"segment":"{segment_of(user)}","event_id":"i{number}"{of_list}}}'
            ).encode()
            if i in broken:
                line = JOINED_FAULTS[broken[i] % len(JOINED_FAULTS)](line)
            yield from _sent(clock, line, draw)
        if not label:
            continue
        line = (
            f'{{"kind":"click","ts":"{iso(ms + click)}","request_id":"r{number}",'
            f'"event_id":"c{number}"}}'
        ).encode()
        yield from _sent(clock + click + draw(12), line, draw)
        if draw(8) < BUYS_PER_256:
            cents = 500 + draw(13)
            line = (
                f'{{"kind":"purchase","ts":"{iso(ms + click + buy)}","request_id":"r{number}",'
                f'"amount":{cents // 100}.{cents % 100:02d},"event_id":"p{number}"}}'
            ).encode()
            yield from _sent(clock + click + buy, line, draw)


class _Bits:
    """Independent choices from random bits: each uses its own bits."""

    def __init__(self, bits: int) -> None:
        self._left = bits

    def __call__(self, n: int) -> int:
        bits = self._left & ((1 << n) - 1)
        self._left >>= n
        return bits


def _sent(at_ms: int, line: bytes, draw: Callable[[int], int]) -> Iterator[tuple[int, bytes]]:
    """An event, and sometimes a repeat up to eight seconds later."""
    yield at_ms, line
    if draw(8) < TWICE_PER_256:
        yield at_ms + 1 + draw(5) * 256, line


def _delays_ms(draws: NDArray[np.uint64]) -> NDArray[np.int64]:
    octaves = np.repeat(np.arange(len(OCTAVES)), OCTAVES)[bits_of(draws, 0, 6)]
    least_ms = np.int64(1000) << octaves
    delays_ms: NDArray[np.int64] = least_ms + (least_ms * bits_of(draws, 6, 16) >> 16)
    return delays_ms
