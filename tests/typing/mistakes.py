"""What mypy refuses: it reports each `ignore` that is not needed or has another code."""

from __future__ import annotations

import streammetrics
from streammetrics import HistogramAUC, Panel, PerKey, Ratio, UserGroups, Windows
from streammetrics.core.accumulator import Accumulator


def what_is_refused() -> None:
    auc = HistogramAUC()
    HistogramAUC(resolutions=3)  # type: ignore[call-arg]
    HistogramAUC(resolution="3")  # type: ignore[arg-type]
    auc.resolution = 4  # type: ignore[misc]
    auc + Ratio()  # type: ignore[operator]
    auc.merge(Ratio())  # type: ignore[arg-type]
    auc.merge([Ratio()])  # type: ignore[list-item]
    auc.update([1])  # type: ignore[call-arg]
    auc.update_from("day.parquet")  # type: ignore[arg-type]
    auc.update_from({"y": [1]}, labels=1)  # type: ignore[arg-type]
    PerKey()  # type: ignore[call-arg]
    PerKey(Ratio)  # type: ignore[arg-type]
    Windows(Ratio(), "60")  # type: ignore[arg-type]
    Panel({"auc": 3})  # type: ignore[dict-item]
    PerKey(auc).compute()["a"].ratio()  # type: ignore[attr-defined]
    Windows(auc, 60).compute().total.ratio()  # type: ignore[attr-defined]
    UserGroups(auc).compute().value.ratio()  # type: ignore[attr-defined]
    Accumulator()  # type: ignore[abstract]
    streammetrics.HistogramAUCs()  # type: ignore[attr-defined]
