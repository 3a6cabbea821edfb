"""What the methods of results are given: plain Python numbers of it, or an InputError."""

from __future__ import annotations

import math
from fractions import Fraction

from streammetrics.core.errors import InputError, shown
from streammetrics.core.plain_values import FLOAT64, as_float, exact, plain, whole


def refused(
    where: str, expected: str, came: object, todo: str = "pass another value"
) -> InputError:
    """The error for one argument of a method."""
    return InputError(expected=expected, came=shown(came), where=where, todo=todo)


def share(value: object, where: str, expected: str = "a share from 0 to 1") -> Fraction:
    """A number from 0 to 1."""
    found = exact(value)
    if found is not None and 1 < found <= 100:
        raise refused(where, expected, value, f"if it is in per cent, pass {shown(value)} / 100")
    if found is None or not 0 <= found <= 1:
        raise refused(where, expected, value)
    return found


def weight_of_recall(b: object, where: str) -> Fraction:
    """The b of an F: a number of at least 0."""
    found = exact(b)
    if found is None or found < 0:
        raise refused(where, "a number of at least 0", b, "pass 1 where both weigh the same")
    return found


def parts(k: object, where: str) -> int:
    """A number of parts, at least 1."""
    found = whole(k)
    if found is None or found < 1:
        raise refused(where, "a number of parts, 1 or more", k, "pass 10 for tenths of the rows")
    return found


def check_aim(by: object, where: str) -> None:
    """Refuse what no best operating point is chosen by."""
    if by in ("youden", "product", "distance", "accuracy"):
        return
    todo = "choose one of these"
    if isinstance(by, str) and by.lower().startswith("f"):
        todo += "; the F of a threshold t is in confusion(t)"
    elif isinstance(by, str) and by.lower() == "ks":
        todo = 'pass "youden", which is TPR - FPR'
    raise refused(where, '"youden", "product", "distance" or "accuracy"', by, todo)


def threshold(t: object, where: str) -> float:
    """A number that a score may be compared with; infinities are some."""
    found = as_float(t)
    if found is None:
        raise refused(where, FLOAT64, t)
    return found


def worth_of_nothing(zero_division: object, where: str) -> float:
    """What 0/0 is worth: nan, 0 or 1."""
    found = plain(zero_division)
    if isinstance(found, (int, float)) and (found in (0, 1) or math.isnan(found)):
        return float(found)
    raise refused(where, "0, 1 or nan", zero_division, "pass one of these")
