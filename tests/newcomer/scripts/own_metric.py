import numpy as np
import polars as pl

from streammetrics.authoring import Batch, Inputs, Mean, Real


class MAPE(Mean, schema="my-shop.mape/1"):
    inputs = Inputs(labels=Real(), scores=Real())

    def value(self, batch: Batch) -> np.ndarray:
        wrong: np.ndarray = np.abs(batch.labels - batch.scores) / np.abs(batch.labels)
        return wrong


metric = MAPE()
metric.update_from(pl.read_parquet("day.parquet"), labels="price", scores="predicted_price")
error, interval = metric.compute().mean, metric.confidence_interval()
