from streammetrics.classification import *
from streammetrics.combine import Paired as Paired
from streammetrics.combine import Panel as Panel
from streammetrics.combine import PerKey as PerKey
from streammetrics.combine import StoredPerKey as StoredPerKey
from streammetrics.combine import Units as Units
from streammetrics.combine import UserGroups as UserGroups
from streammetrics.combine import Windows as Windows
from streammetrics.combine import drift as drift
from streammetrics.core.accumulator import Accumulator as Accumulator
from streammetrics.core.errors import ArgumentError as ArgumentError
from streammetrics.core.errors import InputError as InputError
from streammetrics.core.errors import OverlapError as OverlapError
from streammetrics.core.errors import SettingsError as SettingsError
from streammetrics.core.errors import StateError as StateError
from streammetrics.core.errors import StreamMetricsError as StreamMetricsError
from streammetrics.core.errors import UnknownKeyError as UnknownKeyError
from streammetrics.core.expressions import Expression as Expression
from streammetrics.core.ids.id_hashes import HashedIds as HashedIds
from streammetrics.core.ids.id_hashes import hash_ids as hash_ids
from streammetrics.core.ids.id_hashes import hash_texts as hash_texts
from streammetrics.core.interval import Interval as Interval
from streammetrics.core.provenance import Provenance as Provenance
from streammetrics.core.rows import DictionaryColumn as DictionaryColumn
from streammetrics.distributions import *
from streammetrics.evaluation import compare_runs as compare_runs
from streammetrics.evaluation import evaluate as evaluate
from streammetrics.experiments import ConfidenceSequence as ConfidenceSequence
from streammetrics.experiments import compare as compare
from streammetrics.experiments import plan_test as plan_test
from streammetrics.join import END_OF_TIME as END_OF_TIME
from streammetrics.join import Exposed as Exposed
from streammetrics.join import ExposedRows as ExposedRows
from streammetrics.join import Joined as Joined
from streammetrics.join import JoinRows as JoinRows
from streammetrics.join import LabelDelays as LabelDelays
from streammetrics.kernels.tables.probabilities import recalibrated as recalibrated
from streammetrics.machine import check_machine as check_machine
from streammetrics.policies import *
from streammetrics.ranking import *
from streammetrics.registry import load as load
from streammetrics.results import Bounded as Bounded
from streammetrics.stored.store_reader import StoreReader as StoreReader
from streammetrics.stored.store_reader import open as open
from streammetrics.stored.stored_experiment import StoredExperiment as StoredExperiment
from streammetrics.stored.stored_experiment import StoredFinding as StoredFinding

__version__: str
