"""Sums of squared placements equal those of plain Python integers, on hostile blocks too."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import ExactAUC, HistogramAUC, Paired, PerKey
from streammetrics.kernels.curves.key_placements import Piece, placements_of_keys
from streammetrics.kernels.exact.rounding import exact_dot
from streammetrics.kernels.inference import placement_sums
from streammetrics.kernels.inference.area_interval import Placements, placements
from streammetrics.kernels.inference.placement_sums import BLOCK

Buckets = Sequence[tuple[int, int]]  # negatives and positives


def plainly(buckets: Buckets) -> Placements:
    """By the definition."""
    total = sum(p for _, p in buckets)
    n_below = p_below = half_wins = of_positives = of_negatives = ties = 0
    for n, p in buckets:
        w, v = 2 * n_below + n, 2 * (total - p_below - p) + p
        half_wins += p * w
        of_positives += p * w * w
        of_negatives += n * v * v
        ties += n * p
        n_below, p_below = n_below + n, p_below + p
    return Placements(total, n_below, half_wins, of_positives, of_negatives, ties)


def of_buckets(buckets: Buckets) -> Placements:
    table = np.array(buckets, np.int64).reshape(-1, 2)
    return placements(table[:, 0], table[:, 1])


def keys_of(buckets: Buckets, *, counted: bool, kind: type[np.unsignedinteger]) -> Piece:
    """Sorted keys of the rows; the score of bucket i is i."""
    every = np.array(buckets, np.uint64).reshape(-1)  # two keys of each bucket
    words = np.flatnonzero(every).astype(np.uint64)
    counts = every[words.astype(np.intp)]
    if counted:
        return words.astype(kind), counts
    return np.repeat(words.astype(kind), counts.astype(np.int64)), None


@given(st.lists(st.tuples(*[st.sampled_from([0, 0, 1, 1, 2, 7, 1 << 20, 1 << 40])] * 2)))
def test_buckets_of_any_size(buckets: Buckets) -> None:
    assert of_buckets(buckets) == plainly(buckets)


@given(st.integers(2, 9), st.lists(st.tuples(*[st.integers(0, 3)] * 2), max_size=12))
def test_blocks_and_pieces_end_anywhere(block: int, buckets: Buckets) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement_sums, "BLOCK", block)
        patch.setattr("streammetrics.kernels.curves.key_placements.BLOCK", block)
        expected = plainly(buckets)
        assert of_buckets(buckets) == expected
        for counted in (False, True):
            words, counts = keys_of(buckets, counted=counted, kind=np.uint32)
            whole = [[(words, counts)]]
            assert placements_of_keys(whole, expected.positives) == expected
            cut = int(words.searchsorted(2 * (len(buckets) // 2)))  # two scores, two planes
            pieces: list[Piece] = [
                (words[span], None if counts is None else counts[span])
                for span in (slice(0, cut), slice(cut, None))
            ]
            for planes in ([pieces], [[pieces[0]], [pieces[1]]], [[], pieces, []]):
                assert placements_of_keys(planes, expected.positives) == expected


@pytest.mark.parametrize("n", [BLOCK + 1, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_many_scores_with_ties_of_every_size(n: int) -> None:
    random = np.random.default_rng(n)
    table = np.zeros((n, 2), np.int64)
    table[np.arange(n), random.integers(0, 2, n)] = 1
    tied = random.choice(n, n // 5, replace=False)
    table[tied] = random.integers(0, 4, (len(tied), 2))
    wide = table.copy()
    wide[n // 2] = 3 * BLOCK, 2 * BLOCK  # of one score, over several blocks
    for buckets in (table, wide, table[:, ::-1], table * [1, 0], table * [0, 1]):
        expected = plainly([(int(a), int(b)) for a, b in buckets])
        assert placements(buckets[:, 0], buckets[:, 1]) == expected
        for kind, counted in product((np.uint32, np.uint64), (False, True)):
            keys = keys_of(buckets.tolist(), counted=counted, kind=kind)
            assert placements_of_keys([[keys]], expected.positives) == expected


def test_counts_near_the_end_of_int64() -> None:
    largest = (1 << 63) - 1
    for buckets in (
        [(largest, 0), (0, largest)],
        [(0, largest), (largest, 0)],
        [(largest, largest)],
        [(1, 1), (largest - 1, 0), (0, largest - 3), (0, 2)],
        [(1 << 61, 1 << 61)] * 3,
        [(1 << 40, (1 << 40) - 1)] * 5_000,
        [(1 << 62, 0), *[(1, 1)] * 100, (0, 1 << 62)],
        [(0, 0)] * 3,
        [],
    ):
        assert of_buckets(buckets) == plainly(buckets)


@given(
    st.lists(
        st.tuples(*[st.integers(0, (1 << 63) - 1) | st.integers(0, 9)] * 3), min_size=0, max_size=9
    )
)
def test_products_of_any_size_are_summed_exactly(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    for k in (1, 2, 3):
        expected = 0
        for row in rows:
            product = 1
            for factor in row[:k]:
                product *= factor
            expected += product
        assert exact_dot(*columns[:k]) == expected
    assert exact_dot(columns[0], columns[0]) == sum(row[0] ** 2 for row in rows)


def curves() -> Iterator[tuple[str, ExactAUC]]:
    """States of both types of scores, sorted and not, with keys that are counted or not."""
    random = np.random.default_rng(3)
    n = 70_000
    labels = random.random(n) < 0.3
    wide = random.normal(labels, 1.0)
    for name, scores in {
        "float64": wide,
        "float32": wide.astype(np.float32),
        "with ties": np.round(wide, 3),
        "few": np.round(wide, 1),
        "one score": np.zeros(n),
        "signs": np.where(labels, 1.0, -1.0) * np.abs(wide),
        "infinite": np.where(random.random(n) < 0.1, -np.inf, wide),
    }.items():
        whole, pieces = ExactAUC(), ExactAUC()
        whole.update(labels, scores)
        for start in range(0, n, n // 3):
            pieces.update(labels[start : start + n // 3], scores[start : start + n // 3])
            pieces.compute()  # so that each piece becomes a run of its own
        yield name, whole
        yield f"{name}, in pieces", pieces
        yield f"{name}, merged", whole + pieces
        yield f"{name}, read", ExactAUC.from_bytes(pieces.to_bytes())
        small = ExactAUC()
        small.update(labels[:9], scores[:9])
        grown = whole.copy()
        grown.compute()
        grown.merge(small)
        yield f"{name}, grown", grown


def test_the_interval_of_an_exact_area_needs_no_points() -> None:
    sums: dict[bytes, Placements] = {}  # some of the states are equal
    for name, state in curves():
        result, points = state.compute(), state.compute()
        assert points.counts.shape[0] == 2
        expected = points.interval("auc")
        assert result.interval("auc") == expected, name
        assert result.interval("gini") == points.interval("gini"), name
        assert "_held" not in result.__dict__, name
        table = points.counts.T
        if table.tobytes() not in sums:
            sums[table.tobytes()] = plainly([(int(a), int(b)) for a, b in table])
        assert result._placements == sums[table.tobytes()], name


def test_the_interval_is_made_once_for_all_that_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, state = 0, ExactAUC()

    def counting(total: int) -> placement_sums.PlacementSums:
        nonlocal calls
        calls += 1
        return placement_sums.PlacementSums(total)

    for module in ("inference.area_interval", "curves.key_placements"):
        monkeypatch.setattr(f"streammetrics.kernels.{module}.PlacementSums", counting)
    random = np.random.default_rng(1)
    state.update(random.integers(0, 2, 5_000), random.random(5_000))
    result = state.compute()
    assert "95 % CI" in str(result) and result.to_frame("pandas")["ci_lower"][0] > 0
    assert result._repr_html_() and result.interval("gini").defined and result.to_dict()
    assert calls == 1


def test_an_interval_takes_little_memory_however_many_rows_there_are() -> None:
    random = np.random.default_rng(1)
    n = 400_000
    state = ExactAUC()
    for _ in range(3):
        state.update(random.integers(0, 2, n), random.random(n))
        state.compute()
    result = state.compute()
    tracemalloc.start()
    try:
        assert result.interval("auc").defined
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_paired_difference_of_many_rows_has_its_interval_in_integers_of_any_size() -> None:
    random = np.random.default_rng(2)
    n = 50_000
    labels, scores = random.integers(0, 2, n), random.random((2, n))
    paired = Paired(ExactAUC())
    paired.update(labels=labels, scores_a=scores[0], scores_b=scores[1])
    interval = paired.compute().interval("auc")
    positive, negative = labels == 1, labels == 0
    of_rows = []
    for model_scores in scores:
        below = (
            np.sort(model_scores[negative]).searchsorted(model_scores[positive]) / negative.sum()
        )
        above = (
            1
            - np.sort(model_scores[positive]).searchsorted(model_scores[negative]) / positive.sum()
        )
        of_rows.append((below, above))
    parts = [b - a for a, b in zip(*of_rows, strict=True)]
    variance = sum(part.var(ddof=1) / len(part) for part in parts)
    assert interval.se == pytest.approx(variance**0.5, rel=1e-9)


def test_keys_and_histograms_have_the_intervals_of_their_rows() -> None:
    random = np.random.default_rng(4)
    labels, scores = random.integers(0, 2, 3_000), random.random(3_000)
    keyed, plain = PerKey(ExactAUC()), ExactAUC()
    keyed.update(["k"] * 3_000, labels=labels, scores=scores)
    plain.update(labels, scores)
    assert keyed.compute()["k"].interval("auc") == plain.compute().interval("auc")
    buckets = HistogramAUC()
    buckets.update(labels, scores)
    table = [(int(a), int(b)) for a, b in buckets.compute().counts.T]
    assert buckets.compute()._placements == plainly(table)
