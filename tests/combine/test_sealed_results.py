"""What sealed states say, and that damaged ones are none."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    GroupedAUC,
    GroupedScores,
    HistogramAUC,
    Panel,
    StateError,
    load,
)
from streammetrics.combine.sealed import Sealed, seal
from streammetrics.core.bytes.codec import STATE_MAGIC, frame, unframe
from streammetrics.ranking import grouped_scores, list_totals
from streammetrics.results import views_of
from tests.combine.sealed_states import fed, sealing, some_rows
from tests.depth import tries


def test_results_have_the_intervals_of_the_open_state() -> None:
    metric = Panel(
        {"gauc": GroupedAUC(), "lists": GroupedScores(["NDCG@3", "HR@2"]), "auc": HistogramAUC()},
        inputs={"lists": {"lists": "groups"}},
    )
    opened = fed(some_rows(400, 4, users=30), metric)
    found, exact = seal(opened, sealing(1)).compute(), opened.compute()
    for name in metric.metrics:
        for view in views_of(exact[name]):
            assert found[name].interval(view) == exact[name].interval(view)


def test_a_list_too_long_to_be_ranked_leaves_the_result_undefined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (grouped_scores, list_totals):
        monkeypatch.setattr(module, "LONGEST", 4)
    state = GroupedScores(["MRR"])
    state.update([1] * 6, [0.5] * 6, lists=[1, 1, 1, 1, 1, 2])
    result = seal(state, sealing(1)).compute()
    assert np.isnan(result["MRR"]) and result.rows == 6
    assert result.reason.startswith("a list has 5 rows")


def test_totals_that_are_no_whole_numbers_are_no_state() -> None:
    good = seal(fed(some_rows(40, 2)), sealing(1))
    totals = good.inner
    totals.sums.add(np.array([0.5]), np.array([2]))
    with pytest.raises(StateError, match="no whole numbers"):
        Sealed.from_bytes(good.to_bytes())


@pytest.mark.parametrize("metric", [GroupedAUC(), GroupedScores(["MRR"])], ids=repr)
def test_bytes_with_any_byte_changed_are_refused_or_are_a_state_with_a_result(
    metric: Accumulator,
) -> None:
    state, random = metric.empty(), Random(7)
    key = "groups" if isinstance(metric, GroupedAUC) else "lists"
    state.update([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], **{key: [7, 7, 8, 8]})
    data = seal(state, sealing()).to_bytes()
    head, body = unframe(STATE_MAGIC, data)
    for _ in range(tries(100, 2_000)):
        hostile = bytearray(body)
        hostile[random.randrange(len(body))] = random.randrange(256)
        damaged = frame(STATE_MAGIC, head, bytes(hostile))
        try:
            read = load(damaged)
        except StateError:
            continue
        assert read.to_bytes() == damaged
        assert views_of(read.compute())
