from concurrent.futures import ProcessPoolExecutor

import polars as pl

from streammetrics import ExactAUC


def count(shard: int) -> ExactAUC:
    metric = ExactAUC()
    metric.update_from(pl.read_parquet(f"shard-{shard}.parquet"), labels="click", scores="score")
    return metric


if __name__ == "__main__":
    with ProcessPoolExecutor(8) as pool:
        sum(pool.map(count, range(8)), ExactAUC()).save("day.state")
