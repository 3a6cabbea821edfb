"""What `watch` shows: every value with its bounds, in 80 columns, and how the stream is read."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query, parse_query
from streammetrics_consumers.render.cells import headline_rows
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.terminal import (
    BARS,
    HISTORY_S,
    PLAIN,
    ScreenContents,
    Watcher,
    history_key,
    scale,
    screen,
    sparkline,
)

from tests.consumers import experiment_run
from tests.consumers.render.corpus import corpus
from tests.consumers.stores import EVENTS, make_store, write_events


def test_how_the_stream_is_read_stands_above_all_and_what_is_cut_off_is_counted() -> None:
    shown = ScreenContents("obd.db", corpus()["windows"])
    whole = screen(shown, Style()).splitlines()
    assert whole[1].startswith("20,000 read, 3 quarantined, 0 late")
    for height in (5, 8, len(whole) - 1):
        lines = screen(shown, Style(), height).splitlines()
        assert lines[: height - 1] == whole[: height - 1]
        assert lines[-1].startswith(f"{len(whole) - height + 1} more lines")
    assert screen(shown, Style(), len(whole)).splitlines() == whole


def test_figures_are_never_cut_to_make_room_for_bars() -> None:
    results = corpus()["small figures"]
    history = {history_key(row): [0.1, 0.2] for row in results.rows}
    shown = ScreenContents("obd.db", results, history=history)
    text = screen(shown, Style(80))
    assert text.count("  0.000000100") == text.count("[0.000000010, 0.000000200]") > 1
    assert "..." not in text and "…" not in text
    wide = screen(shown, Style(120)).splitlines()
    assert any("0.000000100" in line and "[0.000000010, " in line for line in wide)


def test_the_course_of_an_effect_is_drawn_look_by_look() -> None:
    results = corpus()["win"]
    [name] = [row.name for row in results.comparisons]
    for course, bars in (([math.nan, 0.1, 0.3, 0.2] * 200, 8), ([0.1, 0.3], 2)):
        text = screen(ScreenContents("obd.db", results, looks={name: course}), Style(80))
        [effect] = [line for line in text.splitlines() if "+0.250" in line]
        assert set(effect.rstrip()[-bars:]) <= {" ", *BARS}
    assert effect.endswith(f"{BARS[0]}{BARS[-1]}")


def test_values_by_window_are_those_of_the_results(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        watcher = Watcher(ledger, parse_query(by="variant", metric="ctr"), lambda: 0.0)
        history = watcher.look().history
        rows = headline_rows(watcher._answers.rows(parse_query("all", "variant", metric="ctr")))
    by_key: dict[object, list[float]] = {}
    for row in rows:
        if row.window.start_ms is not None:
            by_key.setdefault(history_key(row), []).append(row.value)
    assert len(by_key) == 2
    assert {key: list(values) for key, values in history.items()} == by_key


def test_what_is_read_of_an_experiment_is_its_looks_and_its_verdict(tmp_path: Path) -> None:
    store = experiment_run.run(experiment_run.write(tmp_path))
    with closing(Ledger.open(str(store))) as ledger:
        shown = Watcher(ledger, Query(), lambda: 0.0).look()
    [row] = shown.results.comparisons
    assert shown.looks == {row.name: [0.25]}
    assert shown.verdict == row.finding.sentence


def test_the_rate_and_the_quiet_are_by_the_clock(tmp_path: Path) -> None:
    store = make_store(tmp_path, EVENTS[:2])
    now = [0.0]
    with closing(Ledger.open(str(store))) as ledger:
        watcher = Watcher(ledger, Query(), lambda: now[0])
        first = watcher.look()
        assert watcher.rate == 0.0
        write_events(tmp_path, EVENTS)
        assert main(["run", str(tmp_path / "clicks.toml"), "--until-end", "--no-serve"]) == 0
        now[0] = 4.0
        second = watcher.look()
        assert watcher.rate == (len(EVENTS) - 2) / 4 and watcher.quiet_s == 0.0
        assert second.history == first.history  # not yet
        now[0] = 40.0
        watcher.look()
        assert watcher.quiet_s == 36.0 and HISTORY_S < 36.0
        assert watcher.look().history != first.history


def bars(*values: float, width: int = 10, bars: str = BARS) -> str:
    return sparkline(values, width, bounds=scale(values), bars=bars)


def test_bars_go_from_the_least_to_the_greatest() -> None:
    assert bars(0, 1, 2, 3, 4, 5, 6, 7) == BARS
    assert bars(0, 1, bars=PLAIN) == "_@"
    for value in (0.0, 5e-324, 1e308, -1e308):
        assert bars(value, value) == "▅▅"  # equal values are in the middle
    assert bars(-1.7e308, 0.0, 1.7e308) == "▁▅█"
    # What has no value is a gap.
    assert (bars(math.nan, 1, math.inf, 2), bars(math.nan), bars()) == (" ▁ █", " ", "")
    # Only the last values are shown, on the scale of all.
    assert bars(9, 1, 2, width=2) == sparkline([1, 2], 2, bounds=(1, 9))
