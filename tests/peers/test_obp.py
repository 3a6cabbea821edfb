"""OffPolicy beside the Open Bandit Pipeline, whose names of estimators it has."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics import OffPolicy
from tests.peers.obp_process import ENVIRONMENT, Question, ask
from tests.requirements import absent


def log(seed: int, n: int, *, binary: bool) -> Question:
    rng = np.random.default_rng(seed)
    rewards = rng.random(n) < 0.3 if binary else rng.normal(2, 5, n)
    columns = {
        "logged": rng.uniform(0.05, 1, n),
        "target": rng.uniform(0, 0.95, n),
        "rewards": rewards.astype(float),
        "predicted_logged": rng.normal(1, 1, n),
        "predicted_target": rng.normal(1, 1, n),
    }
    return {name: column.tolist() for name, column in columns.items()}


def test_all_values_are_those_of_obp() -> None:
    if not (ENVIRONMENT / ".made").is_file():
        absent("obp", f"no {ENVIRONMENT}")
    logs = [log(seed, n, binary=seed % 2 == 0) for seed, n in enumerate((1, 8, 300, 5_000))]
    for rows, peer_values in zip(logs, ask(logs), strict=True):
        metric = OffPolicy()
        metric.update(**rows)
        raw = metric.compute().raw
        values = {name: getattr(raw, name) for name in peer_values}
        assert values == pytest.approx(dict(peer_values), rel=1e-11, abs=1e-13)
