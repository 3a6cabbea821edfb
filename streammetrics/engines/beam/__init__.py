"""Apache Beam: states of Arrow tables, their merge and their results, as PTransforms.

Rows come as Arrow tables or batches, such as `ReadFromParquetBatched` gives, never one at a time.
A state is bytes (an envelope: the state, and beside it what it counted), so that states can be
written, read again, and merged by any other engine.
"""

try:
    import apache_beam as _beam  # noqa: F401 - only to say what to install
except ImportError as error:
    raise ImportError(
        "streammetrics.engines.beam needs apache_beam: pip install 'streammetrics[beam]'"
    ) from error

from streammetrics.engines.beam.states_fn import StateCoder, StatesFn
from streammetrics.engines.beam.transforms import Aggregate, Merge, Results, States

__all__ = ["Aggregate", "Merge", "Results", "StateCoder", "States", "StatesFn"]
