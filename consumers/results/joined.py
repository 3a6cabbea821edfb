"""What a store says of its join: which impressions wait, what came twice or alone, how late
outcomes come, and whether the label window is long enough."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from consumers.model.commit import Counters
from consumers.render.formatting import count, percent, plain
from consumers.results.json_text import Json, number
from streammetrics.results import OutcomeDelays

TOO_LATE: Final = 0.01  # more than this share of the events being too late is warned of


def could_be_joined(logs: Counters) -> int:
    """How many events are impressions or outcomes that nothing but the time may have refused."""
    return logs.rows - logs.quarantined - logs.skipped + logs.late


def late_warning(late: int, events: int) -> str | None:
    """A sentence where many of the events were too late to be joined."""
    if late <= TOO_LATE * events:
        return None
    return (
        f"{count(late)} of {count(events)} events "
        f"({percent(late / events)}) were too late to be joined. They are in quarantine, "
        "where a retry counts those whose label windows are still open; to join all of them, raise "
        "[windows] lateness_s or [join] reopen_s in a new generation. An event far ahead of the "
        "others makes those after it late"
    )


@dataclass(frozen=True, slots=True)
class JoinedOutcome:
    """One outcome. waiting: those that have come and belong to nothing yet for certain. delays: of
    those whose label windows have closed."""

    waiting: int
    delays: OutcomeDelays

    @property
    def after_window(self) -> int:
        """How many came after their impression's label window, for certain: that of others of the
        unattributed is not known."""
        return self.delays.unattributed - self.delays.unknown

    def within_s(self, share: float) -> int | None:
        """In how many seconds at most such a share of the attributed came, as the bins of the
        delays say; None where there are none."""
        least, so_far = share * self.delays.attributed, 0
        for (_, end_s), n in sorted(self.delays.delays.items()):
            so_far += n
            if so_far >= least:
                return end_s
        return None

    @property
    def share_after_window(self) -> float:
        """These / all whose impression is known: what the label window has cut off, at least."""
        known = self.delays.attributed + self.after_window
        return self.after_window / known if known else math.nan


@dataclass(frozen=True, slots=True)
class JoinFound:
    """How a join stands, since the start.

    events: those that could be joined or were late. closed: impressions that are counted, all
    before `closed_ms`; pending: those that wait; conflicts: those left out, as another one of their
    id stands before them. late_impressions, late_outcomes: too late by their log to be joined, and
    in quarantine. repeated: events that had come before.
    """

    closed_ms: int | None
    label_window_s: float
    warn_cut: float
    events: int
    closed: int
    pending: int
    conflicts: int
    late_impressions: int
    late_outcomes: int
    repeated: int
    outcomes: Mapping[str, JoinedOutcome]

    @property
    def share_pending(self) -> float:
        """Pending / (closed + pending); nan where there are none."""
        return _share(self.pending, self.closed + self.pending)

    @property
    def share_repeated(self) -> float:
        """Repeated / events; nan where there are none."""
        return _share(self.repeated, self.events)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence where more than TOO_LATE of the events were too late, and one for each outcome
        of which the label window cuts off more than `warn_cut`."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        late = late_warning(self.late_impressions + self.late_outcomes, self.events)
        if late is not None:
            yield late
        window = f"{plain(self.label_window_s)} s"
        todo = "raise [join] label_window_s, or warn_cut"
        limit = f"and {percent(self.warn_cut)} are allowed; {todo} if that is meant"
        for name, one in self.outcomes.items():
            after, last = one.share_after_window, one.delays.share_cut
            if after > self.warn_cut:
                yield (
                    f"the label window cuts {name} off: at least {percent(after)} come "
                    f"after its {window}, {limit}"
                )
            elif last > self.warn_cut:
                yield (
                    f"the label window may cut {name} off: {percent(last)} come in the "
                    f"last tenth of its {window}, {limit}"
                )


def join_json(found: JoinFound | None) -> Json:
    """As results have it; null where events are not joined."""
    if found is None:
        return None
    return {
        "closed_ms": found.closed_ms,
        "label_window_s": found.label_window_s,
        "events": found.events,
        "closed": found.closed,
        "pending": found.pending,
        "share_pending": number(found.share_pending),
        "conflicts": found.conflicts,
        "late_impressions": found.late_impressions,
        "late_outcomes": found.late_outcomes,
        "repeated": found.repeated,
        "share_repeated": number(found.share_repeated),
        "outcomes": {name: _outcome_json(one) for name, one in found.outcomes.items()},
        "warnings": list(found.warnings),
    }


def _outcome_json(one: JoinedOutcome) -> Json:
    delays = one.delays
    return {
        "waiting": one.waiting,
        "attributed": delays.attributed,
        "unattributed": delays.unattributed,
        "unknown": delays.unknown,
        "share_unattributed": number(delays.share_unattributed),
        "share_after_window": number(one.share_after_window),
        "share_last_tenth": number(delays.share_cut),
        "delays_s": _bins(delays.delays),
        "unattributed_delays_s": _bins(delays.unattributed_delays),
    }


def _bins(counts: Mapping[tuple[int, int], int]) -> list[Json]:
    """Each bin as [from, to, outcomes]."""
    return [[start, end, n] for (start, end), n in sorted(counts.items())]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
