"""A projection in common memory: it has the bytes of a copy, and the state of the panel keeps its
own, whatever is read, limited or counted in between."""

from __future__ import annotations

from random import Random

import numpy as np

from streammetrics import GroupedAUC, HistogramAUC, Panel, PerKey, Ratio, Units, UserGroups, Windows

RNG = np.random.default_rng(5)
PANEL = Panel(
    {
        "auc": HistogramAUC(),
        "gauc": GroupedAUC(),
        "rate": Ratio(),
        "units": Units(),
        "users": UserGroups(Panel({"auc": HistogramAUC(), "gauc": GroupedAUC()})),
    },
    inputs={"rate": {"numerators": "labels"}, "units": {"units": "users"}},
)
LIMITS = (1, 7, 30, 100)


def batch(n: int) -> dict[str, object]:
    users = RNG.integers(0, 50, n)
    return {
        "labels": RNG.integers(0, 2, n),
        "scores": RNG.random(n, dtype=np.float32),
        "groups": users,
        "users": users,
    }


def test_a_projection_in_common_memory_has_the_bytes_of_a_copy_and_changes_nothing() -> None:
    lucky = Random(3)
    read, never_read = PerKey(PANEL, 30), PerKey(PANEL, 30)
    for n, n_keys in [(1, 1), (40, 20), (3, 3), (300, 30), (500, 45), (9000, 45), (2, 60)]:
        keys = [(str(lucky.randrange(n_keys)), None) for _ in range(n)]
        columns = batch(n)
        for state in (read, never_read):
            state.update(keys, **columns)  # type: ignore[arg-type]
        copy = never_read.copy()
        for name in lucky.sample([*PANEL.metrics], len(PANEL.metrics)):
            for most in lucky.sample(LIMITS, len(LIMITS)):
                shared = read.project(name, most, copy=False)
                copied = copy.project(name, most)
                assert shared.encoded() == copied.encoded()
                assert shared.max_keys == most and shared.keys() == copied.keys()
        assert read.copy().to_bytes() == copy.to_bytes()


def test_projections_of_panes_in_common_memory_are_those_of_copies() -> None:
    for n_panes in (1, 3):
        states = Windows(PerKey(PANEL, 5), size_s=10)
        for n in (50, 3000):
            times = RNG.integers(0, n_panes, n) * 10_000
            keys = [f"{i}" for i in RNG.integers(0, 9, n)]
            states.update(times, keys=keys, **batch(n))
            before = states.to_bytes()
            panes = states.panes(copy=False)
            assert len(panes) == n_panes
            for start, copied in states.panes().items():
                shared = panes[start]
                assert isinstance(shared, PerKey) and isinstance(copied, PerKey)
                for name in PANEL.metrics:
                    bytes_of_one = copied.project(name, 3).to_bytes()
                    assert shared.project(name, 3, copy=False).to_bytes() == bytes_of_one
            assert states.to_bytes() == before
