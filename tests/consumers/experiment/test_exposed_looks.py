"""Looks at experiments whose arms come from exposures are of the units that the plan decides by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.process.experiment_looks import Looker
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.exposures_status import ExposuresReader
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.query import Query

from tests import exposed_scenes


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the scene, which has had two looks."""
    return exposed_scenes.make_store(tmp_path_factory.mktemp("exposed"))


@pytest.fixture
def ledger(store: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(store))) as opened:
        yield opened


def effects(ledger: Ledger, name: str, comparison: str) -> list[float]:
    """The effects at the looks, the oldest first."""

    def read(now: StoreView) -> list[float]:
        design = declared(now.version.generation, name)
        assert design is not None
        return [point.effect for point in now.points(design.fingerprint, comparison)]

    return view(ledger, read)


@pytest.mark.parametrize(
    ("name", "comparison", "looks"), [("checkout", "revenue.mean/one_page", 2),
                                      ("reminder", "buyers.rate/later", 1)]
)  # fmt: skip
def test_a_look_stores_the_effect_on_the_units_that_decide(
    ledger: Ledger, name: str, comparison: str, looks: int
) -> None:
    results = QueryCache(ledger).experiment_so_far(Query(experiment=name))[0]
    shown = next(row for row in results.comparisons if row.finding.contrast.name == comparison)
    stored = effects(ledger, name, comparison)
    # Halfway no window was over, so that the first look at closed units has no effect.
    assert len(stored) == looks == shown.looks
    assert stored[-1] == shown.comparison.effect_size
    assert results.exposed_units is not None
    effect = results.exposed_units.beside[0]
    assert effect.effect_size != stored[-1] and effect.units != shown.comparison.n


def test_the_index_and_the_answer_of_one_experiment_say_the_same(ledger: Ledger) -> None:
    cache = QueryCache(ledger)
    entries = {entry.name: entry for entry in cache.index().experiments}
    assert {name: entry.units for name, entry in entries.items()} == {
        "checkout": "so_far", "reminder": "closed", "banner": "so_far",
    }  # fmt: skip
    for name, entry in entries.items():
        results = cache.experiment(Query(experiment=name))
        assert entry.recommendation == results.recommendation
        assert entry.effect is not None
        assert entry.effect.estimate == results.comparisons[0].comparison.effect_size


def test_an_ended_experiment_has_a_look_when_more_of_its_units_are_closed(ledger: Ledger) -> None:
    looker = Looker(ledger, 1, {"reminder": 60.0}, monotonic=lambda: 0.0, clock=lambda: 0.0)
    design = declared(ledger.generation(1), "reminder")
    assert design is not None
    counted = []
    for day in (12, 12, 13):
        end_ms = exposed_scenes.START_MS + day * exposed_scenes.DAY_MS
        counted.append(looker._counted_at_the_end(replace(design, end_ms=end_ms)))
    assert counted[0] == counted[1] != counted[2]
    # The rows are the same, and the units of one more day are closed.
    assert [part and part[0] for part in counted] == [counted[0] and counted[0][0]] * 3


def test_all_surfaces_name_the_view_and_the_report_too(store: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    words = ["report", str(store), "--experiment", "reminder", "-o", str(report)]
    assert main(words) == 0
    page = report.read_text(encoding="utf-8")
    assert "Of the units whose window of 7 days after the exposure is over" in page
    assert (
        "at one look, 95 %" in page and "without a verdict" in page and "<h2>Exposures</h2>" in page
    )


def test_an_answer_about_one_metric_has_the_exposed_units_of_this_one(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    words = ["results", str(store), "--experiment", "checkout", "--metric", "buyers", "--json"]
    assert main(words) == 0
    exposed = json.loads(capsys.readouterr().out)["exposed"]
    assert {effect["metric"] for part in exposed["since"] for effect in part["effects"]} == {
        "buyers"
    }
    assert [*exposed["funnel"][0]["converted"]] == ["buyers"]


def test_a_row_of_exposures_is_read_once_for_the_status(
    store: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("grown")
    for file in store.parent.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    with closing(Ledger.open(str(folder / "store.db"))) as ledger:
        reader = ExposuresReader(ledger)
        before, _ = reader.found()
        read = reader.rows_read
        assert before is not None and read > 1
        assert reader.found()[0] is before
        event = {"ts": exposed_scenes.START_MS + 30 * exposed_scenes.DAY_MS, "user": "last",
                 "kind": "exposure", "experiment": "unknown", "arm": "new"}  # fmt: skip
        with (folder / "events.jsonl").open("a", encoding="utf-8") as events:
            events.write(f"{json.dumps(event)}\n")
        assert main(["run", str(folder / "config.toml"), "--until-end", "--no-serve"]) == 0
        after, _ = reader.found()
        assert after is not None
        assert (after.pending_events, after.pending_exposures) == (0, 1)
        assert after.closed == before.closed + before.pending_events
        assert reader.rows_read - read <= 3  # of what is pending, and of what was closed
        assert after == ExposuresReader(ledger).found()[0]
