"""Experiments in one stream count as each would alone, byte for byte, and as the records say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.generation import StateShard

from streammetrics import PerKey, Ratio, Units, UserGroups
from tests.consumers import messages
from tests.consumers.folded import counted, time_of
from tests.consumers.many_experiments import EVENTS, KEYS, TWO, entries, events, parts, rows
from tests.consumers.memory_run import ONE, UNTIL_END, Run
from tests.consumers.memory_run import TWO as SECOND
from tests.consumers.memory_source import Log
from tests.consumers.messages import digests, states_of
from tests.consumers.replay.verified_run import CHUNKS, EACH, tried, verified
from tests.consumers.small_config import LOG, METRICS, config

LIMIT = 1 << 20
CUTS = ((), (1, 7, 100, 101), tuple(range(0, 240, 10)))


def fed(settings: Config, values: list[bytes | None], *cuts: int) -> Delta:
    return messages.counted(settings, messages.in_chunks(values, cuts))


def shards_of(delta: Delta, name: str) -> list[StateShard]:
    """The rows of the store of one experiment."""
    return rows_of(delta.shards(LIMIT), name)


def rows_of(shards: Iterable[StateShard], name: str) -> list[StateShard]:
    """Those of one experiment."""
    return [shard for shard in shards if shard.pane.metric.startswith(f"experiment/{name}/")]


def test_rows_of_the_store_are_those_of_each_experiment_alone() -> None:
    values = events(3)
    single_shards = {name: shards_of(fed(config(**parts(name)), values), name) for name in KEYS}
    plain = [*fed(config(event=EVENTS), values).shards(LIMIT)]
    for cuts in CUTS:
        together = fed(config(**parts()), values, *cuts)
        assert not together.quarantine
        shards = [*together.shards(LIMIT)]
        for name in KEYS:
            assert single_shards[name] and rows_of(shards, name) == single_shards[name], (
                name,
                cuts,
            )
        assert [s for s in shards if not s.pane.metric.startswith("experiment/")] == plain


def test_events_below_the_floor_are_in_the_totals_of_their_experiments_alone() -> None:
    values, floor_ms = events(17), time_of({"ts": "2024-01-01T01:00:00Z"})

    def below(settings: Config) -> Delta:
        delta, decoder = Delta(settings, LOG, 0, floor_ms=floor_ms), Decoder(settings)
        for chunk in messages.in_chunks(values, (90,)):
            delta.add(decoder.decode(chunk))
        return delta

    together = below(config(**parts()))
    assert together.counters.expired == 80
    shards = [*together.shards(LIMIT)]
    for name in KEYS:
        single_shards = shards_of(below(config(**parts(name))), name)
        assert single_shards and rows_of(shards, name) == single_shards, name
        assert floor_ms == min(ms for s in single_shards if (ms := s.pane.start_ms) is not None)


def test_states_of_other_processes_are_merged_for_each_experiment() -> None:
    settings, values = config(**parts()), events(19)
    whole, first = fed(settings, values), fed(settings, values[:100])
    second = fed(settings, values[100:])
    for keyed, second_keyed in zip(first.states.keyed, second.states.keyed, strict=True):
        keyed.join(*second_keyed.bare())
    assert list(first.shards(LIMIT)) == list(whole.shards(LIMIT))


def test_a_commit_has_rows_of_the_experiments_that_its_events_are_in_alone() -> None:
    row = {**rows(1)[0], "surface": "search", "session": "s1", "client": {"device": "d"}}
    settings = config(**parts())
    for names in (("three", "sessions"), ("plain",), ()):
        arms = dict.fromkeys(names, "a")
        delta = fed(settings, [json.dumps({**row, "arms": {}, "exps": arms}).encode()] * 3)
        experiments = {
            metric.split("/")[1]
            for s in delta.shards(LIMIT)
            for metric in [s.pane.metric]
            if "/" in metric
        }
        assert experiments == {*names, "of_event"}  # whose arm each of these events has


def test_what_the_metric_of_one_experiment_refuses_is_refused_as_for_it_alone() -> None:
    bad = [{**row, "score": 2.5} for row in rows(23, 30)]
    values: list[bytes | None] = [
        json.dumps(row).encode() for row in rows(23, 30) + bad + rows(29, 30)
    ]
    # A metric with a condition is checked in the events that meet it, in slices and experiments.
    metrics = METRICS.replace('"HistogramAUC"', '"HistogramAUC", where = "score < 3"')
    assert metrics != METRICS
    for definitions in (METRICS, metrics):
        together = fed(config(**{**parts(), "metrics": definitions}), values, 40)
        single = fed(config(**{**parts("guarded"), "metrics": definitions}), values, 40)
        assert len(together.quarantine) == 30
        assert together.quarantine == single.quarantine
        assert shards_of(together, "guarded") == shards_of(single, "guarded")


def test_descriptions_and_fingerprints_are_those_of_each_experiment_alone() -> None:
    together = config(**parts())
    for position, name in enumerate(KEYS, 1):
        single = config(**parts(name))
        prefix = f"experiment/{name}/"
        fingerprints = {k: v for k, v in together.fingerprints().items() if k.startswith(prefix)}
        assert fingerprints == {
            k: v for k, v in single.fingerprints().items() if k.startswith(prefix)
        }
        (order,) = {
            together.descriptions[metric]["shown"]["order"]  # type: ignore[index]
            for metric in fingerprints
        }
        assert order == position


def arm_of(row: dict[str, Any], name: str) -> Any:
    """The arm of an event as text; None if it has none."""
    assignments = row.get("exps")
    arm = assignments.get(name) if isinstance(assignments, dict) else None
    if isinstance(arm, bool):
        return str(arm).lower()
    return arm if isinstance(arm, str) and len(arm) < 400 else None


def test_states_are_those_of_the_records_with_a_place_in_the_experiment() -> None:
    def surface(row: dict[str, Any]) -> bool:
        return bool(row.get("surface") == "search")

    start = time_of({"ts": "2024-01-01T00:40:00Z"})
    end = time_of({"ts": "2024-01-01T02:10:00Z"})
    is_own: dict[str, Callable[[dict[str, Any]], bool]] = {
        "plain": lambda row: True,
        "searches": surface,
        "bounded": lambda row: start <= time_of(row) < end,
    }
    records = rows(5)
    settings = config(**parts(*is_own))
    states = {
        (shard.metric, shard.start_ms): shard.state for shard in states_of(fed(settings, events(5)))
    }
    for name, is_event in is_own.items():
        member_rows = [row for row in records if is_event(row) and arm_of(row, name) is not None]
        assert 10 < len(member_rows) < len(records)
        arms = [arm if (arm := arm_of(row, name)) in ("a", "b") else None for row in member_rows]
        assert None in arms
        keys = [(0, "start", arm) for arm in arms]
        users = [row["user"] for row in member_rows]
        ctr = PerKey(UserGroups(Ratio()), 10_000)
        ctr.update(keys, groups=users, numerators=[row["label"] for row in member_rows])
        units = PerKey(Units(max_units=1_000_000), 10_000)
        units.update(keys, units=users)
        assert states[f"experiment/{name}/ctr", None] == ctr
        assert states[f"experiment/{name}/units", None] == units


@pytest.mark.parametrize("format", messages.FORMATS)
def test_every_format_gives_the_same_states(format: str) -> None:
    values = [json.dumps(_typed(row)).encode() for row in rows(7)]
    plain = messages.counted(config(**parts()), messages.in_chunks(values, ()))
    settings = messages.of_format(format, **parts())
    chunks = messages.in_chunks(messages.records(format, values, (50, 51, 170)), (2,))
    delta = messages.counted(settings, chunks)
    assert not delta.quarantine and not plain.quarantine
    assert digests(delta) == digests(plain)


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    """The event with a text or null in each field that experiments read, as columns have them."""

    def text(value: object) -> str | None:
        return value if isinstance(value, str) and len(value) < 1000 else None

    def texts(name: str, *fields: str) -> dict[str, str | None]:
        inner = row.get(name)
        return {f: text(inner.get(f)) if isinstance(inner, dict) else None for f in fields}

    flat = {name: text(row.get(name)) for name in ("surface", "session", "version")}
    return {
        **row,
        **flat,
        "exps": texts("exps", *KEYS),
        "arms": texts("arms", "of_field"),
        "client": texts("client", "app", "device"),
    }


def test_a_store_of_many_has_the_states_of_each_alone_and_is_verified(tmp_path: Path) -> None:
    logs = {ONE: Log(events(11)), SECOND: Log(events(12, 80))}

    def states(folder: str, *names: str) -> tuple[Run, dict[Any, bytes]]:
        (tmp_path / folder).mkdir()
        sections = parts(*names)
        tables = sections.pop("rest") + EACH
        run = Run(tmp_path / folder, logs, rest=tables, **sections)
        run.clock.tick_s = 0.02
        run(UNTIL_END, CHUNKS)
        with closing(Ledger.open(run.config.store.url)) as ledger:
            return run, dict(counted(ledger).states)

    run, together = states("together")
    assert verified(run, tmp_path / "together").differences == []
    for name in ("merged", "bounded", "searches", "sessions", "ramped"):
        prefix = f"experiment/{name}/"
        _, single_states = states(name, name)
        expected = {
            key: data for key, data in single_states.items() if str(key[0]).startswith(prefix)
        }
        assert expected == {k: data for k, data in together.items() if str(k[0]).startswith(prefix)}


def test_what_the_metric_of_one_experiment_refuses_nothing_counts() -> None:
    settings = config(**parts("further", "plain"))
    ctr = settings.metrics[1]
    assert ctr.name == "ctr"
    ctr_settings = replace(
        settings, metrics=(ctr,)
    )  # so that only the experiment has the metric of scores
    good = events(15, 40)
    event = {**rows(15, 1)[0], "exps": {"further": "a"}, "score": 2.5}
    for exps, is_refused in (({"further": "a"}, True), ({"plain": "a"}, False)):
        bad = json.dumps({**event, "exps": exps}).encode()
        delta = fed(ctr_settings, [*good[:20], bad, *good[20:]])
        assert [entry.offset for entry in delta.quarantine] == [20] * is_refused
        assert (digests(delta) == digests(fed(ctr_settings, good))) == is_refused


def test_what_a_retry_counts_is_counted_for_its_experiments_and_verified(tmp_path: Path) -> None:
    small = 'kind = "file"\npath = "events.jsonl"\nmax_event_bytes = '
    whole = {**rows(13, 1)[0], "exps": {"plain": "a", "searches": "b"}, "surface": "search"}
    long = json.dumps({**whole, "session": "s", "note": "n" * 2000}).encode()
    values = [long, *(value for value in events(13, 60) if value and len(value) < 1800)]
    sections = parts("plain", "searches")
    tables = sections.pop("rest") + EACH
    run = Run(tmp_path, {ONE: Log([*values])}, rest=tables, source=f"{small}1800", **sections)
    run(UNTIL_END, CHUNKS)
    settings = replace(
        config(rest=tables, source=f"{small}4000", **sections), store=run.config.store
    )
    assert tried(run, settings) == 1
    expected = digests(fed(settings, [*values]))
    with closing(Ledger.open(run.config.store.url)) as ledger:
        states = dict(counted(ledger).states)
    expected_states = {
        k[:3]: data for k, data in expected.items() if str(k[0]).startswith("experiment/")
    }  # type: ignore[index]
    assert expected_states == {
        k: data for k, data in states.items() if str(k[0]).startswith("experiment/")
    }
    assert verified(run, tmp_path).differences == []


def test_beside_an_experiment_without_a_name_others_need_no_arm() -> None:
    rest = f'[experiment]\ncontrol = "a"\ndecision = ["ctr"]\n{entries(["plain"])}'
    values = events(4)
    delta = fed(config(event=EVENTS, rest=rest), values)
    assert not delta.quarantine
    unnamed_delta = fed(
        config(event=EVENTS, rest='[experiment]\ncontrol = "a"\ndecision = ["ctr"]'), values
    )
    plain = fed(config(**parts("plain")), values)
    expected = {**digests(unnamed_delta), **digests(plain)}
    assert digests(delta) == expected
    assert len(expected) > len(digests(unnamed_delta)) > 0


def test_without_a_role_of_the_variant_events_need_none() -> None:
    event = EVENTS.replace('variant = "variant"\nvariants = ["a", "b"]\n', "")
    rest = f'[experiments.plain]\ncontrol = "a"\ndecision = ["ctr"]\n{TWO}'
    settings = config(event=event, metrics=METRICS, slices="by = [[]]", rest=rest)
    values = [json.dumps({k: v for k, v in row.items() if k != "variant"}).encode()
              for row in rows(9)]  # fmt: skip
    delta = fed(settings, list(values))
    assert not delta.quarantine
    (state,) = (s.state for s in states_of(delta)
                if s.metric == "experiment/plain/ctr" and s.start_ms is None)  # fmt: skip
    assert set(state.keys()) == {(0, "start", arm) for arm in ("a", "b", None)}
