"""Merges, ids, panels, lists and sets: what is done for many at once, against one by one."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    CatalogMetrics,
    DictionaryColumn,
    GroupedAUC,
    GroupedScores,
    IntraListSimilarity,
    ItemExposure,
    JoinRows,
    Panel,
    PerKey,
    RankingMetrics,
    Units,
    UserGroups,
    hash_ids,
    load,
)
from streammetrics.core.multiset import bag as bag_module
from streammetrics.core.multiset import sorted_run, tiers
from streammetrics.core.multiset.tiers import BUFFERED
from streammetrics.core.parts import record_set
from streammetrics.engines import merged
from streammetrics.testing.laws import exact_text
from tests.fast_paths.drawn import METRICS, REAL, STATES, UNIT, simple
from tests.id_pools import EVERY

every_metric = pytest.mark.parametrize("name", list(STATES))


def states_of(metric: Accumulator, draw: Any, sizes: list[int], seed: int) -> list[Accumulator]:
    rng = np.random.default_rng(seed)
    states = []
    for size in sizes:
        state = metric.empty()
        state.update(**draw(size, rng))
        states.append(state)
    return states


@every_metric
def test_states_read_together_from_bytes_have_the_sum_of_states_read_alone(name: str) -> None:
    metric, draw = METRICS[name]
    for seed, sizes in enumerate(
        ([40] * 9, [1] * 5, [300, 2, 300, 2, 2, 2, 70_000, 300], [255] * 7)
    ):
        states = states_of(metric, draw, sizes, seed)
        shards = [state.to_file_bytes() for state in reversed(states)]
        assert merged(shards).to_bytes() == reduce(add, states).to_bytes()


@every_metric
def test_merges_into_one_state_or_a_loaded_one_are_those_of_plain_sums(name: str) -> None:
    metric, draw = METRICS[name]
    for seed in range(2):
        random, rng = Random(seed), np.random.default_rng(seed)
        sizes = [random.choice((1, 3, 200, 3_000)) for _ in range(6)]
        drawn = [draw(size, rng) for size in sizes]
        joined = {key: np.concatenate([batch[key] for batch in drawn]) for key in drawn[0]}
        expected = simple(metric, joined, 500).to_bytes()
        states = []
        for columns in drawn:
            state = metric.empty()
            state.update(**columns)
            states.append(load(state.to_bytes()) if random.random() < 0.5 else state)
        into = states.pop(random.randrange(len(states)))
        random.shuffle(states)
        into.merge(states[:2])
        into.merge(reduce(add, states[2:4]))
        last = states[4]
        last.merge(into)
        assert last.to_bytes() == expected


@pytest.mark.parametrize("seed", range(2))
def test_a_panel_counts_what_each_metric_counts_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["BinaryConfusion", "HistogramAUC", "HistogramAUC equal", "ExactAUC", "Calibration"]
    parts = {name.replace(" ", "_"): METRICS[name][0] for name in names}
    parts |= {"gauc": GroupedAUC(), "regression": METRICS["Regression"][0]}
    panel = Panel(parts)
    states = {name: metric.empty() for name, metric in parts.items()}
    for n in (1, 5, 127, 128, 129, 8_193, 3, 16_385, 1):
        rows = {
            "labels": rng.integers(0, 2, n).astype(rng.choice(["i8", "u1", "?", "f4", ">i4"])),
            "scores": rng.choice(UNIT, n).astype(rng.choice(["f8", "f4", ">f8"])),
            "groups": rng.choice(EVERY, n),
        }
        if rng.random() < 0.3:
            rows = {name: np.repeat(column, 2)[::2] for name, column in rows.items()}
        panel.update(**rows)
        for name, state in states.items():
            takes = {key: rows[key].tolist() for key in state.arguments() if key in rows}
            for start in range(0, n, 3_000):
                batch = {key: column[start : start + 3_000] for key, column in takes.items()}
                if rows["scores"].dtype.itemsize == 4 and name == "gauc":
                    batch["scores"] = rows["scores"][start : start + 3_000].astype("f4")
                state._feed(state.check(**batch), None)
    for name, state in states.items():
        assert panel.state(name).to_bytes() == state.to_bytes(), name


@pytest.mark.parametrize("form", ["few names", "more names than rows", "repeated codes"])
@pytest.mark.parametrize("ids", ["exact", "hashed"])
def test_ids_that_are_texts_are_those_of_a_row_alone(ids: str, form: str) -> None:
    rng = np.random.default_rng(11)
    names = ["", "é", "\ud800", "a\0b", "a", "a" * 128, "a" * 129, "0", *map(str, range(60))]
    whole, by_row = GroupedAUC(ids=ids), GroupedAUC(ids=ids)
    for n in (1, 3, 70, 120):
        used = rng.integers(0, len(names), n)
        values = (
            tuple(names) if form != "few names" else tuple(dict.fromkeys(names[i] for i in used))
        )
        codes = np.array([values.index(names[i]) for i in used])
        labels, scores = rng.integers(0, 2, n), rng.random(n)
        whole.update(labels, scores, groups=DictionaryColumn(codes, values))
        if ids == "hashed":
            whole.update(labels, scores, groups=hash_ids([names[i] for i in used]))
        for _ in range(1 + (ids == "hashed")):
            for i in range(n):
                row = by_row.check([labels[i]], [scores[i]], groups=[names[used[i]]])
                by_row._feed(row, None)
        whole.compute()  # so that none wait for others, with which there would be more rows
    assert whole.to_bytes() == by_row.to_bytes()


LISTS: list[tuple[Accumulator, str]] = [
    (
        RankingMetrics(
            ("NDCG@3", "NDCG", "AP", "MRR", "HR@2", "R@5", "RPrec", "RBP(p=0.8)"),
            complete_lists=True,
        ),
        "scored",
    ),
    (RankingMetrics(("NDCG@3", "AP"), empty="zero"), "ranked"),
    (CatalogMetrics(40, 3), "items"),
    (ItemExposure(40, 3), "items"),
    (IntraListSimilarity(np.random.default_rng(5).normal(size=(40, 3)), k=6), "items"),
]


@pytest.mark.parametrize(("metric", "kind"), LISTS, ids=str)
def test_lists_together_are_lists_one_by_one(metric: Accumulator, kind: str) -> None:
    rng = np.random.default_rng(12)
    sizes = [0, 1, 2, 63, 64, 65, 127, 128, 129, 3, 0, 1, 700, *rng.integers(0, 40, 100).tolist()]
    if kind == "items":
        lists = [rng.permutation(40)[: min(size, 40)].tolist() for size in sizes]
        rows = [{"lists": [items]} for items in lists]
        together: dict[str, Any] = {"lists": lists}
    else:
        grades = [rng.integers(0, 3, size) for size in sizes]
        scores = [rng.choice(REAL, size) for size in sizes]
        columns = {"labels": grades, "scores": scores}
        if kind == "ranked":
            del columns["scores"]
        rows = [
            flat({name: [values[i]] for name, values in columns.items()}) for i in range(len(sizes))
        ]
        together = flat(columns)
    whole, direct, small = metric.empty(), metric.empty(), metric.empty()
    whole.update(**together)
    for row in rows:
        direct._feed(direct.check(**row), None)
        small.update(**row)
    assert whole.to_bytes() == direct.to_bytes() == small.to_bytes()
    many = metric.empty()
    copies = (
        flat({name: values * 40 for name, values in columns.items()}) if kind != "items" else {}
    )
    many.update(**copies or {"lists": lists * 40})
    assert many.to_bytes() == reduce(add, [direct] * 40).to_bytes()


@pytest.mark.parametrize("metric", [CatalogMetrics(40, 3), ItemExposure(40, 3)], ids=str)
def test_many_lists_of_one_length_are_lists_one_by_one(metric: Accumulator) -> None:
    lists = np.argsort(np.random.default_rng(13).random((30, 40)), axis=1)[:, :3]
    by_hand, whole, by_key = metric.empty(), metric.empty(), PerKey(metric)
    for items in lists.tolist() * 200:
        by_hand.update([items])
    whole.update(np.tile(lists, (200, 1)))
    by_key.update(["a", "b"] * 3_000, lists=np.repeat(np.tile(lists, (100, 1)), 2, axis=0))
    assert whole.to_bytes() == by_hand.to_bytes()
    for key in "ab":
        assert (by_key.state(key) + by_key.state(key)).to_bytes() == whole.to_bytes()


def flat(columns: dict[str, list[np.ndarray]]) -> dict[str, Any]:
    """Lists end to end, and where each begins."""
    sizes = [len(array) for array in next(iter(columns.values()))]
    joined = {name: np.concatenate(lists) for name, lists in columns.items()}
    return {**joined, "offsets": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)}


@pytest.mark.parametrize("name", ["ExactAUC", "ExactAUC float64", "GroupedAUC", "GroupedScores"])
def test_sorted_runs_of_any_size_hold_the_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, constant, size in (
        (tiers, "BUFFERED", 50),
        (tiers, "FAN", 4),
        (sorted_run, "_RANGE", 13),
        (bag_module, "_WAIT", 20),
        (bag_module, "_PIECE", 37),
        (bag_module, "_FEW", 64),
    ):
        monkeypatch.setattr(module, constant, size)
    metric, draw = METRICS[name]
    rng = np.random.default_rng(13)
    columns = draw(3_000, rng)
    state = metric.empty()
    cuts = [0, *np.sort(rng.integers(0, 3_000, 60)).tolist(), 3_000]
    for start, end in pairwise(cuts):
        if end > start:
            state.update(**{key: column[start:end] for key, column in columns.items()})
        if rng.random() < 0.2:
            state = load(state.to_bytes()) if rng.random() < 0.5 else state + metric.empty()
    monkeypatch.undo()
    assert tiers.BUFFERED == BUFFERED
    assert state.to_bytes() == simple(metric, columns, 3_000).to_bytes()


def test_records_and_units_that_wait_are_those_that_came_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(14)
    n = 400
    kinds = rng.choice(["impression", "click"], n)
    ids, times = rng.choice(EVERY, n), rng.integers(-5, 5, n) * 1_000
    empty = JoinRows({"scores": "float64"}, {"click": "once"}, label_window_ms=1_000)
    units = Units(), Units()
    rows = {"ids": ids, "times_ms": times, "scores": rng.choice(UNIT, n)}
    whole = empty.empty()
    whole.update(kinds.tolist(), **rows)
    monkeypatch.setattr(record_set, "_FEW", 16)
    monkeypatch.setattr(record_set, "_BATCHES", 4)
    parts = empty.empty()
    for positions in np.array_split(
        rng.permutation(np.concatenate([np.arange(n), np.arange(50)])), 70
    ):
        parts.update(
            kinds[positions].tolist(), **{name: column[positions] for name, column in rows.items()}
        )
        units[0].update(ids[positions])
    for unit in set(ids.tolist()):
        units[1]._feed(units[1].check([unit]), None)
    assert parts.to_bytes() == whole.to_bytes()
    assert units[0].to_bytes() == units[1].to_bytes()


@pytest.mark.parametrize(
    "name",
    ["HistogramAUC", "GroupedAUC", "Ratio of clicks", "Regression"],
)
def test_groups_of_users_at_once_are_those_of_a_row_alone(name: str) -> None:
    metric, draw = METRICS[name]
    rng = np.random.default_rng(15)
    state, by_row = UserGroups(metric, buckets=8), UserGroups(metric, buckets=8)
    columns = {**draw(300, rng), next(iter(state.arguments())): rng.choice(EVERY, 300)}
    for start, end in ((0, 1), (1, 130), (130, 300)):
        state.update(**{key: column[start:end] for key, column in columns.items()})
    for i in range(300):
        row = by_row.check(**{key: column[i : i + 1].tolist() for key, column in columns.items()})
        by_row._feed(row, None)
    assert state.to_bytes() == by_row.to_bytes()


def test_lists_of_ids_of_every_kind_are_those_of_their_texts() -> None:
    rng = np.random.default_rng(16)
    lists, items = rng.choice(EVERY, 900), np.arange(900) << 32
    labels, scores = rng.integers(0, 3, 900), rng.choice(UNIT, 900)
    integer, exact = GroupedScores(("NDCG@3", "AP")), GroupedScores(("NDCG@3", "AP"), ids="exact")
    integer.update(labels, scores, groups=lists, items=items)
    exact.update(labels, scores, groups=[str(list_id) for list_id in lists.tolist()], items=items)
    text = exact_text(exact.compute()).replace("ids='exact'", "ids='integer'")
    assert exact_text(integer.compute()) == text
