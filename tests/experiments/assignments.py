"""Units in arms of several experiments, for tests of what meets there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import strategies as st

from streammetrics import Units
from streammetrics.combine import UnitsResult
from streammetrics.experiments import UnitSample, sample_units

# Of each experiment and unit the arms in which it was seen.
Assignment = Mapping[str, Mapping[int, frozenset[str]]]
NAMES = ("ads", "pricing", "ranker")


def counted(ids: object, **limits: object) -> Units:
    """A state of these units."""
    state = Units(**limits)  # type: ignore[arg-type]
    state.update(np.array(sorted(ids), np.int64))  # type: ignore[call-overload]
    return state


def arms_of(units: Mapping[int, frozenset[str]], **limits: object) -> dict[str, UnitsResult]:
    """The units of each arm."""
    names = sorted({arm for arms in units.values() for arm in arms})
    return {
        arm: counted([i for i, arms in units.items() if arm in arms], **limits).compute()
        for arm in names
    }


def randomised(n: int, arms: str, *, salt: int, first: int = 0) -> dict[int, frozenset[str]]:
    """Units in equally likely arms."""
    rng = np.random.default_rng(salt)
    return {
        first + i: frozenset(arms[k]) for i, k in enumerate(rng.integers(0, len(arms), n).tolist())
    }


def sample_of(assignment: Assignment, **limits: object) -> UnitSample:
    return sample_units({name: arms_of(units, **limits) for name, units in assignment.items()})


ASSIGNMENTS = st.fixed_dictionaries(
    {
        name: st.dictionaries(
            st.integers(0, 40), st.frozensets(st.sampled_from("abc"), min_size=1), max_size=30
        )
        for name in NAMES
    }
)
