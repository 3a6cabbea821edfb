"""drift: worked examples, certain bounds against the exact distances, errors over users."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import (
    Accumulator,
    Bounded,
    ExactAUC,
    ExactQuantiles,
    HistogramAUC,
    InputError,
    Panel,
    Quantiles,
    Ratio,
    SettingsError,
    UserGroups,
    drift,
)
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes
from streammetrics.kernels.inference.quantile_ranks import uniform_band
from streammetrics.kernels.inference.tails import chi2_sf
from streammetrics.results import doubts_of
from streammetrics.results.drift_result import Drift
from tests.expected import examples_of

GRID = Quantiles(resolution=0, floor=0.5, ceiling=4.0)
DISTANCES = ("ks", "wasserstein", "total_variation", "js_divergence", "js_distance", "hellinger")


def fed(metric: Accumulator, values: Sequence[float] | np.ndarray[Any, Any]) -> Any:
    state = metric.empty()
    state.update(np.asarray(values, float))
    return state


def of_counts(counts: Sequence[int], edges: Sequence[float] | None) -> Any:
    """A state with these counts of buckets between edges, which reach both ends."""
    if len(counts) == 4:  # from 0 to 1
        state = HistogramAUC(grid="equal", resolution=2)
        for i, count in enumerate(counts):
            state.update([0] * count, [(i + 0.5) / 4] * count)
        return state
    edges = edges or range(len(counts) + 1)
    if not any(counts):
        return Quantiles(grid="edges", edges=tuple(edges[1:-1]))
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    values = np.repeat(middles, counts)
    values[0], values[-1] = edges[0], edges[-1]
    return fed(Quantiles(grid="edges", edges=tuple(edges[1:-1])), values)


def test_every_worked_example_of_drift(data: Path) -> None:
    examples = examples_of(data, 2)
    assert len(examples) == 19
    for example in examples:
        inputs, value, near = example["inputs"], example["value"], example["tolerance"]
        if "reference" in inputs:
            result = drift(*(fed(ExactQuantiles(), inputs[s]) for s in ("reference", "current")))
        else:
            counts = inputs["reference_counts"], inputs["current_counts"]
            result = drift(*(of_counts(side, inputs.get("edges")) for side in counts))
        ks, off = result.ks, result.wasserstein
        figures: dict[str, Any] = {
            "psi": result.psi_with(inputs["smoothing"]) if "smoothing" in inputs else result.psi,
            "psi_p_value": result.psi_pvalue,
            "ks_two_states": {"low": ks.low, "high": ks.high} if isinstance(ks, Bounded) else ks,
            "wasserstein_1": {"value": off.value, "low": off.low, "high": off.high}
            if isinstance(off, Bounded)
            else off,
            "total_variation": float(result.total_variation),
            "hellinger": float(result.hellinger),
            "jensen_shannon": {
                "divergence_bits": float(result.js_divergence),
                "distance": float(result.js_distance),
            },
        }
        expected = math.nan if value is None else value
        relative, absolute = near["relative"], near["absolute"]
        assert figures[example["metric"].removesuffix("_unsmoothed")] == pytest.approx(
            expected, rel=relative, abs=absolute, nan_ok=True
        ), example["id"]


def brute(a: Sequence[float], b: Sequence[float]) -> dict[str, float]:
    """The distances of two samples by their definitions, value by value."""
    points = sorted({*a, *b})
    p = [Fraction(sum(x == v for x in a), len(a)) for v in points]
    q = [Fraction(sum(x == v for x in b), len(b)) for v in points]
    apart = [abs(sum(p[: i + 1]) - sum(q[: i + 1])) for i in range(len(points))]
    gaps = [Fraction(y) - Fraction(x) for x, y in pairwise(points)]
    bits = [
        float(x) * math.log2(2 * x / (x + y))
        for first, second in ((p, q), (q, p))
        for x, y in zip(first, second, strict=True)
        if x
    ]
    divergence = max(math.fsum(bits) / 2, 0.0)
    roots = math.fsum((math.sqrt(x) - math.sqrt(y)) ** 2 for x, y in zip(p, q, strict=True))
    return {
        "ks": float(max(apart)),
        "wasserstein": float(sum(x * y for x, y in zip(apart, gaps, strict=False))),
        "total_variation": float(sum(abs(x - y) for x, y in zip(p, q, strict=True)) / 2),
        "js_divergence": divergence,
        "js_distance": math.sqrt(divergence),
        "hellinger": math.sqrt(roots / 2),
    }


values = st.lists(
    st.sampled_from((-9.0, -2.0, -1.5, 0.0, 0.25, 0.5, 1.0, 1.25, 1.75, 2.0, 3.0, 7.0)),
    min_size=1,
    max_size=12,
)


@given(values, values)
def test_exact_distances_are_those_of_the_definitions_and_within_the_bounds_of_a_grid(
    a: list[float], b: list[float]
) -> None:
    exact = drift(fed(ExactQuantiles(), a), fed(ExactQuantiles(), b))
    coarse = drift(fed(GRID, a), fed(GRID, b))
    for view, value in brute(a, b).items():
        distance, bounds = getattr(exact, view), getattr(coarse, view)
        near = 1e-7 if view in ("js_divergence", "js_distance", "hellinger") else 0.0  # near 0
        assert distance == pytest.approx(value, rel=1e-14, abs=near), view
        assert bounds.low - 1e-15 <= value <= bounds.high + 1e-7, view
        assert bounds.low <= bounds.value <= bounds.high, view
    if sorted(a) == sorted(b):
        assert not any(float(getattr(coarse, view)) for view in (*DISTANCES, "psi"))


def test_bins_end_at_the_deciles_of_the_reference_and_ties_are_never_split() -> None:
    a = fed(ExactQuantiles(), [1.0] * 45 + [2.0] * 10 + list(range(3, 48)))
    result = drift(a, fed(ExactQuantiles(), [0.0, 1.0, 1.5, 2.0, 2.5, 7.0, 7.5, 60.0]))
    # Deciles 1 to 4 are 1, the fifth is 2, then 7, 17, 27 and 37.
    assert result.bin_counts.tolist() == [
        [45, 10, 5, 10, 10, 10, 10],
        [2, 2, 2, 1, 0, 0, 1],
    ]
    assert result.psi_with(0) == math.inf
    assert result.psi_by_convention == "above 0.25"


def test_a_reference_in_the_last_bucket_leaves_one_bin_and_no_drift_of_bins() -> None:
    top = fed(Quantiles(grid="equal", resolution=2, range="probability"), [0.9, 1.0])
    result = drift(top, fed(top, [0.1, 0.9]))
    assert (result.bins, result.psi, result.psi_pvalue) == (1, 0.0, 1.0)
    assert float(result.ks) == 0.5


def test_scores_of_a_histogram_are_values_on_the_same_grid() -> None:
    random = np.random.default_rng(3)
    scores, labels = random.beta(1, 3, (2, 150)), random.integers(0, 2, (2, 150))
    curves = [HistogramAUC(), HistogramAUC()]
    for curve, y, x in zip(curves, labels, scores, strict=True):
        curve.update(y, x)
    plain = [fed(Quantiles(range="probability"), x) for x in scores]
    of_scores, of_values = drift(*curves), drift(*plain)
    for view in ("psi", "ks", "js_distance", "hellinger", "total_variation", "ks_band"):
        assert getattr(of_scores, view) == getattr(of_values, view), view
    assert drift(curves[0], plain[1]).psi == of_values.psi
    for label in (0, 1):
        quantiles = [fed(Quantiles(range="probability"), x[y == label])
                for x, y in zip(scores, labels, strict=True)]  # fmt: skip
        exact = [ExactAUC(), ExactAUC()]
        for curve, y, x in zip(exact, labels, scores, strict=True):
            curve.update(y, x)
        assert drift(*curves, label=label).psi == drift(*quantiles).psi
        ks = brute(*(x[y == label].tolist() for x, y in zip(scores, labels, strict=True)))["ks"]
        assert drift(*exact, label=label).ks == ks


def test_one_value_on_each_side_may_be_two_values_of_a_bucket() -> None:
    first, second = fed(GRID, [1.25]), fed(GRID, [1.0])  # least and greatest value are known
    result = drift(first, second)
    for view in ("ks", "total_variation", "js_distance", "hellinger"):
        value = getattr(result, view)
        assert (value.low, value.high) == (0.0, 1.0), view
    same = drift(first, first)
    assert (float(same.ks), same.total_variation.high) == (0.0, 0.0)
    assert result.wasserstein.high - result.wasserstein.low < 1e-14  # type: ignore[union-attr]


def test_an_unbounded_bucket_leaves_the_upper_bound_of_wasserstein_infinite() -> None:
    scores = HistogramAUC(range="real", ceiling=4.0)
    for label, score in ((0, 1.0), (1, 9.0)):
        scores.update([label], [score])
    distance = drift(scores, scores).wasserstein
    assert isinstance(distance, Bounded)
    assert (distance.value, distance.low, distance.high) == (0.0, 0.0, math.inf)
    # The greatest value is known here, so the last bucket ends there.
    state = fed(Quantiles(ceiling=4.0), [1.0, 9.0])
    bounds = drift(state, state).wasserstein
    assert isinstance(bounds, Bounded)
    assert bounds.high < 5.1


def test_wasserstein_of_infinite_huge_and_tiny_values_is_that_of_the_values() -> None:
    ends, tail = ExactAUC(), ExactAUC()
    ends.update([0, 1], [1.0, math.inf])
    tail.update([0, 1, 1], [1.0, math.inf, math.inf])
    assert (drift(ends, ends).wasserstein, drift(ends, tail).wasserstein) == (0.0, math.inf)
    # The distance of two floats that has no float, and buckets so wide that its value has none.
    most = 1.7976931348623157e308
    distance = drift(fed(Quantiles(), [-most]), fed(Quantiles(), [most])).wasserstein
    assert isinstance(distance, Bounded) and (distance.low, distance.high) == (most, math.inf)
    wide = drift(fed(GRID, [-most, -5.0, -5.0]), fed(GRID, [most, 5.0, 5.0])).wasserstein
    assert isinstance(wide, Bounded) and Fraction(wide.low) <= (2 * Fraction(most) + 20) / 3
    tiny = drift(fed(Quantiles(), [0.0]), fed(Quantiles(), [5e-324])).wasserstein
    assert isinstance(tiny, Bounded) and (tiny.low, tiny.high) == (5e-324, 5e-324)


def test_counts_near_the_greatest_integer_are_exact() -> None:
    big = (1 << 62) - 1
    a, b = ExactQuantiles(), ExactQuantiles()
    a.update([1.0, 2.0], weights=[big, 1])
    b.update([1.0, 2.0], weights=[big - 1, 2])
    result = drift(a, b)
    assert result.ks == 1 / (1 << 62)
    assert result.wasserstein == pytest.approx(result.ks, rel=1e-15)
    assert float(result.total_variation) == result.ks
    # Only the second value counts: 1 and 2 of 2**62.
    bits = (4 * math.log2(4 / 3) + 2 * math.log2(2 / 3)) / 6
    assert float(result.js_divergence) == pytest.approx(1.5 * bits / (1 << 62), rel=1e-9)
    root = (math.sqrt(2) - 1) ** 2 / 2 / (1 << 62)
    assert float(result.hellinger) ** 2 == pytest.approx(root, rel=1e-9)


def test_drift_without_rows_is_undefined_and_says_which_state_has_none() -> None:
    full, none = fed(Quantiles(), [1.0, 2.0]), Quantiles()
    for states, why in (
        ((none, full), "the reference has no rows"),
        ((full, none), "the current state has no rows"),
        ((fed(ExactQuantiles(max_rows=1), [1.0, 2.0]), fed(ExactQuantiles(), [1.0])), "of the ref"),
    ):
        result = drift(*states)
        assert result.reason.startswith(why)
        assert all(math.isnan(float(getattr(result, view))) for view in (*DISTANCES, "psi"))
        assert result.psi_pvalue == 1.0
        assert not result.certain()
        assert math.isnan(result.band())
        interval = result.interval("ks")
        assert (interval.lower, interval.upper) == (-math.inf, math.inf)


def test_drift_is_certain_once_the_lower_bound_of_ks_exceeds_both_bands() -> None:
    a = fed(Quantiles(), range(1, 4001))
    for shift in (150, 600):
        result = drift(a, fed(Quantiles(), range(1 + shift, 2001 + shift)))
        band = uniform_band(4000, 0.025, 1) + uniform_band(2000, 0.025, 1)
        assert result.ks_band == result.band() == band
        assert result.band(0.01, 1000) == sum(uniform_band(n, 0.005, 1000) for n in (4000, 2000))
        ks = result.ks
        assert isinstance(ks, Bounded)
        assert result.certain() == (ks.low > band)
    near = drift(a, fed(Quantiles(), range(1 + 370, 4001 + 370)))
    assert not near.certain(0.001)
    assert near.certain()


def test_weighted_rows_have_distances_but_no_chance() -> None:
    a, b = Quantiles(), Quantiles()
    a.update([1.0, 2.0, 3.0], weights=[2, 3, 5])
    b.update([1.0, 2.0, 3.0], weights=[5, 3, 2])
    result = drift(a, b)
    repeated = drift(fed(Quantiles(), [1.0] * 2 + [2.0] * 3 + [3.0] * 5),
                     fed(Quantiles(), [1.0] * 5 + [2.0] * 3 + [3.0] * 2))  # fmt: skip
    assert (result.psi, result.ks) == (repeated.psi, repeated.ks)
    assert (result.psi_pvalue, result.certain(0.99)) == (1.0, False)
    assert math.isnan(result.ks_band)
    assert "weighted" in repr(result)
    scores = HistogramAUC()
    scores.update([0, 1], [0.1, 0.2], weights=[2, 3])
    assert drift(scores, scores).psi == 0
    with pytest.raises(InputError, match=r"drift\(label\): expected rows of weight 1"):
        drift(scores, scores, label=1)


def of_users(seed: int, users: int, rows: int, shift: float = 0.0) -> Any:
    """Rows of users who have a mean of their own."""
    random = np.random.default_rng(seed)
    who = random.integers(0, users, rows)
    means = np.random.default_rng(users).normal(size=users)
    state: UserGroups[Any] = UserGroups(Quantiles(resolution=4))
    state.update(who, values=means[who] + 0.3 * random.normal(size=rows) + shift)
    return state


def assert_design_effects(result: Drift, x: Any, buckets: Any) -> None:
    """By the definition of Rao and Scott, from the covariance of the bins of plain rows."""
    counts, n = result.bin_counts, [len(side) for side in x]
    bins = [np.searchsorted(np.sort(x[0])[np.cumsum(counts[0])[:-1] - 1], side) for side in x]
    assert [np.bincount(numbers, minlength=10).tolist() for numbers in bins] == counts.tolist()

    def differences(without: int) -> Any:
        samples = [numbers[b != without] for numbers, b in zip(bins, buckets, strict=True)]
        p, q = (np.bincount(sample, minlength=10) / len(sample) for sample in samples)
        return p - q

    covariance = 7 * 7 / 8 * np.cov(np.array([differences(g) for g in range(8)]).T)
    pooled = counts.sum(0) / sum(n)
    matrix = covariance / np.sqrt(np.outer(pooled, pooled)) / (1 / n[0] + 1 / n[1])
    eigenvalues = np.linalg.eigvalsh(matrix)
    assert result.deff == pytest.approx(eigenvalues.sum() / 9, rel=1e-9)
    squares = ((eigenvalues**2).sum() - eigenvalues.sum() ** 2 / 7) * 49 / (9 * 6)
    inequality = min(max(9 * squares / eigenvalues.sum() ** 2, 1), 9)
    statistic = result.psi / (1 / n[0] + 1 / n[1]) / result.deff
    expected = chi2_sf(statistic / inequality, 9 / inequality)
    assert result.psi_pvalue == pytest.approx(expected, rel=1e-9)


def test_over_users_each_bucket_leaves_both_states() -> None:
    random = np.random.default_rng(5)
    users, x = random.integers(0, 300, (2, 2000)), random.normal(size=(2, 2000))
    salt = salt_word("streammetrics")
    buckets = [unit_hashes(ids, salt, "groups").astype(np.uint16) & 7 for ids in users]
    states = []
    for who, values_ in zip(users, x, strict=True):
        state: UserGroups[Any] = UserGroups(ExactQuantiles(), buckets=8)
        state.update(who, values=values_)
        states.append(state)
    result = drift(*states)
    whole = drift(*(state.metric_state() for state in states))
    without = [
        drift(*(fed(ExactQuantiles(), v[b != g]) for v, b in zip(x, buckets, strict=True)))
        for g in range(8)
    ]
    sizes = np.bincount(np.concatenate(buckets))
    df = float(sizes.sum() ** 2 / (sizes * sizes).sum() - 1)
    for view in ("ks", "wasserstein"):
        distances = [float(getattr(part, view)) for part in without]
        mean = math.fsum(distances) / 8
        se = math.sqrt(7 / 8 * math.fsum((distance - mean) ** 2 for distance in distances))
        interval = result.interval(view)
        assert (interval.se, interval.df) == pytest.approx((se, df), rel=1e-12), view
        assert getattr(result, view) == getattr(whole, view)
    assert_design_effects(result, x, buckets)


def test_rows_that_a_user_repeats_are_divided_by_their_number() -> None:
    random = np.random.default_rng(8)
    once, often = [], []
    for users in (np.arange(3000), np.arange(3000, 6000)):
        x = random.normal(size=3000)
        for states, times in ((once, 1), (often, 9)):
            state: UserGroups[Any] = UserGroups(Quantiles(resolution=3))
            state.update(np.repeat(users, times), values=np.repeat(x, times))
            states.append(state)
    single, together = drift(*once), drift(*often)
    assert single.deff == pytest.approx(1, abs=0.15)
    assert together.deff == pytest.approx(9 * (single.deff or 0), rel=1e-9)
    assert together.psi_pvalue == pytest.approx(single.psi_pvalue, abs=0.01)
    assert together.ks_band is None and math.isnan(together.band(0.9))
    assert not together.certain(0.9)


def test_an_interval_begins_at_0_unless_psi_finds_drift() -> None:
    same = drift(of_users(1, 400, 8000), of_users(2, 401, 8000)).interval("js_distance")
    assert same.lower == 0 < same.upper
    assert "PSI finds no drift" in same.reason
    moved = drift(of_users(1, 400, 8000), of_users(2, 400, 8000, 0.5))
    for view in (*DISTANCES, "psi"):
        interval = moved.interval(view)
        assert 0 < interval.lower < float(getattr(moved, view)) < interval.upper, view
        assert interval.method == "jackknife"
    assert not moved.interval("psi_pvalue").defined


def test_scores_of_users_have_errors_from_their_coarse_form() -> None:
    random = np.random.default_rng(4)
    states = []
    for shift in (0.0, 0.1):
        state: UserGroups[Any] = UserGroups(HistogramAUC())
        x = np.clip(random.beta(2, 3, 4000) + shift, 0, 1)
        state.update(random.integers(0, 500, 4000), labels=random.integers(0, 2, 4000), scores=x)
        states.append(state)
    result = drift(*states, label=1)
    assert result.reference_rows + result.rows < 8000
    assert result.deff == pytest.approx(1, abs=0.3)
    ks = result.interval("ks")
    assert 0 < ks.lower < float(result.ks) < ks.upper


def test_drift_changes_no_state_and_is_the_same_for_any_split() -> None:
    parts = [fed(Quantiles(), range(i, 3000, 7)) for i in range(7)]
    whole, current = fed(Quantiles(), range(3000)), fed(Quantiles(), range(500, 2500))
    before = whole.to_bytes(), current.to_bytes()
    result = drift(whole, current)
    assert (whole.to_bytes(), current.to_bytes()) == before
    merged = drift(sum(parts[1:], parts[0]), current)
    assert result == merged
    users = drift(of_users(1, 50, 500), of_users(2, 50, 500))
    assert copy.deepcopy(result) == pickle.loads(pickle.dumps(result)) == result
    assert pickle.loads(pickle.dumps(users)).interval() == users.interval()


@pytest.mark.parametrize(
    ("states", "options", "error", "message"),
    [
        ((Quantiles(), Quantiles(resolution=3)), {}, SettingsError,
         "drift(current): expected resolution=8, as in the reference, got 3; compare states on one "
         "grid: count both with the same settings"),
        ((Quantiles(range="probability"), HistogramAUC(grid="equal")), {}, SettingsError,
         "drift(current): expected grid='relative'"),
        ((ExactQuantiles(), Quantiles()), {}, SettingsError,
         "drift(current): expected an exact state, as the reference is, got a state on a grid"),
        ((ExactQuantiles(value_type="float32"), ExactQuantiles()), {}, SettingsError,
         "drift(current): expected float32=True"),
        ((ExactQuantiles(weight_unit="1/10"), ExactQuantiles()), {}, SettingsError, "weight_unit"),
        ((UserGroups(Quantiles()), Quantiles()), {}, SettingsError,
         "drift(current): expected UserGroups on both sides, or on neither, got UserGroups and Qu"),
        ((UserGroups(Quantiles()), UserGroups(Quantiles(), salt="x")), {}, SettingsError, "salt="),
        ((Ratio(), Quantiles()), {}, InputError, "drift(reference): expected a state of Quantiles"),
        ((Quantiles(), Panel({"x": Quantiles()})), {}, InputError, "pass the state of one metric"),
        ((Quantiles(), 5), {}, InputError, "got int"),
        ((Quantiles(), Quantiles()), {"label": 1}, InputError, "drift(label): expected none"),
        ((HistogramAUC(), HistogramAUC()), {"label": 2}, InputError, "drift(label): expected 0 or"),
        ((Quantiles(), Quantiles()), {"bins": 1}, InputError, "drift(bins): expected a whole num"),
    ],
)  # fmt: skip
def test_states_that_cannot_be_compared_are_refused(
    states: tuple[Any, Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refused:
        drift(*states, **options)
    assert message in str(refused.value)


def test_settings_of_a_drift_are_checked() -> None:
    result = drift(fed(Quantiles(), [1.0]), fed(Quantiles(), [2.0]))
    for call in (
        lambda: result.psi_with(-1),
        lambda: result.psi_with(math.inf),
        lambda: result.band(0),
        lambda: result.band(0.05, 0),
        lambda: result.band(0.05, True),
    ):
        with pytest.raises(InputError, match=r"Drift\.(psi_with|band)\("):
            call()


def test_a_value_with_half_of_the_reference_is_noted_if_its_bin_has_others() -> None:
    mostly, half = [0.0] * 50 + [1.0] * 950, [0.0] * 500 + [1.0] * 500
    note = "95 % of the reference have one value or bucket, and its bin has others too"
    for kind in (ExactQuantiles(), GRID):
        result = drift(fed(kind, mostly), fed(kind, half))
        assert result.bin_counts.tolist() == [[1000, 0], [1000, 0]]
        assert result.note.startswith(note) and result.note in str(result).replace("\n  ", " ")
        assert [doubts_of(result, view) for view in (None, "ks")] == [(result.note,), ()]
        text = str(drift(fed(kind, [1.0] * 9), fed(kind, half)))
        assert note.replace("95", "100") in text.replace("\n  ", " ")
        # The reference has one value in each bin, or no value has half of it.
        for reference, current in (
            (half, mostly),
            ([0.0] * 9 + [2.0], [0.0, 1.0]),
            ([0.0, 1.0, 2.0], half),
        ):
            for bins in (2, 10):
                result = drift(fed(kind, reference), fed(kind, current), bins=bins)
                assert "has others too" not in str(result), (reference, bins)
    empty = fed(GRID, [])
    assert drift(empty, empty).note == ""


def test_numbers_of_bins_and_labels_may_be_integers_of_numpy() -> None:
    states = [fed(ExactQuantiles(), range(n)) for n in (20, 30)]
    result = drift(*states, bins=np.int64(4))
    assert result.bin_counts.tolist() == drift(*states, bins=4).bin_counts.tolist()
    assert result.band(first=np.int64(5)) == result.band(first=5)
    scores = ExactAUC()
    scores.update([0, 1, 1], [0.1, 0.2, 0.9])
    assert drift(scores, scores, label=np.int8(1)).rows == 2
    for wrong in (True, 1.0, "1", np.bool_(1)):
        with pytest.raises(InputError, match=r"drift\(label\)"):
            drift(scores, scores, label=wrong)  # type: ignore[arg-type]
