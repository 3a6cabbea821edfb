import polars as pl

from streammetrics import MulticlassConfusion

metric = MulticlassConfusion(n_classes=4)
day = pl.read_parquet("day.parquet")
metric.update_from(day, labels="category", predictions="predicted_category")
result = metric.compute()
print(result)
