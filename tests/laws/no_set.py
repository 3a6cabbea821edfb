"""A mutant of the law of sets, in a file of its own, as `mutants.py` is long."""

from __future__ import annotations

from streammetrics.core.counts import Counts
from tests.laws.clicks import Clicks


class CallsItselfASet(Clicks, schema="mutant-no-set/1"):
    """Says that rows count once, and counts them as often as they come."""

    idempotent = True
    counts = Counts(2)
