"""What a user's file may say: mypy and pyright take it under their strictest settings."""

from dataclasses import dataclass, field

from streammetrics import HistogramAUC, Panel, PerKey, Ratio, UserGroups, Windows
from streammetrics.authoring import HIGHER, SHARE, Result, View

panel = Panel({"auc": HistogramAUC(), "ctr": Ratio()}, inputs={"ctr": {"numerators": "labels"}})
panel.update(labels=[0, 1], scores=[0.1, 0.9])
values = [
    panel.compute()["auc"].auc,
    PerKey(panel).compute()["de"]["auc"].auc,
    PerKey(HistogramAUC()).compute()["de"].auc,
    Windows(Ratio(), 60).compute().total.ratio,
    UserGroups(Ratio()).compute().value.ratio,
]
HistogramAUC().update([1], [0.5], weights=[2])


def of_key(state: PerKey, key: str) -> float:
    return float(state.compute()[key].auc)


@dataclass(frozen=True, repr=False)
class Depth(Result):
    mean: float = field(metadata=View(better=HIGHER))
    rows: int

    @property
    @View(better=HIGHER, range=SHARE)
    def read(self) -> float:
        return 0.5

    @View(better=HIGHER)
    def quantile(self, p: float) -> float:
        return p


declared: float = Depth(0.5, 3).read + Depth(mean=0.5, rows=3).mean + Depth(0.5, 3).quantile(0.5)
