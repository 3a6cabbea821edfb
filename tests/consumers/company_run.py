"""A simulated company from end to end: what every look has, beside polars and scipy over the log.

    python -m tests.consumers.company_run                  # 200,000 users, 3 services
    python -m tests.consumers.company_run --users 20000 --seed 2

Each topic is read a part further at each look, some lag behind the others by a day or more. Every
look has, of each experiment, metric and arm, the users and the value that polars finds in what was
closed by then, and of each day of exposures whose window is over the final values; the effects at
the end are those of scipy over the users. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

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
from tests.consumers.company import by_arm, events_of, logs_of, table_of, users_of
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
RATES: Final = {"conversion": "purchases", "crashed": "crashes"}  # what they are shares of
NOISE: Final = 0.27  # three times that of a standard error from 64 groups (docs/inference.md)
PARTED: Final = 1e-12  # values, relative to those of polars
States = Mapping[Pane, Accumulator]


def company_config(folder: Path) -> Config:
    """The config of the demonstration."""
    path = folder / "demo.toml"
    path.write_text(EXPOSURES_CONFIG, encoding="utf-8")
    return load_config(path)


def total_states(ledger: Ledger) -> States:
    """The states of all metrics since the start."""
    contents = stored(ledger)
    totals = [
        (row, data)
        for row, data in contents.rows
        if row.pane.start_ms is None and row.pane.metric.startswith("experiment/")
    ]
    return contents._replace(rows=totals).sums(lambda row: row.pane)


def state_of(states: States, experiment: str, metric: str, grouping: int = 0) -> PerKey:
    """The state of a metric of an experiment."""
    state = states[Pane(f"experiment/{experiment}/{metric}", grouping, None, None)]
    assert isinstance(state, PerKey)
    return state


def states_by(state: PerKey, *places: int) -> dict[tuple[str, ...], Accumulator]:
    """The states by these places of the keys, over the others."""
    sums: dict[tuple[str, ...], Accumulator] = {}
    keys: list[object] = [*state.keys()]
    for key in keys:
        assert isinstance(key, tuple)
        where, key_state = tuple(str(key[place]) for place in places), state.state(key)
        sums[where] = sums[where] + key_state if where in sums else key_state
    return sums


def value_of(metric: str, state: Accumulator) -> float:
    """The mean or the rate of units."""
    value = getattr(state.compute(), "rate" if metric in RATES else "mean")
    assert isinstance(value, float)
    return value


def look_differences(
    states: States, expected: Mapping[tuple[str, str], Mapping[str, float]]
) -> Iterator[str]:
    """Where the users or the values of an arm are not these."""
    for experiment, metrics in DECLARED.items():
        for metric in metrics:
            arms = states_by(state_of(states, experiment, metric), 2)
            if {arm for (arm,) in arms} != set(ARMS[experiment]):
                yield f"{experiment}, {metric}: the arms are {sorted(arms)}"
                continue
            for (arm,), state in arms.items():
                row, units = expected[experiment, arm], state.compute().units
                value = value_of(metric, state)
                if units != row["units"] or not close(value, row[metric]):
                    yield (
                        f"{experiment}, {metric}, {arm}: {units} users and {value}, of polars "
                        f"{row['units']} and {row[metric]}"
                    )


def close(value: float, expected: float) -> bool:
    """Whether two values differ by rounding alone."""
    return math.isclose(value, expected, rel_tol=PARTED)


def cohorts_of(states: States, closed_ms: int) -> dict[tuple[str, str], Accumulator]:
    """Of `checkout` the revenue of each arm and day of exposures whose window is over."""
    cohorts = states_by(state_of(states, "checkout", "revenue", 1), 2, 3)
    return {
        (arm, day): state
        for (arm, day), state in cohorts.items()
        if (datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1)).timestamp() * 1000
        + WINDOW_MS
        <= closed_ms
    }


def cohort_differences(
    cohorts: Mapping[tuple[str, str], Accumulator], users: pl.DataFrame
) -> Iterator[str]:
    """Where the final values of the users of a day are not those of polars."""
    days = pl.from_epoch("exposed", time_unit="ms").dt.date().cast(pl.String)
    dated = users.with_columns(days.alias("day"))
    for (arm, day), cohort in cohorts.items():
        rows = dated.filter(experiment="checkout", arm=arm, day=day)
        units, value = cohort.compute().units, value_of("revenue", cohort)
        mean = rows["revenue"].mean()
        assert isinstance(mean, float)
        if units != len(rows) or not close(value, mean):
            yield f"{arm}, {day}: {units} users and {value}, of polars {len(rows)} and {mean}"


class Effect(NamedTuple):
    """Of a metric: the treatment less the control, and its error over that of scipy."""

    experiment: str
    metric: str
    effect: float
    wanted: float
    errors: float

    def differs(self) -> bool:
        """Whether it is another one than that of scipy: rates of units have p (1 - p) / n."""
        noise = 0.01 if self.metric in RATES else NOISE
        near = math.isclose(self.effect, self.wanted, rel_tol=1e-9, abs_tol=1e-12)
        return not near or abs(self.errors - 1) > noise


def effects_of(states: States, users: pl.DataFrame) -> Iterator[Effect]:
    """The effects, beside those of Welch's test over the users."""
    for experiment, metrics in DECLARED.items():
        for metric in metrics:
            arms = states_by(state_of(states, experiment, metric), 2)
            column = RATES.get(metric, metric)
            control, treatment = (
                users.filter(experiment=experiment, arm=arm)[column] for arm in ARMS[experiment]
            )
            if metric in RATES:
                control, treatment = ((part > 0).cast(pl.Float64) for part in (control, treatment))
            test = scipy_stats.ttest_ind(treatment, control, equal_var=False)
            arm_states = (arms[arm,] for arm in ARMS[experiment])
            comparison = compare(*arm_states, view="rate" if metric in RATES else "mean")
            effect = treatment.mean() - control.mean()  # type: ignore[operator]
            error = abs(effect / float(test.statistic))
            errors = comparison.std_error / error
            yield Effect(experiment, metric, comparison.effect_size, effect, errors)


