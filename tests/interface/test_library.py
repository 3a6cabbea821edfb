"""The names of the library: classes, settings, arguments, results, measures and errors."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from ast import literal_eval
from collections.abc import Mapping

import streammetrics
from docs import metrics_page
from streammetrics import Accumulator, SlidingAUC, drift
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.inputs import Inputs
from streammetrics.core.parts.part import Part
from streammetrics.exports import exported_names
from streammetrics.present.figures import KINDS
from streammetrics.present.notebook import Shown
from streammetrics.ranking.measures import MEASURES
from streammetrics.results.has_intervals import METHODS, HasIntervals
from tests.cases import CASES
from tests.interface.page import PAGE, bare, signature, spans, table
from tests.requirements import ROOT


def test_the_page_has_every_name_of_the_library() -> None:
    names = {name for row in table("names") for name in spans(row[0])}
    exported = {*exported_names((ROOT / "streammetrics/__init__.pyi").read_text(encoding="utf-8"))}
    assert names | {*metrics_page.metrics(), *MEASURES} == {*streammetrics.__all__} | exported
    for row in table("module"):
        assert sorted(spans(row[1])) == sorted(importlib.import_module(spans(row[0])[0]).__all__)


def test_the_page_has_every_name_of_the_modules_that_need_an_engine() -> None:
    folder = ROOT / "streammetrics" / "engines"
    modules = {
        f"streammetrics.engines.{name}": ast.parse(place.read_text(encoding="utf-8"))
        for name, place in (("beam", folder / "beam.py"), ("spark", folder / "spark/__init__.py"))
    }
    names_by_module = {spans(module)[0]: sorted(spans(names)) for module, names in table("engine")}
    assert names_by_module == {
        name: sorted(literal_eval(line.value))
        for name, tree in modules.items()
        for line in tree.body
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__"
    }


def test_the_page_has_every_member_of_an_accumulator() -> None:
    passage = PAGE.partition("Every accumulator has ")[2].partition("Bytes, digest")[0]
    members = {re.sub(r"^Class\.|\(.*\)$", "", span) for span in spans(passage)}
    members -= {"a + b", "sum(states)", "sum", "==", "sha256:…"}
    assert members == {name for name in dir(Accumulator) if not name.startswith("_")}


def result_of(kind: type[Accumulator] | type[SlidingAUC]) -> object:
    """What an empty metric of this class computes: of no settings, or else of its first case."""
    if issubclass(kind, SlidingAUC):
        return SlidingAUC(5).compute()
    required = any(
        parameter.default is parameter.empty
        for parameter in inspect.signature(kind).parameters.values()
    )
    first = next(case.empty for case in CASES if type(case.empty) is kind)
    return (first.empty() if required else kind()).compute()


def public(result: object) -> set[str]:
    """Attributes that the class of a result itself brings, not as a mapping or an object."""
    base_names = set(dir(Mapping)) if isinstance(result, Mapping) else set(dir(object))
    base_names |= set(dir(Shown))
    if isinstance(result, HasIntervals):
        base_names |= set(dir(HasIntervals))
    return {name for name in dir(result) if not name.startswith("_")} - base_names


def test_the_page_has_every_attribute_of_a_drift() -> None:
    passage = PAGE.partition("### Drift")[2].partition("\n###")[0]
    state = streammetrics.Quantiles()
    result = drift(state, state)
    names = {name for span in spans(passage) for name in span.partition("(")[0].split()}
    assert public(result) | {"interval"} <= names
    calls = {span.partition("(")[0]: span for span in spans(passage) if "(" in span}
    assert signature(calls["drift"].partition("(")[2].removesuffix(")")) == bare(drift)
    for name in ("psi_with", "band", "certain", "interval"):
        arguments = calls[name].partition("(")[2].removesuffix(")")
        assert signature(arguments) == bare(getattr(result, name)), name


def test_every_result_has_the_plot_and_the_kinds_that_the_page_names() -> None:
    passage = PAGE.partition("Every result is shown by")[2].partition("Every result but those of")[
        0
    ]
    call = next(span for span in spans(passage) if span.startswith("plot("))
    assert signature(call.partition("(")[2].removesuffix(")")) == bare(Shown.plot, method=True)
    assert {span for span in spans(passage) if span in KINDS} == set(KINDS)
    for kind in metrics_page.metrics().values():
        assert isinstance(result_of(kind), Shown), kind


def test_the_page_has_what_some_classes_have_more() -> None:
    passage = PAGE.partition("Some have more: ")[2].partition("Metrics given")[0]
    listed = set()
    for span in spans(passage):
        owner, _, member = span.partition(".")
        name, _, arguments = member.partition("(")
        listed.add((owner, name))
        method = getattr(getattr(streammetrics, owner), name)
        assert callable(method) == member.endswith(")"), span
        if callable(method):
            assert signature(arguments.removesuffix(")")) == bare(method, method=True), span
    assert listed == {
        (kind.__name__, name)
        for kind in metrics_page.metrics().values()
        for name in set(dir(kind)) - set(dir(Accumulator))
        if not name.startswith("_")
        and name not in kind._settings
        and not isinstance(getattr(kind, name), (Part, Inputs))
    }


def test_the_page_has_the_attributes_of_bounded_and_of_errors() -> None:
    [row] = [row for row in table("names") if spans(row[0]) == ["Bounded"]]
    assert set(spans(row[1])) - {"float()"} == public(streammetrics.Bounded(0.0, 0.0, 0.0))
    [row] = [row for row in table("names") if "StreamMetricsError" in row[0]]
    errors = [getattr(streammetrics, name) for name in spans(row[0])]
    kinds = [
        error
        for kind in StreamMetricsError.__subclasses__()
        for error in (kind, *kind.__subclasses__())
        if error.__module__.startswith("streammetrics.")  # not those of loaded tests or consumers
    ]
    assert set(errors[1:]) == set(kinds)
    assert errors[0].__mro__[1] is ValueError
    passage = PAGE.partition("Errors are `ValueError`s under")[2].partition("A measure")[0]
    attributes = {
        name.removeprefix(".") for span in spans(passage) for name in span.split() if "." in name
    }
    example = streammetrics.InputError(expected="", got="", where="", hint="")
    assert attributes == set(vars(example))


def test_the_page_has_what_intervals_are_asked_by() -> None:
    [row] = [row for row in table("names") if spans(row[0]) == ["Interval"]]
    attributes = {span.removesuffix("()") for span in spans(row[1])}
    assert attributes == public(streammetrics.Interval(0.0, 0.0, 0.0))
    passage = PAGE.partition("Every result but those of")[2].partition("`weights` are")[0]
    calls = {span.partition("(")[0]: span for span in spans(passage) if "=" in span}
    for call, method in (
        (calls["interval"], HasIntervals.interval),
        (calls["metric.confidence_interval"], Accumulator.confidence_interval),
    ):
        arguments = call.partition("(")[2].removesuffix(")")
        assert signature(arguments) == bare(method, method=True)
    assert {name for name in METHODS if f"`{name}`" in passage} == set(METHODS)
    without = {name for name in spans(passage) if name in metrics_page.metrics()}
    for kind in metrics_page.metrics().values():
        result = result_of(kind)
        assert isinstance(result, HasIntervals) == (kind.__name__ not in without), kind
