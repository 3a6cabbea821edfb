"""Integer ids of every kind, through updates, merges of loaded shards and bytes.

The simple way: each id as its text, kept exactly, in one update. Its state gives the same result.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from streammetrics import Accumulator, GroupedAUC, GroupedScores, load
from streammetrics.testing.laws import exact_text
from tests.id_pools import EVERY, POOLS

SIZES = (3, 30, 400)
any_pool = pytest.mark.parametrize("pool", ["0 alone", "one bit", "all of int64", "every"])
any_metric = pytest.mark.parametrize(
    ("metric", "column"),
    [(GroupedAUC, "groups"), (lambda **ids: GroupedScores(("NDCG@3", "AP"), **ids), "groups")],
    ids=["GroupedAUC", "GroupedScores"],
)


def test_the_user_0_stays_one_through_a_merge_of_a_loaded_state() -> None:
    a, b = GroupedAUC(), GroupedAUC()
    a.update([0, 1], [0.5, 0.6], groups=[0, 68260])
    b.update([1], [0.9], groups=[0])
    merged = load(a.to_bytes())
    merged.merge(b)
    result = merged.compute()
    assert (result.groups, result.gauc) == (2, 1.0)
    assert load(merged.to_bytes()) == merged


@any_pool
@any_metric
def test_shards_loaded_and_merged_in_any_tree_keep_each_id_one(
    metric: object, column: str, pool: str
) -> None:
    ids = EVERY if pool == "every" else POOLS[pool]
    whole = metric()  # type: ignore[operator]
    for seed, n in enumerate(SIZES):
        random, rng = Random(f"{pool} {seed}"), np.random.default_rng(seed)
        labels, scores, users = rng.integers(0, 2, n), rng.random(n), rng.choice(ids, n)
        if seed % 2:  # a user of many rows, who is in every shard
            users[rng.random(n) < 0.1] = 0
        shards = np.array_split(rng.permutation(n), random.randint(1, 7))
        states = [fed(whole, labels, scores, users, column, shard, random) for shard in shards]
        while len(states) > 1:
            a, b = (states.pop(random.randrange(len(states))) for _ in range(2))
            a, b = (load(s.to_bytes()) if random.random() < 0.7 else s for s in (a, b))
            states.append(a + b)
            if random.random() < 0.5:
                states[-1] = load(states[-1].to_bytes())
        (merged,) = states
        merged.update(labels, scores, **{column: users})  # what is known is found again
        exact = metric(ids="exact")  # type: ignore[operator]
        twice = [str(user) for user in users.tolist()] * 2
        exact.update([*labels, *labels], [*scores, *scores], **{column: twice})
        assert load(merged.to_bytes()) == merged
        text = exact_text(exact.compute()).replace("ids='exact'", "ids='integer'")
        assert exact_text(merged.compute()) == text


def fed(
    metric: Accumulator,
    labels: np.ndarray,
    scores: np.ndarray,
    users: np.ndarray,
    column: str,
    indices: np.ndarray,
    random: Random,
) -> Accumulator:
    """The state after these rows, which grew by several updates and loads."""
    state = metric.empty()
    for part in np.array_split(indices, random.randint(1, 5)):
        state.update(labels[part], scores[part], **{column: users[part]})
        if random.random() < 0.3:
            state = load(state.to_bytes())
        elif random.random() < 0.3:
            state.compute()
    return state
