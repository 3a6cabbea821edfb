"""Wrong types, unknown keys and views: errors of four parts, never the raw ones of Python."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import streammetrics
from streammetrics import (
    ArgumentError,
    BinaryConfusion,
    HistogramAUC,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    StreamMetricsError,
    UnknownKeyError,
    UserGroups,
    Windows,
)
from streammetrics.experiments import Experiment, Plan
from tests.cases import CASES
from tests.present.test_every_result import examples

MODULES = ("streammetrics", "streammetrics.experiments", "streammetrics.results")
WRONG: list[Any] = [
    *(None, 3, "x", b"x", {}, {"a": 1}, [None], object(), np.zeros(2), set(), int),
]
# A name of another argument than data, or no function at all.
OTHERS = {
    "streammetrics.Accumulator": "abstract",
    "streammetrics.Measure": "abstract",
    "streammetrics.HashedIds": "an array of numpy, which makes it",
    "streammetrics.experiments.Action": "a type",
    "streammetrics.experiments.Verdict": "a type",
    "RunComparison.difference": "an array is compared with a name",
    "PerKey.rekeyed": "runs the given function",
}


def calls() -> Iterator[tuple[str, Callable[..., object]]]:
    """Every public function and class, and every public method of a metric and of a result."""
    yield "streammetrics.open", streammetrics.open  # which `__all__` leaves out
    for module_name in MODULES:
        module = import_module(module_name)
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not (isinstance(value, type) and issubclass(value, Exception)):
                yield f"{module_name}.{name}", value
    owner_types: set[type] = set()
    for owner in (*(case.empty.empty() for case in CASES), *examples()):  # some calls are right
        if type(owner) not in owner_types:
            owner_types.add(type(owner))
            for name in dir(type(owner)):
                method = getattr(owner, name, None) if name[:1] != "_" and name != "save" else None
                if inspect.ismethod(method) or inspect.isfunction(method):
                    yield f"{type(owner).__name__}.{name}", method
            if hasattr(type(owner), "__getitem__"):
                yield f"{type(owner).__name__}[]", owner.__getitem__  # type: ignore[union-attr]


def wrong_arguments(call: Callable[..., object], wrong: object) -> dict[str, object] | None:
    """The required arguments of a call, each of a wrong type; None for a call without any."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return None
    optional = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    required = [p for p in parameters if p.default is p.empty and p.kind not in optional]
    return {p.name: wrong for p in required} or None


def run(call: Callable[..., object], arguments: dict[str, object]) -> object:
    """The call, with the arguments that are positional only by position."""
    parameters = inspect.signature(call).parameters
    only = [n for n in arguments if parameters[n].kind == inspect.Parameter.POSITIONAL_ONLY]
    rest = {name: value for name, value in arguments.items() if name not in only}
    return call(*(arguments[name] for name in only), **rest)


def test_a_wrong_type_of_a_required_argument_is_an_error_of_four_parts() -> None:
    raw, tried = set(), 0
    for label, call in calls():
        if label in OTHERS:
            continue
        for wrong in WRONG:
            arguments = wrong_arguments(call, wrong)
            if arguments is None:
                break
            tried += 1
            try:
                with warnings.catch_warnings(), suppress(StreamMetricsError, FileNotFoundError):
                    warnings.simplefilter("ignore")
                    run(call, arguments)
            except Exception as error:
                raw.add(f"{label}({wrong!r:.20}): {type(error).__name__}: {error}")
    assert tried > 3_000 and not raw, "\n".join(sorted(raw))


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (
            lambda: HistogramAUC().compute()["auc"],  # type: ignore[index]
            "ScoreCurve: expected an attribute, got ['auc']; write .auc",
        ),
        (
            lambda: HistogramAUC().compute()["gin"],  # type: ignore[index]
            "ScoreCurve: expected an attribute, got ['gin']; did you mean 'gini'?",
        ),
        (
            lambda: BinaryConfusion().compute()[0],  # type: ignore[index]
            "Rates: expected an attribute, got [0]; to_dict() has its values",
        ),
        (
            lambda: Panel({"ctr": Ratio()})["ctr"],  # type: ignore[index]
            "Panel: expected a result, got ['ctr']; ask the result: compute()",
        ),
        (
            lambda: UserGroups(Ratio()).compute()["ratio"],
            "Quotient: expected an attribute, got ['ratio']; write .ratio",
        ),
    ],
)
def test_brackets_of_what_has_no_items_say_where_the_value_is(
    ask: Callable[[], object], text: str
) -> None:
    with pytest.raises(ArgumentError) as error:
        ask()
    assert str(error.value) == text and isinstance(error.value, TypeError)


def test_what_has_no_items_cannot_be_iterated_and_is_one_object_of_numpy() -> None:
    for value in (HistogramAUC(), HistogramAUC().compute()):
        with pytest.raises(TypeError, match="not iterable"):
            iter(value)  # type: ignore[call-overload]
        array = np.array([value, value], object)
        assert array.shape == (2,) and np.asarray(value, object).shape == ()
        assert copy.copy(value) == pickle.loads(pickle.dumps(value)) == value
        assert not hasattr(value, "zebra") and getattr(value, "zebra", 3) == 3


@pytest.mark.parametrize("key", ["x", 3, None, ("a", 1), [1], {}, set(), np.zeros(2)])
def test_an_unknown_key_of_any_type_is_a_key_error_of_four_parts(key: Any) -> None:
    panel, keyed = Panel({"ctr": Ratio()}), PerKey(Ratio())
    keyed.update(["a"], numerators=[1])
    hourly, lists = Windows(Ratio(), 60), RankingMetrics(["map"])
    for ask in (
        *(panel.compute().__getitem__, panel.state, keyed.compute().__getitem__, keyed.state),
        *(hourly.compute().__getitem__, lists.compute().__getitem__),
        *(PerKey(panel).project,),
    ):
        with pytest.raises(UnknownKeyError) as error:
            ask(key)
        assert isinstance(error.value, KeyError) and error.value.hint
    for result in (panel.compute(), keyed.compute(), hourly.compute()):
        assert key not in result and result.get(key, 7) == 7


def test_plans_and_experiments_refuse_what_is_no_plan() -> None:
    plan = Plan(control="a", variants=("a", "b"), decision=("ctr",))
    with pytest.raises(StreamMetricsError, match=r"Experiment\(plan\): expected a Plan, got None"):
        Experiment(None, {})  # type: ignore[arg-type]
    for states in (None, {"ctr": Ratio()}, {"ctr": None}):
        with pytest.raises(StreamMetricsError, match=r"Experiment\(states\): expected states by"):
            Experiment(plan, states)  # type: ignore[arg-type]
    for name in ("better", "horizons", "covariates", "shares", "epoch_shares"):
        for wrong in (3, "ctr", ["ctr"], {1: 2}):
            with pytest.raises(StreamMetricsError, match=f"{name}: expected .* (from|by) "):
                Plan(control="a", variants=("a", "b"), decision=("ctr",), **{name: wrong})
