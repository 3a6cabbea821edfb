"""Cases of uplift, on a grid and exactly, with and without weights, against its definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from hypothesis import strategies as st

from streammetrics import Accumulator, ExactUplift, HistogramAUC, Uplift
from streammetrics.testing import Case, strategies

Rows: TypeAlias = Sequence[Any]  # (label, score, treated) or (label, score, treated, weight)
NAN = float("nan")
Height: TypeAlias = Callable[[int, int, int, int], Fraction]
_UNDEFINED = (
    *("qini", "ate", "qini_radcliffe", "qini_radcliffe_relative", "gain", "gain_relative"),
)

# Few scores, so that there are ties, and of both signs and all sizes.
_score = st.one_of(st.sampled_from((-0.5, 0.0, 0.25, 0.5)), strategies.amounts())
_ROW = strategies.labels(), _score, strategies.labels()
_row = st.tuples(*_ROW)
_weighted = st.tuples(*_ROW, st.sampled_from((0, 1, 1, 2, 7, 300)))
_GOOD = {"labels": [0, 1], "scores": [0.5, 0.25], "treated": [0, 1]}
_REFUSED: tuple[dict[str, object], ...] = (
    {**_GOOD, "scores": [0.5, NAN]},
    {**_GOOD, "labels": [0, 2]},
    {**_GOOD, "treated": [0, 0.5]},
    {**_GOOD, "treated": ["a", "b"]},
    {**_GOOD, "treated": [1]},
)


def uplift(rows: Rows) -> dict[str, Any]:
    """By the definitions, row by row: tied rows have one mean rank, and one point of a curve."""
    plain = [(row[0], row[1], row[2], row[3] if len(row) > 3 else 1) for row in rows]
    weighted_rows = [row for row in plain if row[3]]
    n = sum(w for *_, w in weighted_rows)
    n_t, n_c = (sum(w for *_, t, w in weighted_rows if t == arm) for arm in (1, 0))
    result: dict[str, Any] = {"rows": len(weighted_rows)}
    if not (n_t and n_c):
        return result | dict.fromkeys(_UNDEFINED)
    effects = [Fraction(y * w, n_t) if t else Fraction(-y * w, n_c) for y, _, t, w in weighted_rows]
    scores = [score for _, score, _, _ in weighted_rows]
    above = {s: sum(w for _, x, _, w in weighted_rows if x > s) for s in set(scores)}
    tied = {s: sum(w for _, x, _, w in weighted_rows if x == s) for s in set(scores)}
    # The share of rows below, each tie being one half.
    after = {s: Fraction(2 * (n - above[s]) - tied[s], 2 * n) for s in set(scores)}
    ate = sum(effects, Fraction(0))
    qini = sum((e * after[s] for e, s in zip(effects, scores, strict=True)), Fraction(0)) - ate / 2
    return result | {
        "qini": qini,
        "ate": ate,
        "qini_radcliffe": _trapezoids(weighted_rows, _radcliffe),
        "gain": _trapezoids(weighted_rows, _gain),
        "qini_radcliffe_relative": _relative(
            weighted_rows, _radcliffe, lambda y, t: y * t - y * (1 - t)
        ),
        "gain_relative": _relative(
            weighted_rows, _gain, lambda y, t: 2 * (y == t) + (y if _fewer(weighted_rows) else t)
        ),
        "treated_share": Fraction(n_t, n),
    }


def _fewer(rows: Rows) -> bool:
    """Whether fewer treated rows fail than control rows succeed."""
    fail = sum(w for y, _, t, w in rows if t and not y)
    return fail < sum(w for y, _, t, w in rows if y and not t)


def _relative(rows: Rows, height: Height, perfect: Callable[[int, int], int]) -> Fraction | None:
    """Over that of the order that scikit-uplift calls perfect, both above their chord."""
    best = [(y, perfect(y, t), t, w) for y, _, t, w in rows]
    alike = [(y, 0, t, w) for y, _, t, w in rows]
    chord = _trapezoids(alike, height)
    above = _trapezoids(best, height) - chord
    return (_trapezoids(rows, height) - chord) / above if above else None


def _radcliffe(y_t: int, n_t: int, y_c: int, n_c: int) -> Fraction:
    return y_t - Fraction(y_c * n_t, n_c) if n_c else Fraction(y_t)


def _gain(y_t: int, n_t: int, y_c: int, n_c: int) -> Fraction:
    treated, control = (Fraction(y, n) if n else Fraction(0) for y, n in ((y_t, n_t), (y_c, n_c)))
    return (treated - control) * (n_t + n_c)


def _trapezoids(rows: Rows, height: Height) -> Fraction:
    area, last = Fraction(0), (0, Fraction(0))
    for cut in sorted({score for _, score, _, _ in rows}, reverse=True):
        top = [(y * w, t, w) for y, score, t, w in rows if score >= cut]
        counts = [
            (sum(y for y, t, _ in top if t == a), sum(w for _, t, w in top if t == a))
            for a in (1, 0)
        ]
        n, f = sum(w for *_, w in top), height(*counts[0], *counts[1])
        area += (n - last[0]) * (f + last[1]) / 2
        last = n, f
    return area


def _case(metric: Accumulator, mismatches: Sequence[Accumulator], **more: Any) -> Case[Any]:
    columns = "labels", "scores", "treated"
    row, columns = (
        (_weighted, (*columns, "weights")) if more.pop("weighted", False) else (_row, columns)
    )
    oracle: Callable[[Rows], dict[str, Any]] = more.pop("oracle", uplift)
    return Case(
        metric,
        row,
        strategies.columns(*columns),
        refused=_REFUSED,
        others=(*mismatches, HistogramAUC()),
        oracle=oracle,
        **more,
    )


def _past(limit: int) -> Callable[[Rows], dict[str, Any]]:
    def oracle(rows: Rows) -> dict[str, Any]:
        return uplift(rows) if len(rows) <= limit else {"qini": None, "rows": len(rows)}

    return oracle


UPLIFT = [
    _case(Uplift(), (Uplift(resolution=3), Uplift(treated_share=0.5), ExactUplift())),
    _case(Uplift(resolution=0, floor=0.5, ceiling=1.0), (Uplift(),)),
    _case(Uplift(grid="edges", edges=(0.25,)), (Uplift(),)),
    _case(Uplift(), (), weighted=True, name="Uplift() of weighted rows"),
    _case(ExactUplift(), (ExactUplift(max_rows=3), Uplift())),
    _case(ExactUplift(max_rows=8), (ExactUplift(),), oracle=_past(8)),
    _case(ExactUplift(), (), weighted=True, name="ExactUplift() of weighted rows"),
]
