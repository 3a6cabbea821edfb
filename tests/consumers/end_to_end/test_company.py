"""A company whose users are exposed: every look has what polars finds in the log that was closed by
then, and its effects are those of scipy over the users."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from streammetrics_consumers.cli.demo_configs import EXPOSURES_CONFIG
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.generation import Pane
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.simulate.exposures_simulation import (
    ARMS,
    WINDOW_MS,
    ExposuresSimulation,
)

from streammetrics import Accumulator, PerKey, compare
from tests.consumers.company import by_arm, events_of, kind_of, lines_of, users_of
from tests.consumers.memory_run import worker_of
from tests.consumers.memory_source import Log, MemorySource
from tests.consumers.stores import stored

pl = pytest.importorskip("polars")
scipy_stats = pytest.importorskip("scipy.stats")

TOPICS: Final = ("exposures", "clicks", "purchases", "crashes")
LOGS: Final = tuple(Partition("test", topic, "id", 0) for topic in TOPICS)
# How far each topic is read at each look: some lag behind the others by a day or more.
LOOKS: Final = ((0.3, 0.35, 0.25, 0.3), (0.6, 0.6, 0.62, 0.5), (0.8, 0.85, 0.9, 0.8), (1, 1, 1, 1))
DECLARED: Final = {  # the metrics of each experiment, as views of its states
    "checkout": ("revenue", "conversion", "crashed"),
    "feed": ("clicks", "crashed"),
    "placebo": ("revenue",),
    "pricing": ("revenue",),
    "delivery": ("revenue",),
}
NOISE: Final = 0.27  # three times that of a standard error from 64 groups (docs/inference.md)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tmp_path / "company.db"), create=True)) as ledger:
        yield ledger


@pytest.fixture
def company(tmp_path: Path) -> Config:
    path = tmp_path / "demo.toml"
    path.write_text(EXPOSURES_CONFIG, encoding="utf-8")
    return load_config(path)


States = Mapping[Pane, Accumulator]


def total_states(ledger: Ledger) -> States:
    """The states of all metrics since the start."""
    held = stored(ledger)
    totals = [
        (row, data)
        for row, data in held.rows
        if row.pane.start_ms is None and row.pane.metric.startswith("experiment/")
    ]
    return held._replace(rows=totals).sums(lambda row: row.pane)


def state_of(states: States, experiment: str, metric: str, grouping: int = 0) -> PerKey:
    state = states[Pane(f"experiment/{experiment}/{metric}", grouping, None, None)]
    assert isinstance(state, PerKey)
    return state


def keys_of(state: PerKey) -> Iterator[tuple[object, ...]]:
    keys: list[object] = [*state.keys()]
    for key in keys:
        assert isinstance(key, tuple)
        yield key


def arms_of(state: PerKey) -> dict[str, Accumulator]:
    """The state of each arm, over epochs and the rest of its keys."""
    arms: dict[str, Accumulator] = {}
    for key in keys_of(state):
        arm = str(key[2])
        own = state.state(key)
        arms[arm] = arms[arm] + own if arm in arms else own
    return arms


def value_of(metric: str, state: Accumulator) -> float:
    result = state.compute()
    value = getattr(result, "rate" if metric in ("conversion", "crashed") else "mean")
    assert isinstance(value, float)
    return value


def require_look(states: States, wanted: Mapping[tuple[str, str], Mapping[str, float]]) -> None:
    for experiment, metrics in DECLARED.items():
        for metric in metrics:
            arms = arms_of(state_of(states, experiment, metric))
            assert set(arms) == set(ARMS[experiment])
            for arm, state in arms.items():
                row = wanted[experiment, arm]
                assert state.compute().units == row["units"], (experiment, metric, arm)
                assert value_of(metric, state) == pytest.approx(row[metric], rel=1e-12)


def require_cohorts(states: States, users: pl.DataFrame, closed_ms: int) -> int:
    """Final values of the users of each day whose window is over; returns how many days."""
    days = pl.from_epoch("exposed", time_unit="ms").dt.date().cast(pl.String)
    dated, compared = users.with_columns(days.alias("day")), 0
    state = state_of(states, "checkout", "revenue", 1)
    cohorts: dict[tuple[str, str], Accumulator] = {}
    for key in keys_of(state):
        where, own = (str(key[2]), str(key[3])), state.state(key)
        cohorts[where] = cohorts[where] + own if where in cohorts else own
    for (arm, day), own in cohorts.items():
        end = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1)
        if end.timestamp() * 1000 + WINDOW_MS > closed_ms:
            continue
        rows = dated.filter(experiment="checkout", arm=arm, day=day)
        assert own.compute().units == len(rows)
        assert value_of("revenue", own) == pytest.approx(rows["revenue"].mean(), rel=1e-12)
        compared += 1
    return compared


def require_effects(states: States, users: pl.DataFrame) -> None:
    for experiment, metrics in DECLARED.items():
        for metric in metrics:
            arms = arms_of(state_of(states, experiment, metric))
            column = {"conversion": "purchases", "crashed": "crashes"}.get(metric, metric)
            control, treatment = (
                users.filter(experiment=experiment, arm=arm)[column] for arm in ARMS[experiment]
            )
            if column != metric:
                control, treatment = ((part > 0).cast(pl.Float64) for part in (control, treatment))
            test = scipy_stats.ttest_ind(treatment, control, equal_var=False)
            mean, rate = (arms[arm] for arm in ARMS[experiment])
            comparison = compare(mean, rate, view="rate" if column != metric else "mean")
            effect = treatment.mean() - control.mean()
            assert comparison.effect_size == pytest.approx(effect, rel=1e-9, abs=1e-12)
            error = abs(effect / float(test.statistic))
            noise = 0.01 if column != metric else NOISE  # rates of units have p (1 - p) / n
            assert abs(comparison.std_error / error - 1) < noise, (experiment, metric)


def count(company: Config, ledger: Ledger, read: list[list[bytes]], *, ends: bool) -> None:
    """Count what was not counted of these logs; ends: and close all of it."""
    logs = {part: Log(log) for part, log in zip(LOGS, read, strict=True)}
    options = Options(until_end=True, close=ends)
    source = MemorySource(logs, limit=5_000)
    worker = worker_of(company, ledger, source, monotonic=lambda: 0.0, options=options)
    for _ in worker.run():
        pass


def counted(
    company: Config, ledger: Ledger, simulation: ExposuresSimulation
) -> tuple[int, pl.DataFrame]:
    """Count the log of a company look by look; the days whose final values were compared, and the
    users at the end."""
    logs: list[list[bytes]] = [[] for _ in TOPICS]
    for line in lines_of(simulation):
        logs[kind_of(line)].append(line)
    cohorts, users = 0, pl.DataFrame()
    for look in LOOKS:
        read = [log[: math.ceil(share * len(log))] for log, share in zip(logs, look, strict=True)]
        count(company, ledger, read, ends=look == LOOKS[-1])
        closed_ms, states = ledger.snapshot().closed_ms, total_states(ledger)
        assert closed_ms is not None
        users = users_of(events_of(read), closed_ms, WINDOW_MS)
        require_look(states, by_arm(users))
        cohorts += require_cohorts(states, users, closed_ms)
    return cohorts, users


def test_every_look_at_a_company_has_what_polars_finds_in_what_was_closed_by_then(
    company: Config, ledger: Ledger
) -> None:
    cohorts, _ = counted(company, ledger, ExposuresSimulation(users=500, seed=3))
    assert cohorts > 28


@pytest.mark.slow
def test_the_effects_of_a_company_are_those_of_scipy_over_its_users(
    company: Config, ledger: Ledger
) -> None:
    cohorts, users = counted(company, ledger, ExposuresSimulation(users=4_000, seed=1))
    assert cohorts > 28
    require_effects(total_states(ledger), users)
