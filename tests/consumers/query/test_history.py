"""A history: bounded, in order, and with the numbers of the results and comparisons beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import thinned
from streammetrics_consumers.query import history
from streammetrics_consumers.query.catalogue import Catalogue
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.history import (
    EffectWindows,
    History,
    HistoryReader,
    history_of,
)
from streammetrics_consumers.query.query import Query, QueryError
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.rows import SINCE_THE_START, SliceRow, Window

from tests.consumers import experiment_run
from tests.consumers.answer_rows import slice_row
from tests.consumers.render.corpus import results


def row(hour: int | None, variant: str, value: float) -> SliceRow:
    """One value of one hour, or since the start."""
    window = SINCE_THE_START
    if hour is not None:
        window = Window(hour * 3_600_000, (hour + 1) * 3_600_000, "closed")
    return slice_row(window, {"variant": variant}, "ctr", "Ratio", "ratio", value, value, value,
                  {"rows": 1}, "sha256:")  # fmt: skip


def make_history(*rows: SliceRow) -> History:
    answer = results(iter(rows), variants=("old", "new"))
    return history_of(answer, "ctr", "ratio", (), lambda name: ())


def values(result: History) -> dict[object, list[float | None]]:
    return {
        series.slice["variant"]: [
            None if n is None else value for n, value in zip(series.rows, series.value, strict=True)
        ]
        for series in result.series
    }


def test_series_run_parallel_to_the_windows_and_gaps_are_none() -> None:
    result = make_history(
        row(None, "new", 9.0), row(0, "new", 1.0), row(1, "old", 2.0), row(3, "new", 3.0)
    )
    assert [window.start_ms for window in result.windows] == [0, 3_600_000, 10_800_000]
    assert values(result) == {"old": [None, 2.0, None], "new": [1.0, None, 3.0]}


def test_series_stand_as_declared_and_the_newest_windows_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = make_history(row(0, "a", 1.0), row(0, "new", 1.0), row(0, "old", 1.0))
    assert list(values(result)) == ["old", "new", "a"]
    monkeypatch.setattr(history, "MAX_WINDOWS", 2)
    result = make_history(*(row(hour, "new", hour) for hour in range(5)))
    assert (values(result), result.more) == ({"new": [3, 4]}, 3)


def test_looks_are_thinned_evenly_between_the_first_and_the_last() -> None:
    for count in (0, 1, 2, 499, 500, 501, 10_000):
        looks = thinned(range(count))
        assert len(looks) == min(count, 500)
        assert looks[:1] == [0][:count] and looks[-1:] == [count - 1][:count]
        steps = {b - a for a, b in pairwise(looks)}
        assert not steps or max(steps) - min(steps) <= 1


BY = frozenset({"variant"})


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return experiment_run.run(experiment_run.write(tmp_path_factory.mktemp("histories")))


@pytest.fixture
def ledger(tested: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tested))) as opened:
        yield opened


def histories(ledger: Ledger) -> HistoryReader:
    return HistoryReader(ledger, QueryCache(ledger), Catalogue(ledger, "store.db"))


def test_effects_are_those_of_the_comparisons_window_by_window(ledger: Ledger) -> None:
    _, result = histories(ledger).read(Query(by=BY), "ctr")
    [effect] = result.effects
    fresh = [row for row in read_results(ledger, Query("all")).comparisons
             if row.window.start_ms is not None]  # fmt: skip
    assert effect.windows == EffectWindows(
        tuple(row.comparison.effect_size for row in fresh),
        tuple(row.comparison.effect_size_ci_lower for row in fresh),
        tuple(row.comparison.effect_size_ci_upper for row in fresh),
    )
    assert len(fresh) == 2 and effect.looks.gated == (False,)


def test_what_is_not_drawn_is_not_compared(ledger: Ledger) -> None:
    reads = histories(ledger)
    _, none = reads.read(Query(by=BY), "ctr", effects="none")
    _, total = reads.read(Query(by=BY), "ctr", effects="total")
    assert none.effects == ()
    [effect] = total.effects
    assert len(effect.looks.effect) == 1 and np.isnan(effect.windows.effect).tolist() == [True] * 2
    _, variant_history = reads.read(Query(by=BY, where=(("variant", "new"),)), "ctr")
    assert variant_history.effects == () and [
        series.slice for series in variant_history.series
    ] == [{"variant": "new"}]


def test_any_view_has_a_history_and_the_window_of_the_query_is_not_looked_at(
    ledger: Ledger,
) -> None:
    reads = histories(ledger)
    _, first = reads.read(Query("latest", by=BY), "ctr")
    _, counted = reads.read(Query(by=BY), "ctr", "numerator")
    assert (first.view, counted.view) == ("ratio", "numerator")
    assert first.windows == counted.windows and len(first.windows) == 2
    assert counted.effects == ()
    with pytest.raises(QueryError, match="a view of this metric"):
        reads.read(Query(by=BY), "ctr", "nothing")
