"""Counters are added field by field."""

from __future__ import annotations

from dataclasses import astuple, fields

from streammetrics_consumers.model.commit import Counters


def test_each_counter_is_added_to_its_own() -> None:
    n = len(fields(Counters))
    ones, tens = Counters(*range(1, n + 1)), Counters(*range(10, 10 * n + 1, 10))
    assert astuple(ones + tens) == tuple(11 * i for i in range(1, n + 1))
    assert sum([ones, tens], Counters()) == ones + tens
