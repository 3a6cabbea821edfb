"""All tables of the page, in its order."""

from __future__ import annotations

from benchmarks.coverage.drifts import DRIFTS
from benchmarks.coverage.looks import BURN_IN, PEEKING, POWER, STREAMS
from benchmarks.coverage.one_look import ONE_LOOK, TWO_ARMS
from benchmarks.coverage.pairs import PAIRS
from benchmarks.coverage.policies import POLICIES
from benchmarks.coverage.quantiles import QUANTILES
from benchmarks.coverage.ramps import RAMPS
from benchmarks.coverage.scales import SCALES_OF_SCORES
from benchmarks.coverage.skewed import SKEWED
from benchmarks.coverage.sparse import SPARSE, ZEROS
from benchmarks.coverage.units import SAMPLE_RATIO
from benchmarks.coverage.uplifts import UPLIFTS
from benchmarks.coverage.users import USERS, USERS_PEEKED

TABLES = (
    PEEKING,
    ONE_LOOK,
    TWO_ARMS,
    SKEWED,
    USERS,
    SCALES_OF_SCORES,
    PAIRS,
    STREAMS,
    POWER,
    BURN_IN,
    ZEROS,
    SPARSE,
    USERS_PEEKED,
    QUANTILES,
    RAMPS,
    SAMPLE_RATIO,
    DRIFTS,
    UPLIFTS,
    POLICIES,
)
