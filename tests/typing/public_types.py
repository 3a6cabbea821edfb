"""What the type checker knows about the public names; mypy checks it with the sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_type

import numpy as np
import polars

from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Bounded,
    ExactAUC,
    HistogramAUC,
    Panel,
    PerKey,
    Provenance,
    RankingMetrics,
    Ratio,
    SlidingAUC,
    UserGroups,
    Windows,
    compare_runs,
    evaluate,
    load,
)
from streammetrics.combine import KeyedResult, PanelResult, WindowsResult
from streammetrics.core.parts.weighted_counts import WeightedCounts, WeightedCountsColumn
from streammetrics.core.rows import Key
from streammetrics.evaluation import Evaluation, RunDifference
from streammetrics.results.areas import SlidingArea
from streammetrics.results.list_results import Averages
from streammetrics.results.rates import Rates
from streammetrics.results.score_curve import ScoreCurve
from streammetrics.results.sums import Quotient


def what_is_known() -> None:
    auc = HistogramAUC(resolution=6)
    assert_type(auc.resolution, int)
    assert_type(auc.counts, WeightedCountsColumn)
    assert_type(HistogramAUC.counts, WeightedCounts)
    assert_type(auc.compute(), ScoreCurve[Bounded])
    assert_type(ExactAUC().compute().auc, float)
    assert_type(auc.compute().best().value, Bounded)
    assert_type(auc + auc, HistogramAUC)
    assert_type(auc.copy(), HistogramAUC)
    assert_type(auc.empty(), HistogramAUC)
    assert_type(HistogramAUC.from_bytes(auc.to_bytes()), HistogramAUC)
    assert_type(HistogramAUC.load("day.state"), HistogramAUC)
    assert_type(auc.digest(), str)
    assert_type(auc.nbytes, int)
    assert_type(auc.provenance, Provenance)
    assert_type(auc.arguments(), Mapping[str, bool])
    assert_type(auc.merge(metric for metric in [auc]), None)
    assert_type(load(b""), Accumulator)

    polars_frame = polars.DataFrame({"click": [1], "p": [0.5]})
    assert_type(auc.update_from(polars_frame, labels="click", scores="p"), None)
    auc.update_from({"click": [1], "p": np.array([0.5]), "who": ["ann"]}, labels="click")
    PerKey(auc).update_from(polars_frame, key=["variant", "country"], labels="click")

    assert_type(ExactAUC(max_rows=3).max_rows, int | None)
    assert_type(BinaryConfusion().compute(), Rates)
    assert_type(BinaryConfusion().compute().precision, float)
    assert_type(SlidingAUC(5).compute(), SlidingArea)
    assert_type(Ratio().compute(), Quotient)
    assert_type(Ratio().compute().ratio, float)
    assert_type(RankingMetrics(["MRR"]).compute(), Averages)
    assert_type(RankingMetrics(["MRR"]).compute()["MRR"], float)
    assert_type(evaluate({"q": {"d": 1}}, {"q": ["d"]}, "map"), Evaluation)
    sliced = evaluate({"q": {"d": 1}}, {"q": ["d"]}, ["map"], by={"q": "short"}, like="trec_eval")
    assert_type(sliced["map"], float)
    assert_type(sliced.slices["short"], Evaluation)
    assert_type(sliced.geometric_mean("map"), float)
    assert_type(compare_runs({}, {"a": {}, "b": {}}, "map").difference("b", "map"), RunDifference)

    panel = Panel({"auc": auc, "ctr": Ratio()}, inputs={"ctr": {"numerators": "labels"}})
    assert_type(panel.metrics, Mapping[str, Accumulator])
    assert_type(panel.compute(), PanelResult)
    assert_type(panel.compute()["auc"], Any)
    assert panel.compute()["auc"].auc
    assert_type(panel.state("auc"), Accumulator)

    keyed = PerKey(panel, 100)
    assert_type(keyed.metric, Accumulator)
    assert_type(keyed.compute(), KeyedResult[PanelResult])
    assert keyed.compute()["de"]["auc"].auc
    assert_type(PerKey(auc).compute()["de"], ScoreCurve[Bounded])
    assert_type(PerKey(auc).compute()["de"].positives, int | None)
    assert_type(UserGroups(Ratio()).compute().value.ratio, float)
    assert_type(keyed.keys(), tuple[Key, ...])
    assert_type(keyed.overflow_state(), Accumulator | None)
    assert_type(keyed.split(4), list[PerKey[PanelResult]])
    assert_type(keyed.project("auc"), PerKey[Any])

    hourly = Windows(keyed, size_s=3600, slide_s=60)
    assert_type(hourly.slide_s, float | None)
    assert_type(hourly.compute(), WindowsResult[KeyedResult[PanelResult]])
    assert_type(Windows(auc, 60).compute().total, ScoreCurve[Bounded])
    assert_type(hourly.panes(), dict[int, Accumulator])
    assert_type(hourly.windows(), tuple[tuple[int, int], ...])
