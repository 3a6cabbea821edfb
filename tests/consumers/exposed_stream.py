"""Exposures and what units do before and after them, in the partitions of a log; and what a ledger
must hold of them, worked out one event at a time: no sets, no closings, no columns.

An event goes to a partition by chance. It comes up to the allowed lateness out of order, some
come again, and some so late that they must be refused.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.states import EPOCH, MetricSet
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.generation import EXPOSURES_PREFIX, JOIN_PREFIX
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.replay.scratch import Findings
from streammetrics_consumers.replay.verify import ALL, Wanted, verify

from streammetrics import PerKey
from tests.consumers.memory_run import worker_of
from tests.consumers.memory_source import Log, MemorySource, Step
from tests.consumers.small_config import config
from tests.consumers.stores import stored
from tests.oracles.exposed import Exposure, first, least

START_MS: Final = 1_764_547_200_000  # 2025-12-01, 00:00 UTC
DAY_MS: Final = 86_400_000
LATENESS_MS: Final = 10_000
LOGS: Final = tuple(Partition("test", "events", "id", number) for number in range(3))
EVENT: Final = 'time = "ts"\ntime_unit = "ms"\nuser = "user"'
WINDOWS: Final = "size_s = 86400\nlateness_s = 10\nretention_s = 8640000"
SLICES: Final = 'by = [[], ["country"]]'
METRICS: Final = """\
revenue = { type = "UnitMean", inputs = { values = "amount" } }
buyers = { type = "UnitRate", inputs = { values = "amount" }, where = "country == 'at'" }
errors = { type = "Ratio", inputs = { numerators = "error" } }
"""
EXPOSURES: Final = """\
[store]
commit_interval_s = 0.5
[exposures]
field = "kind"
equals = "exposure"
unit = "user"
experiment = "exp"
arm = "arm"
"""
RANKER: Final = """\
[experiments.ranker]
variants = ["control", "v7"]
control = "control"
decision = ["revenue", "buyers", "errors"]
epochs = ["2025-12-02T00:00:00Z"]
"""
PRICE: Final = """\
[experiments.price]
variants = { low = ["low"], high = ["high", "higher"] }
control = "low"
decision = ["revenue"]
start = 2025-12-01T12:00:00Z
end = 2025-12-04T00:00:00Z
"""
ARMS: Final = {"ranker": ("control", "v7", "v8"), "price": ("low", "high", "higher"),
               "unknown": ("x",)}  # fmt: skip

Event = Mapping[str, Any]
States = Mapping[tuple[str, int, int | None], bytes]
Spans = Mapping[str, Sequence[tuple[int | None, int | None]]]  # by experiment, times [from, to)


def exposed_config(
    *, rest: str = RANKER + PRICE, window_s: int | None = None, **parts: str
) -> Config:
    """The config of these experiments."""
    window = "" if window_s is None else f"window_s = {window_s}\n"
    tables = {"event": EVENT, "windows": WINDOWS, "slices": SLICES, "metrics": METRICS, **parts}
    return config(rest=EXPOSURES + window + rest, **tables)


SPLIT: Final = exposed_config()


def exposure(user: str, at_ms: int, experiment: str, arm: str) -> Event:
    """An exposure; times count from START_MS."""
    return {"kind": "exposure", "user": user, "ts": START_MS + at_ms, "exp": experiment, "arm": arm}


def order(
    user: str | None, at_ms: int, amount: float = 0, error: int = 0, country: str = "at"
) -> Event:
    """Anything else that a unit does."""
    unit = {} if user is None else {"user": user}
    event = {"kind": "order", "ts": START_MS + at_ms, "amount": amount, "error": error}
    return {**event, **unit, "country": country}


@dataclass(frozen=True)
class Stream:
    """Events by partition in their order."""

    parts: Mapping[Partition, Sequence[Event]]

    @property
    def logs(self) -> dict[Partition, Log]:
        """The events as JSON."""
        return logs_of(self.parts)


def stream(seed: int, units: int = 60, days: int = 5, late_share: float = 0.02) -> Stream:
    """Exposures before, after and at the time of orders; repeated, to several arms, of several
    experiments, of none."""
    rng = random.Random(seed)
    events: list[Event] = []
    for number in range(units):
        user = f"u{number}"
        # A few instants per unit, so that times are equal now and then.
        instants = [rng.randrange(days * DAY_MS) for _ in range(3)]
        instants += [instants[0] + 1, instants[0] + 20 * DAY_MS]
        for name, arms in ARMS.items():
            for _ in range(rng.choice((0, 1, 1, 2))):
                events.append(exposure(user, rng.choice(instants), name, rng.choice(arms)))
        for _ in range(rng.randrange(5)):
            amount = rng.choice((0, 0.1, 2.5, -3, 1e16))
            at_ms = rng.choice(instants) + rng.choice((0, 0, 1, DAY_MS, -1))
            events.append(order(user, at_ms, amount, rng.randrange(2), rng.choice(("at", "de"))))
    parts: dict[Partition, list[tuple[int, Event]]] = {log: [] for log in LOGS}
    for event in events:
        log = rng.choice(LOGS)
        for _ in range(rng.choice((1, 1, 1, 2))):
            shift = rng.randrange(LATENESS_MS)
            if rng.random() < late_share:
                shift += 2 * LATENESS_MS + rng.randrange(DAY_MS)
            parts[log].append((event["ts"] + shift, event))
    ordered = {
        log: [e for _, e in sorted(arrivals, key=lambda p: p[0])] for log, arrivals in parts.items()
    }
    return Stream(ordered)


def logs_of(parts: Mapping[Partition, Sequence[Event]]) -> dict[Partition, Log]:
    """The events as JSON, by partition."""
    return {log: Log([json.dumps(e).encode() for e in events]) for log, events in parts.items()}


def run(run_config: Config, ledger: Ledger, logs: Mapping[Partition, Log],
        script: Sequence[Step] = (),
        *, close: bool = True, options: Options | None = None) -> Worker:  # fmt: skip
    """Count to the end."""
    source = MemorySource(logs, script, limit=20)
    options = options or Options(until_end=True, close=close)
    worker = worker_of(run_config, ledger, source, monotonic=lambda: 0.0, options=options)
    for _ in worker.run():
        pass
    return worker


def verified(
    run_config: Config,
    ledger: Ledger,
    logs: Mapping[Partition, Log],
    folder: Path,
    selection: Wanted = ALL,
) -> Findings:
    """What `verify` finds. Its scratch store is a file of SQLite, whatever the other one is."""
    with (
        TemporaryDirectory(dir=folder) as scratch_folder,
        closing(Ledger.open(f"sqlite:///{scratch_folder}/scratch.db", create=True)) as scratch,
    ):
        return verify(run_config, ledger, scratch, scope=selection, monotonic=lambda: 0.0,
                      opener=lambda config, options: MemorySource(logs))  # fmt: skip


def results(ledger: Ledger) -> States:
    """The states of all metrics of a ledger, but those of pending events."""
    sums = stored(ledger).sums(lambda row: row.pane[:3])
    hidden = (JOIN_PREFIX, EXPOSURES_PREFIX)
    return {key: state.to_bytes() for key, state in sums.items() if not key[0].startswith(hidden)}


# -- what must come of them ---------------------------------------------------------------------
def in_time(events: Sequence[Event]) -> Iterator[Event]:
    """The events of one partition that are not late there."""
    newest: int | None = None
    for event in events:
        if newest is None or event["ts"] >= newest - LATENESS_MS:
            yield event
            newest = event["ts"] if newest is None else max(newest, event["ts"])


def expected(
    run_config: Config,
    parts: Mapping[Partition, Sequence[Event]],
    *,
    before_ms: int | None = None,
    entering: Mapping[str, tuple[int, int | None]] | None = None,
) -> States:
    """The states of all metrics, of the events before a time. entering: the times in which the
    exposures of each experiment are closed that become known; by default those of its config."""
    accepted = [e for events in parts.values() for e in in_time(events)]
    accepted = [e for e in accepted if before_ms is None or e["ts"] < before_ms]
    spans = None if entering is None else {name: [span] for name, span in entering.items()}
    return states_of(run_config, accepted, spans)


def states_of(
    run_config: Config, accepted: Sequence[Event], counting: Spans | None = None
) -> States:
    """The states of all metrics, of the events that were not refused. counting: the times of the
    events and exposures that each experiment counts; by default those of its config."""
    events = [
        *{json.dumps(e, sort_keys=True): e for e in accepted if e["kind"] == "order"}.values()
    ]
    exposures: dict[str, list[Exposure]] = defaultdict(list)
    for event in accepted:
        name = event.get("exp")
        if name in run_config.experiments and _is_within(run_config, name, event["ts"], counting):
            exposures[name].append(Exposure(event["user"], event["ts"], name, event["arm"]))
    states: dict[tuple[str, int, int | None], PerKey] = {}
    for metric_set in run_config.metric_sets:
        name = metric_set.rows.exposed
        rows = _plain(metric_set, events)
        if name is not None:
            experiment_events = [
                e for e in events if _is_within(run_config, name, e["ts"], counting)
            ]
            rows = _exposed(run_config, metric_set, experiment_events, exposures[name])
        _count(metric_set, list(rows), states)
    return {where: state.to_bytes() for where, state in states.items()}


Row = tuple[int, Mapping[str, str | None], Event]  # time, key by name, fields


def _is_within(run_config: Config, name: str, time: int, counting: Spans | None) -> bool:
    experiment = run_config.experiments[name]
    times = [[(experiment.start, experiment.end)]]
    times += [] if counting is None else [[*counting.get(name, ())]]
    return all(
        any((a is None or time >= a) and (b is None or time < b) for a, b in spans)
        for spans in times
    )


def _plain(metric_set: MetricSet, events: Sequence[Event]) -> Iterator[Row]:
    for event in events:
        if not metric_set.rows.flags or event["country"] == "at":
            yield event["ts"], {"country": event["country"]}, event


def _exposed(
    run_config: Config,
    metric_set: MetricSet,
    events: Sequence[Event],
    exposures: Sequence[Exposure],
) -> Iterator[Row]:
    rows, window = metric_set.rows, run_config.exposures and run_config.exposures.window_ms
    has_where = any(flag.computed is not None for flag in rows.flags)
    firsts = {
        unit: first(unit, rows.exposed or "", exposures) for unit in {e.unit for e in exposures}
    }
    if "event" in rows.kinds:
        for event in events:
            exposure = firsts.get(event.get("user"))
            time = event["ts"]
            is_its = exposure is not None and exposure.time <= time
            is_its = is_its and (window is None or time < exposure.time + window)  # type: ignore[union-attr]
            if is_its and exposure is not None and (not has_where or event["country"] == "at"):
                yield time, _keys(metric_set, exposure.arm, exposure.time, time), event
    for unit, exposure in firsts.items():
        assert exposure is not None
        for entry in least(e for e in exposures if e.unit == unit):
            kind = "exposure" if entry.arm == exposure.arm else "later_exposure"
            if kind in rows.kinds:
                fields = {"user": unit, "amount": 0}
                yield entry.time, _keys(metric_set, entry.arm, entry.time, entry.time), fields


def _keys(metric_set: MetricSet, arm: str, exposed: int, time: int) -> Mapping[str, str | None]:
    starts, names = metric_set.epochs or ((), ("",))
    days = (time - exposed) // DAY_MS
    spans = ("0", "1", "2-3", "2-3", *["4-7"] * 4, *["8-15"] * 8)
    return {
        EPOCH: names[sum(start <= exposed for start in starts)],
        "variant": arm if arm in metric_set.rows.arms else None,
        "exposed_on": datetime.fromtimestamp(exposed / 1000, UTC).date().isoformat(),
        "since": spans[days] if days < 16 else "16+",
    }


def _count(
    metric_set: MetricSet,
    rows: Sequence[Row],
    states: dict[tuple[str, int, int | None], PerKey],
) -> None:
    size_ms = metric_set.windows.size_s * 1000
    by_place: dict[tuple[int, int | None], list[Row]] = defaultdict(list)
    for row in rows:
        for grouping in range(len(metric_set.slices.by)):
            for start in (None, row[0] // size_ms * size_ms):
                by_place[grouping, start].append(row)
    for metric in metric_set.metrics:
        for (grouping, start), place_rows in by_place.items():
            names = metric_set.slices.by[grouping]
            keys = [(grouping, *(key[name] for name in names)) for _, key, _ in place_rows]
            columns = {
                argument: [fields[field.path] for _, _, fields in place_rows]
                for argument, field in metric.inputs.items()
            }
            state = PerKey(metric.empty, metric_set.slices.max_keys)
            state.update(keys, **columns)
            states[metric.name, grouping, start] = state
