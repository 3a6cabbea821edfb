"""What the type checker refuses: each line ends with the code of the error that it must give."""

from __future__ import annotations

from streammetrics import HistogramAUC, Panel, PerKey, Ratio, UserGroups, Windows
from streammetrics.core.accumulator import Accumulator


def what_is_refused() -> None:
    auc = HistogramAUC()
    HistogramAUC(resolutions=3)  # E: call-arg
    HistogramAUC(resolution="3")  # E: arg-type
    auc.resolution = 4  # E: misc
    auc + Ratio()  # E: operator
    auc.merge(Ratio())  # E: arg-type
    auc.merge([Ratio()])  # E: list-item
    auc.update([1])  # E: call-arg
    PerKey()  # E: call-arg
    PerKey(Ratio)  # E: arg-type
    Windows(Ratio(), "60")  # E: arg-type
    Panel({"auc": 3})  # E: dict-item
    PerKey(auc).compute()["a"].ratio()  # E: attr-defined
    Windows(auc, 60).compute().total.ratio()  # E: attr-defined
    UserGroups(auc).compute().value.ratio()  # E: attr-defined
    Accumulator()  # E: abstract
