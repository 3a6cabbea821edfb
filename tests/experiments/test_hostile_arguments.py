"""Arguments of any type: whatever is passed, an error has four parts and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    ExactAUC,
    ExactQuantiles,
    ExactUplift,
    GroupedAUC,
    Interleaving,
    Quantiles,
    RankingMetrics,
    Ratio,
    SettingsError,
    StreamMetricsError,
    UserGroups,
    compare,
)
from streammetrics.experiments import (
    ConfidenceSequence,
    Experiment,
    Guardrail,
    Horizon,
    Plan,
    PlannedCovariate,
    Safeguard,
    SampleRatio,
    gates,
)

HOSTILE: tuple[Any, ...] = (
    *(None, "x", "", b"x", {}, [[1], [2, 3]], 10**400, 1j, object(), Decimal("sNaN")),
    *(
        np.array(1),
        np.array([1, "a"], object),
        np.zeros(2, [("a", int)]),
        np.datetime64("NaT", "s"),
    ),
    [Decimal("sNaN"), Decimal(1)],
)


def rates() -> tuple[Ratio, Ratio]:
    """Two rates."""
    states = Ratio(), Ratio()
    for state, hits in zip(states, (50, 40), strict=True):
        state.update([1] * hits + [0] * (100 - hits))
    return states


def curve() -> Any:
    """A score curve."""
    state = ExactAUC()
    state.update([0, 1, 1, 0], [0.1, 0.4, 0.35, 0.8])
    return state.compute()


def grouped_quantiles() -> Any:
    """Quantiles of users."""
    state = UserGroups(ExactQuantiles())
    state.update(groups=range(100), values=np.arange(100.0))
    return state.compute()


def test_a_level_of_users_may_be_a_decimal() -> None:
    for view in ("iqr", "median", "mean"):
        interval = grouped_quantiles().interval(view, level=Decimal("0.9"))  # type: ignore[arg-type]
        assert interval == grouped_quantiles().interval(view, level=0.9)


def experiment(**settings: Any) -> Experiment:
    """Two rates, and a plan with these settings."""
    states = {name: {"ctr": state} for name, state in zip(("a", "b"), rates(), strict=True)}
    return Experiment(planned(**settings), states)


def planned(**settings: Any) -> Plan:
    """A plan with these settings."""
    return Plan(**{"control": "a", "variants": ("a", "b"), "decision": ("ctr",), **settings})


CALLS: tuple[Callable[[Any], object], ...] = (
    lambda x: compare(x, rates()[1]),
    lambda x: compare(*rates(), level=x),
    lambda x: compare(*rates(), covariate=x),
    lambda x: ConfidenceSequence(v_opt=1.0).at(x),
    lambda x: ConfidenceSequence(v_opt=1.0).of(x),
    lambda x: ConfidenceSequence(v_opt=x),
    lambda x: ConfidenceSequence(alpha=x),
    lambda x: ConfidenceSequence(prior=x),
    lambda x: ConfidenceSequence(reference=x),
    lambda x: ConfidenceSequence(kind=x),
    lambda x: Guardrail(margin=0.1, v_opt=1.0).at(x),
    lambda x: Guardrail(margin=x),
    lambda x: Horizon(units=x, variance=1.0),
    lambda x: Horizon(units=1, baseline=x),
    lambda x: Horizon(mde=x),
    lambda x: ConfidenceSequence(horizon=x).at(compare(*rates())),
    lambda x: Guardrail(margin=0.1, horizon=x).at(compare(*rates())),
    lambda x: planned(control=x),
    lambda x: planned(shares={"a": x, "b": 1}),
    lambda x: planned(epoch_shares={"e": {"a": x, "b": 1}}),
    lambda x: planned(better={"ctr": x}),
    lambda x: experiment(horizon=x).report(),
    lambda x: experiment(horizons={"ctr": x}).report(),
    lambda x: experiment(covariates={"ctr": x}).report(),
    lambda x: experiment(guardrails=(x,)).report(),
    lambda x: planned(guardrails=(Safeguard(x),)),
    lambda x: Safeguard("ctr", x),
    lambda x: PlannedCovariate(x, 1.0),
    lambda x: PlannedCovariate("ctr", x),
    lambda x: SampleRatio({"a": x, "b": 1}).at({"a": 1}),
    lambda x: SampleRatio({"a": 1, "b": 1}, k=x).at({"a": 1}),
    lambda x: SampleRatio({"a": 1, "b": 1}).at({"a": x}),
    lambda x: gates(planned(), x),
    lambda x: gates(planned(), {"ctr": x}),
    lambda x: gates(planned(), {"ctr": rates()[0]}, days=x),
    lambda x: gates(planned(), {"ctr": rates()[0]}, days={"ctr": x}),
    lambda x: experiment(min_days=3).report(days=x),
    lambda x: experiment().report(x),
    lambda x: experiment().report({"ctr.ratio/b": x}),
    lambda x: experiment().readings(x),
    lambda x: experiment().readings({"ctr.ratio/b (decided)": x}),
    lambda x: Experiment(planned(), x),
    lambda x: Experiment(planned(), {"": x}).report(),
    lambda x: Experiment(planned(), {"": {"a": x}}).report(),
    lambda x: Experiment(planned(), {"": {"a": {"ctr": x}}}).report(),
    lambda x: Experiment(planned(), {}, {"": {"a": x}}).report(),
    lambda x: Experiment(planned(), {}, {}, (), {1: {"": {"a": x}}}).report(),
    lambda x: curve().best(x),
    lambda x: grouped_quantiles().interval("iqr", level=x),
    lambda x: curve().threshold_for(predicted_positive=x),
    lambda x: curve().interval(method=x),
    lambda x: curve().to_frame(x),
    lambda x: curve().plot(x),
    lambda x: curve().plot(title=x),
    lambda x: curve().plot(theme=x),
    lambda x: Quantiles(grid=x),
    lambda x: ExactQuantiles(value_type=x),
    lambda x: GroupedAUC(resolution=x),
    lambda x: RankingMetrics(x),
    lambda x: RankingMetrics("NDCG@5", examination=x),
)


@pytest.mark.parametrize("index", range(len(CALLS)))
def test_an_argument_of_any_type_is_taken_or_refused_in_four_parts(index: int) -> None:
    for argument in HOSTILE:
        try:
            CALLS[index](argument)
        except StreamMetricsError as error:
            assert all((error.expected, error.got, error.where, error.hint)), argument


@pytest.mark.parametrize(
    ("metric", "rows"),
    [
        (ExactUplift(), {"labels": [0, 1], "scores": [0.5, 0.25], "treated": [0, 1]}),
        (Interleaving(), {"clicks_a": [1, 0], "clicks_b": [0, 2]}),
        (ExactQuantiles(), {"values": [1.0, 2.0], "weights": [1, 1]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_columns_of_any_type_are_refused_in_four_parts_and_change_nothing(
    metric: Any, rows: dict[str, Any]
) -> None:
    metric.update(**rows)
    before = metric.to_bytes()
    for name in rows:
        for column in HOSTILE:
            if column is None and name == "weights":
                continue
            with pytest.raises(StreamMetricsError) as error:
                metric.update(**{**rows, name: column})
            assert error.value.where.startswith(name) and error.value.hint, (name, column)
            assert metric.to_bytes() == before, (name, column)


def test_the_smallest_float_is_an_amount_of_information() -> None:
    rate, other = rates()
    reading = ConfidenceSequence(v_opt=5e-324).at(compare(rate, other))
    assert reading.lower < 0 < reading.upper
    assert not Guardrail(margin=0.1, v_opt=5e-324).at(compare(rate, other)).passed


@pytest.mark.parametrize("k", [-1, 0, float("nan"), float("inf")])
def test_the_weight_of_a_prior_is_a_positive_number(k: float) -> None:
    with pytest.raises(SettingsError, match="k: expected a positive number of units"):
        SampleRatio({"a": 1, "b": 1}, k=k)
