"""What a person reads of a join: what is counted and what waits, and how late outcomes come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from consumers.results import printed
from consumers.results.join_status import JoinedOutcome, JoinFound

HEAD: Final = ("outcome", "attributed", "unattributed", "half in", "99 % in", "after window")


def join_table(found: JoinFound | None) -> Iterator[RenderableType]:
    """The part of `results` and `status` about the join; nothing where events are not joined."""
    if found is None:
        return
    yield Text(f"\njoined, label window {printed.plain(found.label_window_s)} s\n", "bold cyan")
    counted = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    counted.add_column(min_width=24)
    counted.add_column(justify="right", no_wrap=True)
    counted.add_column(no_wrap=True)
    for line in counts(found):
        counted.add_row(*map(Text, line))
    yield counted
    yield Text("")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for i, name in enumerate(HEAD):
        table.add_column(name, justify="right" if i else "left", no_wrap=bool(i), overflow="fold")
    for cells in outcomes(found):
        table.add_row(*map(Text, cells))
    yield table
    yield from (Text(f"warning: {one}", "yellow") for one in found.warnings)


def join_line(found: JoinFound) -> str:
    """The same in a line."""
    unattributed = sum(one.delays.unattributed for one in found.outcomes.values())
    return (
        f"{printed.count(found.closed)} impressions counted, "
        f"{printed.count(found.pending)} pending, "
        f"{printed.count(unattributed)} outcomes unattributed, "
        f"{printed.count(found.repeated)} events repeated"
    )


def counts(found: JoinFound) -> Iterator[tuple[str, str, str]]:
    """What became of events: a name, a count, and what share that is."""
    late = found.late_impressions + found.late_outcomes
    yield "impressions counted", printed.count(found.closed), ""
    yield "  pending", printed.count(found.pending), _share(found.share_pending, "impressions")
    if found.conflicts:
        yield "  in conflict, left out", printed.count(found.conflicts), ""
    yield "events repeated", printed.count(found.repeated), _share(found.share_repeated, "events")
    yield "  too late to be joined", printed.count(late), ""


def outcomes(found: JoinFound) -> Iterator[tuple[str, ...]]:
    """For each outcome the cells under HEAD."""
    for name, one in found.outcomes.items():
        lone = one.delays.unattributed
        share = f" ({printed.percent(one.delays.share_unattributed)})" if lone else ""
        yield (
            printed.name(name, 24),
            printed.count(one.delays.attributed),
            printed.count(lone) + share,
            _within(found, one, 0.5),
            _within(found, one, 0.99),
            printed.percent(one.share_after_window) if one.delays.attributed else "",
        )


def _share(share: float, of: str) -> str:
    return f"{printed.percent(share)} of {of}" if share > 0 else ""


def _within(found: JoinFound, one: JoinedOutcome, share: float) -> str:
    end_s = one.within_s(share)
    return "" if end_s is None else f"{min(end_s, found.label_window_s):,g} s"
