"""Hypothesis strategies for the columns of metrics: ties, ends of ranges, unusual keys.

Critical values are drawn often; the rest of the range occasionally.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st

from streammetrics.core.rows import Key

_TIES = (0.0, 0.25, 0.5, 0.75, 1.0)
_CLOSE = (-0.0, 5e-324, 1e-10, 2.0**-24, 0.1, 0.5 - 2**-54, 0.5 + 2**-53, 1 - 2**-53)
_FAR = (float("inf"), float("-inf"), -0.0, -0.5, 1e-300, 3.0, 2.0**24, -(2.0**25), 1.7e308)
_KEYS: tuple[Key, ...] = ("a", "b", "", "é", "\ud800", 0, 1, -1, 1 << 70, None, ("a", 1), ())
# Near 0, one or a few bits, multiples of large powers of two, and the ends of the range.
_IDS = (
    0,
    1,
    2,
    -1,
    (1 << 63) - 1,
    -(1 << 63),
    1 << 40,
    3 << 40,
    -(1 << 40),
    1 << 62,
    1 << 32,
    68260,
)
_HOUR = 3_600_000


def labels() -> st.SearchStrategy[int]:
    """0 or 1."""
    return st.integers(0, 1)


def grades() -> st.SearchStrategy[int]:
    """Graded labels, mostly low, from 0 to 15."""
    return st.sampled_from((0, 0, 1, 2, 15)) | st.integers(0, 15)


def probabilities() -> st.SearchStrategy[float]:
    """Scores in [0, 1]: many ties, and values close to ties or grid edges."""
    return st.sampled_from(_TIES + _CLOSE) | st.floats(0, 1)


def scores() -> st.SearchStrategy[float]:
    """Any score but NaN: ties, infinities, both zeros, the largest."""
    return st.sampled_from(_TIES + _FAR) | st.floats(allow_nan=False)


def amounts() -> st.SearchStrategy[float]:
    """Finite numbers whose sum a float rounds: of all sizes and both signs."""
    return st.sampled_from((0.0, 1.0, 0.1, -0.1, 1e16, -1e16, 1e300, 5e-324)) | st.floats(
        -1e300, 1e300
    )


def keys() -> st.SearchStrategy[Key]:
    """Keys of every kind; few enough that they repeat."""
    return st.sampled_from(_KEYS)


def ids() -> st.SearchStrategy[int]:
    """64-bit integers: some repeat, others are spread over the whole range."""
    powers = st.builds(lambda sign, bit: sign << bit, st.sampled_from((1, -1)), st.integers(0, 62))
    return st.sampled_from(_IDS) | st.integers(-(1 << 63), (1 << 63) - 1) | powers


def times_ms() -> st.SearchStrategy[int]:
    """Event times around the epoch, on and beside the edges of windows, and far away."""
    edges = [k * _HOUR + d for k in (-2, 0, 1, 24) for d in (-1, 0, 1)]
    return st.sampled_from((*edges, 1_574_553_600_000, (1 << 63) - 1, -(1 << 63))) | st.integers(
        -3 * _HOUR, 3 * _HOUR
    )


def columns(
    *names: str,
) -> Callable[[Sequence[tuple[object, ...]]], Mapping[str, list[object]]]:
    """A function from rows (tuples) to the columns of these names, for `Case.columns`.

    >>> columns("labels", "scores")([(1, 0.5), (0, 0.25)])
    {'labels': [1, 0], 'scores': [0.5, 0.25]}
    """
    return lambda rows: {name: [row[i] for row in rows] for i, name in enumerate(names)}
