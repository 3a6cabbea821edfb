"""Experiments of a running store are added, ended, resumed, renamed and archived without a new
generation, and what cannot change is refused in words."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.generation import Metric, Requested, experiment_set
from streammetrics_consumers.process.preflight import check

from tests.consumers.folded import counted
from tests.consumers.many_experiments import DECIDES, EVENTS, TWO, events
from tests.consumers.memory_run import ONE, UNTIL_END, Run
from tests.consumers.memory_source import Log
from tests.consumers.replay.verified_run import CHUNKS, EACH, verified
from tests.consumers.small_config import METRICS, config

ALL = events(21, 240)  # 80 events an hour
N = 80
FIRST = "[experiments.plain]\n" + DECIDES + TWO
SECOND = "[experiments.three]\n" + DECIDES + 'variants = ["a", "b", "c"]\n'
HALF_PAST_TWO = "2024-01-01T02:30:00Z"


def started(folder: Path, rest: str = FIRST, n: int = N) -> Run:
    """A store that has counted the first events."""
    run = Run(folder, {ONE: Log(ALL[:n])}, event=EVENTS, metrics=METRICS, rest=rest + EACH)
    run.clock.tick_s = 0.02
    run(UNTIL_END, CHUNKS)
    return run


def config_of(run: Run, rest: str) -> Config:
    settings = config(event=EVENTS, metrics=METRICS, rest=rest + EACH)
    return replace(settings, store=run.config.store)


Names = tuple[str, ...]


def go_on(run: Run, rest: str, n: int = N, drop: Names = (), resume: Names = ()) -> None:
    """Count the next events with other experiments."""
    start = len(run.logs[ONE].values)
    run.logs[ONE].append(*ALL[start : start + n])
    options = replace(UNTIL_END, requested=Requested(drop, resume))
    run(options, CHUNKS, config=config_of(run, rest))


def lines(run: Run, rest: str, drop: Names = (), resume: Names = ()) -> list[str]:
    """What `run --check` says of experiments, besides when they can be judged."""
    options = replace(Options(), requested=Requested(drop, resume))
    messages = check(config_of(run, rest), options, opener=run.opener)
    return [line for line in messages if line.startswith("experiment") and " judged" not in line
            and "needs" not in line and "nothing is" not in line]  # fmt: skip


def states(run: Run, name: str) -> dict[str, bytes]:
    """The totals of an experiment."""
    with closing(Ledger.open(run.config.store.url)) as ledger:
        states_by_key = counted(ledger).states
    prefix = f"experiment/{name}/"
    return {
        k[0]: data for k, data in states_by_key.items() if k[0].startswith(prefix) and k[2] is None
    }


def separate_states(folder: Path, name: str, rest: str, *ranges: range) -> dict[str, bytes]:
    """The totals of a store that counts these events alone."""
    folder.mkdir()
    values = [ALL[i] for places in ranges for i in places]
    run = Run(folder, {ONE: Log(values)}, event=EVENTS, metrics=METRICS, rest=rest + EACH)
    run(UNTIL_END)
    return states(run, name)


def metrics(run: Run, name: str) -> list[Metric]:
    return [m for m in run.snapshot().generation.metrics if m.metric_set == experiment_set(name)]


def test_an_added_experiment_counts_from_the_offsets_reached_so_far(tmp_path: Path) -> None:
    run = started(tmp_path)
    assert lines(run, FIRST + SECOND) == [
        "experiment plain: goes on unchanged",
        "experiment three: added; it would count events from these offsets on: events/0 80",
    ]
    assert not metrics(run, "three")
    go_on(run, FIRST + SECOND)
    assert run.snapshot().generation.id == 1
    assert {tuple(m.start_offsets.values()) for m in metrics(run, "three")} == {(N,)}
    assert {tuple(m.start_offsets.values()) for m in metrics(run, "plain")} == {()}
    assert states(run, "three") == separate_states(tmp_path / "b", "three", SECOND, range(N, 2 * N))
    assert states(run, "plain") == separate_states(tmp_path / "a", "plain", FIRST, range(2 * N))
    assert verified(run, tmp_path, config_of(run, FIRST + SECOND)).is_good


def test_an_experiment_that_leaves_the_config_ends_on_request_and_its_counts_stay(
    tmp_path: Path,
) -> None:
    run = started(tmp_path, FIRST + SECOND)
    before = states(run, "three")
    with pytest.raises(SettingsChanged) as caught:
        lines(run, FIRST)
    (problem,) = caught.value.differences
    assert problem.startswith("experiment three: the store counts it, but it is not in the config")
    assert "end it with --drop-metric experiment/three, which ends" in problem
    assert lines(run, FIRST, drop=("experiment/three",)) == [
        "experiment plain: goes on unchanged",
        "experiment three: a run ends it; it counts no event from then on; it stays readable",
    ]
    go_on(run, FIRST, drop=("experiment/three",))
    assert all(metric.ended for metric in metrics(run, "three"))
    assert states(run, "three") == before != {}
    assert states(run, "plain") == separate_states(tmp_path / "a", "plain", FIRST, range(2 * N))
    go_on(run, FIRST, 0, drop=("experiment/three",))  # a restart repeats its request
    assert lines(run, FIRST) == ["experiment plain: goes on unchanged"]


def test_an_ended_experiment_is_resumed_with_a_hole(tmp_path: Path) -> None:
    run = started(tmp_path, FIRST + SECOND)
    go_on(run, FIRST, drop=("experiment/three",))
    with pytest.raises(SettingsChanged) as caught:
        lines(run, FIRST + SECOND)
    (problem,) = caught.value.differences
    assert problem.startswith("experiment three: it was removed from the config earlier")
    assert "Resume it with --resume-metric experiment/three" in problem
    messages = lines(run, FIRST + SECOND, resume=("experiment/three",))
    assert messages[1] == (
        "experiment three: back in the config; it would count again events from these offsets on: "
        "events/0 160, with a hole before them"
    )
    go_on(run, FIRST + SECOND, resume=("experiment/three",))
    assert {tuple(m.holes.values()) for m in metrics(run, "three")} == {(((N, 2 * N),),)}
    expected = separate_states(tmp_path / "b", "three", SECOND, range(N), range(2 * N, 3 * N))
    assert states(run, "three") == expected
    assert verified(run, tmp_path, config_of(run, FIRST + SECOND)).is_good


def test_an_end_is_declared_and_moved_while_all_counted_events_are_before_both(
    tmp_path: Path,
) -> None:
    run = started(tmp_path)
    ending = f"{FIRST}end = {HALF_PAST_TWO}\n"
    assert lines(run, ending) == [
        f"experiment plain: goes on; it ends at {HALF_PAST_TWO} (had none before)"
    ]
    revision = run.snapshot().generation.revision
    go_on(run, ending, 0)
    assert run.snapshot().generation.revision == revision + 1
    earlier = ending.replace("02:30", "02:15")
    assert lines(run, earlier) == [
        f"experiment plain: goes on; it ends at 2024-01-01T02:15:00Z (was {HALF_PAST_TWO})"
    ]
    assert lines(run, FIRST) == [f"experiment plain: goes on; it has no end (was {HALF_PAST_TWO})"]
    go_on(run, earlier, 2 * N)
    assert run.snapshot().generation.id == 1
    assert states(run, "plain") == separate_states(tmp_path / "a", "plain", earlier, range(3 * N))
    assert states(run, "plain") != separate_states(tmp_path / "b", "plain", FIRST, range(3 * N))
    assert verified(run, tmp_path, config_of(run, earlier)).is_good
    for later in (ending, FIRST):  # it is over
        with pytest.raises(SettingsChanged, match="experiment plain: it ended at 2024-01-01T02:15"):
            lines(run, later)
    assert lines(run, earlier) == ["experiment plain: goes on unchanged"]


def test_an_end_before_a_counted_event_is_refused_with_what_to_do(tmp_path: Path) -> None:
    run = started(tmp_path)
    with pytest.raises(SettingsChanged) as caught:
        lines(run, f"{FIRST}end = 2024-01-01T00:59:00Z\n")
    (problem,) = caught.value.differences
    assert problem.startswith(
        "experiment plain: its end 2024-01-01T00:59:00Z is too early: events up to "
        "2024-01-01T00:59:00Z are counted"
    )
    assert "--drop-metric experiment/plain" in problem
    assert lines(run, f"{FIRST}end = 2024-01-01T00:59:00.001Z\n")


def test_texts_change_and_its_counts_and_looks_stay(tmp_path: Path) -> None:
    run = started(tmp_path)
    before = states(run, "plain")
    definition = f'{FIRST}name = "Plain"\nhypothesis = "It helps."\narchived = true\n'
    assert lines(run, definition) == [
        "experiment plain: goes on; archived: lists leave it out; what is shown changes: "
        "hypothesis, title; its counts and its looks stay"
    ]
    revision = run.snapshot().generation.revision
    go_on(run, definition, 0)
    assert run.snapshot().generation.revision == revision
    (shown,) = {
        (s["name"], s["hypothesis"], s["archived"])
        for m in metrics(run, "plain")
        for s in [m.description["shown"]]
        if isinstance(s, dict)
    }
    assert shown == ("Plain", "It helps.", True)
    assert states(run, "plain") == before
    assert lines(run, FIRST)[0].startswith("experiment plain: goes on; archived no longer; what")


def test_further_metrics_begin_and_end_in_an_experiment_that_goes_on(tmp_path: Path) -> None:
    run = started(tmp_path)
    definition = f'{FIRST}metrics = ["auc"]\n'
    assert lines(run, definition) == [
        "experiment plain: goes on; auc is added from the offsets reached so far"
    ]
    go_on(run, definition)
    assert (
        states(run, "plain")["experiment/plain/auc"]
        == separate_states(tmp_path / "a", "plain", definition, range(N, 2 * N))[
            "experiment/plain/auc"
        ]
    )
    with pytest.raises(SettingsChanged, match=r"end it with --drop-metric experiment/plain/auc\n"):
        lines(run, FIRST)
    drop = ("experiment/plain/auc",)
    assert lines(run, FIRST, drop=drop) == [
        "experiment plain: goes on; auc ends at the offsets reached so far"
    ]
    go_on(run, FIRST, drop=drop)
    assert [m.name for m in metrics(run, "plain") if m.ended] == ["experiment/plain/auc"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('control = "a"', 'control = "b"', 'control was "a", is "b"'),
        ("mde = 0.1", "mde = 0.2", "mde was 0.1, is 0.2"),
        ("mde = 0.1", 'mde = 0.1\nunit = "session"', 'inputs.units was "user:hashed_id", is'),
        ("mde = 0.1", f"mde = 0.1\nstart = {HALF_PAST_TWO}", "start is new (1704076200000)"),
        ("mde = 0.1", 'mde = 0.1\nwhere = { surface = "search" }', "where is new ("),
        ('variants = ["a", "b"]', 'variants = { a = ["a"], n = ["b"] }', "arms is new ("),
        ('variants = ["a", "b"]', 'variants = ["a", "b"]\nvariant = "arm"', '"exps.plain"'),
    ],
)
def test_what_is_part_of_its_states_changes_only_by_ending_it(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    run = started(tmp_path)
    with pytest.raises(SettingsChanged) as caught:
        run(UNTIL_END, CHUNKS, config=config_of(run, FIRST.replace(old, new)))
    (problem,) = caught.value.differences
    assert problem.startswith("experiment plain: ")
    assert message in problem
    assert "give it another name under [experiments], and add --drop-metric experiment/plain" in (
        problem
    )
    # As it says: the changed one goes on under another name.
    definition = FIRST.replace(old, new).replace("plain", "other")
    assert lines(run, definition, drop=("experiment/plain",))[0].startswith(
        "experiment other: added"
    )


def test_an_arm_cannot_be_added_while_it_runs(tmp_path: Path) -> None:
    run = started(tmp_path)
    definition = FIRST.replace('["a", "b"]', '["a", "b", "c"]')
    with pytest.raises(SettingsChanged) as caught:
        lines(run, definition)
    assert caught.value.differences[0].startswith("experiment plain: c cannot be added while it")
    assert "declare an experiment with another name" in caught.value.differences[0]


def test_epochs_are_added_to_an_experiment_while_it_runs(tmp_path: Path) -> None:
    run = started(tmp_path, FIRST + SECOND)
    later = f'{FIRST}epochs = ["{HALF_PAST_TWO}"]\n{SECOND}'
    assert lines(run, later) == [
        f"experiment plain: goes on; a new epoch starts at {HALF_PAST_TWO}",
        "experiment three: goes on unchanged",
    ]
    go_on(run, later, 2 * N)
    assert states(run, "plain") == separate_states(tmp_path / "a", "plain", later, range(3 * N))
    with pytest.raises(SettingsChanged, match="experiment plain: the epoch 2024-01-01T02:31:00Z"):
        lines(run, later.replace(f'["{HALF_PAST_TWO}"]',
                                 f'["{HALF_PAST_TWO}", "2024-01-01T02:31:00Z"]'))  # fmt: skip


def test_a_first_run_and_a_new_generation_start_each_experiment(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: Log(ALL[:N])}, event=EVENTS, metrics=METRICS, rest=FIRST + EACH)
    message = "experiment plain: a run starts it, from the first event that it reads"
    assert lines(run, FIRST) == [message]
    run(UNTIL_END)
    assert lines(run, FIRST) == ["experiment plain: goes on unchanged"]
    messages = check(
        config_of(run, FIRST + SECOND), Options(), new_generation=True, opener=run.opener
    )
    assert message in messages and message.replace("plain", "three") in messages


def test_of_the_experiment_without_a_name_the_check_says_what_changes(tmp_path: Path) -> None:
    first = f"[experiment]\n{DECIDES}"
    run = started(tmp_path, first)
    assert lines(run, first) == []
    assert lines(run, f"{first}end = {HALF_PAST_TWO}\n") == [
        f"experiment: goes on; it ends at {HALF_PAST_TWO} (had none before)"
    ]
    assert lines(run, first + FIRST)[0].startswith("experiment plain: added; it would count")


def test_a_worker_with_the_former_end_is_refused_once_it_has_moved(tmp_path: Path) -> None:
    run = started(tmp_path)
    former = run.snapshot().generation
    go_on(run, f"{FIRST}end = {HALF_PAST_TWO}\n", 0)
    now = run.snapshot().generation
    assert (now.id, now.revision > former.revision) == (former.id, True)
    assert now.token != former.token
