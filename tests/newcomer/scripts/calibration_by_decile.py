import polars as pl

from streammetrics import Calibration

metric = Calibration(grid="relative", bins=10)
metric.update_from(pl.read_parquet("day.parquet"), labels="click", scores="score")
result = metric.compute()
deciles = result.reliability_by_mass(10)
frame, ece = deciles.to_frame("polars"), result.ece_by_mass
print(deciles, ece, sep="\n")
