"""Reads of a growing exact state, which count what is new, against all pairs of its rows."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from streammetrics import ExactAUC, GroupedAUC, InputError, PerKey, load
from streammetrics.core.multiset import bag, group_sums, sorted_run, tiers
from streammetrics.core.multiset.tiers import Summed
from streammetrics.kernels.curves import counted_ranks, pairs_between

Columns = dict[str, np.ndarray]
SCORES = {
    "different": lambda n, rng: rng.standard_normal(n),
    "as float32": lambda n, rng: rng.random(n, np.float32),
    "some tied": lambda n, rng: rng.integers(-3_000, 3_000, n) / 1_024,
    "many tied": lambda n, rng: rng.integers(-9, 10, n) / 8,
    "extreme": lambda n, rng: np.where(
        rng.random(n) < 0.2,
        rng.choice([-np.inf, -1e300, -0.0, 0.0, 1e-300, 3.0, np.inf], n),
        rng.standard_normal(n) * 1e300,
    ),
    "extreme as float32": lambda n, rng: np.where(
        rng.random(n) < 0.2,
        rng.choice(np.array([-np.inf, -1e-45, -0.0, 0.0, 1e-45, np.inf], np.float32), n),
        rng.standard_normal(n).astype(np.float32),
    ),
}


def drawn(n: int, scores: str, rng: np.random.Generator) -> Columns:
    labels = (rng.random(n) < rng.choice([0.0, 0.1, 0.5, 1.0], p=[0.1, 0.4, 0.4, 0.1])).astype(int)
    groups = rng.choice([-5, 0, 1, 2, 2**40, int(rng.integers(100))], n)
    return {"labels": labels, "scores": SCORES[scores](n, rng), "groups": groups}


def area(labels: np.ndarray, scores: np.ndarray) -> Fraction | None:
    """From all keys in order: Σ ranks of positives, where ties have their mean rank."""
    order = np.sort(scores)
    twice = np.searchsorted(order, scores) + np.searchsorted(order, scores, "right") + 1
    p, n = int(labels.sum()), int((1 - labels).sum())
    if not p * n:
        return None
    return Fraction(int(twice[labels == 1].sum()) - p * (p + 1), 2 * p * n)


def expected(rows: Columns, *, grouped: bool) -> float:
    whole = [np.ones(len(rows["labels"]), bool)]
    masks = [rows["groups"] == g for g in np.unique(rows["groups"])] if grouped else whole
    areas = [(area(rows["labels"][mask], rows["scores"][mask]), int(mask.sum())) for mask in masks]
    defined_areas = [(value, size) for value, size in areas if value is not None]
    rows_kept = sum(size for _, size in defined_areas)
    return (
        float(sum(v * size for v, size in defined_areas) / rows_kept)
        if defined_areas
        else float("nan")
    )


def joined(columns: Columns, new_columns: Columns) -> Columns:
    return {name: np.concatenate([columns[name], new_columns[name]]) for name in columns}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every size so small that few rows reach it, and how often a read counted only new rows."""
    for module, name, size in (
        *((tiers, "BUFFERED", 50), (tiers, "FAN", 5), (tiers, "_FEW", 2), (tiers, "_LIKE", 2)),
        *((sorted_run, "_RANGE", 40), (sorted_run, "_CHUNK", 7), (bag, "_WAIT", 20)),
        *((pairs_between, "_PIECE", 16), (group_sums, "_SHARE", 1), (counted_ranks, "_CHUNK", 64)),
    ):
        monkeypatch.setattr(module, name, size)
    counts, grown = [0], Summed.grown

    def spy(self: Summed, *given: Any) -> Summed:
        counts[0] += 1
        return grown(self, *given)

    monkeypatch.setattr(Summed, "grown", spy)
    return counts


def read(metric: Any, *, grouped: bool) -> float:
    result = metric.compute()
    return result.gauc if grouped else result.auc


