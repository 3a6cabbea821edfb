"""How each offset of a log was read: by the settings of its time, which may change between runs.

A store keeps these settings by period. One that it does not have, since an earlier version counted
the offsets, is taken from the config.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.periods import CountedOffsets

_NO_SETTINGS: Final[Mapping[str, int]] = {}


class PeriodReading(NamedTuple):
    """A config, and its decoder."""

    config: Config
    decoder: Decoder


class PeriodReadings:
    """The readings of the logs of a ledger with this history. Periods with equal settings share a
    decoder, in all logs."""

    def __init__(self, config: Config, history: Sequence[CountedOffsets]) -> None:
        self._config = config
        self._starts: dict[int, list[int]] = {}
        self._settings: dict[int, list[Mapping[str, int]]] = {}
        self._readings: dict[tuple[tuple[str, int], ...], PeriodReading] = {}
        for counted in history:
            settings = _NO_SETTINGS if counted.period is None else counted.period.settings
            self._starts.setdefault(counted.head.id, []).append(counted.start)
            self._settings.setdefault(counted.head.id, []).append(settings)

    @property
    def max_event_bytes(self) -> int:
        """The largest limit that any event was read with."""
        name, own = "max_event_bytes", self._config.source.max_event_bytes
        periods = (settings for of_log in self._settings.values() for settings in of_log)
        return max((settings.get(name, own) for settings in periods), default=own)

    def starts(self, head: int) -> Collection[int]:
        """The offsets of a head's log at which its periods begin, in order."""
        return self._starts.get(head, ())

    def has(self, head: int, name: str) -> bool:
        """Whether a setting is known in all periods of a head."""
        return all(name in settings for settings in self._settings.get(head, ()))

    def reading(self, head: int, offset: int) -> PeriodReading:
        """The reading of an offset of a head's log."""
        place = bisect_right(self._starts.get(head, ()), offset)
        settings = self._settings[head][place - 1] if place else _NO_SETTINGS
        key = tuple(sorted(settings.items()))
        if key not in self._readings:
            config = self._config.adjusted_to(settings)
            self._readings[key] = PeriodReading(config, Decoder(config))
        return self._readings[key]
