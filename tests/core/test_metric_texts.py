"""The texts of metrics: what they print, and what the docstring of `update` says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import streammetrics
from streammetrics import (
    Accumulator,
    BinaryConfusion,
    GroupedAUC,
    HistogramAUC,
    MulticlassConfusion,
    Panel,
    PerKey,
    Ratio,
    SlidingAUC,
    Windows,
)
from streammetrics.core.batch import Batch
from streammetrics.core.inputs import Inputs, Real
from streammetrics.core.parts.counts import Counts
from tests.cases import CASES


def documented() -> list[Callable[..., object]]:
    """`update` of every metric."""
    return [*dict.fromkeys(type(case.empty).update for case in CASES), SlidingAUC.update]


@pytest.mark.parametrize("update", documented(), ids=lambda update: update.__qualname__)
def test_the_docstring_of_update_says_what_each_argument_is(update: Callable[..., object]) -> None:
    lines = inspect.getdoc(update) or ""
    for name, parameter in list(inspect.signature(update).parameters.items())[1:]:
        match = re.search(rf"\b{name}: (.*)", lines)
        assert match and match[1], name
        is_data = parameter.kind != parameter.VAR_KEYWORD
        assert not is_data or re.search(rf"\b{name}: [^:]*(\[|lists|like|subtopics)", lines), name


def test_the_docstring_of_update_says_what_is_given_by_name_or_may_be_left_out() -> None:
    lines = (Ratio.update.__doc__ or "").splitlines()
    assert lines == [
        "Count these rows, or raise InputError and change nothing.",
        "",
        "numerators: [n], no NaN.",
        "denominators: [n], no NaN; 1 each by default (may be left out).",
    ]
    assert (GroupedAUC.check.__doc__ or "").splitlines()[-2:] == [
        "groups: [n] ids, integers or strings, according to `ids` (by name only).",
        "weights: [n], at least 0, 1 each by default; a row of weight 0 is ignored (by name only, "
        "may be left out).",
    ]


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (HistogramAUC(), "HistogramAUC()"),
        (
            HistogramAUC(resolution=4, positive="spam"),
            "HistogramAUC(resolution=4, positive='spam')",
        ),
        (MulticlassConfusion(3), "MulticlassConfusion(n_classes=3)"),
        (BinaryConfusion(weight_unit="1/10"), "BinaryConfusion(weight_unit=Fraction(1, 10))"),
        (Windows(Ratio(), 3600), "Windows(metric=Ratio(), size_s=3600)"),
        (Windows(Ratio(), 3600, 60), "Windows(metric=Ratio(), size_s=3600, slide_s=60)"),
        (
            PerKey(Panel({"auc": HistogramAUC(resolution=4), "ctr": Ratio()})),
            "PerKey(metric=Panel(metrics={'auc': HistogramAUC(resolution=4), 'ctr': Ratio()}))",
        ),
    ],
)
def test_a_metric_prints_the_settings_that_differ_from_their_defaults(
    metric: Accumulator, text: str
) -> None:
    assert repr(metric) == text
    assert repr(metric.empty()) == text


def test_what_an_empty_metric_prints_makes_an_equal_one() -> None:
    names = {name: getattr(streammetrics, name) for name in streammetrics.__all__}
    texts = {repr(case.empty): case.empty for case in CASES if type(case.empty).__name__ in names}
    assert len(texts) > 60
    for text, metric in texts.items():
        if "Content(" not in text:  # arrays are printed by their digest
            assert eval(text, {**names, "Fraction": Fraction}) == metric, text


def test_a_metric_prints_the_rows_that_it_has_counted() -> None:
    auc, ctr = HistogramAUC(resolution=4), Ratio()
    auc.update([0, 1] * 500, [0.25, 0.5] * 500)
    assert repr(auc) == "HistogramAUC(resolution=4): 1,000 rows"
    assert repr(auc + auc) == "HistogramAUC(resolution=4): 2,000 rows"
    assert repr(HistogramAUC.from_bytes(auc.to_bytes())) == repr(auc)
    ctr.update([1])
    assert repr(ctr) == "Ratio(): 1 row"
    weighed = BinaryConfusion()
    weighed.update([0, 1], [0.25, 0.5], weights=[7, 0])
    assert repr(weighed) == f"BinaryConfusion(): {weighed.compute().rows} row"
    by_key, hourly = PerKey(Ratio()), Windows(Ratio(), 3600)
    by_key.update(["a", "b", "a"], numerators=[1, 0, 1])
    hourly.update([0, 1], numerators=[1, 0])
    assert repr(by_key) == "PerKey(metric=Ratio()): 2 keys"
    assert repr(hourly) == "Windows(metric=Ratio(), size_s=3600): 1 window"
    panel = Panel({"ctr": Ratio(), "base": Ratio()})
    panel.update(numerators=[1, 0])
    assert repr(panel) == "Panel(metrics={'base': Ratio(), 'ctr': Ratio()}): 2 rows"


def test_printing_a_metric_changes_nothing_and_never_fails() -> None:
    class Broken(Accumulator, schema="test-broken/1"):
        inputs = Inputs(values=Real())
        counts = Counts(1)

        def _accumulate(self, batch: Batch, slots: Any) -> None:
            self.counts.add(np.zeros(batch.n, np.intp), slots)

        def compute(self) -> float:
            raise ValueError("no result")

    metric = Broken()
    metric.update([0.5])
    before = metric.to_bytes()
    assert repr(metric) == "Broken()"
    assert metric.to_bytes() == before