@pytest.mark.parametrize(
    ("grouped", "scores", "later_scores"),
    [
        (False, "as float32", "different"),
        (True, "some tied", ""),
        *(
            (grouped, scores, "")
            for grouped, scores in product([False, True], SCORES)
            if (grouped, scores) != (True, "some tied")
        ),
    ],
)
def test_reads_while_a_state_grows_are_those_of_all_its_rows(
    grouped: bool, scores: str, later_scores: str, small: list[int]
) -> None:
    rng = np.random.default_rng([len(scores), grouped, len(later_scores)])
    for doubled, weighted in ((False, False), (True, False), (False, True)):
        make: Any = GroupedAUC if grouped else ExactAUC
        metric: Any = make()
        simple, rows = make(), drawn(0, scores, rng)
        for step in range(30):
            kind = later_scores if later_scores and step > 15 else scores
            new = drawn(int(rng.choice([0, 1, 3, 20, 120])), kind, rng)
            batch = new if grouped else {k: new[k] for k in ("labels", "scores")}
            action = rng.integers(10)
            if action < 6:
                if weighted and step > 12 and action < 2:
                    times = rng.integers(0, 4, len(new["labels"]))
                    batch = {**batch, "weights": times}
                    new = {name: np.repeat(column, times) for name, column in new.items()}
                metric.update(**batch)
                simple.update(**batch)
            elif action < 8:
                simple.update(**batch)
                part = make()
                part.update(**batch)
                metric.merge(part)
                assert read(part, grouped=grouped) == pytest.approx(
                    expected(new, grouped=grouped), rel=0, abs=0, nan_ok=True
                )
            elif action == 8:
                new = {name: column[:0] for name, column in new.items()}
                duplicates = [
                    metric.copy(),
                    pickle.loads(pickle.dumps(metric)),
                    load(metric.to_bytes()),
                ]
                metric = duplicates[rng.integers(3)]
            elif doubled:
                new, doubled = rows, False
                metric += metric.copy() if rng.random() < 0.5 else metric
                simple += simple
            else:
                wrong = {**batch, "scores": np.append(batch["scores"][1:], np.nan)}
                with pytest.raises(InputError, match=r"NaN|of equal length"):
                    metric.update(**wrong)
                new = {name: column[:0] for name, column in new.items()}
            rows = joined(rows, new)
            if rng.random() < 0.7:
                data = metric.to_bytes() if rng.random() < 0.3 else None
                bystander = metric.copy()
                value = read(metric, grouped=grouped)
                truth = expected(rows, grouped=grouped)
                assert metric.compute().positives == rows["labels"].sum()
                if grouped:
                    result, loaded = metric.compute(), load(metric.to_bytes()).compute()
                    assert result.interval() == loaded.interval()
                    assert result._area == loaded._area and result.groups_kept == loaded.groups_kept
                    assert (result.groups, result.rows_kept) == (loaded.groups, loaded.rows_kept)
                assert value == truth or (np.isnan(value) and np.isnan(truth))
                assert np.array_equal(read(bystander, grouped=grouped), value, equal_nan=True)
                assert data is None or metric.to_bytes() == data
        assert metric.to_bytes() == simple.to_bytes()
    # In groups, equal keys are counted if most repeat, and float64 have keys of two words.
    whole = grouped and scores in ("many tied", "different", "extreme")
    assert small[0] > 2 or whole


def test_a_read_of_a_result_is_that_of_its_time(small: list[int]) -> None:
    rng = np.random.default_rng(3)
    metric = ExactAUC()
    metric.update(rng.integers(0, 2, 400), rng.random(400))
    metric.compute()
    metric.update([0, 1, 1], [0.25, 0.5, 0.75])
    before = metric.compute()
    assert small == [1]
    loaded = load(metric.to_bytes())
    metric.update([0] * 50, np.linspace(0, 1, 50))
    metric.compute()
    assert before.ap == loaded.compute().ap
    assert before.scores.tolist() == loaded.compute().scores.tolist()


def test_a_state_that_was_read_and_is_merged_with_itself_has_its_rows_twice() -> None:
    rng = np.random.default_rng(4)
    metric = ExactAUC()
    metric.update(rng.integers(0, 2, 100), rng.random(100))
    once = metric.compute()
    metric.merge(metric.copy())
    twice = metric.compute()
    assert (twice.auc, twice.positives) == (once.auc, 2 * (once.positives or 0))


@pytest.mark.parametrize("heavy", [0, 300])
def test_rows_whose_pairs_exceed_an_int64_are_read_whole(heavy: int, small: list[int]) -> None:
    rng, metric, scores = np.random.default_rng(6), ExactAUC(), np.arange(300) / 300
    labels = rng.integers(0, 2, 300)
    weights = np.where(np.arange(300) < heavy, 1 << 40, 3)
    metric.update(labels, scores, weights=weights)
    metric.compute()
    assert metric.compute().auc == float(area(np.repeat(labels, 3), np.repeat(scores, 3)) or 0)
    metric.update([0, 1], [0.25, 0.5], weights=[1 << 40, 1 << 40])
    assert metric.compute() == load(metric.to_bytes()).compute()
    assert small == [0]


@pytest.mark.parametrize("weight", ["positives", "uniform"])
@pytest.mark.parametrize("grid", [None, "equal"])
def test_the_means_of_groups_that_change_are_those_of_all_groups_together(
    weight: str, grid: str | None, small: list[int]
) -> None:
    rng = np.random.default_rng(5)
    metric = GroupedAUC(weight=weight, grid=grid, score_type="float32")
    keyed = PerKey(metric.empty())  # which reads all groups of all keys together
    for n in (400, 30, 0, 7, 90, 1):
        columns = {
            "labels": rng.integers(0, 2, n),
            "scores": rng.integers(0, 40, n) / 64,
            "groups": rng.integers(0, 200, n),
        }
        metric.update(**columns)
        keyed.update(np.repeat("a", n), **columns)
        keyed.update(["b"], labels=[1], scores=[0.5], groups=[n])
        result, together = metric.compute(), keyed.compute()["a"]
        assert result.to_dict() == together.to_dict()
        assert result.interval() == together.interval()
    assert small[0] > 1 or grid
