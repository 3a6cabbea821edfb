"""How much a test tries, where more only makes a find more likely.

`make check` has the first cases of each kind, `make test` all of them. `--hypothesis-profile=long`
tries several times as many samples: for whoever changes a law, a metric or the bytes of a state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import hypothesis
import pytest

from streammetrics.testing import Case

_PROFILE = hypothesis.settings.default
assert _PROFILE is not None
EXAMPLES: Final = _PROFILE.max_examples
DEEP: Final = EXAMPLES > 400


def tries(usual: int, deep: int) -> int:
    """How many samples to try in this run."""
    return deep if DEEP else usual


def first_of_each_class(cases: Sequence[Case[Any]]) -> list[Case[Any]]:
    """What holds of all cases is tried at length on these, and briefly on the others."""
    return [*{type(case.empty): case for case in reversed(cases)}.values()]


def further_are_slow(*values: Any, fast: int = 1) -> Iterator[Any]:
    """Values of a parameter; `make check` has the first `fast` of them."""
    for number, value in enumerate(values):
        yield pytest.param(value, marks=[pytest.mark.slow] if number >= fast else [])


def most_are_slow(cases: Sequence[Case[Any]], fast: int = 1) -> Iterator[Any]:
    """The cases as parameters; `make check` has the first `fast` of each class."""
    seen = Counter[type[Any]]()
    for case in cases:
        seen[type(case.empty)] += 1
        slow = [pytest.mark.slow] if seen[type(case.empty)] > fast else []
        yield pytest.param(case, marks=slow, id=str(case))
