"""Each counted event lies in the offsets of a delta row, or it is said where there is none."""

from __future__ import annotations

import numpy as np
from streammetrics_consumers.model.generation import Metric
from streammetrics_consumers.replay.replay import Coverage

AUC, CTR = ("auc", 0), ("ctr", 0)


def look(*offsets: int, starts: dict[str, int] | None = None) -> dict[tuple[str, int], str]:
    covers = {AUC: [(0, 10), (12, 20)], CTR: [(5, 20)]}
    counted = {n: Metric(n, "", {}, False, {1: start}) for n, start in (starts or {}).items()}
    made = Coverage(covers, [AUC, CTR], counted, 1)
    for some in np.array_split(np.array(offsets, np.int64), 2):
        made.look(some)
    return {total: str(hole) for total, hole in made.holes.items()}


def test_offsets_inside_are_covered() -> None:
    assert look(5, 9, 12, 19) == {}


def test_what_is_outside_of_every_row_is_counted_for_each_total() -> None:
    assert look(0, 4, 10, 11, 15, 20) == {
        AUC: "no delta row covers 3 events at offsets 10 to 20",
        CTR: "no delta row covers 3 events at offsets 0 to 20",
    }


def test_a_metric_counts_nothing_before_its_start() -> None:
    assert look(0, 4, 6, starts={"ctr": 5}) == {}


def test_a_total_without_rows_covers_nothing() -> None:
    made = Coverage({}, [AUC], {}, 1)
    made.look(np.array([7], np.int64))
    assert str(made.holes[AUC]) == "no delta row covers 1 events at offsets 7 to 7"
