"""What a user's file may say: mypy and pyright take it under their strictest settings."""

from streammetrics import HistogramAUC, Panel, PerKey, Ratio, UserGroups, Windows

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
