"""Warns while a worker refuses most of what it reads: at once, and again as long as it lasts."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from streammetrics_consumers.model.commit import Counters, Refused
from streammetrics_consumers.model.refusals import (
    RefusedKind,
    all_skipped,
    mostly_refused,
    refusal_sentence,
)

log = logging.getLogger(__name__)

EVERY_S: Final = 60.0  # between two warnings, each about the events since the one before
FIRST: Final = 100  # events, before the first warning, unless the log ends


class RefusalWatch:
    """What one worker has read, refused and skipped, since it started and since the last warning.

    description: of any metric of the config.
    """

    def __init__(self, description: Mapping[str, object], monotonic: Callable[[], float]) -> None:
        self._description, self._monotonic = description, monotonic
        self._whole, self._period = _Tally(), _Tally()
        self._since_s = monotonic()  # when this period began
        self._is_quiet = False  # a warning was written in this period
        self._said = 0  # events of the last warning, if it was about all of them

    def count(self, counters: Counters, refused: Sequence[Refused]) -> None:
        """Include committed events."""
        for tally in (self._whole, self._period):
            tally.add(counters, refused)

    def look(self, uncommitted: Iterable[tuple[Counters, Sequence[Refused]]]) -> None:
        """Warn if most events of this period are refused, or all are skipped; once in a period of a
        minute. uncommitted: the events that are not committed yet."""
        now_s = self._monotonic()
        is_over = now_s - self._since_s >= EVERY_S
        if self._is_quiet and not is_over:
            return
        pairs = tuple(uncommitted)
        counters = sum((log_counters for log_counters, _ in pairs), self._period.counters)
        is_bad = counters.rows >= FIRST and (mostly_refused(counters) or all_skipped(counters))
        if is_bad:
            for pair in pairs:
                self._period.add(*pair)
            lately = self._whole.counters.rows > self._period.counters.rows
            log.warning("%s", self._period.sentence(self._description, lately=lately))
            self._said = 0 if lately else counters.rows
        if is_bad or is_over:
            self._since_s, self._period, self._is_quiet = now_s, _Tally(), is_bad

    def ended(self) -> None:
        """The log has ended, and all is committed: say what was refused of all events, unless just
        that was said."""
        if self._whole.is_bad and self._whole.counters.rows != self._said:
            log.warning("%s", self._whole.sentence(self._description, lately=False))


class _Tally:
    """Counters, and refused events by reason and field. The events themselves are not kept."""

    def __init__(self) -> None:
        self.counters = Counters()
        self._kinds: Counter[tuple[str, str | None]] = Counter()
        self._details: dict[tuple[str, str | None], str] = {}

    @property
    def is_bad(self) -> bool:
        """Whether most events were refused, or all were skipped."""
        return mostly_refused(self.counters) or all_skipped(self.counters)

    def add(self, counters: Counters, refused: Sequence[Refused]) -> None:
        """Include these events."""
        self.counters += counters
        for event in refused:
            kind = event.reason, event.field
            self._kinds[kind] += 1
            self._details.setdefault(kind, event.detail)

    def sentence(self, description: Mapping[str, object], *, lately: bool) -> str:
        """The warning about these events."""
        kinds = [
            RefusedKind(*kind, count, self._details[kind])
            for kind, count in self._kinds.most_common(3)
        ]
        return refusal_sentence(self.counters, kinds, description, lately=lately)
