"""Uplift on a grid beside ExactUplift: bounds, rows of both arms, merges of arms, and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streammetrics import Bounded, ExactUplift, InputError, Panel, SettingsError, Uplift
from streammetrics.results import views_of

GRIDS = [
    Uplift(),
    Uplift(resolution=2),
    Uplift(grid="edges", edges=(-0.5, 0.0, 0.125)),
    Uplift(grid="equal", range="probability", resolution=3),
    Uplift(range="probability", resolution=1),
]


def rows(seed: int, kind: type[np.floating[Any]], *, weights: bool) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 400))
    scores = np.where(rng.random(n) < 0.5, rng.random(n), rng.integers(0, 8, n) / 8).astype(kind)
    treated = rng.random(n) < rng.choice((0.05, 0.5, 0.9))
    columns = {"labels": rng.random(n) < 0.3 + 0.5 * scores * treated, "scores": scores}
    weighted = {"weights": rng.integers(0, 5, n)} if weights else {}
    return {**columns, "treated": treated, **weighted}


@pytest.mark.parametrize("grid", [*GRIDS], ids=str)
def test_every_view_of_a_grid_holds_the_exact_one(grid: Uplift) -> None:
    for seed in range(8):
        columns = rows(seed, (np.float32, np.float64)[seed % 2], weights=seed % 4 > 1)
        exact, coarse = ExactUplift(), grid.empty()
        for metric in (exact, coarse):
            metric.update(**columns)
        true, result = exact.compute(), coarse.compute()
        assert result.rows == true.rows and result.treated == true.treated
        values = {**views_of(true), **dict(enumerate(true.uplift_by_part(4)))}
        bounds = {**views_of(result), **dict(enumerate(result.uplift_by_part(4)))}
        for name, value in values.items():
            bound = bounds[name]
            if isinstance(bound, Bounded):
                assert np.isnan(bound.low) == np.isnan(bound.value), (seed, name)
                assert np.isnan(float(value)) or bound.low <= value <= bound.high, (seed, name)
                assert np.isnan(bound.value) or bound.low <= bound.value <= bound.high, (seed, name)
            else:
                assert bound == value or (np.isnan(bound) and np.isnan(float(value))), (seed, name)


def test_arms_that_are_counted_apart_are_the_same_state() -> None:
    columns = rows(3, np.float64, weights=False)
    for empty in (Uplift(), ExactUplift()):
        together, arms = empty.empty(), [empty.empty(), empty.empty()]
        together.update(**columns)
        for arm, state in enumerate(arms):
            mask = columns["treated"] == arm
            state.update(**{name: column[mask] for name, column in columns.items()})
            assert np.isnan(float(state.compute().qini))
        assert arms[1] + arms[0] == together


def test_a_panel_shares_its_columns_with_areas() -> None:
    panel = Panel({"uplift": Uplift(), "exact": ExactUplift()})
    columns = rows(5, np.float64, weights=False)
    panel.update(**columns)
    results = panel.compute()
    assert results["exact"].ate == results["uplift"].ate
    assert results["uplift"].qini.low <= results["exact"].qini <= results["uplift"].qini.high


def test_a_share_is_one_setting_however_it_is_given_and_errors_say_what_to_pass() -> None:
    first, *metrics = (Uplift(treated_share=share) for share in (0.1, "1/10", "0.1"))  # type: ignore[arg-type]
    assert all(metric.digest() == first.digest() for metric in metrics)
    for share in (1, 0.0, "a half", "2/1"):
        with pytest.raises(SettingsError, match="if each row is treated with probability") as error:
            ExactUplift(treated_share=share)
        assert str(share) in error.value.got
    with pytest.raises(InputError, match="treated") as refused:
        Uplift().update([1, 0], [0.5, 0.5], [1, 2])
    assert refused.value.where.startswith("treated")
