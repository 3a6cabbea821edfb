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
`View(...)`, and how it is estimated as the `estimator` of that: a `Share`, `MeanOfValues`,
`RatioOfSums` or `CellFunction`. Tables, intervals, comparisons, charts and the page need nothing
more.

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

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
