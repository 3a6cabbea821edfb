"""The text of `status`, and of `show` for states from engines: tasks, buckets, sealed states."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.state_files import description, n_states
from streammetrics_consumers.render.state_text import state_text
from streammetrics_consumers.render.store_text import status_text
from streammetrics_consumers.render.style import Style

from streammetrics import Accumulator, GroupedAUC, Panel, Ratio, Windows, load
from streammetrics.engines import Sealed, Sealing, seal
from tests.consumers.memory_run import ONE, Run, log

PANEL = Panel({"gauc": GroupedAUC(), "ctr": Ratio()}, inputs={"ctr": {"numerators": "labels"}})


def sealed(n_buckets: int = 4) -> Sealed:
    state = PANEL.empty()
    state.update(labels=[0, 1, 1], scores=[0.1, 0.2, 0.3], groups=[7, 7, 8])
    state.provenance.add("job/tasks", 2, 3, '["a"] bucket 1')
    return seal(state, Sealing("user", n_buckets, "xxhash64", "2026-11-01"), 0, '["a"]')


def shown(state: Accumulator) -> str:
    return " ".join(state_text(state, Style(), title="file").split())


def test_a_sealed_state_says_how_many_buckets_it_has() -> None:
    text = shown(sealed())
    assert "sealed: 1 of 4 buckets of users of 2026-11-01; the others have no rows" in text
    assert 'counted sealed/xxhash64(user) mod 4/2026-11-01 bucket 0: ["a"]' in text
    assert 'counted job/tasks 2: ["a"] bucket 1' in text
    assert "sealed: 1 of 1 buckets of users of 2026-11-01 counted" in shown(sealed(1))


def test_a_sealed_state_shows_the_results_of_each_metric_of_a_panel() -> None:
    described = description(sealed())
    assert isinstance(described, dict) and isinstance(described["results"], list)
    assert [result["path"] for result in described["results"]] == [["ctr"], ["gauc"]]
    assert described["sealed"] == {"scope": "2026-11-01", "buckets": 1, "of": 4}


def test_many_windows_of_few_panes_are_shown_in_part_and_counted() -> None:
    windows = Windows(PANEL, 20, 1)
    windows.update(
        [-i * 10**9 for i in range(12)], labels=[1] * 12, scores=[0.5] * 12, groups=[0] * 12
    )
    n = 2 * (12 * 20 + 1)
    assert n_states(windows) == n and len(windows.to_bytes()) < 2_116
    described = description(windows)
    assert isinstance(described, dict) and isinstance(described["results"], list)
    assert len(described["results"]) + int(str(described["results_left_out"])) == n
    assert f"{n - 200} more: use --json" in shown(windows)


def test_what_is_described_of_windows_is_that_of_each_by_itself() -> None:
    windows = Windows(PANEL, 30, 10)
    windows.update([0, 5_000, 60_000], labels=[1, 0, 1], scores=[0.5, 0.25, 1], groups=[0, 0, 7])
    described = description(windows)
    assert isinstance(described, dict) and isinstance(described["results"], list)
    digests = [(result["path"][-1], result["digest"]) for result in described["results"]]
    parts = [windows.window_state(*span) for span in windows.windows()]
    expected = []
    for part in [*parts, windows.total_state()]:
        assert isinstance(part, Panel)
        expected += [(name, part.state(name).digest()) for name in ("ctr", "gauc")]
    assert digests == expected and described["results_left_out"] == 0
    assert n_states(windows) == len(expected)


def test_bare_bytes_of_a_sealed_state_say_that_they_prove_nothing() -> None:
    assert "it merges with no state" in shown(load(sealed().to_bytes()))


def status(run: Run) -> str:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        return status_text(ledger, Style(width=120), title="store")


def test_tombstones_have_a_column_where_there_are_some(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(5)})
    run()
    assert "tombstones" not in status(run)
    run.logs[ONE].append(None, None, None)
    run()
    header, row = (
        line for line in status(run).splitlines() if "next offset" in line or "/0" in line
    )
    assert header.split()[-4:] == ["late", "tombstones", "newest", "event"]
    assert row.split()[1:6] == ["8", "5", "0", "0", "3"]
