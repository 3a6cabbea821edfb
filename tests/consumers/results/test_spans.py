"""Windows as a reader sees them."""

from __future__ import annotations

import pytest

from consumers.results.query import QueryError, Span, Spans, state_of

HOUR = 3_600_000


def test_a_pane_of_tumbling_windows_is_one_window() -> None:
    assert Spans(HOUR, HOUR).over([HOUR], None) == (Span(HOUR, 2 * HOUR),)


def test_a_pane_lies_in_every_sliding_window_that_covers_it() -> None:
    spans = Spans(3 * HOUR, HOUR).over([3 * HOUR], None)
    assert [span.start_ms // HOUR for span in spans] == [1, 2, 3]
    assert all(span.holds(3 * HOUR) for span in spans)


def test_panes_of_uneven_slides_lie_in_the_windows_that_hold_them_whole() -> None:
    spans = Spans(3 * HOUR, 2 * HOUR)
    assert spans.pane_ms == HOUR
    assert spans.over([2 * HOUR], None) == (Span(0, 3 * HOUR), Span(2 * HOUR, 5 * HOUR))


def test_windows_that_start_below_the_floor_are_gone() -> None:
    assert Spans(2 * HOUR, HOUR).over([HOUR], HOUR) == (Span(HOUR, 3 * HOUR),)


@pytest.mark.parametrize("span", [Span(0, 2 * HOUR), Span(HOUR, 4 * HOUR), Span(-HOUR, HOUR)])
def test_whole_windows_may_be_asked_for(span: Span) -> None:
    Spans(2 * HOUR, HOUR).require(span, None)


@pytest.mark.parametrize(
    ("span", "nearest"),
    [
        (Span(0, HOUR), "1970-01-01T00:00:00Z/1970-01-01T02:00:00Z"),
        (Span(1, 2 * HOUR), "1970-01-01T00:00:00Z/1970-01-01T02:00:00Z"),
        (Span(0, 3 * HOUR + 1), "1970-01-01T00:00:00Z/1970-01-01T03:00:00Z"),
    ],
)
def test_a_part_of_a_window_is_refused_with_whole_ones_nearby(span: Span, nearest: str) -> None:
    with pytest.raises(QueryError) as refused:
        Spans(2 * HOUR, HOUR).require(span, None)
    assert "expected whole windows (7200 s long, one every 3600 s)" in str(refused.value)
    assert f"ask for {nearest}, for example" in str(refused.value)


def test_windows_that_retention_has_dropped_are_refused() -> None:
    with pytest.raises(QueryError, match="a START from 1970-01-01T01:00:00Z on"):
        Spans(HOUR, HOUR).require(Span(0, HOUR), HOUR)


@pytest.mark.parametrize(
    ("least_ms", "state"),
    [(None, "open"), (99, "open"), (100, "closing"), (109, "closing"), (110, "closed")],
)
def test_a_window_closes_when_its_lateness_has_passed(least_ms: int | None, state: str) -> None:
    assert state_of(100, least_ms, 10) == state
