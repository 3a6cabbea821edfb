"""Experiments with names over joined events: an impression keeps what they read of it, and counts
for those whose event it is, as one whole event would."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.replay.verify import verify

from tests.consumers import joined_stream as joined
from tests.consumers.folded import counted
from tests.consumers.joined_stream import JOIN, LOGS, Event
from tests.consumers.many_experiments import WRONG
from tests.consumers.memory_source import MemorySource
from tests.consumers.small_config import config

EXPERIMENTS = """
[experiments.ranker]
control = "a"
variants = ["a", "b"]
decision = ["ctr"]
unit = "session"
where = { surface = "search" }
[experiments.pricing]
control = "a"
variants = ["a", "b", "c"]
decision = ["ctr"]
cluster = "none"
start = 2023-11-14T22:14:00Z
end = 2023-11-14T22:16:00Z
epochs = ["2023-11-14T22:15:00Z"]
"""
EVENT = f'{joined.EVENT}\nassignments = "exps"'
SPLIT = config(event=EVENT, windows=joined.WINDOWS, slices=joined.SLICES, metrics=joined.METRICS,
               rest=JOIN + EXPERIMENTS)  # fmt: skip
WHOLE = config(event=f'{EVENT}\nlabel = "label"', windows=joined.WINDOWS, slices=joined.SLICES,
               metrics=joined.METRICS, rest=EXPERIMENTS)  # fmt: skip


def assigned(event: Event) -> Event:
    """An impression with assignments, a session and a surface, some of which are missing or
    wrong; the same for the same id. Outcomes have none."""
    if event["kind"] != "shown":
        return event
    rng = random.Random(event["id"])
    fields: dict[str, Any] = {
        "exps": {name: rng.choice("abcz") for name in ("ranker", "pricing")},
        "session": f"s{rng.randrange(20)}",
        "surface": rng.choice(["search", "home"]),
    }
    for name in fields:
        if rng.random() < 0.15:
            fields[name] = rng.choice(WRONG)
    return {**event, **{name: value for name, value in fields.items() if rng.random() < 0.9}}


def states(ledger: Ledger) -> dict[Any, bytes]:
    states_by_key = counted(ledger).states
    return {
        key: data for key, data in states_by_key.items() if str(key[0]).startswith("experiment/")
    }


def run(run_config: Config, path: Path, parts: dict[Any, Sequence[Event]]) -> dict[Any, bytes]:
    with closing(Ledger.open(str(path), create=True)) as ledger:
        ledger.begin(run_config.fingerprints(), run_config.descriptions)
        logs = joined.logs_of(parts)
        joined.run(run_config, ledger, logs)
        states_by_key = states(ledger)
        if run_config.join is not None:
            scratch_path = path.with_suffix(".scratch")
            with closing(Ledger.open(str(scratch_path), create=True)) as scratch:
                findings = verify(run_config, ledger, scratch, monotonic=lambda: 0.0,
                                  opener=lambda config, options: MemorySource(logs))  # fmt: skip
            assert findings.is_good, (findings.differences, findings.notes)
        return states_by_key


@pytest.mark.parametrize("seed", [1, 2])
def test_joined_events_count_for_their_experiments_as_whole_ones(seed: int, tmp_path: Path) -> None:
    stream = joined.stream(seed)
    split = run(
        SPLIT,
        tmp_path / "split.db",
        {log: [assigned(event) for event in events] for log, events in stream.parts.items()},
    )
    whole = run(WHOLE, tmp_path / "whole.db", {LOGS[0]: [assigned(e) for e in stream.whole]})
    assert split == whole
    assert {key[0] for key in split} == {
        f"experiment/{name}/{metric}" for name in ("ranker", "pricing")
        for metric in ("ctr", "units") if (name, metric) != ("pricing", "units")
    }  # fmt: skip


def test_an_added_experiment_that_reads_a_field_which_is_not_kept_is_refused(
    tmp_path: Path,
) -> None:
    first = replace(SPLIT, experiments={"ranker": SPLIT.experiments["ranker"]})
    with closing(Ledger.open(str(tmp_path / "joined.db"), create=True)) as ledger:
        ledger.begin(first.fingerprints(), first.descriptions)
        with pytest.raises(SettingsChanged) as caught:
            ledger.begin(SPLIT.fingerprints(), SPLIT.descriptions)
    (problem,) = caught.value.differences
    assert problem.startswith("metric join/rows: inputs.exps.pricing:arm is new")
    assert problem.endswith("an added experiment or metric may read these alone")
