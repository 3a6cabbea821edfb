"""How long a test waits for something that other processes or threads bring about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# Far more than a busy machine of two cores needs: only a test that fails waits so long. It is
# below the limit of a whole test ([tool.pytest.ini_options] timeout), so that the test says why.
LIMIT_S: Final = 240.0


def until(
    reached: Callable[[], bool], describe: Callable[[], object] = str, pause_s: float = 0.05
) -> None:
    """Wait for a condition; `describe` tells how things are if it is not reached."""
    limit_s = time.monotonic() + LIMIT_S
    while not reached():
        assert time.monotonic() < limit_s, describe()
        time.sleep(pause_s)