def count(company: Config, ledger: Ledger, read: Sequence[list[bytes]], *, ends: bool) -> None:
    """Count what was not counted of these logs; ends: and close all of it."""
    logs = {part: Log(log) for part, log in zip(LOGS, read, strict=True)}
    options = Options(until_end=True, close=ends)
    source = MemorySource(logs, limit=5_000)
    worker = worker_of(company, ledger, source, monotonic=lambda: 0.0, options=options)
    for _ in worker.run():
        pass


class Look(NamedTuple):
    """A look: what was closed by then, the states, the users and the days of polars, the values
    and days that were compared, and what differs."""

    closed_ms: int
    states: States
    users: pl.DataFrame
    days: int
    differences: list[str]


def looks_at(company: Config, ledger: Ledger, simulation: ExposuresSimulation) -> Iterator[Look]:
    """Count the log of a company look by look, and compare each with polars."""
    logs = logs_of(simulation)
    tables = [table_of(log) for log in logs]
    for look in LOOKS:
        lines = [math.ceil(share * len(log)) for log, share in zip(logs, look, strict=True)]
        read = [log[:end] for log, end in zip(logs, lines, strict=True)]
        count(company, ledger, read, ends=look == LOOKS[-1])
        closed_ms, states = ledger.snapshot().closed_ms, total_states(ledger)
        assert closed_ms is not None
        users = users_of(events_of(tables, lines), closed_ms, WINDOW_MS)
        cohorts = cohorts_of(states, closed_ms)
        differences = [
            *look_differences(states, by_arm(users)),
            *cohort_differences(cohorts, users),
        ]
        yield Look(closed_ms, states, users, len(cohorts), differences)


def say(line: str) -> None:
    """Print a line now."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Print what was compared and what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.consumers.company_run")
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    simulation, differences = (
        ExposuresSimulation(users=options.users, seed=options.seed),
        list[str](),
    )
    values = sum(len(ARMS[name]) * len(metrics) for name, metrics in DECLARED.items())
    say(f"{options.users:,} users, {simulation.events:,} events")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        with closing(Ledger.open(str(folder / "company.db"), create=True)) as ledger:
            for look in looks_at(company_config(folder), ledger, simulation):
                closed = datetime.fromtimestamp(look.closed_ms / 1000, UTC)
                say(
                    f"closed {closed:%Y-%m-%d %H:%M}: {len(look.users):,} exposed, {values} values "
                    f"of arms and {look.days} of days, {len(look.differences)} differ; "
                    f"{time.process_time():.0f} s of CPU"
                )
                differences += look.differences
    for effect in effects_of(look.states, look.users):
        say(
            f"{effect.experiment}, {effect.metric}: effect {effect.effect:.6g}, of scipy "
            f"{effect.wanted:.6g}; its error is {effect.errors:.3f} of scipy's"
        )
        if effect.differs():
            differences.append(f"{effect.experiment}, {effect.metric}: not the effect of scipy")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    for line in (*differences, f"{len(differences)} differ; {peak_mb:,.0f} MB"):
        say(line)
    return min(len(differences), 1)


if __name__ == "__main__":
    sys.exit(main())
