"""Calls of `update` that pass a table as columns say how to pass a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    GroupedAUC,
    HistogramAUC,
    InputError,
    Panel,
    PerKey,
    Ratio,
    SlidingAUC,
    UserGroups,
    Windows,
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
            "HistogramAUC.update: expected the arguments labels, scores, weights, got click; "
            + TWO,
        ),
        (
            lambda: AUC.check(**DAY),
            "HistogramAUC.update: expected the arguments labels, scores, weights, got click; "
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
            f"{UPDATE} labels, scores, weights, got label; did you mean 'labels'?",
        ),
        (
            lambda: GroupedAUC().update([0], [0.5], [7]),  # type: ignore[call-arg, misc]
            "GroupedAUC.update: expected the arguments labels, scores, groups, weights, got 1 more "
            "by position; pass groups= by name",
        ),
        (
            lambda: Panel({"auc": AUC}).update([0], [0.5]),  # type: ignore[call-arg]
            "Panel.update: too many positional arguments; pass each column by its name, as in "
            "labels=...",
        ),
        (
            lambda: AUC.update_from(DAY, "click", "p"),  # type: ignore[call-arg]
            f"HistogramAUC.update_from: too many positional arguments; {FOR_A_TABLE}",
        ),
        (
            lambda: SlidingAUC(9).update([0], score=[0.5]),  # type: ignore[call-arg]
            "SlidingAUC.update: missing a required argument: 'scores'; got 'score'; did you mean "
            "'scores'?",
        ),
        (
            lambda: PerKey(AUC).update(**DAY),
            f"PerKey.update: missing a required argument: 'keys'; {FOR_A_TABLE}",
        ),
        (
            lambda: Windows(AUC, 60).update(**DAY),
            f"Windows.update: missing a required argument: 'times_ms'; {FOR_A_TABLE}",
        ),
    ],
)
def test_wrong_arguments_name_the_right_ones(call: Callable[[], object], text: str) -> None:
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == text


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
