"""The texts of a join: its events by status, and its outcomes with their delays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import Join, JoinOutcome, OutcomeText

COLUMN: Final = 24  # characters of the name of an outcome
OUTCOME_HEAD: Final = (
    "outcome", "attributed", "unattributed", "half in", "99 % in", "after window",
)  # fmt: skip


def join_window(found: Join) -> str:
    """The label window of a join."""
    return f"label window {formatting.plain(found.label_window_s)} s"


def join_line(found: Join) -> str:
    """The counts of a join in one line."""
    unattributed = sum(outcome.unattributed for outcome in found.outcomes.values())
    return (
        f"{formatting.count(found.closed)} impressions counted, "
        f"{formatting.count(found.pending)} pending, "
        f"{formatting.count(unattributed)} outcomes unattributed, "
        f"{formatting.count(found.repeated)} events repeated"
    )


def join_counts(found: Join) -> Iterator[tuple[str, str, str]]:
    """The events of a join by their status: name, count, and share."""
    count, late = formatting.count, found.late_impressions + found.late_outcomes
    yield "impressions counted", count(found.closed), ""
    yield "  pending", count(found.pending), _share(found.share_pending, "impressions")
    if found.conflicts:
        yield "  in conflict, left out", count(found.conflicts), ""
    yield "events repeated", count(found.repeated), _share(found.share_repeated, "events")
    yield "  too late to be joined", count(late), ""


def join_outcomes(found: Join) -> Iterator[tuple[str, ...]]:
    """The cells under OUTCOME_HEAD for each outcome of a join."""
    for name, outcome in found.outcomes.items():
        unattributed = outcome.unattributed
        share = f" ({formatting.percent(outcome.share_unattributed)})" if unattributed else ""
        yield (
            formatting.name(name, COLUMN),
            formatting.count(outcome.attributed),
            formatting.count(unattributed) + share,
            _delay_bound(found, outcome, 0.5),
            _delay_bound(found, outcome, 0.99),
            formatting.percent(outcome.share_after_window) if outcome.attributed else "",
        )


def join_with_texts(join: Join) -> Join:
    """The status of a join, with the texts of its counts and outcomes."""
    counts = ", ".join(
        f"{count} {name.strip()}" + (f" ({share})" if share else "")
        for name, count, share in join_counts(join)
    )
    outcomes = {
        name: replace(outcome, text=OutcomeText(attributed, unattributed, after_window))
        for (name, outcome), (_, attributed, unattributed, _, _, after_window) in zip(
            join.outcomes.items(), join_outcomes(join), strict=True
        )
    }
    return replace(join, outcomes=outcomes, text=counts)


def _share(share: float, whole: str) -> str:
    return f"{formatting.percent(share)} of {whole}" if share > 0 else ""


def _delay_bound(join: Join, outcome: JoinOutcome, share: float) -> str:
    """An upper bound of the delay of this share of the attributed outcomes, by the bins of the
    delays; "" if there are none."""
    least, so_far = share * outcome.attributed, 0
    for _, end_s, n in outcome.delays_s:
        so_far += n
        if so_far >= least:
            return f"{formatting.plain(min(end_s, join.label_window_s))} s"
    return ""
