"""How much a test tries, where more only makes a find more likely.

`--hypothesis-profile=long` tries several times as many samples: for whoever changes a law, a metric
or the bytes of a state. Which tests a command has, tests/seconds.py says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import hypothesis

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


def classes_first(cases: Sequence[Case[Any]]) -> list[Case[Any]]:
    """All cases, one of each class before the others: a quick run has the first ones."""
    first = first_of_each_class(cases)
    return [*first, *(case for case in cases if not any(case is leader for leader in first))]
