"""Groups of users and sets of units by brute force, in Python's integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from hashlib import blake2b
from typing import Any

from streammetrics import hash_ids

_64 = (1 << 64) - 1


def splitmix64(x: int) -> int:
    """Vigna's, of one state."""
    z = (x + 0x9E3779B97F4A7C15) & _64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _64
    return z ^ z >> 31


def hash_of(unit: int | str, salt: str) -> int:
    """The hash of one unit under a salt."""
    word = int(hash_ids([unit])[0]) if isinstance(unit, str) else unit
    data = blake2b(salt.encode(), digest_size=8, key=b"streammetrics-salt").digest()
    return splitmix64((word & _64) ^ int.from_bytes(data, "little"))


def user_groups(
    inner: Callable[[Sequence[Any]], Any] | None, k: int, salt: str
) -> Callable[[Sequence[Any]], Mapping[str, Any]]:
    """The metric of all rows (user, row), and how many groups have some."""

    def oracle(rows: Sequence[Any]) -> Mapping[str, Any]:
        groups = {hash_of(user, salt) % k for user, _ in rows}
        found: dict[str, Any] = {"groups": len(groups), "rows": len(rows)}
        return found if inner is None else {**found, "value": inner([row for _, row in rows])}

    return oracle


def units(share: Fraction, max_units: int | None) -> Callable[[Sequence[Any]], Mapping[str, Any]]:
    """How many different units are sampled, and how many that makes."""

    def oracle(rows: Sequence[Any]) -> Mapping[str, Any]:
        hashes = {hash_of(unit, "streammetrics units") for (unit,) in rows}
        n = sum(Fraction(found, 1 << 64) < share for found in hashes)
        if max_units is not None and n > max_units:
            return {"units": None}
        return {"units": n / share, "sampled": n}

    return oracle
