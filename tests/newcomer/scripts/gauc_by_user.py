import polars as pl

from streammetrics import GroupedAUC

metric = GroupedAUC()
metric.update_from(pl.read_parquet("day.parquet"), labels="click", scores="score", groups="user")
result = metric.compute()
print(result)
gauc, users, of_one_class = result.gauc, result.groups_kept, result.groups_one_class
