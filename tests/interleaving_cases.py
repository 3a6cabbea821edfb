"""Cases of interleaving: whole lists with clicks of both teams, and single items by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from hypothesis import strategies as st

from streammetrics import GroupedInterleaving, HistogramAUC, Interleaving
from streammetrics.testing import Case, strategies

Rows: TypeAlias = Sequence[Any]
NAN, INF = float("nan"), float("inf")


def outcome(clicks: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """By the definition, from the clicks of both sides in each list or group."""
    shown = [(a, b) for a, b in clicks if a or b]
    wins_a, wins_b = sum(a > b for a, b in shown), sum(b > a for a, b in shown)
    ties, n = sum(a == b for a, b in shown), len(shown)
    return {
        "wins_a": wins_a,
        "wins_b": wins_b,
        "ties": ties,
        "no_click": len(clicks) - n,
        "preference": (wins_b + Fraction(ties, 2)) / n - Fraction(1, 2) if n else None,
        "win_share_a": Fraction(wins_a, n) if n else None,
        "win_share_b": Fraction(wins_b, n) if n else None,
    }


def lists(rows: Rows) -> dict[str, Any]:
    return {**outcome(rows), "rows": len(rows)}


def groups(rows: Rows) -> dict[str, Any]:
    clicks: dict[object, list[int]] = {}
    for clicked, team, group in rows:
        clicks.setdefault(group, [0, 0])[team] += clicked
    return {**outcome([(a, b) for a, b in clicks.values()]), "rows": len(rows)}


def _past(limit: int) -> Callable[[Rows], dict[str, Any]]:
    def oracle(rows: Rows) -> dict[str, Any]:
        return groups(rows) if len(rows) <= limit else {"preference": None, "rows": len(rows)}

    return oracle


_clicks = st.sampled_from((0, 0, 0.0, 1, 1, 2, 0.5, 5e-324, 1e300))
_team = strategies.labels()


def _lists(metric: Interleaving, *others: Interleaving) -> Case[Any]:
    return Case(
        metric,
        st.tuples(_clicks, _clicks),
        strategies.columns("clicks_a", "clicks_b"),
        refused=[
            {"clicks_a": bad, "clicks_b": [0, 0]}
            for bad in ([0, -1], [-5e-324, 0], [0, NAN], [0, INF], [0, "1"], [0], [[0, 0]], 0)
        ],
        others=(*others, GroupedInterleaving(), HistogramAUC()),
        oracle=lists,
        small=[(0, 0), (1, 0), (0, 2), (1, 1)],
    )


def _groups(
    metric: GroupedInterleaving,
    ids: st.SearchStrategy[Any],
    oracle: Callable[[Rows], Any] = groups,
    *others: GroupedInterleaving,
) -> Case[Any]:
    return Case(
        metric,
        st.tuples(_team, _team, ids),
        strategies.columns("labels", "teams", "groups"),
        refused=[
            {"labels": [0, 1], "teams": [0, 2], "groups": [1, 1]},
            {"labels": [0, 1], "teams": [0, "b"], "groups": [1, 1]},
            {"labels": [0, 2], "teams": [0, 1], "groups": [1, 1]},
            {"labels": [0, 1], "teams": [0, 1], "groups": [1]},
            {"labels": [0, 1], "teams": [0, 1], "groups": [1, 1.5]},
        ],
        others=(*others, Interleaving()),
        oracle=oracle,
    )


_names = st.sampled_from(["ann", "bo", "", "é", "甲"])
INTERLEAVING = [
    _lists(Interleaving(), Interleaving(method="balanced")),
    _lists(Interleaving(method="balanced"), Interleaving()),
    _groups(GroupedInterleaving(), strategies.ids(), groups, GroupedInterleaving(max_rows=9)),
    _groups(GroupedInterleaving(ids="exact"), _names, groups, GroupedInterleaving(ids="hashed")),
    _groups(GroupedInterleaving(max_rows=9), st.integers(0, 2), _past(9), GroupedInterleaving()),
]
