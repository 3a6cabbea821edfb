"""Columns and operands that people pass by mistake: right, or an error that names slip and fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    GroupedScores,
    HistogramAUC,
    InputError,
    JoinRows,
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    PerKey,
    RankingMetrics,
    Ratio,
    Regression,
    SettingsError,
    SlidingAUC,
    StateError,
    StreamMetricsError,
    Units,
    UserGroups,
    Windows,
    hash_ids,
)

BINARY: list[Callable[..., Any]] = [BinaryConfusion, HistogramAUC, ExactAUC]
HOLDS = 2**53  # up to which float64 holds every integer
NOW_S = 1_763_000_000


def said(error: type[StreamMetricsError], call: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        call()
    assert caught.value.hint and caught.value.where
    return str(caught.value)


# -- labels


@pytest.mark.parametrize("labels", [[-1, 1], [-1.0, 1.0], np.array([1, -1], np.int8)])
def test_labels_of_minus_one_and_one_are_told_how_to_become_0_and_1(labels: Any) -> None:
    for metric in (*(kind() for kind in BINARY), Calibration()):
        message = said(InputError, lambda m=metric: m.update(labels, [0.1, 0.2]))
        assert message.endswith("of classes -1 and 1 pass labels == 1")
    assert "labels == 1" in said(
        InputError, lambda: GroupedAUC().update(labels, [0.1, 0.2], groups=[1, 1])
    )
    assert "labels == 1" in said(
        InputError, lambda: MultilabelConfusion(2).update([labels], [[0.1, 0.2]])
    )


@pytest.mark.parametrize("kind", BINARY)
@pytest.mark.parametrize(
    "labels",
    [["no", "Yes", "YES"], np.array(["no", "yes ", " yes"]), np.array(["a", "YES", "Yes"])],
)
def test_another_spelling_of_the_positive_class_is_no_negative(kind: Any, labels: Any) -> None:
    metric = kind(positive="yes")
    with pytest.raises(InputError, match=r"labels\[1\].*positive='yes'.*case or spaces") as caught:
        metric.update(labels, [0.1, 0.2, 0.3])
    assert caught.value.rows.tolist() == [1, 2]
    assert metric == kind(positive="yes")


# -- ids


@pytest.mark.parametrize("ids", [[1.0, 2.0], np.array([1.0, np.nan])])
def test_ids_that_became_floats_are_told_why_they_did(ids: Any) -> None:
    rows = {"labels": [0, 1], "scores": [0.1, 0.2]}
    calls: list[Callable[[], object]] = [
        *(
            lambda k=kind: GroupedAUC(ids=k).update(**rows, groups=ids)
            for kind in ("integer", "hashed")
        ),
        lambda: GroupedAUC(ids="exact").update(**rows, groups=ids),
        lambda: GroupedScores(["MRR"]).update(**rows, groups=ids),
        lambda: GroupedScores(["MRR"]).update(**rows, groups=[1, 1], items=ids),
        lambda: PerKey(ExactAUC()).update(ids, **rows),
        lambda: UserGroups(ExactAUC(), salt="s").update(ids, **rows),
        lambda: Units().update(ids),
        lambda: RankingMetrics(["MRR"]).update_ranked([ids], [[1, 2]]),
    ]
    for call in calls:
        message = said(InputError, call)
        assert "floats where some are missing" in message and 'astype("int64")' in message


@pytest.mark.parametrize("kind", ["hashed", "exact"])
def test_an_integer_is_the_id_of_its_digits_where_ids_are_strings(kind: str) -> None:
    strings, integers, mixed = (GroupedAUC(ids=kind) for _ in range(3))
    strings.update([0, 1, 1], [0.1, 0.2, 0.3], groups=["12", "-7", "12"])
    integers.update([0, 1, 1], [0.1, 0.2, 0.3], groups=np.array([12, -7, 12]))
    mixed.update([0, 1, 1], [0.1, 0.2, 0.3], groups=np.array(["12", -7, 12], object))
    assert strings == integers == mixed
    assert strings.compute().groups == 2


def test_integer_items_are_hashed_as_the_events_of_a_log_hash_them() -> None:
    rows = {"labels": [0, 1], "scores": [0.1, 0.2]}
    integers, strings, hashed = (GroupedScores(["MRR"], item_ids="hashed") for _ in range(3))
    integers.update(**rows, groups=[1, 1], items=[5, 6])
    strings.update(**rows, groups=[1, 1], items=["5", "6"])
    hashed.update(**rows, groups=[1, 1], items=hash_ids(["5", "6"]))
    assert integers == strings == hashed
    integers.update([1], [0.5], groups=[1], items=["5"])
    assert integers.compute().conflicting == 1


@pytest.mark.parametrize("bad", [True, None, 2**63, ("a",)])
def test_what_is_no_string_and_no_integer_of_64_bits_is_no_hashed_id(bad: object) -> None:
    column = np.empty(1, object)
    column[0] = bad
    said(InputError, lambda: GroupedAUC(ids="hashed").update([0], [0.5], groups=column))


# -- what is merged and read


def test_a_path_or_bytes_in_place_of_a_state_are_told_to_be_read_first(tmp_path: Path) -> None:
    state, path = Ratio(), tmp_path / "ratio.state"
    state.update([1, 0])
    state.save(path)
    before = state.digest()
    wrong: list[Any] = [
        *(path, str(path), state.to_bytes(), state.to_file_bytes(), bytearray(state.to_bytes())),
        *([path], [str(path)], [state, state.to_bytes()]),
    ]
    for given in wrong:
        message = said(SettingsError, lambda g=given: state.merge(g))
        assert message.endswith("read it first, as merge(streammetrics.load(...)) does")
    assert "pass its values()" in said(SettingsError, lambda: state.merge({"a": state}))  # type: ignore[arg-type]
    assert "not their results" in said(SettingsError, lambda: state.merge(state.compute()))  # type: ignore[arg-type]
    assert state.digest() == before


def test_bytes_of_a_state_and_of_a_state_file_name_each_other() -> None:
    state = Ratio()
    assert "from_file_bytes" in said(StateError, lambda: Ratio.from_bytes(state.to_file_bytes()))
    assert "from_bytes" in said(StateError, lambda: Ratio.from_file_bytes(state.to_bytes()))
    for reader in (Ratio.from_bytes, Ratio.from_file_bytes):
        for text in ("ratio.state", Path("ratio.state")):
            assert "load(path)" in said(StateError, lambda r=reader, t=text: r(t))


# -- weights


@pytest.mark.parametrize(
    ("weight", "unit", "finer"),
    [
        *((1 / 3, 1, "1/10000000"), (3.14159265358979, "1/10", "1/1000000")),
        *((1.5e-9, "1/1000000", "1/1000000000000000"), (1234.5678912345, 1, "")),
    ],
)
def test_rounding_is_not_advised_where_it_would_make_another_weight(
    weight: float, unit: Any, finer: str
) -> None:
    metric = BinaryConfusion(weight_unit=unit)
    message = said(InputError, lambda: metric.update([1], [0.9], weights=[weight]))
    assert "round_weights=True" in message
    smaller = f' with a smaller unit, such as weight_unit="{finer}"' if finer else ""
    assert message.endswith(f"or round_weights=True{smaller}")
    if finer:  # and it is advice that can be followed
        rounded = BinaryConfusion(weight_unit=finer, round_weights=True)
        rounded.update([1], [0.9], weights=[weight])
        found = rounded.compute()
        assert found.rounded_by_at_most is not None and found.rounded_by_at_most < 1e-6 * weight
        assert abs(found.weight - Fraction(weight)) <= found.rounded_by_at_most


# -- times


@pytest.mark.parametrize(
    ("factor", "unit", "fix"),
    [
        (1, "seconds", "times_ms * 1000"),
        (10**6, "microseconds", "times_ms // 1000"),
        (10**9, "nanoseconds", "times_ms // 1000000"),
    ],
)
def test_times_that_are_no_milliseconds_are_told_by_their_size(
    factor: int, unit: str, fix: str
) -> None:
    times = np.array([NOW_S * 1000, NOW_S * factor, NOW_S * 1000])
    calls: list[Callable[[], object]] = [
        lambda: Windows(Ratio(), size_s=60).update(times, numerators=[1, 0, 1]),
        lambda: JoinRows({"x": "float64"}, {"click": "once"}, label_window_ms=9).update_impressions(
            [1, 2, 3], times, x=[1.0, 2.0, 3.0]
        ),
    ]
    for call in calls:
        with pytest.raises(InputError, match=rf"times_ms\[1\].*{unit}.*{re.escape(fix)}") as caught:
            call()
        assert caught.value.rows.tolist() == [1]


@pytest.mark.parametrize("time", [799_999_999, 2_600_000_000, -NOW_S, 0, 2**62, NOW_S * 1000])
def test_other_times_are_milliseconds(time: int) -> None:
    Windows(Ratio(), size_s=60).update([time], numerators=[1])


def test_milliseconds_in_place_of_seconds_are_told_too() -> None:
    for times in ([NOW_S * 1000.0], [float(NOW_S), NOW_S * 1000.0], [NOW_S * 1000]):
        metric = SlidingAUC(seconds=60)
        message = said(
            InputError, lambda m=metric, t=times: m.update([1] * len(t), [0.5] * len(t), times_s=t)
        )
        assert message.endswith("pass times_s / 1000")
    one = SlidingAUC(seconds=60)
    assert "times_s / 1000" in said(InputError, lambda: one.update(1, 0.5, times_s=NOW_S * 1000.0))


# -- no rows


@pytest.mark.parametrize(
    "metric",
    [
        *(MulticlassConfusion(3), MulticlassConfusion(3, top_k=[2]), MulticlassAUC(3)),
        *(MulticlassAUC(3, exact=True), MultilabelConfusion(3), RankingMetrics(["MRR"])),
        *(BinaryConfusion(), Regression()),
    ],
    ids=repr,
)
def test_no_rows_are_no_error(metric: Any) -> None:
    before = metric.digest()
    metric.update([], [])
    metric.update(np.empty(0), np.empty(0))
    assert metric.digest() == before
    assert metric.compute().rows == 0


# -- integers that no float holds


@pytest.mark.parametrize(
    "values",
    [
        [HOLDS, HOLDS + 1],
        [0.5, HOLDS + 1],
        [1, 2**63 + 1],
        np.array([HOLDS, HOLDS + 1]),
        np.array([0, -HOLDS - 1]),
        np.array([HOLDS, HOLDS + 1], np.uint64),
        np.array([HOLDS, HOLDS + 1], object),
        [0, 2**70 + 1],
    ],
    ids=repr,
)
def test_integers_that_would_be_rounded_are_refused(values: Any) -> None:
    real = HistogramAUC(range="real")
    calls: list[tuple[str, Callable[[], object]]] = [
        ("scores", lambda: ExactAUC().update([0, 1], values)),
        ("scores", lambda: BinaryConfusion().update([0, 1], values)),
        ("scores", lambda: real.update([0, 1], values)),
        ("scores", lambda: GroupedAUC().update([0, 1], values, groups=[1, 1])),
        ("scores", lambda: GroupedScores(["MRR"]).update([0, 1], values, groups=[1, 1])),
        ("scores", lambda: SlidingAUC(9).update([0, 1], values)),
        ("numerators", lambda: Ratio().update(values)),
        ("labels", lambda: Regression().update(values, [0.0, 0.0])),
    ]
    for name, call in calls:
        with pytest.raises(
            InputError, match=rf"{name}\[1\].*integers that float64 holds"
        ) as caught:
            call()
        assert caught.value.rows.tolist() == [1]


@pytest.mark.parametrize(
    "values",
    [
        [HOLDS, HOLDS + 2, -HOLDS - 2, 0],
        np.array([HOLDS, HOLDS + 2, -(2**63), 2**62]),
        np.array([2**63, 2**64 - 2**11, 0, HOLDS + 2], np.uint64),
        [2**100, 1, 0, -(2**70)],
        np.array([2.0**53, 2.0**53 + 2, 1e300, 0]),
    ],
    ids=repr,
)
def test_large_numbers_that_float64_holds_are_taken(values: Any) -> None:
    ratio = Ratio()
    ratio.update(values)
    assert ratio.compute().numerator == float(sum(int(value) for value in values))


def test_a_threshold_that_would_be_rounded_is_refused() -> None:
    for call in (
        lambda: BinaryConfusion(threshold=HOLDS + 1),
        lambda: MultilabelConfusion(2, threshold=HOLDS + 1),
        lambda: HistogramAUC(grid="edges", edges=(0, HOLDS + 1)),
    ):
        said(SettingsError, call)
    assert BinaryConfusion(threshold=HOLDS + 2).threshold == 2.0**53 + 2
