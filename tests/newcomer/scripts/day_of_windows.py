import polars as pl

from streammetrics import HistogramAUC, Windows

hours = Windows(HistogramAUC(), size_s=3_600)
hours.update_from(pl.read_parquet("day.parquet"), time="at", labels="click", scores="score")
result = hours.compute()
print(result)
frame = result.to_frame("polars")
whole_day = result.total.auc
result.plot(title="A day").save("day.svg")
