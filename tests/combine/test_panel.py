"""Panel: several metrics of the same rows, all or none of them fed."""

from __future__ import annotations

from typing import Any

import pytest

from streammetrics import (
    BinaryConfusion,
    GroupedAUC,
    HistogramAUC,
    InputError,
    MulticlassAUC,
    Panel,
    RankingMetrics,
    Ratio,
    SettingsError,
)
from tests.toys import Tally

LABELS = [0, 1, 1, 0, 1]
SCORES = [0.1, 0.9, 0.4, 0.4, 0.2]
USERS = [1, 1, 2, 2, 2]


def four() -> Panel:
    return Panel(
        {"auc": HistogramAUC(), "gauc": GroupedAUC(), "ctr": Ratio(), "hits": BinaryConfusion()},
        inputs={"gauc": {"groups": "users"}, "ctr": {"numerators": "labels"}},
    )


def test_arguments_are_the_columns_and_required_where_any_metric_requires_them() -> None:
    assert four().arguments() == {
        "labels": True,
        "scores": True,
        "users": True,
        "denominators": False,
        "weights": False,
    }


def refused(columns: dict[str, Any]) -> InputError:
    panel = four()
    panel.update(labels=LABELS, scores=SCORES, users=USERS)
    before = panel.digest()
    with pytest.raises(InputError) as caught:
        panel.update(**columns)
    assert panel.digest() == before
    assert all(panel.state(name) == four_fed().state(name) for name in panel.metrics)
    return caught.value


def four_fed() -> Panel:
    panel = four()
    panel.update(labels=LABELS, scores=SCORES, users=USERS)
    return panel


def test_a_missing_column_is_named_with_the_metric_that_needs_it() -> None:
    error = refused({"labels": LABELS, "scores": SCORES})
    assert error.expected == "the column 'users'"
    assert error.got == "only labels, scores"
    assert error.where == "Panel.update, metric 'gauc'"
    assert refused({}).got == "only nothing"
    assert refused({"labels": LABELS, "scores": None, "users": USERS}).where.endswith("'auc'")


def test_an_unknown_column_is_named_with_those_that_are_known() -> None:
    error = refused({"labels": LABELS, "scores": SCORES, "users": USERS, "score": SCORES})
    assert error.got == "'score'"
    assert "labels, scores, weights, denominators, users" in error.expected


@pytest.mark.parametrize(
    ("name", "column", "metric", "rows"),
    [
        ("users", [1, 1, 2, 2, 2.5], "gauc", [4]),
        ("denominators", [1, float("nan"), 1, 1, 1], "ctr", [1]),
        ("scores", [0.1, 1.5, 0.2, 7, 1], "auc", [1, 3]),
        ("labels", [0, 1, 2, 0, 1], "auc", [2]),
    ],
)
def test_a_column_that_is_bad_for_one_metric_changes_none(
    name: str, column: list[Any], metric: str, rows: list[int]
) -> None:
    error = refused({"labels": LABELS, "scores": SCORES, "users": USERS, name: column})
    assert error.where.startswith(f"metric {metric!r}, ")
    assert error.rows.tolist() == rows


def test_metrics_of_lists_and_metrics_of_events_do_not_mix() -> None:
    panel = Panel(
        {"rank": RankingMetrics(["MRR"]), "hits": Tally()}, inputs={"hits": {"cells": "shown"}}
    )
    panel.update(labels=[[0, 1], [1, 0]], shown=[1, 2])
    with pytest.raises(InputError, match="expected 3 rows, as 'hits' has, got 2"):
        panel.update(labels=[[0, 1], [1, 0]], shown=[1, 2, 3])


def test_extracted_states_are_independent() -> None:
    panel = four_fed()
    before = panel.digest()
    auc = panel.state("auc")
    auc.update([1], [0.5])
    auc.merge(auc)
    assert panel.digest() == before
    panel.update(labels=[1], scores=[0.5], users=[9])
    assert panel.state("auc").compute().rows == 6  # type: ignore[attr-defined]


def test_a_metric_that_is_fed_after_it_was_given_does_not_feed_the_panel() -> None:
    given = {"t": Tally()}
    panel = Panel(given)
    given["t"].update([1])
    given["u"] = Tally()
    assert panel == Panel({"t": Tally()})
    assert Panel.from_bytes(panel.to_bytes()) == panel
    panel.update(cells=[2])
    assert panel.state("t").compute().cells == (0, 0, 1, 0)  # type: ignore[attr-defined]
    assert panel.empty().state("t") == Tally()


def test_a_metric_that_has_counted_is_no_specification() -> None:
    fed = Tally()
    fed.update([1])
    with pytest.raises(SettingsError, match="one that has counted rows"):
        Panel({"t": fed})


def test_labels_may_be_classes_in_one_small_batch_and_a_table_in_the_next() -> None:
    scores = [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]
    panel, alone = Panel({"auc": MulticlassAUC(3)}), MulticlassAUC(3)
    for labels in ([0, 2], [[0, 1, 1], [1, 0, 0]], [1, 1]):
        panel.update(labels=labels, scores=scores)
        alone.update(labels, scores)
    assert panel.state("auc") == alone
