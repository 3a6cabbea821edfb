import polars as pl

from streammetrics import Calibration, ExactAUC, Paired

day = pl.read_parquet("day.parquet")
areas, losses = Paired(ExactAUC()), Paired(Calibration())
areas.update_from(day, labels="click", scores_a="score", scores_b="old_score")
losses.update_from(day, labels="click", scores_a="score", scores_b="old_score")
print(areas.compute(), losses.compute(), sep="\n")
area = areas.compute().interval()
loss = losses.compute().interval("log_loss")
