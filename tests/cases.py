"""A Case for every public accumulator: its settings, rows, refusals, and exact values.

`CASES` is what the laws run over; a public accumulator that is not in it fails `test_laws.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import hypothesis
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    CatalogMetrics,
    ExactAUC,
    Exposed,
    ExposedRows,
    GroupedAUC,
    GroupedScores,
    HistogramAUC,
    IntraListSimilarity,
    ItemExposure,
    Joined,
    JoinRows,
    Paired,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    Regression,
    UnitMean,
    UnitRate,
    Units,
    Uplift,
    UserGroups,
    Windows,
)
from streammetrics.testing import Case, strategies
from tests.calibration_cases import CALIBRATION
from tests.distribution_cases import DISTRIBUTIONS
from tests.diversity_cases import DIVERSITY
from tests.exposure_cases import EXPOSURES, ONE_OF_ONE
from tests.exposure_cases import ONE_EVENT as ONE_EXPOSED_EVENT
from tests.grouped_scores_cases import GROUPED_SCORES
from tests.interleaving_cases import INTERLEAVING
from tests.join_cases import JOINS, ONE_EVENT
from tests.list_cases import RANKING, ranked
from tests.many_classes_cases import MANY_CLASSES, ONE_ROW, flags
from tests.off_policy_cases import OFF_POLICY
from tests.oracles import maps
from tests.paired_cases import PAIRED
from tests.plain_cases import (
    BINARY,
    GROUPED,
    NAN,
    PLAIN,
    RATIOS,
    Rows,
    area,
    rates,
    ratio,
)
from tests.uplift_cases import UPLIFT
from tests.user_cases import USERS, of_units, units
from tests.weighted_cases import TO_NOTHING
from tests.weighted_classes_cases import WEIGHTED_CLASSES


def panel() -> Case[Any]:
    """Clicks with a score and a propensity: four metrics, one of them of another column."""
    metric = Panel(
        {
            "auc": HistogramAUC(resolution=3),
            "propensity": ExactAUC(),
            "hits": BinaryConfusion(),
            "ctr": Ratio(),
        },
        inputs={"ctr": {"numerators": "labels"}, "propensity": {"scores": "propensities"}},
    )

    def oracle(rows: Rows) -> dict[str, Any]:
        scored, propensity_rows = [(y, s) for y, s, _ in rows], [(y, p) for y, _, p in rows]
        return {
            "auc": area(scored),
            "propensity": area(propensity_rows),
            "hits": rates(scored),
            "ctr": ratio([(y, 1) for y, _ in scored]),
        }

    good = {"labels": [0, 1], "scores": [0.1, 0.2], "propensities": [0.3, 0.4]}
    return Case(
        metric,
        st.tuples(strategies.labels(), strategies.probabilities(), strategies.scores()),
        strategies.columns("labels", "scores", "propensities"),
        refused=[
            {**good, "propensities": [0.3, NAN]},  # bad for one metric alone
            {**good, "scores": [0.3, 1.5]},
            {**good, "denominators": [1, NAN]},
            {**good, "labels": [0, 2]},
            {**good, "colours": [1, 2]},
            {"labels": [0, 1], "scores": [0.1, 0.2]},
            {},
        ],
        others=(Panel({"auc": HistogramAUC(resolution=3)}), Panel(metric.metrics), Ratio()),
        oracle=oracle,
        name="Panel of four",
    )


def per_key(inner: Case[Any], max_keys: int) -> Case[Any]:
    """Rows (key, row of the inner case)."""

    def columns(rows: Rows) -> dict[str, object]:
        return {"keys": [key for key, _ in rows], **inner.columns([row for _, row in rows])}

    return Case(
        PerKey(inner.empty, max_keys),
        st.tuples(strategies.keys(), inner.row),
        columns,
        refused=[
            *({"keys": ["a", "b"], **bad} for bad in inner.refused if bad),
            *({**_first(inner), "keys": keys} for keys in ([1.5], [b"a"], ["a", "b"], "a", [])),
        ],
        others=(PerKey(inner.empty, max_keys + 1), PerKey(Panel({"x": inner.empty}), max_keys)),
        oracle=maps.per_key(inner.oracle, max_keys) if inner.oracle else None,
        name=f"PerKey({inner}, {max_keys})",
    )


def windows(inner: Case[Any], size_s: float, slide_s: float | None = None) -> Case[Any]:
    """Rows (time in milliseconds, row of the inner case)."""

    def columns(rows: Rows) -> dict[str, object]:
        return {"times_ms": [time for time, _ in rows], **inner.columns([row for _, row in rows])}

    metric = Windows(inner.empty, size_s, slide_s)
    return Case(
        metric,
        st.tuples(strategies.times_ms(), inner.row),
        columns,
        refused=[
            *({"times_ms": [0, 1], **bad} for bad in inner.refused if bad),
            *({**_first(inner), "times_ms": t} for t in ([1.5], ["a"], [1 << 63], [0, 1], 3, [])),
        ],
        others=(Windows(inner.empty, 2 * size_s, slide_s), Ratio()),
        oracle=maps.windows(inner.oracle, metric.size_ms, metric.slide_ms)
        if inner.oracle
        else None,
        name=f"Windows({inner}, {size_s}, {slide_s})",
    )


def _first(inner: Case[Any]) -> Mapping[str, object]:
    """The columns of one good row."""
    of_form = {ranked: ([1], 0), flags: ((0, 1), (0.5, 0.5))}  # cases of one class in two forms
    if inner.small:
        return inner.columns(inner.small[:1])
    return inner.columns([of_form.get(inner.columns) or _ONE_ROW[type(inner.empty)]])


# What a case has no column for, such as the weight at the end, is left out.
_ONE_ROW: Mapping[type[Accumulator], Any] = {
    HistogramAUC: (1, 0.5, 1),
    ExactAUC: (1, 0.5, 1),
    BinaryConfusion: (1, 0.5, 1),
    Calibration: (1, 0.5, 1),
    Regression: (1, 1, 1),
    GroupedAUC: (1, 1, 0.5, 1),
    GroupedScores: (1, 0.5, 1),
    RankingMetrics: [(0.5, 1)],
    CatalogMetrics: [0, 1],
    IntraListSimilarity: [0, 1],
    ItemExposure: [0, 1],
    Panel: (1, 0.5, 0.5),
    PerKey: ("a", (1, 0.5, 0.5)),
    Units: (7,),
    UnitMean: (7, 1),
    UnitRate: (7, 1),
    UserGroups: (7, (1, 1)),
    Paired: ((1, 0.5, 1), (0, 0.25, 1)),
    Uplift: (1, 0.5, 1, 1),
    JoinRows: ONE_EVENT,
    Joined: ONE_EVENT,
    ExposedRows: ONE_EXPOSED_EVENT,
    Exposed: ONE_OF_ONE,
    **ONE_ROW,
}

COMBINED: list[Case[Any]] = [
    panel(),
    per_key(BINARY[0], 3),
    per_key(BINARY[9], 100),
    per_key(GROUPED[0], 2),
    per_key(TO_NOTHING, 2),
    windows(TO_NOTHING, 7200, 3600),
    per_key(MANY_CLASSES[0], 2),
    per_key(MANY_CLASSES[2], 3),
    per_key(MANY_CLASSES[5], 3),
    per_key(WEIGHTED_CLASSES[1], 2),
    per_key(WEIGHTED_CLASSES[2], 3),
    per_key(WEIGHTED_CLASSES[4], 2),
    windows(WEIGHTED_CLASSES[3], 7200, 3600),
    per_key(WEIGHTED_CLASSES[5], 2),
    windows(WEIGHTED_CLASSES[6], 7200, 3600),
    per_key(WEIGHTED_CLASSES[7], 2),
    per_key(RANKING[1], 4),
    per_key(DIVERSITY[0], 2),
    per_key(DIVERSITY[5], 2),
    per_key(GROUPED_SCORES[1], 2),
    per_key(CALIBRATION[1], 3),
    per_key(OFF_POLICY[1], 2),
    windows(CALIBRATION[3], 3600),
    per_key(panel(), 3),
    windows(BINARY[6], 3600),
    windows(BINARY[1], 10_800, 3600),
    windows(RATIOS[0], 7.5, 5),
    windows(MANY_CLASSES[1], 7200, 3600),
    windows(MANY_CLASSES[4], 7200, 3600),
    windows(RANKING[0], 86_400),
    windows(DIVERSITY[4], 3600),
    windows(GROUPED_SCORES[0], 7200, 3600),
    windows(per_key(panel(), 3), 7200, 3600),
    per_key(UPLIFT[3], 2),
]
SETS: list[Case[Any]] = [
    *JOINS,
    *EXPOSURES,
    per_key(EXPOSURES[0], 3),
    per_key(EXPOSURES[2], 2),
    per_key(JOINS[0], 3),
    per_key(JOINS[4], 2),
    per_key(USERS[0], 3),
    windows(units(1.0, None), 3600),
    windows(of_units(UnitMean, 0.75, 4), 3600),
    per_key(of_units(UnitRate, 1.0, None), 2),
]
OF_TWO: list[Case[Any]] = [*PAIRED, per_key(PAIRED[0], 3), windows(PAIRED[2], 3600)]
CASES = [
    *(*PLAIN, *COMBINED, *USERS, *SETS, *OF_TWO, *DISTRIBUTIONS),
    *(*INTERLEAVING, *OFF_POLICY, *UPLIFT),
]


@cache
def drawn_rows(case: Case[Any], n: int) -> Sequence[Any]:
    """A few rows of a case, always the same: the last that hypothesis thinks of."""
    samples: list[Sequence[Any]] = []

    @hypothesis.settings(max_examples=3, phases=[hypothesis.Phase.generate])
    @given(st.lists(case.row, min_size=n, max_size=n))
    def draw(sample: Sequence[Any]) -> None:
        samples.append(sample)

    draw()
    return samples[-1]
