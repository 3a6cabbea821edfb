"""SlidingAUC: what ExactAUC says of the same last rows, after every event."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import ExactAUC, InputError, SlidingAUC
from streammetrics.results.areas import SlidingArea
from streammetrics.testing.laws import exact_text
from tests.expected import cases_of

Row = tuple[int, float, float]  # label, score, time


def exact(rows: Sequence[Row]) -> SlidingArea:
    """What ExactAUC says of these rows."""
    metric = ExactAUC()
    metric.update([y for y, _, _ in rows], [s for _, s, _ in rows])
    result = metric.compute()
    assert isinstance(result.auc, float)
    return SlidingArea(result.auc, result.rows, result.positives)


def same(a: SlidingArea, b: SlidingArea) -> bool:
    """Equal, and nan equals nan."""
    return exact_text(a) == exact_text(b)


SCORES = st.one_of(
    st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 5e-324, 0.5, 1.0, 1e300, math.inf]),
    st.floats(allow_nan=False),
)
EVENTS = st.lists(
    st.tuples(st.integers(0, 1), SCORES, st.sampled_from([0.0, 0.1, 0.2, 1.0, 1e-17, 1e9])),
    max_size=30,
)


@given(EVENTS, st.integers(1, 20))
def test_after_each_event_it_is_the_area_of_the_last_rows(events: list[Row], rows: int) -> None:
    metric = SlidingAUC(rows=rows)
    for i, (label, score, _) in enumerate(events):
        metric.update(label, score)
        assert same(metric.compute(), exact(events[max(0, i + 1 - rows) : i + 1]))


@given(EVENTS, st.sampled_from([0.1, 0.3, 1, 1.1, 2.5, 1e10]), st.sampled_from([0.0, 1e9, -7.7]))
def test_after_each_event_it_is_the_area_of_the_last_seconds(
    events: list[Row], seconds: float, start: float
) -> None:
    metric, now, history = SlidingAUC(seconds=seconds), start, []
    for label, score, step in events:
        now += step
        history.append((label, score, now))
        metric.update(label, score, times_s=now)
        # (now - seconds, now], in fractions: a difference of floats may be rounded to the edge.
        inside = [row for row in history if Fraction(row[2]) > Fraction(now) - Fraction(seconds)]
        assert same(metric.compute(), exact(inside))


def test_a_row_leaves_when_it_is_as_old_as_the_window_is_long() -> None:
    metric = SlidingAUC(seconds=10)
    metric.update([0, 1], [0.1, 0.9], times_s=[100, 105])
    metric.update(1, 0.5, times_s=np.nextafter(110.0, 0))
    assert metric.compute().rows == 3
    metric.update(0, 0.5, times_s=110)
    assert metric.compute() == SlidingArea(0.75, rows=3, positives=2)
    metric.update([], [], times_s=[])
    metric.update([1, 0], [0.5, 0.5], times_s=[1000, 1000])
    assert metric.compute() == SlidingArea(0.5, rows=2, positives=1)


def test_an_age_that_floats_round_to_the_length_is_compared_exactly() -> None:
    # 2⁵³ − ½ is no float and is rounded to 2⁵³: by floats the row would be over.
    metric = SlidingAUC(seconds=2.0**53)
    metric.update([0, 1], [0.1, 0.9], times_s=[0.5, 2.0**53])
    assert metric.compute().rows == 2
    metric.update(1, 0.9, times_s=2.0**53 + 2)
    assert metric.compute().rows == 2


def test_pairs_beyond_64_bits_are_counted() -> None:
    metric = SlidingAUC(rows=3)
    metric.update([0, 1, 1], [0.1, 0.9, 0.0])
    metric._twice_u += 2**70  # as many as five thousand million rows would have
    metric.update(0, 0.5)
    assert metric._twice_u == 2**70 + 2


@pytest.mark.parametrize(
    ("columns", "where", "rows"),
    [
        (([0, 2], [0.1, 0.2], [7, 8]), "labels[1]", [1]),
        (([0, 1], [0.1, math.nan], [7, 8]), "scores[1]", [1]),
        ((0, math.nan, 7.0), "scores[0]", [0]),
        ((2, 0.5, 7.0), "labels[0]", [0]),
        (([0, 1], [0.1], [7, 8]), "scores", []),
        (([0, 1], [0.1, 0.2], [7]), "times_s", []),
        (([0, 1], [0.1, 0.2], [7, 6]), "times_s[1]", [1]),
        (([0, 1, 1], [0.1, 0.2, 0.3], [9, 7, 8]), "times_s[1]", [1, 2]),
        ((1, 0.5, 4.5), "times_s[0]", [0]),
        (([1, 0], [0.5, 0.5], [4, 5]), "times_s[0]", [0]),
        (([1, 0], [0.5, 0.5], [math.nan, 6]), "times_s[0]", [0]),
        ((1, 0.5, math.inf), "times_s[0]", [0]),
        ((1, 0.5, None), "times_s", []),
        ((1, "a", 7.0), "scores[0]", [0]),
    ],
)
def test_what_is_refused_names_its_rows_and_changes_nothing(
    columns: tuple[object, object, object], where: str, rows: list[int]
) -> None:
    metric = SlidingAUC(seconds=5)
    metric.update([0, 1, 1], [0.1, 0.4, 0.0], times_s=[1.0, 2.0, 5.0])
    before = metric.compute()
    with pytest.raises(InputError) as error:
        metric.update(*columns[:2], times_s=columns[2])  # type: ignore[arg-type]
    assert (error.value.where, error.value.rows.tolist()) == (where, rows)
    assert min(map(len, (error.value.expected, error.value.got, error.value.hint))) > 0
    assert metric.compute() == before
    metric.update(0, 0.5, times_s=5.0)  # the newest time is what it was
    assert metric.compute().rows == 4


def test_times_are_refused_where_rows_are_counted() -> None:
    with pytest.raises(InputError, match="leave them out"):
        SlidingAUC(rows=5).update(1, 0.5, times_s=1.0)


def test_it_prints_as_it_is_made() -> None:
    assert repr(SlidingAUC(5)) == "SlidingAUC(rows=5)"
    assert repr(SlidingAUC(seconds=2.5)) == "SlidingAUC(seconds=2.5)"


def test_single_values_of_numpy_are_rows_too() -> None:
    metric = SlidingAUC(seconds=5)
    for label in (np.int64(0), np.True_, np.array(1), True):
        metric.update(label, np.float32(0.5), times_s=np.int64(3))
    assert metric.compute() == SlidingArea(0.5, rows=4, positives=3)


def test_the_phishing_stream_against_values_that_others_computed(data: Path) -> None:
    events = [json.loads(line) for line in (data / "phishing.jsonl").read_text().splitlines()]
    cases = cases_of(data, "phishing")
    areas = {c["id"]: c["exact"] for c in cases if c["metric"] == "auc"}
    assert len(areas) == 3
    for name, rows in {"all": 1250, "second_half": 625, "last200": 200}.items():
        last, timed = SlidingAUC(rows=rows), SlidingAUC(seconds=rows)
        for event in events:
            last.update(event["label"], event["score"])
            timed.update(event["label"], event["score"], times_s=event["seq"])
        assert last.compute().auc == float(Fraction(areas[f"phishing/{name}/auc"]))
        assert last.compute() == timed.compute()
        assert last.compute().rows == rows


def test_river_s_streaming_area_is_as_far_off_as_it_was_measured(data: Path) -> None:
    cases = cases_of(data, "phishing")
    [case] = [c for c in cases if c["id"] == "phishing/river/ROCAUC200"]
    events = [json.loads(line) for line in (data / "phishing.jsonl").read_text().splitlines()]
    metric = SlidingAUC(rows=len(events))
    metric.update([e["label"] for e in events], [e["score"] for e in events])
    assert metric.compute().auc == case["exact_auc"]
    assert case["value"] - metric.compute().auc == pytest.approx(case["error"], rel=2**-50)


def test_a_table_gives_its_rows_in_order_with_times_of_every_kind() -> None:
    times = np.array(["2025-01-01T00:00:00", "2025-01-01T00:00:08", "2025-01-01T00:00:12"], "M8[s]")
    rows = {"click": [1, 0, 1], "p": [0.1, 0.2, 0.3]}
    zoned = [time.replace(tzinfo=UTC) for time in times.tolist()]
    for column in (times, times.astype("M8[us]"), zoned, times.astype(np.int64)):
        metric = SlidingAUC(seconds=10)
        metric.update_from(rows | {"at": column}, labels="click", scores="p", time="at")
        assert (metric.compute().rows, metric.compute().auc) == (2, 1.0)
    for naive in (zoned[-1].replace(tzinfo=None), "2025-01-02"):
        with pytest.raises(InputError):
            metric.update(1, 0.5, times_s=naive)


def test_a_reset_metric_is_as_new() -> None:
    metric = SlidingAUC(seconds=10)
    metric.update([0, 1], [0.1, 0.2], times_s=[100.0, 101.0])
    metric.reset()
    assert metric.compute().rows == 0
    metric.update([0, 1], [0.1, 0.2], times_s=[1.0, 2.0])  # earlier than before
    assert metric.compute().auc == 1.0
