"""Cases of Paired: the rows of another case, and what a second model gives to each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from streammetrics import BinaryConfusion, ExactAUC, HistogramAUC, Paired, Ratio
from streammetrics.testing import Case, strategies
from tests.calibration_cases import CALIBRATION
from tests.grouped_scores_cases import GROUPED_SCORES
from tests.list_cases import RANKING
from tests.plain_cases import BINARY, GROUPED, RATIOS, Rows
from tests.user_cases import user_groups
from tests.weighted_cases import WEIGHTED


def paired(inner: Case[Any], own_column: str = "scores") -> Case[Any]:
    """Rows (row of the inner case, row whose own column the second model has)."""

    def columns(rows: Rows) -> dict[str, object]:
        a, b = (dict(inner.columns([row[model] for row in rows])) for model in (0, 1))
        return {
            **{name: a[name] for name in a if name != own_column},
            **_pair(own_column, a[own_column], b[own_column]),
        }

    def oracle(rows: Rows) -> Mapping[str, Any]:
        assert inner.oracle is not None
        return {"value_a": inner.oracle([a for a, _ in rows])}

    empty = Paired(inner.empty)
    name = f"Paired({inner})"
    bad: list[dict[str, object]] = []
    for arguments in inner.refused:
        valid = {name: arguments[name] for name in arguments if name != own_column}
        column = arguments.get(own_column)
        bad.append({**valid, **_pair(own_column, column, column)})
    good = columns([(row, row) for row in inner.small[:2]]) if inner.small else {}
    return Case(
        empty,
        st.tuples(inner.row, inner.row),
        columns,
        refused=[*bad, {**good, own_column: [1, 2]}, {}],
        others=(inner.empty, Paired(Ratio(), "denominators"), Paired(HistogramAUC(resolution=2))),
        oracle=oracle if inner.oracle else None,
        name=name,
    )


def _pair(name: str, a: object, b: object) -> dict[str, object]:
    return {f"{name}_a": a, f"{name}_b": b}


AREAS: list[Case[Any]] = [case for case in BINARY if isinstance(case.empty, ExactAUC)]
_GRIDS: list[Case[Any]] = [case for case in BINARY if isinstance(case.empty, HistogramAUC)]
_TABLES: list[Case[Any]] = [case for case in BINARY if isinstance(case.empty, BinaryConfusion)]
_LIMITED: list[Case[Any]] = [case for case in AREAS if getattr(case.empty, "max_rows", None)]

PAIRED: list[Case[Any]] = [
    *map(paired, (AREAS[0], *_LIMITED[:1], _GRIDS[0], _GRIDS[-1], _TABLES[0])),
    *map(paired, (GROUPED[0], GROUPED[4], CALIBRATION[0], CALIBRATION[1], GROUPED_SCORES[0])),
    *map(paired, [case for case in WEIGHTED if "AUC(" in str(case)][:2]),
    paired(RATIOS[0], "numerators"),
    paired(user_groups(_GRIDS[0], 2)),
    paired(user_groups(RATIOS[0], 4), "numerators"),
    Case(
        Paired(RANKING[0].empty),
        st.lists(st.tuples(strategies.scores(), strategies.scores()), max_size=4),
        lambda rows: {
            "labels": [i % 2 for row in rows for i, _ in enumerate(row)],
            "judged": np.ones(sum(map(len, rows)), bool),  # bytes lack `complete_lists`
            "scores_a": [a for row in rows for a, _ in row],
            "scores_b": [b for row in rows for _, b in row],
            "offsets": [sum(map(len, rows[:i])) for i in range(len(rows) + 1)],
        },
        refused=[{"labels": [1], "scores_a": [0.5], "scores_b": [0.5], "offsets": [0, 2]}],
        others=(RANKING[0].empty,),
    ),
]
