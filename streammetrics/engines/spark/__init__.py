"""Accumulators over Spark: batch states, their merge and results, and states of a stream.

Nothing here is an RDD, a driver's accumulator or a broadcast, so it runs over Spark Connect too.
What helps: `spark.sql.execution.arrow.maxRecordsPerBatch=65536`, and for streams the state store
of RocksDB. Executors need this package, and PYSPARK_PYTHON names the Python that has it.
"""

try:
    import pyspark as _pyspark  # noqa: F401 - only to say what to install
except ImportError as error:
    raise ImportError(
        "streammetrics.engines.spark needs pyspark: pip install 'streammetrics[spark]'"
    ) from error

from streammetrics.engines.spark.batch import aggregate, merge, results, states
from streammetrics.engines.spark.counts import counts
from streammetrics.engines.spark.stream import stream

__all__ = ["aggregate", "counts", "merge", "results", "states", "stream"]
