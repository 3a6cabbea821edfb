from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.classification import HistogramAUC
from streammetrics.core.bounded import Bounded
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.kernels.tables.grids import grid_of
from tests.oracles import binary

METRICS = [
    HistogramAUC(),
    HistogramAUC(resolution=0, floor=0.25),
    HistogramAUC(range="real"),
    HistogramAUC(range="real", resolution=1, floor=0.5, ceiling=2.0),
    HistogramAUC(grid="equal", resolution=1),
    HistogramAUC(grid="edges", edges=(0.3, 0.6)),
]


def fed(rows: list[binary.Row], metric: HistogramAUC) -> HistogramAUC:
    state = metric.empty()
    state.update([y for y, _ in rows], [s for _, s in rows])
    return state


def auc_of(metric: HistogramAUC) -> Bounded:
    found = metric.compute().auc
    assert isinstance(found, Bounded)
    return found


def assert_holds(rows: list[binary.Row], metric: HistogramAUC) -> None:
    found, exact = auc_of(fed(rows, metric)), binary.area(rows)
    if exact is None:
        assert all(map(math.isnan, (found.value, found.low, found.high)))
    else:
        assert Fraction(found.low) <= exact <= Fraction(found.high)
        assert found.low <= found.value <= found.high


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_the_interval_holds_the_area_of_every_small_sample(metric: HistogramAUC) -> None:
    for rows in binary.small_samples((0.2, 0.4, 0.5), 4):
        assert_holds(rows, metric)


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_the_area_is_that_of_the_pairs_of_buckets(metric: HistogramAUC) -> None:
    for rows in binary.small_samples((0.2, 0.4, 0.5), 4):
        buckets = grid_of(metric).buckets(np.array([s for _, s in rows]))
        rounded = [(y, float(b)) for (y, _), b in zip(rows, buckets, strict=True)]
        wins, ties, every = binary.pair_counts(rounded)
        if every:
            found = auc_of(fed(rows, metric))
            assert found.value == (2 * wins + ties) / (2 * every)
            assert found.low in (wins / every, math.nextafter(wins / every, -1))
            top = (wins + ties) / every
            assert found.high in (top, math.nextafter(top, 2))


labels = st.integers(0, 1)
unit = st.floats(0, 1) | st.sampled_from([-0.0, 0.5, 1.0, 1e-10, 1 - 2**-53])
real = st.floats(allow_nan=False)


@given(st.lists(st.tuples(labels, unit), max_size=8), st.sampled_from(METRICS))
def test_the_interval_holds_for_any_probabilities(
    rows: list[binary.Row], metric: HistogramAUC
) -> None:
    assert_holds(rows, metric)


@given(st.lists(st.tuples(labels, real), max_size=8), st.sampled_from(METRICS[2:4]))
def test_the_interval_holds_for_any_scores(rows: list[binary.Row], metric: HistogramAUC) -> None:
    assert_holds(rows, metric)


@pytest.mark.parametrize(
    ("labels", "scores", "expected"),
    [
        ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], (0.75, 0.75, 0.75)),
        ([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], (0.875, 0.75, 1.0)),
        ([1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5], (0.5, 0.0, 1.0)),
        ([0, 1], [0.5001, 0.5002], (0.5, 0.0, 1.0)),
    ],
)
def test_worked_values(
    labels: list[int], scores: list[float], expected: tuple[float, float, float]
) -> None:
    metric = HistogramAUC()
    metric.update(labels, scores)
    assert auc_of(metric) == Bounded(*expected)


