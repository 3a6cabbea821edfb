"""Flags and names as arguments: whatever is neither True nor False, or an array, is refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import streammetrics
from streammetrics import (
    BinaryConfusion,
    GroupedAUC,
    HistogramAUC,
    MulticlassAUC,
    Paired,
    Panel,
    PerKey,
    Ratio,
    Windows,
    authoring,
    compare,
    compare_runs,
    evaluate,
)
from streammetrics.core.errors import StreamMetricsError
from streammetrics.experiments import Guardrail, Safeguard
from streammetrics.present import between, html_page, number, values
from streammetrics.results import views_of
from streammetrics.testing import check_law
from tests.cases import CASES

MODULES = ("", ".evaluation", ".experiments", ".engines", ".present", ".results", ".testing")
REQUIRED = {"measures": ["R@1"], "n_classes": 3, "n_labels": 3, "threshold": 0.5}
NOWHERE = "http://127.0.0.1:9"  # refused before anything is asked there
CALLS: Mapping[str, Callable[..., object]] = {
    "Guardrail": lambda **flag: Guardrail(margin=0.1, **flag),
    "PerKey.project": lambda **flag: PerKey(Panel({"ctr": Ratio()})).project("ctr", **flag),
    "PairedResult.mcnemar": lambda **flag: Paired(BinaryConfusion()).compute().mcnemar(**flag),
    "Safeguard": lambda **flag: Safeguard("ctr", **flag),
    "ScoreCurve.lift": lambda **flag: HistogramAUC().compute().lift(**flag),
    "ScoreCurve.partial_auc": lambda **flag: HistogramAUC().compute().partial_auc(0.5, **flag),
    **{
        f"Shown.{name}": lambda name=name, **flag: getattr(Ratio().compute(), name)(**flag)
        for name in ("to_csv", "to_frame", "to_html", "to_latex", "to_markdown")
    },
    "StoreReader.frame": lambda **flag: streammetrics.open(NOWHERE).frame(**flag),
    "Windows.panes": lambda **flag: Windows(Ratio(), size_s=60).panes(**flag),
    "between": lambda **flag: between(0.1, 0.2, 2, **flag),
    "check_law": lambda **flag: check_law(lambda *given: None, CASES[0], **flag),
    "compare": lambda **flag: compare(Ratio(), Ratio(), **flag),
    "compare_runs": lambda **flag: compare_runs(
        {"q": {"a": 1}}, {"one": {"q": ["a"]}, "other": {"q": ["a"]}}, "map", **flag
    ),
    "evaluate": lambda **flag: evaluate({"q": {"a": 1}}, {"q": ["a"]}, "map", **flag),
    "number": lambda **flag: number(0.5, 2, **flag),
    "values": lambda **flag: values([], **flag),
    "html_page": lambda **flag: html_page({"ctr": Ratio().compute()}, **flag),
    "views_of": lambda **flag: views_of(Ratio().compute(), **flag),
}


def public() -> Iterator[Callable[..., object]]:
    """Every public function, class that checks its arguments, and method, but for those that only
    authors of metrics call."""
    for name in MODULES:
        module = import_module(f"streammetrics{name}")
        for member in (getattr(module, member_name) for member_name in module.__all__):
            if not inspect.isclass(member) or hasattr(member, "__post_init__"):
                yield member
            if inspect.isclass(member) and member.__name__ not in authoring.__all__:
                yield from (f for k, f in inspect.getmembers(member, callable) if k[0] != "_")


def flags() -> list[tuple[Callable[..., object], str]]:
    """The flags among their arguments."""
    owners: dict[tuple[str, str], Callable[..., object]] = {}
    for member in public():
        if not str(getattr(member, "__module__", "")).startswith("streammetrics"):
            continue
        for parameter in inspect.signature(member).parameters.values():
            if "bool" in str(parameter.annotation).split() or isinstance(parameter.default, bool):
                owners[member.__qualname__, parameter.name] = member
    return [(owner, name) for (_, name), owner in owners.items()]


@pytest.mark.parametrize(("call", "name"), flags())
def test_a_flag_that_is_neither_true_nor_false_is_refused(
    call: Callable[..., object], name: str
) -> None:
    parameters = inspect.signature(call).parameters
    required: dict[str, Any] = {key: value for key, value in REQUIRED.items() if key in parameters}
    run = CALLS.get(call.__qualname__, lambda **flag: call(**required, **flag))
    for value in (np.array([1, 2]), np.array([True, False]), "no", 2):
        with pytest.raises(StreamMetricsError) as caught:
            run(**{name: value})
        error = caught.value
        assert "True or False" in error.expected and name in error.where and error.hint


@pytest.mark.parametrize("name", ["cluster", "method", "view"])
def test_an_array_in_place_of_a_name_is_never_compared(name: str) -> None:
    for case in CASES:
        with suppress(StreamMetricsError):  # a metric without a formula needs no method
            case.empty.confidence_interval(**{name: np.array(["auto", "none"])})


def test_an_array_in_place_of_another_choice_is_refused() -> None:
    pair, array = Paired(BinaryConfusion()), np.array(["a", "b"])
    tries: list[Callable[[], object]] = [
        lambda: pair.model(array),  # type: ignore[arg-type]
        lambda: pair.compute().interval(array),
        lambda: BinaryConfusion().compute().table(array),  # type: ignore[arg-type]
        lambda: MulticlassAUC(3).compute().auc(array),  # type: ignore[arg-type]
        lambda: HistogramAUC().resolution_for([0, 1], [0, 1], max_width=array),  # type: ignore[arg-type]
        lambda: Windows(Ratio(), size_s=60).window_state(array, 60_000),  # type: ignore[arg-type]
        lambda: GroupedAUC().compute().rela_impr(array),  # type: ignore[arg-type]
    ]
    for run in tries:
        with pytest.raises(StreamMetricsError):
            run()
