"""What `watch` shows: every value with its bounds, in 80 columns, and how the stream is read."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query, parse_query
from streammetrics_consumers.render.terminal import (
    BARS,
    PLAIN,
    history_key,
    scale,
    screen,
    sparkline,
)
from streammetrics_consumers.render.text import Style
from streammetrics_consumers.render.watching import HISTORY_S, Watcher

from tests.consumers import experiment_run
from tests.consumers.stores import EVENTS, make_store, write_events


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return experiment_run.run(experiment_run.write(tmp_path_factory.mktemp("experiment")))


def text_of(store: Path, query: Query | None = None, height: int | None = None) -> str:
    with closing(Ledger.open(str(store))) as ledger:
        watcher = Watcher(ledger, Query() if query is None else query, lambda: 0.0)
        return screen(watcher.look(), Style(), height)


def test_how_the_stream_is_read_stands_above_all_and_is_never_cut(store: Path) -> None:
    for height in (5, 8, 24, None):
        lines = text_of(store, height=height).splitlines()
        assert "9 read, 1 quarantined, 1 late" in lines[1].replace("10 read, 2", "9 read, 1")
        assert height is None or len(lines) <= height


def test_what_is_cut_off_is_counted(store: Path) -> None:
    whole, cut = text_of(store).splitlines(), text_of(store, height=6).splitlines()
    assert cut[-1].startswith(f"{len(whole) - 5} more lines")


def test_figures_are_never_cut_to_make_room_for_bars(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        shown = Watcher(ledger, Query(), lambda: 0.0).look()
    rows = [
        replace(row, metric="m", value=1e-7, low=1.1e-8, high=2e-7) for row in shown.results.rows
    ]
    small = replace(shown, results=replace(shown.results, rows=tuple(rows)))
    text = screen(small, Style(80))
    assert text.count("0.0000001000") and text.count("[0.0000000109, 0.0000002000]")
    assert "..." not in text and "…" not in text
    assert all(cell_len(line) <= 80 for line in text.splitlines())
    assert any("1000" in line and "[" in line for line in screen(small, Style(120)).splitlines())


def test_the_course_of_an_effect_is_drawn_look_by_look(tested: Path) -> None:
    with closing(Ledger.open(str(tested))) as ledger:
        shown = Watcher(ledger, Query(), lambda: 0.0).look()
    [(name, _)] = shown.looks.items()
    text = screen(replace(shown, looks={name: [math.nan, 0.1, 0.3, 0.2] * 200}), Style(80))
    [effect] = [line for line in text.splitlines() if "+0.2500" in line]
    assert cell_len(effect) <= 80 and set(effect.rstrip()[-8:]) <= {" ", *BARS}
    text = screen(replace(shown, looks={name: [0.1, 0.3]}), Style(80))
    assert f"{BARS[0]}{BARS[-1]}" in text


def test_values_by_window_are_those_of_the_results(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        watcher = Watcher(ledger, parse_query(by="variant", metric="ctr"), lambda: 0.0)
        history = watcher.look().history
        rows = watcher._answers.rows(parse_query("all", "variant", metric="ctr")).rows
    shown = [r for r in rows if r.window.start_ms is not None and r.headline]
    by_key: dict[object, list[float]] = {}
    for row in shown:
        by_key.setdefault(history_key(row), []).append(row.value)
    assert len(by_key) == 2
    assert {key: list(values) for key, values in history.items()} == by_key


def test_the_rate_and_the_quiet_are_by_the_clock(tmp_path: Path) -> None:
    store = make_store(tmp_path, EVENTS[:2])
    now = [0.0]
    with closing(Ledger.open(str(store))) as ledger:
        watcher = Watcher(ledger, Query(), lambda: now[0])
        first = watcher.look()
        assert watcher.rate == 0.0
        make_more(tmp_path)
        now[0] = 4.0
        second = watcher.look()
        assert watcher.rate == (len(EVENTS) - 2) / 4 and watcher.quiet_s == 0.0
        assert second.history == first.history  # not yet
        now[0] = 40.0
        watcher.look()
        assert watcher.quiet_s == 36.0 and HISTORY_S < 36.0
        assert watcher.look().history != first.history


def make_more(folder: Path) -> None:
    from streammetrics_consumers.cli.main import main

    write_events(folder, EVENTS)
    assert main(["run", str(folder / "clicks.toml"), "--until-end", "--no-serve"]) == 0


def bars(*values: float, width: int = 10, bars: str = BARS) -> str:
    return sparkline(values, width, bounds=scale(values), bars=bars)


def test_bars_go_from_the_least_to_the_greatest() -> None:
    assert bars(0, 1, 2, 3, 4, 5, 6, 7) == BARS
    assert bars(0, 1, bars=PLAIN) == "_@"


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e308, -1e308])
def test_values_that_are_alike_are_in_the_middle(value: float) -> None:
    assert bars(value, value) == "▅▅"


def test_the_greatest_floats_have_bars() -> None:
    assert bars(-1.7e308, 0.0, 1.7e308) == "▁▅█"


def test_what_has_no_value_is_a_gap() -> None:
    assert bars(math.nan, 1, math.inf, 2) == " ▁ █"
    assert bars(math.nan) == " "
    assert bars() == ""


def test_only_the_last_values_are_shown() -> None:
    assert bars(9, 1, 2, width=2) == sparkline([1, 2], 2, bounds=(1, 9))
