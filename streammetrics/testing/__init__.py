"""The laws that every metric obeys, as functions that you can run on your own metrics.

Needs hypothesis: `pip install '.[testing]'` in a clone of streammetrics. `strategies` draws rows.
"""

try:
    import hypothesis as _hypothesis  # noqa: F401 - only to say what to install
except ImportError as error:
    raise ImportError(
        "streammetrics.testing needs hypothesis: "
        "pip install '.[testing]' in a clone of streammetrics"
    ) from error

from streammetrics.testing.case import Case, compare
from streammetrics.testing.checking import (
    broken_laws,
    check_exhaustively,
    check_law,
    check_laws,
)
from streammetrics.testing.laws import LAWS

__all__ = [
    "LAWS",
    "Case",
    "broken_laws",
    "check_exhaustively",
    "check_law",
    "check_laws",
    "compare",
]
