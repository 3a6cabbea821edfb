"""Cases of OffPolicy: with and without predictions, clipping, and a limit of rewards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from hypothesis import strategies as st

from streammetrics import OffPolicy, Ratio
from streammetrics.testing import Case, strategies

Rows: TypeAlias = Sequence[tuple[float, ...]]
NAN = float("nan")

_logged = st.sampled_from((1.0, 0.5, 1 / 34, 0.1, 2.0**-24, 1e-60)) | st.floats(1e-60, 1.0)
_numbers = st.sampled_from((0.0, 1.0, 1.0, 0.1, -0.1, 1e16, 1e60, 1e-300, -1e-60)) | st.floats(
    -1e60, 1e60
)
_GOOD: dict[str, object] = {"logged": [0.5, 1.0], "target": [0.25, 0.0], "rewards": [1, 0]}
_REFUSED: tuple[dict[str, object], ...] = (
    {**_GOOD, "logged": [0.5, 0.0]},
    {**_GOOD, "logged": [0.5, NAN]},
    {**_GOOD, "logged": [None, 0.5]},
    {**_GOOD, "logged": [0.5, 1e-70]},
    {**_GOOD, "logged": [0.5, 1.5]},
    {**_GOOD, "logged": None},
    {**_GOOD, "target": [0.5, -0.1]},
    {**_GOOD, "target": ["0.5", "1"]},
    {**_GOOD, "target": [0.5]},
    {**_GOOD, "target": 0.5},
    {**_GOOD, "rewards": [1, math.inf]},
    {**_GOOD, "rewards": [1e61, 0]},
    {**_GOOD, "predicted_logged": [0.5, 0.5]},
    {**_GOOD, "predicted_logged": [0.5, NAN], "predicted_target": [0.5, 0.5]},
)


def _factor(number: float) -> Fraction:
    """A number, or 0 where it is too small for exact products."""
    return Fraction(number) if abs(number) >= 2.0**-200 else Fraction(0)


def _over(above: Fraction, below: Fraction | int) -> Fraction | None:
    return above / below if below else None


def values(rows: Rows, clip: float) -> dict[str, Any]:
    """By the definitions, in fractions; only the weight is rounded."""
    n, zero = len(rows), Fraction(0)
    weights = [_factor(target / logged) for logged, target, *_ in rows]
    rewards = [_factor(row[2]) for row in rows]
    pairs = [*zip(weights, rewards, strict=True)]
    total = sum(weights, zero)
    weighted = sum((w * r for w, r in pairs), zero)
    clipped = sum((min(w, Fraction(clip)) * r for w, r in pairs), zero)
    raw = {"snips": _over(weighted, total), "ips": _over(weighted, n), "clipped": _over(clipped, n)}
    predicted = sum(len(row) == 5 for row in rows)
    dr = sndr = None
    if predicted == n > 0:
        p = sum((_factor(row[4]) for row in rows), zero)
        correction = sum(
            (w * (r - _factor(row[3])) for (w, r), row in zip(pairs, rows, strict=True)), zero
        )
        dr, sndr = (p + correction) / n, p / n + correction / total if total else None
    return {
        "raw": {**raw, "dr": dr, "sndr": sndr},
        "snips": None,  # of so few rows
        "rows": n,
        "nonzero_rewards": sum(r != 0 for r in rewards),
        "rows_clipped": sum(w > Fraction(clip) for w in weights),
        "rows_predicted": predicted,
        "mean_reward": _over(sum(rewards, zero), n),
        "mean_weight": _over(total, n),
        "effective_sample_size": _over(total * total, sum((w * w for w in weights), zero)),
        "largest_weight": max(weights, default=None),
        "largest_share": _over(max(weights, default=zero), total),
        "share_clipped": _over(Fraction(sum(w > Fraction(clip) for w in weights)), n),
    }


def _case(metric: OffPolicy, row: st.SearchStrategy[Any], *names: str, **more: Any) -> Case[Any]:
    oracle: Callable[[Rows], dict[str, Any]] = lambda rows: values(rows, metric.clip)  # noqa: E731
    columns = strategies.columns("logged", "target", "rewards", *names)
    variants = (OffPolicy(clip=7.0), OffPolicy(reward_limit=2.0), Ratio())
    return Case(metric, row, columns, refused=_REFUSED, others=variants, oracle=oracle, **more)


_predicted = st.tuples(
    _logged, strategies.probabilities(), strategies.probabilities(), _numbers, _numbers
)
_SMALL = ((0.5, 1.0, 1.0), (0.05, 1.0, 0.1), (1.0, 0.0, 1.0), (0.3, 0.3, 0.0), (1.0, 5e-324, 1.0))

OFF_POLICY = [
    _case(OffPolicy(), st.tuples(_logged, strategies.probabilities(), _numbers), small=_SMALL),
    _case(
        OffPolicy(clip=0.75, reward_limit=1.0),
        _predicted,
        *("predicted_logged", "predicted_target"),
        small=[(*row[:2], abs(row[2]), 0.5, 0.25) for row in _SMALL],
        name="OffPolicy(clip=0.75, reward_limit=1.0) with predictions",
    ),
]
