"""What an experiment counts is stored, compared, merged and dropped as what any metric counts."""

from __future__ import annotations

import json
import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.compact import compact
from streammetrics_consumers.ledger.delta_metadata import groupings_of
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query, QueryError
from streammetrics_consumers.query.reader import read_results

from streammetrics import HistogramAUC, Panel, PerKey, Ratio, Units, UserGroups
from tests.consumers import messages
from tests.consumers.folded import METRICS as PLAIN
from tests.consumers.folded import counted, fold, time_of
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.memory_source import Log
from tests.consumers.messages import digests, states_of
from tests.consumers.replay.verified_run import CHUNKS, EACH, tried, verified
from tests.consumers.small_config import EVENT, LOG, METRICS, chunk, config, event
from tests.consumers.stores import filled_once

STARTS = ("2024-01-01T01:00:00Z", "2024-01-01T02:00:00Z")
EXPERIMENT = f"""
[experiment]
control = "a"
decision = ["ctr", "auc.gini"]
epochs = {json.dumps(STARTS)}
"""
NO_EPOCHS = EXPERIMENT.replace(json.dumps(STARTS), "[]")
WITH = METRICS + EXPERIMENT
NAMES = ("experiment/auc", "experiment/ctr", "experiment/units")


def events(seed: int, n: int = 300) -> list[bytes | None]:
    """Events over three hours, of twenty users; one of them is of a variant that nobody knows."""
    rng = random.Random(seed)
    records: list[bytes | None] = []
    for i in range(n):
        minute = i * 180 // n
        records.append(
            event(
                f"2024-01-01T{minute // 60:02d}:{minute % 60:02d}:00Z",
                "c" if i == n // 2 else rng.choice("ab"),
                int(rng.random() < 0.3),
                rng.randrange(20) / 20,
                user=f"u{rng.randrange(20)}",
            )
        )
    return records


def by_hand(values: list[bytes | None], starts: tuple[str, ...] = STARTS) -> dict[str, PerKey]:
    """The total of each metric of the experiment, from the records alone."""
    states = {
        "experiment/auc": PerKey(UserGroups(HistogramAUC()), 10_000),
        "experiment/ctr": PerKey(UserGroups(Ratio()), 10_000),
        "experiment/units": PerKey(Units(max_units=1_000_000), 10_000),
    }
    rows = [json.loads(value) for value in values if value is not None and b'"c"' not in value]
    edges = [time_of({"ts": start}) for start in starts]
    names = ("start", *starts)
    keys = [(0, names[sum(e <= time_of(r) for e in edges)], r["variant"]) for r in rows]
    labels, users = [row["label"] for row in rows], [row["user"] for row in rows]
    scores = [row["score"] for row in rows]
    states["experiment/auc"].update(keys, groups=users, labels=labels, scores=scores)
    states["experiment/ctr"].update(keys, groups=users, numerators=labels)
    states["experiment/units"].update(keys, units=users)
    return states


def fed(run_config: Config, values: list[bytes | None], *cuts: int) -> Delta:
    return messages.counted(run_config, messages.in_chunks(values, cuts))


def totals(delta: Delta) -> dict[str, bytes]:
    return {str(k[0]): data for k, data in digests(delta).items() if k[0] in NAMES and k[2] is None}


def bytes_of(states: dict[str, PerKey]) -> dict[str, bytes]:
    return {name: state.to_bytes() for name, state in states.items()}


def test_states_are_those_of_the_records_by_epoch_and_variant_however_the_log_was_cut() -> None:
    run_config, values = config(metrics=WITH), events(1)
    whole = digests(fed(run_config, values))
    assert totals(fed(run_config, values)) == bytes_of(by_hand(values))
    assert whole == digests(fed(run_config, values, 1, 7, 100, 101))
    # Beside an experiment metrics are what they are without one, and each window has its states.
    baseline = digests(fed(config(), values))
    assert {key: data for key, data in whole.items() if key[0] not in NAMES} == baseline
    starts = {key[2] for key in baseline}
    assert len(starts) == 4
    for name in NAMES:
        assert {key[2] for key in whole if key[0] == name} == starts


def test_an_event_before_the_first_start_is_in_the_epoch_start_and_one_at_it_is_not() -> None:
    times = ("2024-01-01T00:59:59.999Z", "2024-01-01T01:00:00Z", "2024-01-01T02:00:00Z")
    (state,) = (
        shard.state
        for shard in states_of(fed(config(metrics=WITH), [event(time) for time in times]))
        if shard.metric == "experiment/ctr" and shard.start_ms is None
    )
    assert set(state.keys()) == {(0, epoch, "a") for epoch in ("start", *STARTS)}


def test_each_panel_checks_an_event_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked, check = [], Panel.check

    def noted(self: Panel, **columns: Any) -> Any:
        checked.append(self)
        return check(self, **columns)

    monkeypatch.setattr(Panel, "check", noted)
    run_config = config(metrics=WITH, slices='by = [[], ["user"]]')
    delta = Delta(run_config, LOG, 0, floor_ms=time_of({"ts": STARTS[0]}))
    delta.add(Decoder(run_config).decode(chunk([event(), event(STARTS[0]), event(STARTS[1])])))
    assert (delta.counters.expired, delta.counters.quarantined) == (1, 0)
    assert len(checked) == 2 * len(run_config.panels) > 2  # those below the floor, and the others


