"""StoredPerKey: some keys of states in their bytes have the states of the sum in memory."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    Calibration,
    ExactAUC,
    HistogramAUC,
    Panel,
    PerKey,
    Ratio,
    SettingsError,
    StateError,
    StoredPerKey,
    UnknownKeyError,
    UserGroups,
)
from tests.fast_paths.drawn import METRICS, Draw

PANEL = Panel({"auc": HistogramAUC(), "exact": ExactAUC(), "fit": Calibration()})
CASES: dict[str, tuple[Accumulator, Draw]] = {
    **METRICS,
    "Panel in UserGroups": (
        UserGroups(PANEL, buckets=4),
        lambda n, rng: {**METRICS["Calibration"][1](n, rng), "groups": rng.integers(0, 9, n)},
    ),
}
SIZES = (120, 1, 20)


@pytest.mark.parametrize("max_keys", [6, 100])
@pytest.mark.parametrize("name", list(CASES))
def test_some_keys_of_stored_states_equal_those_of_their_sum(name: str, max_keys: int) -> None:
    metric, draw = CASES[name]
    rng = np.random.default_rng(max_keys)
    states = [PerKey(metric, max_keys)]  # one is empty
    for size in SIZES:
        keys = [("item", int(i)) for i in rng.pareto(0.5, size).clip(max=20)]
        states.append(states[0].empty())
        states[-1].update(keys, **draw(size, rng))
    whole = sum(states)
    stored: StoredPerKey[object] = StoredPerKey(state.to_bytes() for state in states)
    every = whole.keys()
    assert stored.keys() == every
    assert len(every) == 6 or max_keys == 100
    for n in (0, 1, 5, len(every)):
        selection = [every[i] for i in rng.permutation(len(every))[:n]] + [("item", -1)]
        part, expected = stored.chosen(selection), whole.chosen(selection)
        assert part == expected
        assert part.digests() == expected.digests()
        part.merge(expected)  # it can be counted with
        assert part == expected + expected
    assert stored.state(every[0]) == whole.state(every[0])
    for states_by_key in (stored, whole):
        assert states_by_key.state(("item", -1), missing="empty") == metric
        with pytest.raises(UnknownKeyError) as error:
            states_by_key.state(("item", -1))
        assert ("max_keys" in error.value.hint) == (max_keys == 6)
    assert stored.overflow_state() == whole.overflow_state()
    assert (whole.overflow_state() is None) == (max_keys == 100)


def test_only_bytes_of_equal_per_keys_are_taken() -> None:
    state = PerKey(Ratio(), 5)
    state.update(["a", "b"], numerators=[1, 0])
    data = state.to_bytes()
    for states in ([], [Ratio().to_bytes()], [data[:-1]], [data, b""]):
        with pytest.raises(StateError):
            StoredPerKey(states)
    with pytest.raises(SettingsError, match="max_keys"):
        StoredPerKey([data, PerKey(Ratio(), 6).to_bytes()])
    stored: StoredPerKey[object] = StoredPerKey([data])
    assert stored.nbytes == len(data)
    assert (stored.metric, stored.max_keys, stored.empty()) == (Ratio(), 5, state.empty())
