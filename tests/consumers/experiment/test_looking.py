"""Looks at an experiment: whoever counts takes them, one at a time, and readers never."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import streammetrics_consumers.process.experiment_looks as looking
from sqlalchemy import func, select
from sqlalchemy.event import listen
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import look as look_table
from streammetrics_consumers.process.experiment_looks import Looker, look_now
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.query import Query, parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import table

from streammetrics.experiments import Monitor
from tests.consumers.experiment_run import run, write
from tests.consumers.ledger.small_ledger import monitor_of
from tests.consumers.stores import filled_once, over_stores
from tests.patience import LIMIT_S


@pytest.fixture
def store(tmp_path: Path) -> Path:
    config, path = write(tmp_path), tmp_path / "store.db"

    def fill() -> None:
        run(config)

    filled_once(path, ("looking",), fill)
    return path


@pytest.fixture
def ledger(store: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(store))) as ledger:
        yield ledger


def looks(ledger: Ledger) -> int:
    query = select(func.count()).select_from(look_table)
    return ledger.store.read(lambda connection: int(connection.scalar(query) or 0))


def monitor(ledger: Ledger) -> Monitor:
    design = declared(ledger.generation())
    assert design is not None
    return monitor_of(ledger, 1, design.fingerprint)


def forget(ledger: Ledger) -> None:
    with ledger.store.engine.begin() as connection:
        connection.execute(look_table.metadata.tables["look_reading"].delete())
        connection.execute(look_table.delete())


def looker(ledger: Ledger, now_s: list[float], every_s: float = 60.0) -> Looker:
    return Looker(
        ledger, 1, {"": every_s}, monotonic=lambda: now_s[0], clock=lambda: 1e6 + now_s[0]
    )


def test_a_run_to_the_end_looks_at_the_end(ledger: Ledger) -> None:
    (look,) = monitor(ledger).looks.values()
    assert look.heads == (("clicks.jsonl/0", 2000),)
    readings = dict(look.readings)
    assert set(readings) >= {"ctr.ratio/new", "ctr.ratio/new (decided)", "(sample ratio) start"}
    reading = readings["ctr.ratio/new"]
    assert reading.log_e > 10
    assert 0 < reading.lower < 0.25 < reading.upper


@pytest.mark.usefixtures("each_store")
def test_the_same_look_is_one_whoever_takes_it(ledger: Ledger) -> None:
    assert not look_now(ledger, 1)
    assert looks(ledger) == 1
    before = monitor(ledger)
    forget(ledger)
    assert look_now(ledger, 1)
    assert monitor(ledger) == before


def test_a_look_at_what_was_seen_before_reads_no_state(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    real = looking.state_of
    monkeypatch.setattr(looking, "state_of", lambda *row: read.append(row) or real(*row))
    assert not look_now(ledger, 1)
    assert not read
    forget(ledger)
    assert look_now(ledger, 1)
    assert read


def test_a_look_is_due_every_so_often(ledger: Ledger) -> None:
    forget(ledger)
    now_s = [100_000.0]
    first_looker, second_looker = looker(ledger, now_s), looker(ledger, now_s)
    first_looker.last()  # whenever the run's own was
    forget(ledger)
    counts = []
    for elapsed_s in (10.0, 59.0, 60.0, 61.0, 121.0):
        now_s[0] = 100_000.0 + elapsed_s
        first_looker.step()
        second_looker.step()
        counts.append(looks(ledger))
        forget(ledger)
    assert counts == [0, 0, 0, 0, 1]


@pytest.mark.usefixtures("each_store")
def test_of_two_who_look_at_once_one_does(
    ledger: Ledger, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(ledger)
    taken: list[int] = []
    real = looking.look_now

    def counted(ledger: Ledger, generation: int, *more: Any) -> bool:
        taken.append(generation)
        return real(ledger, generation, *more)

    monkeypatch.setattr(looking, "look_now", counted)
    barrier = threading.Barrier(4)
    with closing(Ledger.open(str(store), create=True)) as second:

        def start(n: int) -> None:
            thread_looker = looker(ledger if n % 2 else second, [200_000.0 + n])
            barrier.wait(LIMIT_S)
            thread_looker.step()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(start, range(4)))
    assert (len(taken), looks(ledger)) == (1, 1)


class Died(BaseException):
    """Nothing that comes after it is done by this process."""


# In both transactions of a look when all is written, and before and after each of its steps.
POINTS = ("in claim", "in take", "before claim", "after claim", "after view", "after take")


def dying(ledger: Ledger, point: str, patch: pytest.MonkeyPatch) -> None:
    """From now on a look dies at this point."""
    place, _, step = point.partition(" ")
    real = getattr(looking, step)
    within: list[str] = []

    def stepped(*arguments: Any, **more: Any) -> Any:
        within.append(step)
        if place == "before":
            raise Died
        real(*arguments, **more)
        raise Died

    def commits(_: object) -> None:
        if within and place == "in":
            raise Died

    patch.setattr(looking, step, stepped)
    listen(ledger.store.engine, "commit", commits)


@pytest.mark.usefixtures("each_store")
@pytest.mark.parametrize(
    ("databases", "point"), over_stores(*zip(POINTS), postgres=2), indirect=["databases"]
)
def test_a_look_of_who_dies_is_there_whole_or_not_at_all_and_costs_one_look_at_most(
    ledger: Ledger, store: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    forget(ledger)
    with (
        monkeypatch.context() as patch,
        closing(Ledger.open(str(store), create=True)) as second_ledger,
    ):
        dying(second_ledger, point, patch)
        with pytest.raises(Died):
            looker(second_ledger, [300_000.0]).step()
    is_there = int(point == "after take")
    assert looks(ledger) == len(monitor(ledger).looks) == is_there
    # A claim that was not written is no claim; one that was is waited for.
    is_claimed = point not in ("before claim", "in claim")
    looker(ledger, [300_001.0]).step()
    assert looks(ledger) == (is_there if is_claimed else 1)
    looker(ledger, [300_062.0]).step()
    assert looks(ledger) == 1


def test_a_store_that_is_away_costs_a_look_and_no_more(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object) -> bool:
        raise StoreUnavailable("store clicks: away")

    monkeypatch.setattr(looking, "look_now", away)
    looker(ledger, [400_000.0]).step()
    assert "this look at the experiment is skipped" in caplog.text


def test_where_nothing_was_counted_nobody_looks(tmp_path: Path) -> None:
    with closing(Ledger.open(str(run(write(tmp_path, rows=0))))) as ledger:
        assert looks(ledger) == 0


def test_results_say_what_may_be_concluded_of_all_rows_and_of_a_window_by_itself(
    ledger: Ledger,
) -> None:
    results = read_results(ledger, Query())
    answer = json.loads(to_json(results))
    (comparison,) = answer["comparisons"]
    assert (comparison["metric"], comparison["view"], comparison["looks"]) == ("ctr", "ratio", 1)
    assert (comparison["control"], comparison["treatment"], comparison["effect_size"]) == (
        0.25,
        0.5,
        0.25,
    )
    assert (
        comparison["anytime_lower"]
        < comparison["effect_size_ci_lower"]
        < 0.25
        < comparison["anytime_upper"]
    )
    assert comparison["anytime_pvalue"] * comparison["e_value"] == pytest.approx(1, rel=1e-14)
    assert comparison["holm_pvalue"] == comparison["anytime_pvalue"]  # there is one decision
    assert comparison["sentence"].startswith("new is better")
    assert answer["srm"]["counts"] == {"new": 1000, "old": 1000}
    assert answer["srm"]["pvalue"] == 1.0
    ratio = next(row for row in answer["results"] if row["view"] == "ratio")
    assert (ratio["interval"]["method"], ratio["interval"]["reason"]) == ("jackknife, wilson", "")
    assert all(row["interval"] is None for row in answer["results"] if row["view"] == "numerator")
    assert not [row for row in answer["results"] if "/" in row["metric"]]
    text = table(results, Style(), title="clicks")
    for phrase in ("since the start: new - old", "+0.250", "p, always valid", "design effect",
                 "new is better", "units: old 1,000, new 1,000"):  # fmt: skip
        assert phrase in text, text
    rows = read_results(ledger, parse_query("all")).comparisons
    assert [(row.window.start_ms, row.looks) for row in rows] == [(None, 1), (0, 0), (3_600_000, 0)]
    total, *window_counts = (row.comparison.n for row in rows)
    assert sum(window_counts) == total
    slice_results = read_results(ledger, parse_query("total", where=["variant=new"]))
    assert slice_results.comparisons == () and slice_results.srm is not None
    assert looks(ledger) == 1  # who reads never looks


def test_without_a_horizon_nothing_is_always_valid(tmp_path: Path) -> None:
    with closing(Ledger.open(str(run(write(tmp_path, ""))))) as ledger:
        answer = json.loads(to_json(read_results(ledger, Query())))
        (comparison,) = answer["comparisons"]
        assert (comparison["anytime_lower"], comparison["anytime_upper"]) == ("-inf", "inf")
        assert comparison["anytime_pvalue"] == 1.0
        assert "neither a horizon nor an mde was declared" in comparison["anytime_reason"]
