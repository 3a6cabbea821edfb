"""Batches of a streaming query in the ledger: each counts once, as a worker counts. The store that
they feed reads like any other."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.counting.commits import ErrorBudgetExceeded
from streammetrics_consumers.engines.batch_ledger import BatchLedger
from streammetrics_consumers.engines.tasks import Job, require_schema
from streammetrics_consumers.ledger.ledger import Ledger, LogChanged, NewSource
from streammetrics_consumers.ledger.merge_plan import ABOVE, LEAVE
from streammetrics_consumers.ledger.store_view import view
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.sources import GapError

from streammetrics import load
from tests.consumers.engines.fed_store import (
    ASSIGNED,
    SCHEMA,
    SPARK,
    THREE,
    Fed,
    Row,
    assigned_rows,
    counted,
    digests,
    look_rows,
    panes,
    row,
    shard_rows,
    table,
    worked,
)
from tests.consumers.memory_run import ONE
from tests.consumers.small_config import toml


def random_rows(n: int, seed: int = 1) -> list[Row]:
    random = Random(seed)
    return [
        row(
            random.uniform(0, 300),
            random.choice("ab"),
            random.randrange(2),
            random.random(),
            random.choice(["fit", "eval", None]),
            f"u{random.randrange(40)}",
        )
        for _ in range(n)
    ]


METRICS = (
    'auc = { type = "HistogramAUC" }\nctr = { type = "Ratio" }\n'
    'gauc = { type = "GroupedAUC" }\n'
)  # fmt: skip


REST = '[experiment]\ncontrol = "a"\ndecision = ["ctr"]\nmde = 0.05'
FEW_KEYS = 'by = [[], ["user"], ["user", "phase"]]\nmax_keys = 5'


@pytest.mark.parametrize(
    ("cuts", "parts"),
    [
        ((1, 2, 3, 80), {"metrics": METRICS}),
        ((100,), {"rest": REST}),
        ((20, 60), {"slices": FEW_KEYS}),
    ],
    ids=["many batches", "an experiment", "few keys"],
)
def test_batches_and_tasks_of_any_size_give_the_states_of_a_worker(
    tmp_path: Path, cuts: tuple[int, ...], parts: dict[str, str]
) -> None:
    rows = random_rows(150)
    worker = worked(tmp_path, rows, **parts)
    Random(2).shuffle(rows)
    fed = Fed(tmp_path, **parts)
    for number, (start, end) in enumerate(zip((0, *cuts), (*cuts, len(rows)), strict=True)):
        batch = rows[start:end]
        assert fed.feed(number, batch[::3], batch[1::3], batch[2::3])
    assert fed.digests() == digests(worker)
    assert panes(fed.config) == panes(worker)
    assert len(panes(worker)) > 20
    if "rest" in parts:  # an experiment is looked at too; the clock stands still
        with closing(Ledger.open(fed.config.store.url)) as ledger:
            design = declared(ledger.generation())
            assert design is not None
            assert view(ledger, lambda now: now.looks(design.fingerprint)) == 1


def test_a_batch_writes_the_rows_of_a_worker_for_each_of_several_experiments(
    tmp_path: Path,
) -> None:
    rows = assigned_rows(300)
    worker = worked(tmp_path, rows, ASSIGNED, **THREE)
    fed = Fed(tmp_path, **THREE)
    assert fed.feed(0, rows[::3], rows[1::3], rows[2::3], schema=ASSIGNED)
    assert shard_rows(fed.config) == shard_rows(worker)
    looks = look_rows(fed.config)
    assert looks == look_rows(worker)
    assert len({experiment for experiment, *_ in looks}) == 3
    assert {pane.metric.rpartition("/")[0] for pane in panes(worker)} == {
        *("", "experiment", "experiment/pricing", "experiment/search")
    }


def test_batches_give_the_states_of_a_worker_for_each_of_several_experiments(
    tmp_path: Path,
) -> None:
    rows = assigned_rows(300)
    worker = worked(tmp_path, rows, ASSIGNED, **THREE)
    Random(2).shuffle(rows)
    fed = Fed(tmp_path, **THREE)
    for number, (start, end) in enumerate(((0, 1), (1, 90), (90, 300))):
        assert fed.feed(number, rows[start:end:2], rows[start + 1 : end : 2], schema=ASSIGNED)
    assert panes(fed.config) == panes(worker)


def test_the_rows_of_many_batches_are_merged_on_the_way(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    with closing(fed.opened()) as ledger:
        for number in range(2 * ABOVE):
            tasks = [[table([row(1, score=number / 100)])]]
            ledger.count(number, lambda job, tasks=tasks: counted(job, tasks))  # type: ignore[misc]
    assert max(size.rows for size in fed.snapshot().panes) <= ABOVE + LEAVE + 1


@pytest.mark.usefixtures("each_store")
def test_a_batch_that_is_done_again_counts_once(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    with closing(fed.opened()) as ledger, pytest.raises(ZeroDivisionError):
        ledger.count(0, lambda job: 1 // 0)  # type: ignore[arg-type,return-value]
    assert fed.snapshot().counters.rows == 0
    assert fed.feed(0, [row(), row()])
    before = fed.digests()
    assert not fed.feed(0, [row(), row()])
    assert fed.digests() == before
    (head,) = fed.snapshot().heads
    assert (head.next_offset, head.counters.rows) == (1, 2)


def test_a_batch_without_rows_moves_the_head_alone(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    assert fed.feed(0, [])
    snapshot = fed.snapshot()
    assert (snapshot.heads[0].next_offset, snapshot.stored_rows, snapshot.greatest_event_ms) == (
        1,
        0,
        None,
    )


@pytest.mark.usefixtures("each_store")
def test_of_two_lives_that_count_a_batch_at_once_one_does(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    with closing(fed.opened()) as slow:

        def overtaken(job: object) -> object:
            fed.feed(0, [row()])
            return counted(job, [[table([row()])]])  # type: ignore[arg-type]

        assert not slow.count(0, overtaken)  # type: ignore[arg-type]
    assert fed.snapshot().counters.rows == 1


def test_batches_that_are_missing_stop_the_query_or_are_skipped_on_request(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.feed(4, [row()])  # the first that the store sees
    with pytest.raises(GapError, match="next offset is 5, but the log holds 7 to 8"):
        fed.feed(7, [row()])
    assert fed.feed(7, [row()], on_gap="skip")
    (head,) = fed.snapshot().heads
    assert (head.start_offset, head.next_offset, head.lost) == (4, 8, 2)


def test_a_query_that_begins_anew_is_another_log(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.feed(0, [row()])
    fed.identity = "two"
    with pytest.raises(LogChanged, match="is not the one counted"):
        fed.feed(0, [row()])
    assert fed.feed(0, [row()], on_gap="skip")
    assert fed.snapshot().counters.rows == 2


def test_rows_that_are_refused_go_to_quarantine_with_their_place_in_the_batch(
    tmp_path: Path,
) -> None:
    fed = Fed(tmp_path)
    fed.feed(0, [row(), row(variant="z")], [row(label=7), row(), row(variant=None)])
    with closing(Ledger.open(fed.config.store.url)) as ledger:
        entries = ledger.quarantine()
    assert [(e.offset, e.index, e.reason) for e in entries] == [
        (0, 1, "unknown_variant"), (0, 2, "metric"), (0, 4, "missing_field"),
    ]  # fmt: skip
    assert b'"variant": "z"' in entries[0].payload
    counters = fed.snapshot().counters
    assert (counters.rows, counters.quarantined) == (5, 3)


def test_a_row_is_late_beside_the_batches_before_whatever_its_own_order(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.feed(0, [row(10), row(0)])
    assert fed.snapshot().counters.late == 0
    fed.feed(1, [row(0), row(20)], [row(8.9), row(9.1)])
    assert fed.snapshot().counters.late == 2
    for number, tasks in enumerate(([[row(5)]], []), 2):  # an older batch, and one without tasks
        fed.feed(number, *tasks)
        assert fed.snapshot().greatest_event_ms == 20 * 60_000


def test_rows_that_are_ahead_of_the_time_of_their_record_are_refused(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("timestamp", pa.timestamp("us", "UTC")))
    rows = [{**row(minute), "timestamp": 0} for minute in (0, 1, 2)]
    rows.append({**row(2), "timestamp": None})
    fed = Fed(tmp_path)
    fed.feed(0, rows, record_time="timestamp", schema=schema)
    counters = fed.snapshot().counters
    assert (counters.rows, counters.future, counters.quarantined) == (4, 1, 1)


def test_windows_are_dropped_after_their_retention_and_rows_below_add_to_totals(
    tmp_path: Path,
) -> None:
    fed = Fed(tmp_path)
    fed.feed(0, [row(0)])
    fed.feed(1, [row(30 * 60)])
    snapshot = fed.snapshot()
    assert snapshot.generation.floor_ms == 6 * 3_600_000
    assert {p.pane.start_ms for p in snapshot.panes} == {None, 30 * 3_600_000}
    fed.feed(2, [row(0), row(30 * 60)])
    assert fed.snapshot().counters.expired == 1


def test_a_floor_that_rises_meanwhile_has_the_batch_counted_again(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    tries = []
    with closing(fed.opened()) as ledger:

        def raised(job: object) -> object:
            tries.append(job)
            ledger.ledger.raise_floor(ledger.generation, 3_600_000)
            return counted(job, [[table([row(0), row(90)])]])  # type: ignore[arg-type]

        assert ledger.count(0, raised)  # type: ignore[arg-type]
    counters = fed.snapshot().counters
    assert (len(tries), counters.rows, counters.expired) == (2, 2, 1)


def test_too_many_bad_rows_stop_the_query_and_none_of_the_batch_is_counted(
    tmp_path: Path,
) -> None:
    fed = Fed(tmp_path, rest="[store]\nmax_bad_share = 0.1")
    with closing(fed.opened()) as ledger:

        def feed(number: int, n: int) -> None:
            bad = [[table([row(variant="z")] * n)]]
            ledger.count(number, lambda job: counted(job, bad))

        feed(0, 500)
        feed(1, 499)  # 1,000 events and more are judged, those of all batches of a process
        with pytest.raises(ErrorBudgetExceeded, match="1001 of 1001 events"):
            feed(2, 2)
    assert fed.snapshot().counters.rows == 999
    with pytest.raises(ErrorBudgetExceeded, match="1099 of 1099 events"):  # and after a restart
        fed.feed(2, [row(variant="z")] * 100)


def test_a_store_that_a_worker_has_fed_is_fed_on(tmp_path: Path) -> None:
    rows = random_rows(100)
    whole = digests(worked(tmp_path, rows))
    (tmp_path / "half").mkdir()
    half = worked(tmp_path / "half", rows[:50])
    fed = Fed(tmp_path)
    fed.config = replace(fed.config, store=half.store)
    with pytest.raises(NewSource):
        fed.feed(0, rows[50:])
    fed.opened(new_source=True).close()
    fed.feed(0, rows[50:])
    assert fed.digests() == whole


def test_a_table_that_cannot_be_read_stops_the_query_at_once(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    job = Job(fed.config, ONE, 0, None, None)
    for schema, message in (
        (SCHEMA.remove(3), "no such column"),
        (SCHEMA.set(0, pa.field("ts", pa.timestamp("us"))), "times without one"),
        (SCHEMA.set(3, pa.field("score", pa.decimal128(10, 2))), "decimal128"),
    ):
        with pytest.raises(SourceError, match=message):
            require_schema(job, schema)


def test_a_commit_is_on_the_disk_before_the_engine_hears_of_it(tmp_path: Path) -> None:
    with (
        closing(Fed(tmp_path).opened()) as ledger,
        ledger.ledger.store.engine.begin() as connection,
    ):
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_refusal_that_never_ends_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fed = Fed(tmp_path)

    def refuse(*_: object) -> None:
        raise Fenced("windows are gone")

    monkeypatch.setattr(BatchLedger, "_commit", refuse)
    with pytest.raises(Fenced, match="refused 10 times"):
        fed.feed(0, [row()])


Capture = pytest.CaptureFixture[str]


@pytest.fixture
def fed(tmp_path: Path) -> Fed:
    """A store with two batches, of which one row is refused."""
    fed = Fed(tmp_path)
    fed.feed(0, [row(0, "a", 1, 0.75), row(1, "b", 0, 0.5)], [row(2, "c", 1)])
    fed.feed(1, [row(70, "a", 0, 0.25)])
    return fed


def written(folder: Path, **parts: str) -> str:
    """The config of that store as a file."""
    path = folder / "clicks.toml"
    text = toml(**{"source": SPARK, "rest": '[store]\nurl = "fed.db"', **parts})
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_run_says_that_the_query_writes_by_itself(tmp_path: Path, capsys: Capture) -> None:
    for options in ([], ["--until-end"], ["--check"], ["--dry-run"]):
        assert main(["run", written(tmp_path), "--no-serve", *options]) == 2
        err = capsys.readouterr().err
        assert "[source] kind: expected a source that this program reads, got 'spark'" in err
    assert not (tmp_path / "fed.db").exists()


def test_verify_says_that_there_is_no_log_to_read_again(
    fed: Fed, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["verify", written(tmp_path)]) == 7
    out = capsys.readouterr().out
    assert (
        "clicks/0: not verified, since batches 0 to 2 come from a streaming query of Spark" in out
    )
    assert "which has no log to read again" in out
    assert "nothing could be verified" in out


def test_results_and_status_name_the_query_and_its_batches(fed: Fed, capsys: Capture) -> None:
    url = fed.config.store.url
    assert main(["results", url, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["offsets"] == {"clicks/0": 2}
    assert main(["status", url]) == 0
    assert "clicks/0" in capsys.readouterr().out


def test_export_says_which_batches_it_counted_and_they_do_not_count_twice(
    fed: Fed, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "one"
    assert main(["export", fed.config.store.url, "-o", str(path), "--metric", "ctr"]) == 0
    assert list(load(path).provenance) == [("spark/one/clicks/0", "total/{}/ctr", 0, 2)]
    assert main(["merge", str(path), str(path), "-o", str(tmp_path / "two")]) == 1
    assert "got [0, 2) twice" in capsys.readouterr().err


def test_rows_that_were_refused_are_counted_by_a_retry(fed: Fed, tmp_path: Path) -> None:
    parts = {"event": 'time = "ts"\nvariant = "variant"\nvariants = ["a", "b", "c"]\n'
                      'user = "user"\nlabel = "label"\nscore = "score"'}  # fmt: skip
    words = ["quarantine", "retry", fed.config.store.url, "--config", written(tmp_path, **parts)]
    retry_store = Fed(tmp_path, **parts)
    retry_store.config = replace(retry_store.config, store=fed.config.store)
    retry_store.feed(2, [])  # the variant is declared
    assert main(words) == 0
    snapshot = fed.snapshot()
    assert (snapshot.counters.rows, snapshot.counters.quarantined) == (4, 0)
    (tmp_path / "whole").mkdir()
    whole = Fed(tmp_path / "whole", **parts)
    whole.feed(0, [row(0, "a", 1, 0.75), row(1, "b", 0, 0.5), row(2, "c", 1), row(70, "a", 0)])
    assert retry_store.digests() == whole.digests()
