"""Metrics with rows that break things, and the simple way to count them.

The simple way checks and adds a few rows at a time, as plain lists, straight into the state: no
buffer, no validator of the fast path, no chunk, no table that is worth its steps for many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    GroupedScores,
    HistogramAUC,
    Interleaving,
    Moments,
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    OffPolicy,
    Paired,
    Panel,
    PerKey,
    Ratio,
    Regression,
    UserGroups,
    Windows,
)
from tests.id_pools import EVERY

Columns = dict[str, np.ndarray]
Draw = Callable[[int, np.random.Generator], Columns]

_EDGES = np.concatenate(
    [np.arange(0, 257) / 256, np.arange(0, 16) / 15, 2.0 ** -np.arange(1, 1075)]
)
_NEAR = np.concatenate([np.nextafter(_EDGES, 2), np.nextafter(_EDGES, -1), _EDGES])
UNIT = np.unique(
    np.concatenate([_NEAR[(_NEAR >= 0) & (_NEAR <= 1)], [0.1, 1 - 2**-53, 1 - 2**-24]])
)
UNIT_32 = np.unique(UNIT.astype(np.float32)).astype(np.float64)
REAL = np.concatenate([UNIT, -UNIT, [-0.0, 3.0, 1e300, -1e300, 2.0**24, np.inf, -np.inf]])
_CLICKS = np.array([0.0, -0.0, 1.0, 2.0, 0.5, 1e-40, 2.0**60])
FINITE = np.concatenate([UNIT, -UNIT, [1e300, -1e300, 1e16, -1e16, 1e-320, 1.7e308]])


def _binary(scores: np.ndarray) -> Draw:
    def draw(n: int, rng: np.random.Generator) -> Columns:
        return {"labels": rng.integers(0, 2, n), "scores": rng.choice(scores, n)}

    return draw


def _with(draw: Draw, **more: Callable[[int, np.random.Generator], np.ndarray]) -> Draw:
    def drawn(n: int, rng: np.random.Generator) -> Columns:
        return {**draw(n, rng), **{name: make(n, rng) for name, make in more.items()}}

    return drawn


def _ids(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(n) < 0.1, 0, rng.choice(EVERY, n))


def _weights(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice([0.0, 0.25, 0.5, 1.0, 3.75, 2.0**30], n)


def _classes(n: int, rng: np.random.Generator) -> Columns:
    return {"labels": rng.integers(0, 5, n), "predictions": rng.integers(0, 5, n)}


def _class_scores(name: str) -> Draw:
    def draw(n: int, rng: np.random.Generator) -> Columns:
        return {"labels": rng.integers(0, 3, n), name: rng.choice(UNIT_32, (n, 3))}

    return draw


def _flags(n: int, rng: np.random.Generator) -> Columns:
    return {"labels": rng.integers(0, 2, (n, 3)), "scores": rng.choice(UNIT_32, (n, 3))}


def _amounts(n: int, rng: np.random.Generator) -> Columns:
    return {"numerators": rng.choice(FINITE, n), "denominators": rng.choice(FINITE, n)}


def _times(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice([-1, 0, 5, 3_600_000, 1_700_000_000_000, 1_700_003_600_000], n)


def _paired(n: int, rng: np.random.Generator) -> Columns:
    return {
        "labels": rng.integers(0, 2, n),
        "scores_a": rng.choice(REAL, n),
        "scores_b": rng.choice(REAL, n),
    }


def _logged(n: int, rng: np.random.Generator) -> Columns:
    columns = {name: rng.choice(UNIT, n) for name in ("target", "rewards")}
    predicted = {f"predicted_{name}": rng.choice(_CLICKS, n) for name in ("logged", "target")}
    return {"logged": rng.choice([1.0, 0.5, 2.0**-20], n), **columns, **predicted}


METRICS: Mapping[str, tuple[Accumulator, Draw]] = {
    "BinaryConfusion": (BinaryConfusion(), _binary(REAL)),
    "BinaryConfusion weighted": (
        BinaryConfusion(weight_unit="1/4"),
        _with(_binary(REAL), weights=_weights),
    ),
    "HistogramAUC": (HistogramAUC(), _binary(UNIT)),
    "HistogramAUC coarse": (HistogramAUC(resolution=3), _binary(UNIT)),
    "HistogramAUC float32": (HistogramAUC(), _binary(UNIT_32)),
    "HistogramAUC equal": (HistogramAUC(grid="equal", resolution=15), _binary(UNIT)),
    "HistogramAUC real": (HistogramAUC(range="real"), _binary(REAL)),
    "ExactAUC": (ExactAUC(), _binary(REAL)),
    "ExactAUC float64": (ExactAUC(score_type="float64"), _binary(REAL)),
    "Calibration": (Calibration(), _binary(UNIT)),
    "Calibration weighted": (
        Calibration(weight_unit="1/4", clip=1e-15),
        _with(_binary(UNIT), weights=_weights),
    ),
    "Ratio": (
        Ratio(),
        lambda n, rng: {"numerators": rng.choice(FINITE, n), "denominators": rng.choice(FINITE, n)},
    ),
    "Ratio of clicks": (Ratio(), lambda n, rng: {"numerators": rng.integers(0, 2, n)}),
    "Regression": (
        Regression(),
        lambda n, rng: {"labels": rng.choice(FINITE, n), "scores": rng.choice(REAL, n)},
    ),
    "GroupedAUC": (GroupedAUC(), _with(_binary(REAL), groups=_ids)),
    "GroupedAUC on a grid": (GroupedAUC(grid="relative"), _with(_binary(UNIT), groups=_ids)),
    "GroupedScores": (GroupedScores(("NDCG@3", "AP")), _with(_binary(REAL), groups=_ids)),
    "Interleaving": (
        Interleaving(),
        lambda n, rng: {side: rng.choice(_CLICKS, n) for side in ("clicks_a", "clicks_b")},
    ),
    "Moments": (Moments(), lambda n, rng: {"values": rng.choice(FINITE, n)}),
    "MulticlassConfusion": (MulticlassConfusion(5), _classes),
    "MulticlassConfusion of scores": (MulticlassConfusion(3, (1, 2)), _class_scores("predictions")),
    "MulticlassAUC": (MulticlassAUC(3, resolution=4), _class_scores("scores")),
    "MultilabelConfusion": (MultilabelConfusion(3), _flags),
}

# Metrics of metrics, and others whose rows wait as they were given.
GIVEN: Mapping[str, tuple[Accumulator, Draw]] = {
    "HistogramAUC of rounded weights": (
        HistogramAUC(weight_unit="1/10", round_weights=True),
        _with(_binary(UNIT), weights=_weights),
    ),
    "PerKey": (
        PerKey(HistogramAUC(weight_unit="1/4")),
        _with(_binary(UNIT), weights=_weights, keys=_ids),
    ),
    "Windows": (Windows(Ratio(), 3600), _with(_amounts, times_ms=_times)),
    "UserGroups": (UserGroups(Ratio()), _with(_amounts, groups=_ids)),
    "Paired": (Paired(ExactAUC()), _paired),
    "Panel": (Panel({"auc": HistogramAUC(), "error": Regression()}), _binary(UNIT)),
    "OffPolicy": (OffPolicy(), _logged),
}

# Other settings of the same inputs and parts, which matter to the kernels and not to the rest.
SAME_STATE = ("HistogramAUC coarse", "HistogramAUC float32", "HistogramAUC equal")
STATES = [name for name in METRICS if name not in (*SAME_STATE, "GroupedAUC on a grid")]


def simple(metric: Accumulator, columns: Columns, step: int) -> Accumulator:
    """The state after these rows, `step` at a time, as lists, straight into the state."""
    state = metric.empty()
    for start in range(0, len(next(iter(columns.values()))), step):
        batch: dict[str, Any] = {k: v[start : start + step].tolist() for k, v in columns.items()}
        state._feed(state.check(**batch), None)
    return state


def forms(column: np.ndarray, rng: np.random.Generator) -> list[object]:
    """The same column in memory of every layout, and in every type that holds it."""
    n = len(column)
    spread = np.repeat(column, 3, axis=0)
    frozen = column.copy()
    frozen.flags.writeable = False
    versions: list[object] = [
        column,
        spread[::3],
        column[::-1].copy()[::-1],
        column.astype(column.dtype.newbyteorder()),
        frozen,
        np.asfortranarray(column),
        np.concatenate([column, column])[n:],
        column.astype(object),
        column.tolist(),
    ]
    for kind in (
        np.bool_,
        np.int8,
        np.uint8,
        np.int32,
        np.uint64,
        np.float16,
        np.float32,
        np.float64,
    ):
        with np.errstate(all="ignore"):
            cast = column.astype(kind)
            if np.dtype(kind).kind == "u" and column.min(initial=0) < 0:
                continue
            if np.array_equal(cast.astype(column.dtype), column) and (
                column.dtype.kind == "f" or kind not in (np.float16, np.float32) or n == 0
            ):
                versions.append(cast)
    return [versions[i] for i in rng.permutation(len(versions))]
