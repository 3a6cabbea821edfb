"""Tables by rank that are made once and grow on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=tuple[NDArray[np.float64], NDArray[np.float64]])

_SHORTEST: Final = 128  # entries


class Growing(Generic[T]):
    """Two arrays with an entry for each rank; `make(n)` gives the first n, always the same."""

    def __init__(self, make: Callable[[int], T]) -> None:
        self._make = make
        self._held: T | None = None

    def __call__(self, n: int) -> T:
        """At least the first n entries, not to be written."""
        held = self._held
        if held is None or len(held[0]) < n:
            held = self._make(max(n, _SHORTEST if held is None else 2 * len(held[0])))
            for table in held:
                table.flags.writeable = False
            self._held = held  # at once, so that two threads see whole tables
        return held
