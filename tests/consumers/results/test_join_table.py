"""A join as a person reads it."""

from __future__ import annotations

from dataclasses import replace

from consumers.report.tables import join_tables
from consumers.results.join_status import JoinedOutcome, JoinFound
from consumers.results.join_table import join_line, join_table
from consumers.results.terminal import Style, rendered
from streammetrics.results import OutcomeDelays

DELAYS = OutcomeDelays(1000, 20, 8, 5, {(1, 2): 499, (2, 4): 400, (32, 64): 101}, {(64, 128): 12})
FOUND = JoinFound(
    closed_ms=1_000_000,
    label_window_s=60,
    warn_cut=0.02,
    events=100_000,
    closed=90_000,
    pending=10_000,
    conflicts=0,
    late_impressions=3,
    late_outcomes=4,
    repeated=20,
    outcomes={"click": JoinedOutcome(30, DELAYS)},
)


def text(found: JoinFound | None) -> list[str]:
    return rendered(list(join_table(found)), Style()).splitlines()


def test_counts_shares_and_delays_are_said() -> None:
    assert [" ".join(line.split()) for line in text(FOUND)] == [
        "",
        "joined, label window 60 s",
        "",
        "impressions counted 90,000",
        "pending 10,000 10.0 % of impressions",
        "events repeated 20 <0.1 % of events",
        "too late to be joined 7",
        "",
        "outcome attributed unattributed half in 99 % in after window",
        "click 1,000 20 (2.0 %) 4 s 60 s 1.2 %",
    ]


def test_what_is_rare_is_said_where_it_happened() -> None:
    said = "\n".join(text(replace(FOUND, conflicts=5)))
    assert "in conflict, left out" in said


def test_a_warning_is_said_below() -> None:
    said = " ".join(text(replace(FOUND, warn_cut=0.01)))
    assert "warning: the label window cuts click off: at least 1.2 % come after its 60 s" in said
    assert FOUND.warnings == ()


def test_before_any_label_window_has_closed_nothing_is_undefined() -> None:
    none = JoinedOutcome(3, OutcomeDelays(0, 0, 0, 0, {}, {}))
    found = replace(FOUND, closed_ms=None, closed=0, pending=0, outcomes={"click": none})
    assert "undefined" not in "\n".join(text(found)) and found.warnings == ()


def test_nothing_is_said_where_events_are_not_joined() -> None:
    assert list(join_table(None)) == []


def test_a_line_says_the_same_shorter() -> None:
    assert join_line(FOUND) == (
        "90,000 impressions counted, 10,000 pending, 20 outcomes unattributed, 20 events repeated"
    )


def test_a_report_has_it_as_tables() -> None:
    first, second = join_tables(FOUND)
    assert '<th scope="row">impressions counted</th><td class="number">90,000</td>' in first
    assert '<th scope="row">click</th><td class="number">1,000</td>' in second
