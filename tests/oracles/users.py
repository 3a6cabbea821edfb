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
        result: dict[str, Any] = {"groups": len(groups), "rows": len(rows)}
        return result if inner is None else {**result, "value": inner([row for _, row in rows])}

    return oracle


def units(share: Fraction, max_units: int | None) -> Callable[[Sequence[Any]], Mapping[str, Any]]:
    """How many different units are sampled, and how many that makes."""

    def oracle(rows: Sequence[Any]) -> Mapping[str, Any]:
        hashes = {hash_of(unit, "streammetrics units") for (unit,) in rows}
        n = sum(Fraction(digest, 1 << 64) < share for digest in hashes)
        if max_units is not None and n > max_units:
            return {"units": None}
        return {"units": n / share, "sampled": n}

    return oracle


def _sampled(rows: Sequence[Any], share: Fraction, salt: str) -> dict[int, list[Fraction]]:
    """The values of each kept unit, by its hash."""
    values_by_mark: dict[int, list[Fraction]] = {}
    for unit, value in rows:
        mark = hash_of(unit, salt)
        if Fraction(mark, 1 << 64) < share:
            values_by_mark.setdefault(mark, []).append(Fraction(value))
    return values_by_mark


def unit_rate(
    share: Fraction, max_units: int | None, salt: str
) -> Callable[[Sequence[Any]], Mapping[str, Any]]:
    """The share of kept units with a value above 0."""

    def oracle(rows: Sequence[Any]) -> Mapping[str, Any]:
        units = _sampled(rows, share, salt)
        n, events = len(units), sum(max(values) > 0 for values in units.values())
        if max_units is not None and n > max_units:
            return {"rate": None}
        return {"units": n, "units_above_0": events, "rate": Fraction(events, n) if n else None}

    return oracle


def unit_mean(
    share: Fraction, max_units: int | None, salt: str
) -> Callable[[Sequence[Any]], Mapping[str, Any]]:
    """The mean of the sums of kept units, with the rate."""
    rate = unit_rate(share, max_units, salt)

    def oracle(rows: Sequence[Any]) -> Mapping[str, Any]:
        units = _sampled(rows, share, salt)
        n, total = len(units), sum((sum(v, Fraction(0)) for v in units.values()), Fraction(0))
        if max_units is not None and n > max_units:
            return {"mean": None, "rate": None, "total": None}
        return {**rate(rows), "total": total, "mean": total / n if n else None}

    return oracle


def unit_sums(max_units: int) -> Callable[[Sequence[Any]], Mapping[str, Any]]:
    """The sums of the units of the least level that has at most so many, from all of them."""

    def oracle(rows: Sequence[Any]) -> Mapping[str, Any]:
        units: dict[int, list[tuple[Fraction, Fraction]]] = {}
        for unit, value, weight in rows:
            row = Fraction(value), Fraction(weight)
            units.setdefault(hash_of(unit, "streammetrics units"), []).append(row)
        level = 0
        while sum(mark < 1 << (64 - level) for mark in units) > max_units:
            level += 1
        sample = [values for mark, values in units.items() if mark < 1 << (64 - level)]
        n, total = len(sample), sum((x for unit in sample for x, _ in unit), Fraction(0))
        below = sum((w for unit in sample for _, w in unit), Fraction(0))
        events = sum(max(x for x, _ in unit) > 0 for unit in sample)
        return {
            "level": level,
            "sampled": n,
            "units": n << level,
            "mean": total / n if n else None,
            "rate": Fraction(events, n) if n else None,
            "ratio": total / below if below else None,
        }

    return oracle
