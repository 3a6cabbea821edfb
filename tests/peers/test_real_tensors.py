"""Real tensors of torch passed to `update`: the same bits as of the same numbers in numpy.

`tests/core/test_conversion.py` plays tensors with small classes wherever torch is not. Here the
metric runs in the environment that has it, and hands back the digest of its state.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import streammetrics
from streammetrics import InputError
from tests.peers.torch_process import Peers, Step, Tensor

pytestmark = pytest.mark.xdist_group("torch")

RNG = np.random.default_rng(31)
N = 400
LABELS = RNG.integers(0, 2, N)
SCORES = RNG.random(N)
TABLE = RNG.random((N, 5))

METRICS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "BinaryConfusion": ({}, {"labels": LABELS, "scores": SCORES}),
    "HistogramAUC": ({}, {"labels": LABELS, "scores": SCORES}),
    "ExactAUC": ({}, {"labels": LABELS, "scores": SCORES}),
    "Calibration": ({}, {"labels": LABELS, "scores": SCORES}),
    "Regression": ({}, {"labels": LABELS, "scores": SCORES}),
    "GroupedAUC": ({}, {"labels": LABELS, "scores": SCORES, "groups": RNG.integers(0, 40, N)}),
    "MulticlassConfusion": (
        {"n_classes": 5},
        {"labels": RNG.integers(0, 5, N), "predictions": TABLE},
    ),
    "MultilabelConfusion": (
        {"n_labels": 5},
        {"labels": RNG.integers(0, 2, (N, 5)), "scores": TABLE},
    ),
    "RankingMetrics": (
        {"measures": ["NDCG@3", "MRR", "AP"]},
        {"labels": RNG.integers(0, 3, (N, 5)), "scores": TABLE},
    ),
}


def cut_to_bfloat16(values: np.ndarray) -> np.ndarray:
    """The nearest numbers below that have 8 significant bits: bfloat16 holds them."""
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32)


AS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "float32": lambda values: values.astype(np.float32),
    "float64": lambda values: values,
    "bfloat16": cut_to_bfloat16,
    "float16": lambda values: values.astype(np.float16),
}


@pytest.mark.parametrize("name", METRICS)
def test_a_tensor_makes_the_state_that_its_numbers_make(torch_peers: Peers, name: str) -> None:
    settings, columns = METRICS[name]
    for dtype, grad in product(AS, (False, True)):
        rounded = {
            key: values if values.dtype.kind == "i" else AS[dtype](values)
            for key, values in columns.items()
        }
        tensors = {
            key: Tensor(column, "int64")
            if column.dtype.kind == "i"
            else Tensor(column, dtype, grad)
            for key, column in rounded.items()
        }
        steps = Step("update", (), tensors), Step("digest")
        peer_digest = torch_peers.ask(f"streammetrics.{name}", settings, *steps)[-1]
        metric = getattr(streammetrics, name)(**settings)
        metric.update(**rounded)
        assert peer_digest == metric.digest(), (dtype, grad)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "bool"])
def test_labels_of_every_type_of_integers(torch_peers: Peers, dtype: str) -> None:
    update = Step("update", (Tensor(LABELS, dtype), Tensor(SCORES, "float64")))
    peer_digest = torch_peers.ask("streammetrics.ExactAUC", {}, update, Step("digest"))[-1]
    metric = streammetrics.ExactAUC()
    metric.update(LABELS, SCORES)
    assert peer_digest == metric.digest()


def test_a_tensor_that_is_on_no_cpu_is_refused(torch_peers: Peers) -> None:
    # `meta` is torch's device without memory.
    with pytest.raises(RuntimeError, match=f"{InputError.__name__}: scores: .*on meta"):
        torch_peers.ask(
            "streammetrics.ExactAUC",
            {},
            Step("update", (Tensor([0, 1], "int64"), Tensor([0.1, 0.2], "float32", device="meta"))),
        )
