import polars as pl

from streammetrics import HistogramAUC

metric = HistogramAUC()
metric.update_from(pl.read_parquet("day.parquet"), labels="click", scores="score")
curve = metric.compute()
best = curve.best("youden")  # TPR - FPR
point = best.points[0]
print(f"at {point.threshold:.3f}: {best.value}, recall {point.rates.recall:.3f}")
curve.plot("roc", title="All impressions").save("roc.svg")
