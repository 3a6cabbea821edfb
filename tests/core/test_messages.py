"""What people pass by mistake: each gets an error with its rows, and with what to do instead."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    GroupedInterleaving,
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
    Windows,
    hash_ids,
)
from streammetrics.core.checks import binary_labels, same_length
from streammetrics.core.conversion import FLOAT64

NAN, INF = float("nan"), float("inf")
HOLDS = 2**53  # up to which float64 holds every integer
NOW_S = 1_763_000_000
TWO = np.array([[0.2, 0.8], [0.7, 0.3]])
LONG = np.longdouble("0.1")
VECTOR = "expected a one-dimensional array [n], got"
BINARY = "labels[0]: expected 0 or 1, or False or True, got"


def classes(labels: Any) -> None:
    MulticlassConfusion(3).update(labels, [0] * len(labels))


def weighed(weight: float, unit: Any) -> None:
    BinaryConfusion(weight_unit=unit).update([1], [0.9], weights=[weight])


# Each distinct message, word for word.
MESSAGES: list[tuple[Callable[..., object], tuple[Any, ...], str]] = [
    # rows
    (
        HistogramAUC().update,
        ([0, 1], TWO),
        f"scores: {VECTOR} shape [2, 2]; pass one value for each row: "
        "for two classes, the column of the positive class, proba[:, 1]",
    ),
    (
        ExactAUC().update,
        ([[0, 1], [1, 0]], [0.1, 0.2]),
        f"labels: {VECTOR} shape [2, 2]; pass one value for each row: "
        "if they are one-hot, pass argmax(axis=1)",
    ),
    (
        ExactAUC().update,
        ([0, 1], [[0.1], [0.2]]),
        f"scores: {VECTOR} shape [2, 1]; pass one value for each row, for example with ravel()",
    ),
    (
        ExactAUC().update,
        ([0, 1], {0.1, 0.2}),
        f"scores: {VECTOR} a set; pass list(scores)",
    ),
    (
        MulticlassAUC(2).update,
        ([0, 1], (s for s in TWO)),
        "scores: expected an array [n, 2], got a generator; pass list(scores)",
    ),
    (
        ExactAUC().update,
        (1, 0.5),
        f"labels: {VECTOR} 1; pass one value for each row (wrap a single value in a list)",
    ),
    (ExactAUC().update, (None, [0.5]), f"labels: {VECTOR} None; pass one value for each row"),
    (
        SlidingAUC(5).update,
        (None, 0.5),
        f"{BINARY} None; drop or fill the 1 row(s) without a label",
    ),
    (
        BinaryConfusion().update,
        (["yes", "no"], [0.1, 0.2]),
        f"{BINARY} 'yes'; "
        "name the positive class with positive=, or map your labels to these first",
    ),
    *(
        (
            partial(GroupedInterleaving().update, groups=[7, 7]),
            ([1, 0], bad),
            f"{BINARY.replace('labels', 'teams')} {bad[0]!r}; {hint}",
        )
        for bad, hint in (
            (["A", "B"], "map your teams to these first"),
            ([0.5, 1.0], "map your teams to these first"),
            ([None, 1], "drop or fill the 1 row(s) without teams"),
        )
    ),
    (
        Calibration().update,
        (np.array(["yes", None], object), [0.1, 0.2]),  # the first one decides about the hint
        f"{BINARY} 'yes'; map your labels to these first",
    ),
    *(
        (Calibration().update, (bad, [0.1, 0.2]), f"{BINARY} -1; for classes -1 and 1, {fix}")
        for bad, fix in (
            ([-1, 1], "pass labels == 1"),
            (np.array([-1, 1], np.int8), "pass labels == 1"),
            (np.array([-1, 1], object), "pass [label == 1 for label in labels]"),
        )
    ),
    (binary_labels, ([0.73, 0.1, 1.0],), f"{BINARY} 0.73; were labels and scores swapped?"),
    (
        BinaryConfusion(positive="yes").update,
        ([1, 0], [0.1, 0.2]),
        "labels[0]: expected strings, like positive='yes', got 1; "
        "pass labels of the same kind as positive=",
    ),
    (
        ExactAUC(positive="yes").update,
        (["no", "Yes", "YES"], [0.1, 0.2, 0.3]),
        "labels[1]: expected the positive class spelled as in positive='yes', or another class, "
        "got 'Yes', which differs only in case or spaces; "
        "pass positive='Yes' if that is the spelling, or labels of 0 and 1",
    ),
    (
        HistogramAUC().update,
        ([0, 1], [0.5, math.nan]),
        "scores[1]: expected numbers in [0, 1], got nan; drop or fix the 1 bad row(s)",
    ),
    (
        HistogramAUC().update,
        ([0, 1], [0.5, 1.5]),
        "scores[1]: expected numbers in [0, 1], got 1.5; "
        'pass probabilities, or use range="real" for scores of any size',
    ),
    (
        ExactAUC().update,
        ([0, 1], np.array([LONG, LONG])),
        f"scores[0]: expected numbers of at most 64 bits, got {LONG!r} of {LONG.dtype}; "
        "round them first with astype(numpy.float64)",
    ),
    (
        Ratio().update,
        ([1, HOLDS + 1],),
        "numerators[1]: expected integers that float64 holds exactly, such as all up to 2**53, "
        "got 9007199254740993; pass smaller integers, such as ranks or differences, or round "
        "them first with astype(numpy.float64)",
    ),
    *(
        (classes, ([0, bad],), f"labels[1]: expected a class number from 0 to 2, got {bad!r}; {do}")
        for bad, do in (
            (0.5, "were labels and scores swapped?"),
            (1.5, "number your classes with whole numbers from 0"),
            (NAN, "drop or fill the 1 row(s) without a class"),
            (3, "increase n_classes"),
        )
    ),
    (
        classes,
        (["a", "b"],),
        "labels[0]: expected a class number from 0 to 2, got 'a'; number your classes from 0",
    ),
    (
        partial(SlidingAUC(seconds=60).update, times_s=NOW_S * 1000.0),
        (1, 0.5),
        "times_s[0]: expected times in seconds, got 1763000000000.0, a time in "
        "milliseconds between 1995 and 2052; pass times_s / 1000",
    ),
    *(
        (
            weighed,
            (weight, unit),
            f"weights[0]: expected multiples of weight_unit={unit}, got {weight}; pass {hint}",
        )
        for weight, unit, hint in (
            (2 / 3, "1", 'weight_unit="1/3"'),
            (
                math.pi,
                "1/10",
                'round_weights=True and weight_unit="1/1000000": the mean changes by at most '
                "a part in 2,000,000",
            ),
            (1e6 + 1 / 3, "1", 'weight_unit="1/3"'),
            (
                1e6 * math.pi,
                "1",
                "round_weights=True: the mean changes by at most a part in 2,000,000",
            ),
        )
    ),
    (
        same_length,
        (2, np.ones(3), "weights", "labels"),
        "weights: expected 2 values, one for each row of labels, got 3; "
        "pass arrays of equal length",
    ),
    # settings and states
    (
        partial(HistogramAUC, edges=(0.1, 0.5)),
        (),
        'HistogramAUC(edges): expected none with grid="relative", got (0.1, 0.5); '
        'pass them with grid="edges", as in grid="edges", edges=(0.1, 0.5)',
    ),
    (
        partial(HistogramAUC, grid="edges", edges=(0.5, 10**400)),
        (),
        f"HistogramAUC(edges): expected ascending finite numbers, got (0.5, 1{'0' * 52}…; "
        'pass them with grid="edges", as in grid="edges", edges=(0.1, 0.5)',
    ),
    (
        partial(BinaryConfusion, threshold=10**400),
        (),
        f"BinaryConfusion(threshold): expected {FLOAT64}, "
        f"got 1{'0' * 58}…; pass a number, or leave it out for 0.5",
    ),
    (
        partial(ExactAUC, positive=0.5),
        (),
        "ExactAUC.positive: expected an integer or a string, got 0.5; "
        "pass the label of the positive class, or leave it out for 1",
    ),
    (
        partial(HistogramAUC, positiv=0),
        (),
        "HistogramAUC: expected settings among grid, resolution, range, floor, ceiling, edges, "
        "positive, weight_unit, round_weights, got 'positiv'; did you mean 'positive'?",
    ),
    (
        partial(SlidingAUC, 5, positiv=0),
        (),
        "SlidingAUC: expected settings among rows, seconds, positive, got 'positiv'; "
        "did you mean 'positive'?",
    ),
    (
        HistogramAUC().merge,
        (3,),
        "HistogramAUC.merge: expected one or more states of HistogramAUC, got 3 (int); "
        "pass metrics that have counted, not their results",
    ),
    (
        Ratio().merge,
        ({},),
        "Ratio.merge: expected one or more states of Ratio, got {} (dict); pass its values()",
    ),
    (
        Ratio.from_bytes,
        (Ratio().to_file_bytes(),),
        "state bytes: expected the bytes of a state, got the bytes of a state file; "
        "read them with from_file_bytes, or with streammetrics.load, which reads both",
    ),
    (
        Ratio.from_file_bytes,
        (Ratio().to_bytes(),),
        "state bytes: expected the bytes of a state file, got the bytes of a state; "
        "read them with from_bytes, or with streammetrics.load, which reads both",
    ),
    (
        Ratio.from_bytes,
        ("ratio.state",),
        "state bytes: expected bytes, got 'ratio.state' (str); "
        "read a file with streammetrics.load(path)",
    ),
]


def test_what_is_wrong_is_told_with_what_to_do() -> None:
    for call, arguments, message in MESSAGES:
        with pytest.raises(StreamMetricsError) as error:
            call(*arguments)
        assert str(error.value) == message


def test_ids_that_became_floats_are_told_why_they_did() -> None:
    rows = {"labels": [0, 1], "scores": [0.1, 0.2]}
    for ids in ([1.0, 2.5], np.array([1.0, NAN])):
        for call in (
            partial(GroupedAUC(ids="integer").update, **rows, groups=ids),
            partial(GroupedAUC(ids="hashed").update, **rows, groups=ids),
            partial(PerKey(ExactAUC()).update, ids, **rows),
            partial(Units().update, ids),
            partial(RankingMetrics(["MRR"]).update_ranked, [ids], [[1, 2]]),
        ):
            with pytest.raises(InputError) as error:
                call()
            assert "missing values turn a column of integers into floats" in error.value.hint
            assert 'astype("int64")' in error.value.hint


def test_what_is_no_string_and_no_integer_of_64_bits_is_no_hashed_id() -> None:
    for bad in (True, None, 2**63, ("a",)):
        column = np.empty(1, object)
        column[0] = bad
        with pytest.raises(InputError):
            GroupedAUC(ids="hashed").update([0], [0.5], groups=column)


def test_a_path_or_bytes_in_place_of_a_state_are_told_to_be_read_first(tmp_path: Path) -> None:
    state, path = Ratio(), tmp_path / "ratio.state"
    state.update([1, 0])
    state.save(path)
    before = state.digest()
    wrong: list[Any] = [path, str(path), state.to_bytes(), state.to_file_bytes()]
    wrong += [bytearray(state.to_bytes()), [path], [state, state.to_bytes()]]
    for value in wrong:
        with pytest.raises(SettingsError) as error:
            state.merge(value)
        assert error.value.hint == "load it first with streammetrics.load(...)"
    for reader in (Ratio.from_bytes, Ratio.from_file_bytes):
        with pytest.raises(StateError, match=r"load\(path\)"):
            reader(path)  # type: ignore[arg-type]
    assert state.digest() == before


def test_times_that_are_no_milliseconds_are_told_by_their_size() -> None:
    joined = JoinRows({"x": "float64"}, {"click": "once"}, label_window_ms=9)
    for factor, unit, fix in (
        *((1, "seconds", "times_ms * 1000"), (10**6, "microseconds", "times_ms // 1000")),
        (10**9, "nanoseconds", "times_ms // 1000000"),
    ):
        times = np.array([NOW_S * 1000, NOW_S * factor, NOW_S * 1000])
        for call in (
            partial(Windows(Ratio(), size_s=60).update, times, numerators=[1, 0, 1]),
            partial(joined.update_impressions, [1, 2, 3], times, x=[1.0, 2.0, 3.0]),
        ):
            with pytest.raises(
                InputError, match=rf"times_ms\[1\].*{unit}.*{re.escape(fix)}"
            ) as caught:
                call()
            assert caught.value.rows.tolist() == [1]
    for moment in (799_999_999, 2_600_000_000, -NOW_S, 0, 2**62, NOW_S * 1000):
        Windows(Ratio(), size_s=60).update([moment], numerators=[1])


def test_milliseconds_in_place_of_seconds_are_told_too() -> None:
    for times in ([float(NOW_S), NOW_S * 1000.0], [NOW_S * 1000]):
        n = len(times)
        with pytest.raises(InputError, match="pass times_s / 1000"):
            SlidingAUC(seconds=60).update([1] * n, [0.5] * n, times_s=times)
    for time in (-INF, [-INF], INF, NAN):
        sliding = SlidingAUC(seconds=5)
        with pytest.raises(InputError, match=r"^times_s\[0\]: expected finite times in "):
            sliding.update(1, 0.5, times_s=time)
        assert sliding.compute().rows == 0


def test_a_threshold_that_would_be_rounded_is_refused() -> None:
    for call in (
        partial(BinaryConfusion, threshold=HOLDS + 1),
        partial(MultilabelConfusion, 2, threshold=HOLDS + 1),
        partial(HistogramAUC, grid="edges", edges=(0, HOLDS + 1)),
    ):
        with pytest.raises(SettingsError):
            call()
    assert BinaryConfusion(threshold=HOLDS + 2).threshold == 2.0**53 + 2


def test_no_rows_are_no_error() -> None:
    for metric in (
        *(MulticlassConfusion(3), MulticlassConfusion(3, top_k=[2]), MulticlassAUC(3)),
        *(MulticlassAUC(3, exact=True), MultilabelConfusion(3), RankingMetrics(["MRR"])),
        *(BinaryConfusion(), Regression()),
    ):
        before = metric.digest()
        metric.update([], [])
        metric.update(np.empty(0), np.empty(0))
        assert (metric.digest(), metric.compute().rows) == (before, 0)  # type: ignore[attr-defined]


# -- what looks like a slip and is none ------------------------------------------------------------


def test_an_integer_is_the_id_of_its_digits_where_ids_are_strings() -> None:
    for kind in ("hashed", "exact"):
        strings, integers, mixed = (GroupedAUC(ids=kind) for _ in range(3))
        strings.update([0, 1, 1], [0.1, 0.2, 0.3], groups=["12", "-7", "12"])
        integers.update([0, 1, 1], [0.1, 0.2, 0.3], groups=np.array([12, -7, 12]))
        mixed.update([0, 1, 1], [0.1, 0.2, 0.3], groups=np.array(["12", -7, 12], object))
        assert strings == integers == mixed
        assert strings.compute().groups == 2
    rows = {"labels": [0, 1], "scores": [0.1, 0.2], "groups": [1, 1]}
    items, texts, hashed = (GroupedScores(["MRR"], item_ids="hashed") for _ in range(3))
    items.update(**rows, items=[5, 6])
    texts.update(**rows, items=["5", "6"])
    hashed.update(**rows, items=hash_ids(["5", "6"]))
    assert items == texts == hashed


def test_edges_may_be_an_array() -> None:
    plain = HistogramAUC(grid="edges", edges=(0.0, 0.25, 0.5, 0.75, 1.0))
    for edges in (np.linspace(0, 1, 5), [0, 0.25, 0.5, 0.75, 1], np.arange(5, dtype="f4") / 4):
        metric = HistogramAUC(grid="edges", edges=edges)  # type: ignore[arg-type]
        assert metric.to_bytes() == plain.to_bytes()


def test_any_label_may_be_the_positive_one() -> None:
    scores = [0.1, 0.4, 0.35, 0.8]
    kinds: list[Callable[..., Any]] = [HistogramAUC, ExactAUC, partial(SlidingAUC, 9)]
    for kind in kinds:
        plain, clicks, turned = kind(), kind(positive="click"), kind(positive=0)
        plain.update([0, 0, 1, 1], scores)
        clicks.update(["no", "no", "click", "click"], scores)
        turned.update(np.array([1, 1, 0, 0], np.uint8), np.array(scores, np.float32))
        for metric in (plain, clicks, turned):
            result = metric.compute()
            assert (float(result.auc), result.positives) == (0.75, 2)


def test_one_row_with_the_named_label_may_stand_alone() -> None:
    sliding = SlidingAUC(4, positive="click")
    sliding.update("click", 0.9)
    sliding.update("none", np.float32(0.5))
    sliding.update(["none"], [0.95])
    assert (sliding.compute().auc, sliding.compute().positives) == (0.5, 1)
    assert repr(sliding) == "SlidingAUC(rows=4, positive='click')"
    inverse = SlidingAUC(4, positive=0)
    inverse.update(0, 0.9)
    assert inverse.compute().positives == 1
