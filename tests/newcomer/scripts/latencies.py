import polars as pl

from streammetrics import ExactQuantiles, PerKey, Quantiles

day = pl.read_parquet("day.parquet")
small, exact = PerKey(Quantiles()), PerKey(ExactQuantiles())  # of one size; of every value
for metric in (small, exact):
    metric.update_from(day, key="variant", values="latency_ms")
print(small.compute())
p95, p99 = (small.compute()["new"].quantile(share) for share in (0.95, 0.99))
exact_p99 = exact.compute()["new"].p99
