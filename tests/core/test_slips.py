"""Calls of `update` that pass a table as columns say how to pass a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    ArgumentError,
    GroupedAUC,
    HistogramAUC,
    InputError,
    MulticlassConfusion,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    SlidingAUC,
    StreamMetricsError,
    UserGroups,
    Windows,
    compare,
    compare_runs,
    drift,
    evaluate,
)
from streammetrics.core.errors import FOR_A_TABLE
from streammetrics.core.slips import explained

DAY: dict[str, Any] = {"click": [0, 1], "p": [0.1, 0.8], "scores": [0.5, 0.5]}
AUC = HistogramAUC()
UPDATE = "HistogramAUC.update: expected the arguments"
TWO = 'for a table, name its columns: update_from(table, labels="...", scores="...")'


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: AUC.update(**DAY),
            "HistogramAUC.update: expected the arguments labels, scores, weights, got click and p; "
            + TWO,
        ),
        (
            lambda: AUC.check(**DAY),
            "HistogramAUC.update: expected the arguments labels, scores, weights, got click and p; "
            + TWO,
        ),
        (
            lambda: AUC.update([0], [0.5], weight=[1]),  # type: ignore[call-arg]
            f"{UPDATE} labels, scores, weights, got weight; did you mean 'weights'?",
        ),
        (
            lambda: AUC.update(DAY),  # type: ignore[call-arg, arg-type]
            f"{UPDATE} labels, scores, got no scores; {TWO}",
        ),
        (
            lambda: GroupedAUC().update(scores=[0.5]),  # type: ignore[call-arg]
            "GroupedAUC.update: expected the arguments labels, scores, groups, got no labels and "
            'no groups; for a table, name its columns: update_from(table, labels="...", '
            'scores="...", groups="...")',
        ),
        (
            lambda: AUC.update(label=[0], score=[0.5]),  # type: ignore[call-arg]
            f"{UPDATE} labels, scores, weights, got label and score; did you mean 'labels' and "
            "'scores'?",
        ),
        (
            lambda: GroupedAUC().update([0], [0.5], [7]),  # type: ignore[call-arg, misc]
            "GroupedAUC.update: expected the arguments labels, scores, groups, weights, got 1 more "
            "by position; pass groups= by name",
        ),
        (
            lambda: Panel({"auc": AUC}).update([0], [0.5]),  # type: ignore[call-arg]
            "Panel.update: expected the arguments **columns, got 2 more by position; pass each "
            "column by its name, as in labels=...",
        ),
        (
            lambda: AUC.update_from(DAY, "click", "p"),  # type: ignore[call-arg]
            "HistogramAUC.update_from: expected the arguments table, columns, where, **names, "
            f"got 2 more by position; {FOR_A_TABLE}",
        ),
        (
            lambda: SlidingAUC(9).update([0], score=[0.5]),  # type: ignore[call-arg]
            "SlidingAUC.update: expected the arguments labels, scores, times_s, got score but no "
            "scores; did you mean 'scores'?",
        ),
        (
            lambda: PerKey(AUC).update(**DAY),
            f"PerKey.update: expected the arguments keys, **columns, got no keys; {FOR_A_TABLE}",
        ),
        (
            lambda: Windows(AUC, 60).update(**DAY),
            "Windows.update: expected the arguments times_ms, **columns, got no times_ms; "
            f"{FOR_A_TABLE}",
        ),
    ],
)
def test_wrong_arguments_name_the_right_ones(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        call()
    assert str(error.value) == text
    assert isinstance(error.value, TypeError)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: AUC.update(y_true=[0], y_score=[0.5]), "did you mean 'labels' and 'scores'?"),
        (lambda: AUC.update(target=[0], preds=[0.5]), "did you mean 'labels' and 'scores'?"),
        (lambda: AUC.update([0], [0.5], sample_weight=[1]), "did you mean 'weights'?"),
        (
            lambda: MulticlassConfusion(3).update(y_true=[0], y_pred=[1]),
            "did you mean 'labels' and 'predictions'?",
        ),
        (lambda: GroupedAUC().update([0], [0.5], qid=[7]), "did you mean 'groups'?"),
        (lambda: Ratio().update(values=[1]), "did you mean 'numerators'?"),
        (lambda: PerKey(AUC).update(key=[0], labels=[0]), "did you mean 'keys'?"),
        (lambda: PerKey(AUC).update([0], y_true=[0], p=[0]), "did you mean 'labels' and 'scores'?"),
        (lambda: Windows(AUC, 60).update(timestamp=[0]), "did you mean 'times_ms'?"),
        (
            lambda: Panel({"auc": AUC}).update(y=[0], pred=[0]),
            "did you mean 'labels' and 'scores'?",
        ),
        (lambda: AUC.update_from(DAY, y_true="click"), "did you mean 'labels'?"),
        (lambda: MulticlassConfusion(num_classes=3), "did you mean 'n_classes'?"),
        (
            lambda: HistogramAUC(num_classes=3),
            "MulticlassConfusion and MulticlassAUC have n_classes",
        ),
        (lambda: HistogramAUC(pos_label="spam"), "did you mean 'positive'?"),
        (lambda: RankingMetrics(metrics=["map"]), "did you mean 'measures'?"),
        (
            lambda: MulticlassConfusion(3, average="macro"),
            'an average is an argument of a view, as in compute().precision("macro") of '
            "MulticlassConfusion",
        ),
        (lambda: AUC.update([0], [0.5], zebra=[1]), TWO),
        (lambda: evaluate({}, {}, metrics="map"), "did you mean 'measures'?"),
        (lambda: evaluate({}, {}, "map", cut=3), "help(evaluate) has the arguments"),
        (lambda: compare_runs({}, run={}, measures="map"), "did you mean 'runs'?"),
        (lambda: compare(Ratio(), Ratio(), "auc"), "help(compare) has the arguments"),
        (lambda: drift(Ratio(), Ratio(), n_bins=3), "did you mean 'bins'?"),
    ],
)
def test_arguments_of_other_libraries_are_answered_with_ours(
    call: Callable[[], object], hint: str
) -> None:
    with pytest.raises(StreamMetricsError) as error:
        call()
    assert error.value.hint == hint


def test_users_of_a_metric_over_users_are_called_by_its_name() -> None:
    with pytest.raises(InputError, match="got user_id=; pass groups="):
        UserGroups(AUC).update(user_id=[1], labels=[0], scores=[0.5])


def test_a_table_as_a_column_says_how_to_pass_it() -> None:
    class Frame:
        """A table that numpy takes as an array of two axes."""

        columns = ("a", "b")

        def __array__(self, dtype: object = None, copy: object = None) -> object:
            return np.zeros((2, 2))

    for call in (
        lambda: Ratio().update(Frame()),
        lambda: Ratio().update(DAY),
        lambda: PerKey(AUC).update(Frame(), labels=[0], scores=[0.5]),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.hint == FOR_A_TABLE
    with pytest.raises(InputError, match=r"update_from\(table\) ignores other columns"):
        Panel({"auc": AUC}).update(**DAY)
    with pytest.raises(InputError, match=r"update_from\(table, groups="):
        UserGroups(AUC).update(**DAY)


def test_a_type_error_inside_of_update_stays_what_it_was() -> None:
    class Broken:
        @explained
        def update(self, keys: object, **columns: object) -> None:
            raise TypeError("of its own")

    with pytest.raises(TypeError, match=r"^of its own$"):
        Broken().update([1], labels=[1])
