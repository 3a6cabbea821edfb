import polars as pl

from streammetrics import ExactQuantiles, drift

day = pl.read_parquet("day.parquet")
reference, today = ExactQuantiles(), ExactQuantiles()
reference.update(day["old_score"])
today.update(day["score"])
found = drift(reference, today)
print(found)