def test_an_epoch_may_be_a_field_of_the_event() -> None:
    run_config = config(metrics=METRICS + NO_EPOCHS, event=f'{EVENT}\nepoch = "phase"')
    values = [event(phase="10 %"), event(phase="50 %", variant="b")]
    delta = fed(run_config, [*values, event().replace(b'"phase"', b'"phases"')])
    (state,) = (p.state for p in states_of(delta) if p[:3] == ("experiment/units", 0, None))
    assert set(state.keys()) == {(0, "10 %", "a"), (0, "50 %", "b")}
    assert [entry.reason for entry in delta.quarantine] == ["missing_field"]


def test_what_one_family_refuses_no_other_counts() -> None:
    run_config = config(metrics=METRICS + EXPERIMENT.replace(', "auc.gini"', ""))
    ctr = run_config.metrics[1]
    assert ctr.name == "ctr"
    good = events(11, 20)
    for value in (event(score=2.5), event(score=0.5)):
        # The first family alone has the metric of scores, then the second one.
        for candidate in (run_config, replace(config(metrics=WITH), metrics=(ctr,))):
            delta = fed(candidate, [*good[:5], value, *good[5:]])
            refused = [entry for entry in delta.quarantine if entry.reason == "metric"]
            assert len(refused) == (b"2.5" in value)
            assert not refused or digests(delta) == digests(fed(candidate, good))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    logs = {ONE: Log(events(7)), TWO: Log(events(8, 100))}
    run = Run(tmp_path, logs, rest=EACH, metrics=WITH)
    run.clock.tick_s = 0.02
    key = ("experiment states",)
    filled_once(Path(run.config.store.url), key, lambda: run(UNTIL_END, CHUNKS))
    return run


def in_ledger(run: Run) -> dict[str, bytes]:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        states = counted(ledger).states
    return {key[0]: data for key, data in states.items() if key[0] in NAMES and key[2] is None}


def expected(run: Run) -> dict[str, bytes]:
    first, second = (by_hand(log.values) for log in run.logs.values())
    return {name: (first[name] + second[name]).to_bytes() for name in NAMES}


@pytest.mark.usefixtures("each_store")
def test_many_commits_over_two_logs_sum_up_to_the_states_of_all_also_once_they_are_compacted(
    run: Run, tmp_path: Path
) -> None:
    assert in_ledger(run) == expected(run)
    with closing(Ledger.open(run.config.store.url)) as ledger:
        compaction = compact(ledger.store)
    assert compaction.rows_before > compaction.rows_after
    assert in_ledger(run) == expected(run)
    assert verified(run, tmp_path).differences == []


SMALL = 'kind = "file"\npath = "events.jsonl"\nmax_event_bytes = 200'


def test_what_was_refused_is_counted_as_it_is_read_when_it_is_tried_again(tmp_path: Path) -> None:
    values = [event(phase="p" * 200), *events(7, 50), event(variant="b", phase="p" * 200)]
    of_phases = METRICS + EXPERIMENT.replace("epochs", 'unit = "phase"\nepochs')
    for name, metrics, is_alike in (("as before", WITH, True), ("units", of_phases, False)):
        (tmp_path / name).mkdir()
        run = Run(tmp_path / name, {ONE: Log(values)}, rest=EACH, metrics=WITH, source=SMALL)
        run(UNTIL_END, CHUNKS)
        assert in_ledger(run) == bytes_of(by_hand(values[1:-1]))
        retry_config = replace(config(metrics=metrics, rest=EACH), store=run.config.store)
        assert tried(run, retry_config) == 2
        assert (in_ledger(run) == bytes_of(by_hand(values))) == is_alike
        # What a retry has counted is verified as the retry has read it.
        assert verified(run, tmp_path, retry_config if is_alike else None).differences == []


def test_a_changed_plan_is_refused_with_the_difference_named(run: Run) -> None:
    for old, new, message in (
        ('control = "a"', 'control = "b"', 'experiment.control was "a", is "b"'),
        ('"ctr", "auc.gini"', '"auc.gini", "ctr"', "experiment.decision was"),
        ("T02:00", "T02:30", "experiment.epochs was"),
        ("epochs", 'unit = "phase"\nepochs', 'inputs.units was "user:hashed_id"'),
        ("epochs", "max_units = 5\nepochs", "settings.max_units was"),
        ("epochs", "mde = 0.1\nepochs", "experiment.mde was null, is 0.1"),
    ):
        new_config = config(metrics=METRICS + EXPERIMENT.replace(old, new), rest=EACH)
        new_config = replace(new_config, store=run.config.store)
        with pytest.raises(SettingsChanged) as caught:
            run(UNTIL_END, config=new_config)
        assert caught.value.exit_code == 3
        assert message in str(caught.value)
    with pytest.raises(SettingsChanged, match=r"experiment was|mde was"):
        tried(run, new_config)


def test_results_and_slices_are_those_of_the_config_alone(run: Run) -> None:
    groupings = groupings_of(run.snapshot().generation)
    assert groupings["ctr"] == [(), ("variant",), ("variant", "phase")]
    assert groupings["experiment/ctr"] == [("epoch", "variant")]
    logs = {p: [v for v in log.values if b'"c"' not in v] for p, log in run.logs.items()}  # type: ignore[operator]
    with closing(Ledger.open(run.config.store.url)) as ledger:
        rows = read_results(ledger, Query("all")).rows
        assert {row.metric for row in rows} == {"auc", "ctr"}
        with pytest.raises(QueryError, match=r"a metric of this store \(auc, ctr\)"):
            read_results(ledger, Query("total", metric="experiment/ctr"))
        states = counted(ledger).states
    assert {key: data for key, data in states.items() if key[0] in PLAIN} == fold(logs).states
