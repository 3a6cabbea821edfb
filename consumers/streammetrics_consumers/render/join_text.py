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


def join_window(join: Join) -> str:
    """The label window of a join."""
    return f"label window {formatting.plain(join.label_window_s)} s"


def join_line(join: Join) -> str:
    """The counts of a join in one line."""
    unattributed = sum(outcome.unattributed for outcome in join.outcomes.values())
    return (
        f"{formatting.count(join.closed)} impressions counted, "
        f"{formatting.count(join.pending)} pending, "
        f"{formatting.count(unattributed)} outcomes unattributed, "
        f"{formatting.count(join.repeated)} events repeated"
    )


def join_counts(join: Join) -> Iterator[tuple[str, str, str]]:
    """The events of a join by their status: name, count, and share."""
    count, late = formatting.count, join.late_impressions + join.late_outcomes
    yield "impressions counted", count(join.closed), ""
    yield "  pending", count(join.pending), _share(join.share_pending, "impressions")
    if join.conflicts:
        yield "  in conflict, left out", count(join.conflicts), ""
    yield "events repeated", count(join.repeated), _share(join.share_repeated, "events")
    yield "  too late to be joined", count(late), ""


def join_outcomes(join: Join) -> Iterator[tuple[str, ...]]:
    """The cells under OUTCOME_HEAD for each outcome of a join."""
    for name, outcome in join.outcomes.items():
        unattributed = outcome.unattributed
        share = f" ({formatting.percent(outcome.share_unattributed)})" if unattributed else ""
        yield (
            formatting.name(name, COLUMN),
            formatting.count(outcome.attributed),
            formatting.count(unattributed) + share,
            _delay_bound(join, outcome, 0.5),
            _delay_bound(join, outcome, 0.99),
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
