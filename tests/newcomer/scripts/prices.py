import polars as pl

from streammetrics import Regression

metric = Regression()
metric.update_from(pl.read_parquet("day.parquet"), labels="price", scores="predicted_price")
errors = metric.compute()
print(errors)
