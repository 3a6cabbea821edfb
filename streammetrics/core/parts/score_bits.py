"""Codes: unsigned integers in the order of the values, which exact states sort instead of these.

The code of a float is its bits, with the sign bit set where it is positive and all bits flipped
where it is negative. -0.0 has the code of 0.0; NaN has no code. The code of an int64 is its bits
with the sign bit flipped; every integer is a code.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.unsignedinteger]  # uint32 or uint64
Scores = NDArray[np.floating]  # float32 or float64
Values: TypeAlias = "NDArray[np.floating] | NDArray[np.int64]"
TYPES = ("float32", "float64", "int64")
SCORE_TYPES: Final = ("auto", "float32", "float64")  # of a setting `score_type`
AUTO: Final = "auto"  # floats as they are, in 32 bits while float32 represents all of them
_SAMPLE: Final = 256  # values that show most columns of float64 to be no float32
_DTYPES: Final = {name: np.dtype(name) for name in TYPES}


def codes_of(values: Values) -> Codes:
    """uint32 or uint64 [n], as wide as the values: float32, float64 without NaN, or int64.

    >>> import numpy as np
    >>> a, b, c = codes_of(np.array([-1.5, -0.0, 0.0])).tolist()
    >>> a < b == c
    True
    """
    if values.dtype == np.int64:
        return values.view(np.uint64) ^ np.uint64(1 << 63)
    if values.dtype == np.float32:
        bits = (values + np.float32(0)).view(np.int32)
        flip = bits >> 31
        flip |= np.int32(-(1 << 31))
        bits ^= flip
        return bits.view(np.uint32)
    wide = (values + 0.0).view(np.int64)
    flips = wide >> 63
    flips |= np.int64(-(1 << 63))
    wide ^= flips
    return wide.view(np.uint64)


def result_type(score_type: str) -> str:
    """The type in which values of a setting are compared: those of "auto" as float64."""
    return "float64" if score_type == AUTO else score_type


def typed_values(values: Values, name: str) -> Values:
    """The values as "float32", "float64" or "int64"; those beyond float32 are infinite there."""
    if values.dtype is _DTYPES[name]:
        return values
    if name == "int64":
        return values.astype(np.int64, copy=False)
    if name == "float64":
        return values.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        return values.astype(np.float32, copy=False)


def as_float32(values: Scores) -> Scores | None:
    """The values as float32 if that changes none of them, else None."""
    if values.dtype == np.float32:
        return values
    with np.errstate(over="ignore", under="ignore"):
        if len(values) > _SAMPLE and as_float32(values[:_SAMPLE]) is None:
            return None
        narrow = values.astype(np.float32)
    return narrow if bool((narrow == values).all()) else None


def widened(codes: Codes) -> Codes:
    """The codes of the same values as float64."""
    return codes_of(scores_of(codes.astype(np.uint32, copy=False)).astype(np.float64))


def scores_of(codes: Codes) -> Scores:
    """The floats of these codes."""
    if codes.dtype == np.uint32:
        narrow = codes.view(np.int32)
        flip = narrow >> 31  # all ones for a positive value
        np.invert(flip, out=flip)
        flip |= np.int32(-(1 << 31))
        flip ^= narrow
        return flip.view(np.float32)
    wide = codes.view(np.int64)
    flips = wide >> 63
    np.invert(flips, out=flips)
    flips |= np.int64(-(1 << 63))
    flips ^= wide
    return flips.view(np.float64)


def integers_of(codes: Codes) -> NDArray[np.int64]:
    """The int64 of these codes."""
    return (codes.astype(np.uint64, copy=False) ^ np.uint64(1 << 63)).view(np.int64)


def ordered_integers(values: NDArray[np.floating]) -> NDArray[np.int64]:
    """int64 [n] in the order of the values, without NaN: `integers_of` the codes of float64.

    >>> ordered_integers(np.array([-1.5, -0.0, 0.0, 2.0])).tolist()
    [-4609434218613702657, 0, 0, 4611686018427387904]
    """
    bits = (values.astype(np.float64) + 0.0).view(np.int64)
    if len(bits) and bits.min() < 0:  # of negative values the greater ones are nearer to 0
        flips = bits >> 63
        flips &= np.int64((1 << 63) - 1)
        bits ^= flips
    return bits


_HALF: Final = int(np.array(0.5).view(np.int64))  # b(1/2) below
_ONE: Final = int(np.array(1.0).view(np.int64))


def score_keys(scores: Scores) -> NDArray[np.int64]:
    """int64 [n] in the order of the scores, without NaN, as fine toward 1 as toward 0.

    With b, `ordered_integers`, half of b(x) up to 1/2; of 2 b(1/2) - b(1 - x) from there to 1; and
    of 2 b(1/2) + b(x) - b(1) above; rounded down.

    >>> score_keys(np.array([-1.0, -0.0, 0.25, 0.5, 0.75, 1.0, 2.0])).tolist() == [
    ...     -(0x3FF << 51) - 1, 0, 0x3FD << 51, 0x3FE << 51, 0x3FF << 51, 0x7FC << 51, 0x7FD << 51]
    True
    """
    values = scores.astype(np.float64, copy=False)
    keys = ordered_integers(values)
    keys >>= 1
    upper = values > 0.5
    if not upper.any():
        return keys
    above = values > 1.0
    bits = np.where(above, values, 1.0 - values).view(np.int64)
    bits = np.where(above, bits - _ONE, -bits)
    bits >>= 1
    bits += _HALF
    return np.where(upper, bits, keys)


def floats_of(ordered: NDArray[np.int64]) -> NDArray[np.float64]:
    """The float64 of which these are the `integers_of` codes, in the same order.

    >>> floats_of(integers_of(codes_of(np.array([-1.5, 0.0])))).tolist()
    [-1.5, 0.0]
    """
    return scores_of(codes_of(ordered)).astype(np.float64, copy=False)


def are_codes(codes: NDArray[np.unsignedinteger], values: str) -> bool:
    """Whether each is the code of a "float32", "float64" (no NaN, and no -0.0) or "int64"."""
    if values == "int64" or not len(codes):
        return True
    least, zero, most = _ENDS[values]
    inside = bool(least <= codes.min() and codes.max() <= most)
    return inside and not bool((codes == int(zero) - 1).any())


_ENDS: Final = {  # the codes of -inf, 0 and inf
    "float32": codes_of(np.array([-np.inf, 0, np.inf], np.float32)).astype(np.uint64),
    "float64": codes_of(np.array([-np.inf, 0, np.inf], np.float64)),
}
