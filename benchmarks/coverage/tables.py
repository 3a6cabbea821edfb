"""All tables of the page, in its order."""

from __future__ import annotations

from benchmarks.coverage.areas import AREAS
from benchmarks.coverage.chosen import CHOSEN
from benchmarks.coverage.daily_units import DAILY_UNITS
from benchmarks.coverage.doubly_robust import DOUBLY_ROBUST
from benchmarks.coverage.drifts import DRIFTS
from benchmarks.coverage.exposed import EXPOSED, EXPOSED_LATER
from benchmarks.coverage.exposed_once import EXPOSED_ONCE
from benchmarks.coverage.fading import FADING
from benchmarks.coverage.hooks import HOOKS
from benchmarks.coverage.looks import BURN_IN, PEEKING, POWER, STREAMS
from benchmarks.coverage.off_policy import OFF_POLICY
from benchmarks.coverage.one_look import ONE_LOOK, TWO_ARMS
from benchmarks.coverage.overlapping import OVERLAPPING
from benchmarks.coverage.pairs import PAIRED_USERS, PAIRS
from benchmarks.coverage.planned import PLANNED
from benchmarks.coverage.policies import POLICIES
from benchmarks.coverage.quantiles import QUANTILES
from benchmarks.coverage.ramps import RAMPS
from benchmarks.coverage.scales import SCALES_OF_SCORES
from benchmarks.coverage.skewed import SKEWED
from benchmarks.coverage.sparse import SPARSE, ZEROS
from benchmarks.coverage.units import SAMPLE_RATIO
from benchmarks.coverage.uplifts import UPLIFTS
from benchmarks.coverage.users import USERS, USERS_PEEKED
from benchmarks.coverage.verdicts import VERDICTS

TABLES = (
    PEEKING,
    ONE_LOOK,
    TWO_ARMS,
    SKEWED,
    USERS,
    CHOSEN,
    SCALES_OF_SCORES,
    PAIRS,
    PAIRED_USERS,
    STREAMS,
    POWER,
    PLANNED,
    BURN_IN,
    VERDICTS,
    AREAS,
    ZEROS,
    SPARSE,
    USERS_PEEKED,
    QUANTILES,
    EXPOSED,
    EXPOSED_ONCE,
    EXPOSED_LATER,
    RAMPS,
    OVERLAPPING,
    SAMPLE_RATIO,
    DAILY_UNITS,
    FADING,
    HOOKS,
    DRIFTS,
    UPLIFTS,
    POLICIES,
    OFF_POLICY,
    DOUBLY_ROBUST,
)
