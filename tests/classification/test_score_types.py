"""The default score_type "auto" gives the results of "float64", at the price of float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    ExactAUC,
    GroupedAUC,
    GroupedScores,
    InputError,
    MulticlassAUC,
    Paired,
    PerKey,
    SettingsError,
    StateError,
    UserGroups,
    Windows,
    load,
)
from streammetrics.combine.sealed import Sealing, seal
from streammetrics.core.codec import STATE_MAGIC, frame, opened

Columns = dict[str, Any]
NARROW: Final = (  # as float32 and as float64; the last two are its least normal and subnormal
    *(np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 3.0, float(np.float32(0.1)), 2.0**-126, -(2.0**-149)),
)
WIDE: Final = (0.1, -0.1, 1e39, -1e300, 5e-324, 2.0**-150, 1 + 2.0**-52, 2.0**53 - 1)


def columns(n: int, narrow: bool, rng: np.random.Generator) -> Columns:
    scores = rng.choice(np.array(NARROW if narrow else NARROW + WIDE), n)
    if narrow and rng.random() < 0.5:
        scores = scores.astype(np.float32)
    labels = rng.integers(0, 2, n)
    return {"labels": labels, "scores": scores, "groups": rng.integers(0, 9, n)}


def plain(rows: Columns) -> Columns:
    return {"labels": rows["labels"], "scores": rows["scores"]}


def of_classes(rows: Columns) -> Columns:
    scores = rows["scores"]
    return {"labels": rows["labels"], "scores": np.stack([scores, -scores, scores[::-1]], axis=1)}


def of_models(rows: Columns) -> Columns:
    return {"labels": rows["labels"], "scores_a": rows["scores"], "scores_b": rows["scores"][::-1]}


Metric = tuple[Callable[[str], Accumulator], Callable[[Columns], Columns]]
METRICS: Final[dict[str, Metric]] = {
    "ExactAUC": (lambda kind: ExactAUC(kind), plain),
    "GroupedAUC": (lambda kind: GroupedAUC(score_type=kind), dict),
    "GroupedScores": (lambda kind: GroupedScores(["NDCG@3", "MRR"], score_type=kind), dict),
    "MulticlassAUC": (lambda kind: MulticlassAUC(3, exact=True, score_type=kind), of_classes),
    "Paired": (lambda kind: Paired(ExactAUC(kind)), of_models),
    "UserGroups": (lambda kind: UserGroups(ExactAUC(kind), buckets=4), dict),
    "PerKey": (
        lambda kind: PerKey(GroupedAUC(score_type=kind)),
        lambda rows: {**rows, "keys": rows["groups"] % 3},
    ),
    "Windows": (
        lambda kind: Windows(ExactAUC(kind), size_s=1),
        lambda rows: {**plain(rows), "times_ms": rows["groups"] * 500},
    ),
}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("narrow", [True, False])
def test_it_is_float64_however_narrow_and_wide_rows_are_split_and_merged(
    name: str, narrow: bool
) -> None:
    make, select = METRICS[name]
    rng = np.random.default_rng(len(name) + narrow)
    batches = [columns(n, narrow or n % 2 == 0, rng) for n in (0, 1, 50, 30, 7, 17_000)]
    whole, oracle = make("auto"), make("float64")
    for rows in batches:
        whole.update(**select(rows))
        oracle.update(**select(rows))
    assert repr(whole.compute().to_dict()) == repr(oracle.compute().to_dict())  # type: ignore[attr-defined]
    shards = []
    for rows in batches:
        shard = make("auto")
        shard.update(**select(rows))
        _ = rng.random() < 0.5 and shard.compute()
        shards.append(load(shard.to_bytes()) if rng.random() < 0.5 else shard)
    total = sum(shards[i] for i in rng.permutation(len(shards)))
    assert total.to_bytes() == whole.to_bytes() == load(whole.to_bytes()).to_bytes()
    if name == "GroupedAUC":
        sealing = Sealing("user", 1, "xxhash64", "today")
        result, expected = (seal(m, sealing, bucket=0).compute() for m in (whole, oracle))
        assert repr(result.to_dict()) == repr(expected.to_dict())


def test_each_key_of_wide_states_has_the_bytes_of_its_own_values() -> None:
    keyed = PerKey(ExactAUC())
    keyed.update(labels=[0, 1, 0, 1], scores=[0.5, 0.25, 0.1, 0.2], keys=["a", "a", "b", "b"])
    of_a, of_b = ExactAUC(), ExactAUC()
    of_a.update([0, 1], np.array([0.5, 0.25], np.float32))
    of_b.update([0, 1], [0.1, 0.2])
    assert (keyed.state("a"), keyed.state("b")) == (of_a, of_b)


@pytest.mark.parametrize("name", ["ExactAUC", "GroupedAUC"])
def test_float32_takes_half_the_memory_and_bytes_until_a_score_is_none(name: str) -> None:
    make, select = METRICS[name]
    rng = np.random.default_rng(3)
    n = 60_000
    rows = {"labels": rng.integers(0, 2, n), "groups": rng.integers(0, 99, n)}
    rows["scores"] = rng.random(n, np.float32)
    sizes = {}
    for kind in ("auto", "float32", "float64"):
        metric = make(kind)
        metric.update(**select(rows))
        metric.compute()
        sizes[kind] = metric.nbytes, len(metric.to_bytes())
        metric.update(**select({"labels": [1], "scores": [0.1], "groups": [1]}))
        metric.compute()
        sizes[kind] += metric.nbytes, len(metric.to_bytes())
    narrow, auto, wide = sizes["float32"], sizes["auto"], sizes["float64"]
    assert np.allclose(auto[:2], narrow[:2], rtol=0.01)
    assert np.allclose(auto[2:], wide[2:], rtol=0.04)  # a read may keep two bits a row
    assert wide[0] > 1.6 * auto[0] and wide[1] > 1.5 * auto[1]


def test_nan_is_refused_and_widens_nothing() -> None:
    metric = ExactAUC()
    metric.update([0, 1], np.array([0.5, 0.75], np.float32))
    before = metric.to_bytes()
    with pytest.raises(InputError):
        metric.update([0, 1], [0.1, np.nan])
    assert metric.to_bytes() == before


def test_narrow_values_written_wide_are_refused() -> None:
    metric = ExactAUC()
    metric.update([0, 1], [0.5, 0.1])
    head, body = opened(STATE_MAGIC, metric.to_bytes())
    data = bytearray(body.raw(body.left))
    assert data[0] == 1  # some value is no float32
    data = data.replace(np.array([0.1]).view("<u8").tobytes()[:5], bytes(5))
    with pytest.raises(StateError, match="float32"):
        load(frame(STATE_MAGIC, head, bytes(data)))


def test_a_state_of_an_older_default_loads_and_says_how_to_go_on() -> None:
    older, newer = ExactAUC(score_type="float64"), ExactAUC()
    older.update([0, 1], [0.5, 0.1])
    assert load(older.to_bytes()) == older
    for a, b in ((older, newer), (newer, older)):
        with pytest.raises(SettingsError) as caught:
            a.merge(b)
        assert caught.value.hint == (
            f"make both states with score_type='{a.score_type}', or both with "
            f"score_type='{b.score_type}'"
        )
