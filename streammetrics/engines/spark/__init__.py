"""Accumulators on Spark: states of tables, their merge and results, and states of a stream.

It uses no RDD, driver accumulator or broadcast, so it also runs over Spark Connect. Recommended
settings: `spark.sql.execution.arrow.maxRecordsPerBatch=65536`, and for streams the RocksDB state
store. Executors need this package; PYSPARK_PYTHON must name a Python that has it.
"""

try:
    import pyspark as _pyspark  # noqa: F401 - only to say what to install
except ImportError as error:
    raise ImportError(
        "streammetrics.engines.spark needs pyspark: "
        "pip install '.[spark]' in a clone of streammetrics"
    ) from error

from streammetrics.engines.spark.frames import aggregate, merge, results, states
from streammetrics.engines.spark.micro_batches import stream
from streammetrics.engines.spark.sql_counts import counts

__all__ = ["aggregate", "counts", "merge", "results", "states", "stream"]
