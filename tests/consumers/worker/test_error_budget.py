"""Too many bad events stop a run, and it stays stopped when it starts again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.commits import ErrorBudgetExceeded
from streammetrics_consumers.sources.memory_source import Deliver, Log

from tests.consumers.small_config import config
from tests.consumers.worker.memory_run import GOOD, ONE, UNTIL_END, Run

STRICT = "[store]\nmax_bad_share = 0.5\ncommit_interval_s = 0.01"
SMALL = [Deliver(100)] * 100


def run_of(folder: Path, values: Sequence[bytes | None]) -> Run:
    run = Run(folder, {ONE: Log(list(values))}, rest=STRICT)
    run.clock.tick_s = 0.02
    return run


@pytest.mark.slow
def test_a_run_that_starts_again_lets_no_more_bad_events_in(tmp_path: Path) -> None:
    run = run_of(tmp_path, [b"{"] * 5000)
    for _ in range(3):
        with pytest.raises(ErrorBudgetExceeded):
            run(UNTIL_END, SMALL)
        [(_, head)] = run.heads()
        assert head == 900  # those before a share meant something


def test_good_events_get_in_once_the_cause_is_mended(tmp_path: Path) -> None:
    run = run_of(tmp_path, [b"{"] * 900)
    with pytest.raises(ErrorBudgetExceeded):
        run_of(tmp_path, [b"{"] * 5000)(UNTIL_END, SMALL)
    run.logs[ONE].append(*[GOOD] * 500)
    run(UNTIL_END, SMALL)
    assert run.heads() == [(0, 1400)]


@pytest.mark.slow
def test_old_bad_events_do_not_count_for_ever(tmp_path: Path) -> None:
    run = run_of(tmp_path, [b"{"] * 900 + [GOOD] * 2000)
    run(replace(UNTIL_END), [Deliver(100)] * 100, config=with_limit(run, 1.0))
    run.logs[ONE].append(*[b"{", GOOD, GOOD] * 100)
    run(UNTIL_END, SMALL)
    assert run.heads() == [(0, 3200)]


def with_limit(run: Run, limit: float) -> Config:
    made = config(rest=STRICT)
    return replace(made, store=replace(run.config.store, max_bad_share=limit))
