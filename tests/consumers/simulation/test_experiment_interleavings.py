"""Whatever order things happen in, each of many experiments has the rows, the looks and the verdict
of a single run with that experiment alone: see `experiments.py`. And programs that are broken on
purpose are found out."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import streammetrics_consumers.counting.counted_events as counted_events
import streammetrics_consumers.ledger.ledger as ledger_module
import streammetrics_consumers.query.experiment_plan as experiment_plan
from sqlalchemy import Connection
from streammetrics_consumers.config.states import MetricSet, RowCondition
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.ledger.descriptions import plan_that_stays
from streammetrics_consumers.ledger.schema import generation
from streammetrics_consumers.model.generation import Generation, Metric
from streammetrics_consumers.query.experiment_plan import DeclaredExperiment

from tests.consumers.simulation.experiments import ACTIONS, Experiments
from tests.consumers.simulation.interleaved import Simulation, first_found, interleave, opened
from tests.consumers.simulation.lives import FusedLedger, Length
from tests.consumers.simulation.upsets import (
    floor_of_a_lost_commit,
    handed_over,
    look_beyond_the_heads,
    made_in_another_order,
)
from tests.depth import tries

FIRST = 11  # of the seeds: in these few everything happens
SEEDS = tries(4, 500)
FEW = 4  # seeds, in which each mistake is found
Break = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """What is logged is expected, and there is much of it."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def simulated(ledger: FusedLedger) -> Simulation:
    """Two workers, and a store that is seldom lost as a whole, so that much happens in it."""
    upsets = (handed_over, made_in_another_order, floor_of_a_lost_commit, look_beyond_the_heads)
    return Simulation(ledger, Length(2, 14, 20), [Experiments], upsets, 0.05, 0.01)


def test_each_experiment_is_as_if_it_were_alone(
    each_store: None, databases: object, tmp_path: Path
) -> None:
    with closing(opened(tmp_path)) as ledger:
        simulation = simulated(ledger)
        for seed in range(SEEDS if databases is None else SEEDS // 4):
            interleave(simulation, FIRST + seed)
    events = (*ACTIONS, "look at plain", "look at twin", "compared looks", "retried",
              "went back", "restart for settings", "compacted")  # fmt: skip
    assert databases or not [event for event in events if not simulation.seen[event]]


# -- broken on purpose ----------------------------------------------------------------------------
def counted_from_before_its_start(patch: pytest.MonkeyPatch) -> None:
    """A retry counts events at offsets before an added experiment's start, and in its holes."""
    patch.setattr(Metric, "counts", lambda self, head, offset: True)


def counted_by_workers_of_the_former_config(patch: pytest.MonkeyPatch) -> None:
    """An experiment that was taken out of the config is counted on, and an added one misses events
    after its start: nobody looks at the revision of the generation."""

    def unchecked(
        connection: Connection, expected: Generation, *, is_exclusive: bool = False
    ) -> object:
        query = generation.select().with_only_columns(generation.c.floor_ms)
        return connection.scalar(query.where(generation.c.id == expected.id))

    patch.setattr(ledger_module, "check_generation", unchecked)


def counted_after_its_end(patch: pytest.MonkeyPatch) -> None:
    """An experiment whose end has passed is counted on."""
    patch_rows(patch, lambda rows: replace(rows, end_ms=None))


def counted_before_its_start_time(patch: pytest.MonkeyPatch) -> None:
    """Events before the start of an experiment are its events."""
    patch_rows(patch, lambda rows: replace(rows, start_ms=None))


def patch_rows(patch: pytest.MonkeyPatch, changed: Callable[[RowCondition], RowCondition]) -> None:
    own_mask = counted_events.own_mask

    def changed_mask(metric_set: MetricSet, decoded: Decoded) -> object:
        return own_mask(replace(metric_set, rows=changed(metric_set.rows)), decoded)

    patch.setattr(counted_events, "own_mask", changed_mask)


def looks_of_equal_plans_are_one(patch: pytest.MonkeyPatch) -> None:
    """The name of an experiment is no part of the identity of its looks."""
    declared = experiment_plan._declared

    def without_name(
        name: str, metrics: Mapping[str, Metric], *, ended: bool
    ) -> DeclaredExperiment:
        plan = plan_that_stays(next(iter(metrics.values())).description["experiment"])  # type: ignore[arg-type]
        text = json.dumps(plan, sort_keys=True)
        fingerprint = hashlib.sha256(text.encode()).hexdigest()
        return replace(declared(name, metrics, ended=ended), fingerprint=fingerprint)

    patch.setattr(experiment_plan, "_declared", without_name)


@pytest.mark.parametrize(
    ("broken", "first"),  # a seed that finds it, or one shortly before it
    [
        (counted_from_before_its_start, 11),
        (counted_by_workers_of_the_former_config, 0),
        (counted_after_its_end, 5),
        (counted_before_its_start_time, 3),
        (looks_of_equal_plans_are_one, 3),
    ],
)
def test_a_program_that_mixes_experiments_up_is_found_out(
    broken: Break, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    with closing(opened(tmp_path)) as ledger:
        assert first_found(simulated(ledger), range(first, first + FEW)) is not None
