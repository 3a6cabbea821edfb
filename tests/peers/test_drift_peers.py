"""drift beside scipy, where the definitions agree, and beside evidently, where they differ."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import Bounded, ExactQuantiles, Quantiles, drift
from tests.peers.evidently_process import ENVIRONMENT, ask
from tests.peers.judged_lists import near
from tests.requirements import Later, absent

stats = Later("scipy.stats")
distance = Later("scipy.spatial.distance")

Floats = NDArray[np.float64]


def samples() -> dict[str, tuple[Floats, Floats]]:
    rng = np.random.default_rng(9)
    normal = rng.normal(size=3000)
    return {
        "moved": (normal, rng.normal(0.3, 1.2, 2000)),
        "tied": (rng.integers(0, 9, 3000) / 4, rng.integers(1, 12, 500) / 4),
        "far": (normal, normal[:1000] * 1e6),
        "alike": (normal, rng.normal(size=3000)),
    }


@pytest.mark.parametrize("name", samples())
def test_ks_and_wasserstein_of_exact_states_are_theirs_and_within_the_bounds_of_a_grid(
    name: str,
) -> None:
    a, b = samples()[name]
    peer_values = stats.ks_2samp(a, b).statistic, stats.wasserstein_distance(a, b)
    for kind in (ExactQuantiles, Quantiles):
        states = kind(), kind()
        for state, values in zip(states, (a, b), strict=True):
            state.update(values)
        result = drift(*states)
        for value, peer_value in zip((result.ks, result.wasserstein), peer_values, strict=True):
            if isinstance(value, Bounded):
                assert value.low * (1 - 1e-12) <= peer_value <= value.high * (1 + 1e-12)
            else:
                assert near(value, peer_value, 4000)  # theirs adds thousands of rounded steps


@pytest.mark.parametrize("name", samples())
def test_jensen_shannon_psi_and_its_p_value_of_the_bins_are_theirs(name: str) -> None:
    states = Quantiles(), Quantiles()
    for state, values in zip(states, samples()[name], strict=True):
        state.update(values)
    result = drift(*states)
    p, q = result.bin_counts
    js = distance.jensenshannon(p, q, base=2)
    assert float(result.js_distance) == pytest.approx(js, rel=1e-9)
    n, m, bins = p.sum(), q.sum(), len(p)
    p, q = (p + 0.5) / (n + bins / 2), (q + 0.5) / (m + bins / 2)
    psi = stats.entropy(p, q) + stats.entropy(q, p)
    assert result.psi == pytest.approx(psi, rel=1e-9)
    chance = stats.chi2.sf(psi / (1 / n + 1 / m), bins - 1)
    assert result.psi_pvalue == pytest.approx(chance, rel=1e-7, abs=1e-300)


def test_evidently_has_other_units_and_another_rule_for_empty_bins() -> None:
    """It makes a bin of each value where there are up to 20 different ones."""
    if not ENVIRONMENT.exists():
        absent("evidently", f"no {ENVIRONMENT}")
    pairs = {
        "full": ([0.0] * 50 + [1.0] * 30 + [2.0] * 20, [0.0] * 40 + [1.0] * 5 + [2.0] * 55),
        "with zeros": ([0.0] * 50 + [1.0] * 30 + [2.0] * 20, [0.0] * 40 + [2.0] * 40 + [3.0] * 20),
    }
    answers = ask(list(pairs.values()))
    for (name, pair), answer in zip(pairs.items(), answers, strict=True):
        states = ExactQuantiles(), ExactQuantiles()
        for state, values in zip(states, pair, strict=True):
            state.update(values)
        result = drift(*states)
        nats = float(result.js_distance) * math.sqrt(math.log(2))
        assert nats == pytest.approx(answer["js_distance"], rel=1e-12)
        spread = float(np.std(pair[0]))
        if name == "with zeros":
            assert (round(result.psi, 2), round(answer["psi"], 2)) == (2.09, 4.08)
            assert result.psi_with(0) == math.inf
        else:
            assert result.psi_with(0) == pytest.approx(answer["psi"], rel=1e-12)
        ratio = float(result.wasserstein) / answer["wasserstein"]
        assert ratio == pytest.approx(spread, rel=0.01)  # the deviation of a sample, or of all
