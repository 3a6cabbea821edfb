"""A company whose users are exposed: the same bytes for ever, and effects that are what it says."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from streammetrics_consumers.simulate import exposures_simulation as module
from streammetrics_consumers.simulate.exposures_simulation import (
    ARMS,
    DAY_MS,
    KINDS,
    TRUE_LIFTS,
    WINDOW_MS,
    ExposuresSimulation,
    arms_of,
)
from streammetrics_consumers.simulate.stream import START_MS

from tests.consumers.company import events_of, good, lines_of, table_of, users_of

END_MS = START_MS + 60 * DAY_MS


def test_the_same_seed_gives_the_same_bytes_for_ever() -> None:
    lines = lines_of(ExposuresSimulation(users=500, seed=7))
    digest = hashlib.sha256(b"\n".join(lines)).hexdigest()
    assert digest == "2c039971f9647c4b2a3b11bc6f092fd4da36eff3878f3f84af480761b16231af"
    for n in (0, 1, 9_005):
        assert lines_of(ExposuresSimulation(users=500, seed=7, limit=n)) == lines[:n]
    assert lines_of(ExposuresSimulation(users=500, seed=2)) != lines
    assert ExposuresSimulation(users=500, seed=7).events == len(lines)
    assert lines_of(ExposuresSimulation(users=0)) == []


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="users must be at most 1,000,000, got 2,000,000"):
        ExposuresSimulation(users=2_000_000)
    with pytest.raises(ValueError, match="at least 0"):
        ExposuresSimulation(users=-1)
    with pytest.raises(ValueError, match=r"expected --format jsonl, ndjson, array, .* got csv"):
        ExposuresSimulation(format="csv")


def test_only_exposures_name_an_experiment_and_its_arm() -> None:
    lines = lines_of(ExposuresSimulation(users=500, seed=7))
    events = [event for event in map(good, lines) if event is not None]
    assert 0 < len(lines) - len(events) < 40
    for event in events:
        names = {"kind", "ts", "user", "event_id"}
        if event["kind"] == "exposure":
            names |= {"experiment", "arm"}
            assert event["arm"] in ARMS[event["experiment"]]
        if event["kind"] == "purchase":
            names |= {"amount"}
            assert 3 < event["amount"] < 90
        assert event.keys() == names
    assert {event["kind"] for event in events} == set(KINDS)
    repeated = Counter(event["event_id"] for event in events)
    assert set(repeated.values()) == {1, 2}


def test_users_meet_experiments_in_all_the_ways_of_a_company() -> None:
    lines = lines_of(ExposuresSimulation(users=2_000, seed=7))
    events = events_of([table_of(lines)])
    users = users_of(events, END_MS, WINDOW_MS)
    exposures = events.filter(kind="exposure")
    arms = exposures.group_by("experiment", "user").agg(pl.col("arm").n_unique())
    assert 0 < (arms["arm"] > 1).sum() < 40  # users who were shown both arms
    assert len(exposures) > 2 * len(arms)  # repeated exposures
    everyone, exposed = set(events["user"]), set(users["user"])
    assert len(everyone - exposed) > 200  # users who are never exposed
    first = users.filter(experiment="checkout").select("user", "exposed")
    earlier = (
        events.filter(kind="purchase")
        .join(first, on="user")
        .filter(pl.col("ts") < pl.col("exposed"))
    )
    assert len(earlier) > 100  # purchases before the exposure
    shares = users.filter(experiment="pricing")["arm"].value_counts(normalize=True)
    assert dict(shares.iter_rows())["low"] == pytest.approx(0.05, abs=0.02)
    assert 0.04 < arms_of("pricing", 20_000, 1).mean() < 0.06
    late = len([line for line in lines if good(line)]) - len(events)
    assert late > 100  # late or repeated


@pytest.fixture(scope="module")
def many_events() -> pl.DataFrame:
    """The events of so many users that the lifts show."""
    return events_of([table_of(lines_of(ExposuresSimulation(users=20_000, seed=3)))])


def test_the_lifts_of_closed_units_are_the_true_ones(many_events: pl.DataFrame) -> None:
    users = users_of(many_events, END_MS, WINDOW_MS)
    for name, lifts in TRUE_LIFTS.items():
        for column, lift in lifts.items():
            control, treatment = (
                users.filter(experiment=name, arm=arm)[column] for arm in ARMS[name]
            )
            means = [float(part.mean()) for part in (control, treatment)]  # type: ignore[arg-type]
            errors = [
                float(part.std()) / len(part) ** 0.5 / mean  # type: ignore[arg-type]
                for part, mean in zip((control, treatment), means, strict=True)
            ]
            estimate, error = means[1] / means[0] - 1, math.hypot(*errors)
            assert abs(estimate - float(lift)) < 3.5 * (1 + float(lift)) * error, (name, column)
            assert lift == 0 or abs(estimate) > 2 * error, (name, column)
    feed = users.filter(experiment="feed").group_by("arm").agg((pl.col("crashes") > 0).mean())
    crashed = dict(feed.iter_rows())
    assert crashed["new"] > 1.8 * crashed["old"]


def test_a_purchase_that_comes_later_has_the_same_value() -> None:
    users = np.arange(2_000)
    exposed, _ = module._exposures(np.random.PCG64(7), users, 7)
    times, values = [], []
    for arm in (0, 1):
        delivery = exposed["delivery"]._replace(arms=np.full_like(users, arm))
        by_name = {**exposed, "delivery": delivery}
        _, purchases, _ = module._outcomes(np.random.PCG64(8), users, by_name)
        times.append(purchases.times_ms)
        values.append(purchases.values)
    assert (times[1] > times[0]).sum() > 100
    assert values[1].tolist() == values[0].tolist()


def test_purchases_that_only_come_later_are_fewer_until_the_window_is_over(
    many_events: pl.DataFrame,
) -> None:
    early = users_of(many_events, START_MS + 5 * DAY_MS, WINDOW_MS).filter(experiment="delivery")
    now, later = (early.filter(arm=arm)["purchases"].mean() for arm in ARMS["delivery"])
    assert later < 0.6 * now  # type: ignore[operator]


def test_lines_are_json_of_one_event_each() -> None:
    lines = lines_of(ExposuresSimulation(users=3, seed=5))
    assert all(isinstance(json.loads(line), dict) for line in lines if good(line))
