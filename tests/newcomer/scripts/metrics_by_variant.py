import polars as pl

from streammetrics import Calibration, HistogramAUC, Panel, PerKey

day = pl.read_parquet("day.parquet")
by_variant = PerKey(Panel({"auc": HistogramAUC(), "losses": Calibration()}))
by_variant.update_from(day, key="variant", labels="click", scores="score")
result = by_variant.compute()
print(result)
frame = result.to_frame("polars")
areas = {variant: panel["auc"].auc for variant, panel in result.items()}
losses = {variant: panel["losses"].log_loss for variant, panel in result.items()}
