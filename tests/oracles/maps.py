"""Maps of metrics by brute force: the rows of each key or window, and the inner oracle of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

Oracle: TypeAlias = Callable[[Sequence[Any]], Mapping[Any, Any]]


def rank(key: object) -> tuple[int, bytes]:
    """The order in which keys are kept, the smallest first."""
    text = json.dumps(key, separators=(",", ":")).encode()
    return int.from_bytes(blake2b(text, digest_size=8, key=b"streammetrics-key/1").digest()), text


def rows_of_keys(
    rows: Sequence[tuple[Any, Any]], max_keys: int
) -> tuple[dict[Any, list[Any]], list[Any] | None]:
    """The rows of each key that is kept, and those of all others, if there are others."""
    keys = set(sorted({key for key, _ in rows}, key=rank)[:max_keys])
    by_key: dict[Any, list[Any]] = {key: [] for key in keys}
    overflow = []
    for key, row in rows:
        (by_key[key] if key in keys else overflow).append(row)
    return by_key, overflow or None


def rows_of_windows(
    rows: Sequence[tuple[int, Any]], size_ms: int, slide_ms: int
) -> dict[tuple[int, int], list[Any]]:
    """The rows of each window [start, end) with rows; starts are the multiples of the slide."""
    spans: dict[tuple[int, int], list[Any]] = {}
    for time, row in rows:
        start = time - time % slide_ms
        while time < start + size_ms:
            spans.setdefault((start, start + size_ms), []).append(row)
            start -= slide_ms
    return spans


def per_key(inner: Oracle, max_keys: int) -> Oracle:
    """The values of each key that is kept, and of the overflow."""

    def oracle(rows: Sequence[Any]) -> Mapping[Any, Any]:
        by_key, overflow = rows_of_keys(rows, max_keys)
        values = {key: inner(key_rows) for key, key_rows in by_key.items()}
        return values if overflow is None else {**values, "overflow": inner(overflow)}

    return oracle


def windows(inner: Oracle, size_ms: int, slide_ms: int) -> Oracle:
    """The values of each window, and of all rows."""

    def oracle(rows: Sequence[Any]) -> Mapping[Any, Any]:
        spans = rows_of_windows(rows, size_ms, slide_ms)
        values = {span: inner(span_rows) for span, span_rows in spans.items()}
        return {**values, "total": inner([row for _, row in rows])}

    return oracle
