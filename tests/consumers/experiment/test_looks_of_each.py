"""Each experiment has its own looks: its own interval, claim and identity, and an end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.process.experiment_looks import Looker
from streammetrics_consumers.query.experiment_plan import declared, experiments_of

from tests.consumers import experiments_run
from tests.consumers.experiment_run import run
from tests.consumers.stores import filled_once

EVERY_S: Mapping[str, float] = {"": 60.0, "ranker": 10.0, "pricing": 600.0}
ENDS = experiments_run.EXPERIMENTS + "end = 1970-01-01T01:00:00Z\n"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    def fill() -> None:
        run(experiments_run.write(tmp_path, ENDS, rows=400))

    filled_once(tmp_path / "store.db", ("looks of each",), fill)
    with closing(Ledger.open(str(tmp_path / "store.db"), create=True)) as ledger:
        yield ledger


def looks(ledger: Ledger) -> dict[str, int]:
    """The number of looks at each experiment."""
    generation = ledger.generation()
    designs = {name: declared(generation, name) for name in experiments_of(generation)}

    def count(now: StoreView) -> dict[str, int]:
        return {
            name: now.looks(design.fingerprint)
            for name, design in designs.items()
            if design is not None
        }

    return view(ledger, count)


class Claims:
    """Which experiments a looker asks for, by a clock that stands still but for its looks, of which
    each takes `look_s`."""

    def __init__(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, look_s: float = 0.0
    ) -> None:
        self.now_s = 1000.0
        self.taken: list[str] = []
        self.looker = Looker(
            ledger, 1, EVERY_S, monotonic=lambda: self.now_s, clock=lambda: 1e6 + self.now_s
        )
        names = {}
        for name in EVERY_S:
            design = declared(ledger.generation(), name)
            assert design is not None
            names[design.fingerprint] = name

        def claim(store: object, generation: int, fingerprint: str, **_: object) -> bool:
            self.taken.append(names[fingerprint])
            self.now_s += look_s
            return True

        monkeypatch.setattr("streammetrics_consumers.process.experiment_looks.claim", claim)


def test_a_run_to_the_end_looks_at_each_once(ledger: Ledger) -> None:
    assert looks(ledger) == {"": 1, "ranker": 1, "pricing": 1}


def test_each_has_its_own_interval_and_what_waits_longest_is_first(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = Claims(ledger, monkeypatch)
    claims.looker.step()
    claims.looker.step()
    assert claims.taken == ["", "ranker", "pricing"]
    claims.taken.clear()
    for _ in range(7):
        claims.now_s += 10.0
        claims.looker.step()
    assert claims.taken == ["ranker"] * 5 + ["", "ranker", "ranker"]


def test_a_step_takes_no_more_looks_once_they_have_taken_a_while(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = Claims(ledger, monkeypatch, look_s=0.06)
    claims.looker.step()
    assert claims.taken == ["", "ranker"]
    claims.looker.step()
    assert claims.taken == ["", "ranker", "pricing"]


def test_a_process_with_seldom_steps_takes_all_that_are_due(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = Claims(ledger, monkeypatch, look_s=5.0)
    claims.looker.step(math.inf)
    assert claims.taken == ["", "ranker", "pricing"]


def test_after_its_end_one_has_a_look_only_if_it_got_rows(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = Claims(ledger, monkeypatch)
    for _ in range(3):
        claims.looker.last()
    assert claims.taken == ["", "ranker", "pricing", "", "ranker", "", "ranker"]
    assert looks(ledger)["pricing"] == 1  # the same rows are the same look


def test_a_store_without_experiments_has_none(tmp_path: Path) -> None:
    config = experiments_run.write(tmp_path, "", rows=20)
    with closing(Ledger.open(str(run(config)))) as ledger:
        looker = Looker(ledger, 1, {}, monotonic=lambda: 0.0, clock=lambda: 0.0)
        looker.step()
        looker.last()
        assert looks(ledger) == {}