def test_large_logits_in_order_are_ordered() -> None:
    metric = HistogramAUC(range="real")
    metric.update([0, 0, 1, 1], [-1000.0, 80.0, 1000.0, 2000.0])
    assert auc_of(metric) == Bounded(1.0, 1.0, 1.0)


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_both_precisions_of_the_scores_give_the_same_state(metric: HistogramAUC) -> None:
    rng = np.random.default_rng(5)
    truth, scores = rng.integers(0, 2, 500), rng.random(500, np.float32)
    narrow, wide = metric.empty(), metric.empty()
    narrow.update(truth, scores)
    wide.update(truth, scores.astype(np.float64))
    assert narrow.to_bytes() == wide.to_bytes()


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_rows_are_counted_at_the_slots_that_they_are_sent_to(metric: HistogramAUC) -> None:
    rng = np.random.default_rng(5)
    n = 40_000  # more than one chunk
    truth, scores, slots = rng.integers(0, 2, n), rng.random(n), rng.integers(0, 3, n)
    wide = metric._empty(3)
    wide._feed(wide.check(truth, scores), slots)
    for slot in range(3):
        alone = metric.empty()
        alone.update(truth[slots == slot], scores[slots == slot])
        assert wide._take(np.array([slot])).to_bytes() == alone.to_bytes()


def test_an_empty_state_takes_few_bytes_and_a_few_rows_take_few_more() -> None:
    metric = HistogramAUC()
    empty = len(metric.to_bytes())
    metric.update([0, 1, 0], [0.1, 0.2, 0.3])
    assert len(metric.to_bytes()) <= empty + 16


@pytest.mark.slow
def test_the_state_grows_with_what_it_holds() -> None:
    metric = HistogramAUC(resolution=16)
    assert metric.nbytes < 1000
    metric.update([0, 1], [0.1, 0.2])
    metric.compute()
    assert metric.nbytes < 1000


@pytest.mark.parametrize(
    ("labels", "scores", "where"),
    [
        ([0, 1], [0.5, 1.5], r"scores\[1\]"),
        ([0, 1], [-0.1, 0.5], r"scores\[0\]"),
        ([0, 1], [0.5, math.nan], r"scores\[1\]"),
        ([0, 3], [0.5, 0.5], r"labels\[1\]"),
        ([0, 1], [0.5], "scores"),
        ([0.73, 0.2], [0.0, 1.0], "swapped"),
    ],
)
def test_bad_rows_are_refused_and_nothing_changes(
    labels: list[float], scores: list[float], where: str
) -> None:
    metric = HistogramAUC()
    metric.update([1], [0.5])
    before = metric.digest()
    with pytest.raises(InputError, match=where):
        metric.update(labels, scores)
    assert metric.digest() == before


def test_a_score_that_is_no_number_is_refused_in_every_range() -> None:
    with pytest.raises(InputError, match=r"scores\[0\]"):
        HistogramAUC(range="real").update([1], [math.nan])


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"grid": "log"}, "grid"),
        ({"range": "unit"}, "range"),
        ({"grid": "equal", "range": "real"}, "range"),
        ({"resolution": -1}, "resolution"),
        ({"resolution": 21}, "resolution"),
        ({"resolution": 8.0}, "resolution"),
        ({"resolution": 20}, "resolution"),
        ({"floor": 0.3}, "floor"),
        ({"floor": 0.0}, "floor"),
        ({"floor": 1.0}, "floor"),
        ({"range": "real", "floor": 4.0, "ceiling": 4.0}, "floor"),
        ({"ceiling": 3.0}, "ceiling"),
        ({"ceiling": math.inf}, "ceiling"),
        ({"edges": (0.5,)}, "edges"),
        ({"grid": "edges"}, "edges"),
        ({"grid": "edges", "edges": (0.5, 0.5)}, "edges"),
        ({"grid": "edges", "edges": (math.nan,)}, "edges"),
        ({"grid": "edges", "edges": (0.1, "0.2")}, "edges"),
        ({"grid": "edges", "edges": 0.5}, "edges"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object], where: str) -> None:
    with pytest.raises(SettingsError, match=where):
        HistogramAUC(**settings)  # type: ignore[arg-type]


def test_settings_that_mean_the_same_are_the_same() -> None:
    assert HistogramAUC(range="real", ceiling=4) == HistogramAUC(range="real", ceiling=4.0)
    a = HistogramAUC(grid="edges", edges=[-0.0, 1])  # type: ignore[arg-type]
    assert a == HistogramAUC(grid="edges", edges=(0.0, 1.0))


def test_states_of_different_grids_refuse_to_merge() -> None:
    with pytest.raises(SettingsError, match="resolution"):
        HistogramAUC().merge(HistogramAUC(resolution=7))
