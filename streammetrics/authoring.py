"""The names to import for a new metric, result or measure of ranked lists.

docs/write_a_metric.md builds one of each. Nothing here needs more than `import streammetrics`;
`Case` and `check_laws`, which test a metric, are in `streammetrics.testing`, which needs
hypothesis.

A metric is a class `M(Accumulator, schema="my-package.m/1")`: annotated names are its settings,
`inputs` are the columns that it reads, and its parts are its state. It defines `_accumulate` and
`compute`; `update`, `check` and the rest are inherited. `compute` returns a frozen dataclass
derived from `Result`, with `repr=False` so that it prints as a table: a property or field that is a
float or `Bounded` is a view, the first one is its headline, and whole numbers are counts.
What else is known of a view, such as its better direction, is declared with it as a
`View(...)`, and `_interval(asked)` returns its interval. Tables, comparisons, charts and the page
need nothing more.

>>> from streammetrics.authoring import Accumulator, Amount, ExactSum, Inputs
>>> class Total(Accumulator, schema="docs-total/1"):
...     inputs = Inputs(amounts=Amount())
...     total = ExactSum()
...     def _accumulate(self, batch, slots):
...         self.total.add(batch.amounts.astype(float), slots)
...     def compute(self):
...         self._flush()
...         return self.total.value()
>>> total = Total()
>>> total.update([1e16, 1, -1e16])
>>> (total + Total.from_bytes(total.to_bytes())).compute()
2.0
"""

from streammetrics.classification.mean import Mean
from streammetrics.core import checks
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.bounded import Bounded
from streammetrics.core.checks import check_choice, check_max_rows, check_number
from streammetrics.core.class_checks import class_numbers, label_table, score_table
from streammetrics.core.codec import damaged, require
from streammetrics.core.conversion import FLOAT64, array_of, as_float, exact, whole
from streammetrics.core.errors import (
    InputError,
    SettingsError,
    StateError,
    StreamMetricsError,
    shown,
)
from streammetrics.core.factors import Factor, Propensity, check_factor, factors
from streammetrics.core.inputs import (
    Amount,
    Binary,
    Classes,
    Ids,
    Input,
    Inputs,
    Integers,
    Probability,
    Real,
    Table,
    Unchecked,
    UnitIds,
    Weights,
)
from streammetrics.core.interval import Interval
from streammetrics.core.multiset.bag import Bag, Bags
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_sum import ExactSum
from streammetrics.core.parts.exact_sums import (
    QUANTA,
    SCALES,
    ExactSums,
    NamedSums,
    ProductSums,
    require_finite,
    require_moments,
    small_integers,
)
from streammetrics.core.parts.extremes import Extremes
from streammetrics.core.parts.float_bits import CHUNK
from streammetrics.core.parts.many_slots import AnySlots, ManySlots
from streammetrics.core.parts.part import SLOT_0, Column, Extreme, Slots
from streammetrics.core.parts.unit_set import UnitSet
from streammetrics.core.parts.weighted_counts import WeightedCounts
from streammetrics.core.rows import DictionaryColumn, Ragged, Terms
from streammetrics.core.settings import Setting
from streammetrics.core.validators import Validator
from streammetrics.core.weights import ONE, Unit, check_weight_settings
from streammetrics.histogram import Histogram, occupied_table
from streammetrics.kernels.exact.exact_products import exact_parts, ordinary
from streammetrics.kernels.exact.rounding import ratio, rounded
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.hits import cumulative_gain, hit, reciprocal_rank, relevant_shown
from streammetrics.present.view import (
    HIGHER,
    LOWER,
    NONE,
    POSITIVE,
    SHARE,
    SIGNED,
    Direction,
    View,
)
from streammetrics.ranking.measure import Measure, Values
from streammetrics.ranking.measures import register_measure
from streammetrics.results.has_intervals import Asked
from streammetrics.results.has_intervals import HasIntervals as Result
from streammetrics.results.rates import Rates
from streammetrics.results.sums import Quotient

__all__ = [
    "CHUNK",
    "FLOAT64",
    "HIGHER",
    "LOWER",
    "NONE",
    "ONE",
    "POSITIVE",
    "QUANTA",
    "SCALES",
    "SHARE",
    "SIGNED",
    "SLOT_0",
    "Accumulator",
    "Amount",
    "AnySlots",
    "Asked",
    "Bag",
    "Bags",
    "Batch",
    "Binary",
    "Bounded",
    "Classes",
    "Column",
    "Counts",
    "DictionaryColumn",
    "Direction",
    "ExactSum",
    "ExactSums",
    "Extreme",
    "Extremes",
    "Factor",
    "Histogram",
    "Ids",
    "Input",
    "InputError",
    "Inputs",
    "Integers",
    "Interval",
    "ManySlots",
    "Mean",
    "Measure",
    "NamedSums",
    "Probability",
    "ProductSums",
    "Propensity",
    "Quotient",
    "Ragged",
    "Ranked",
    "Rates",
    "Real",
    "Result",
    "Setting",
    "SettingsError",
    "Slots",
    "StateError",
    "StreamMetricsError",
    "Table",
    "Terms",
    "Unchecked",
    "Unit",
    "UnitIds",
    "UnitSet",
    "Validator",
    "Values",
    "View",
    "WeightedCounts",
    "Weights",
    "array_of",
    "as_float",
    "check_choice",
    "check_factor",
    "check_max_rows",
    "check_number",
    "check_weight_settings",
    "checks",
    "class_numbers",
    "cumulative_gain",
    "damaged",
    "exact",
    "exact_parts",
    "factors",
    "hit",
    "label_table",
    "occupied_table",
    "ordinary",
    "ratio",
    "reciprocal_rank",
    "register_measure",
    "relevant_shown",
    "require",
    "require_finite",
    "require_moments",
    "rounded",
    "score_table",
    "shown",
    "small_integers",
    "whole",
]
