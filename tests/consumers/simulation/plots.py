"""What the logs of a simulation hold, and what must come of them, worked out from the logs alone.

Plain      events, some of them late, broken, or ahead of their records until a retry
Late       the same, and every second event is late
Repeated   events that come again: [dedup]
Clocked    the same, where a repeat moves the clock by which ids are forgotten
Joined     impressions and clicks: [join]; a log that lies far behind is passed over
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.model.generation import Metric, Requested
from streammetrics_consumers.model.partition import Partition

from streammetrics import Accumulator, HistogramAUC
from tests.consumers.counting.test_repeats import plain
from tests.consumers.folded import (
    EPOCH,
    KNOWN_BROKEN,
    SIZE_MS,
    Counted,
    Span,
    fold,
    records,
    time_of,
)
from tests.consumers.memory_source import Log
from tests.consumers.small_config import config, event

if TYPE_CHECKING:
    from tests.consumers.simulation.interleaved import World

WINDOWS = "size_s = 3600\nlateness_s = 60\nmax_ahead_s = 100\nretention_s = 3600"
SLICES = 'by = [["variant"]]'
GROUPINGS = (("variant",),)
METRICS: Mapping[str, Accumulator] = {"old": HistogramAUC(), "new": HistogramAUC()}
LOGS = tuple(Partition("test", "events", "id", number) for number in range(2))
HOURS = 6
Values = list[bytes | None]


def configs(rest: str = "") -> tuple[Config, Config]:
    """The config before an upgrade, which ends a metric and begins another, and after it."""
    before, after = (
        config(windows=WINDOWS, slices=SLICES, rest=rest,
               metrics=f'{name} = {{ type = "HistogramAUC" }}')
        for name in METRICS
    )  # fmt: skip
    return before, after


def log_of(rng: random.Random, values: Values) -> Log:
    """Records with holes between them; it may have lost its beginning."""
    first = offset = rng.choice([0, 0, 7])
    offsets = []
    for _ in values:
        offset += rng.random() < 0.1  # a control record
        offsets.append(offset)
        offset += 1
    end = offset + rng.choice([0, 0, 2])
    return Log(values, offsets, beginning=first, next_offset=end)


@dataclass
class Known:
    """What a simulation knows of its run: which offsets each metric counts, which events a metric
    that ended has missed, and what stands in quarantine. Of the store: the retry that counted an
    event, and its metrics by name."""

    spans: Mapping[str, Span] = field(default_factory=dict)
    missed: Mapping[str, Collection[tuple[Partition, int]]] = field(default_factory=dict)
    refused: Collection[tuple[Partition, int]] = ()
    retried: Mapping[tuple[Partition, int], int] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)


class Plain:
    """See the module."""

    before, after = configs()
    late_share = 0.1
    hours = HOURS
    size_ms = SIZE_MS  # of windows
    is_pending = False  # whether events are counted once they are closed

    def __init__(self, rng: random.Random, size: int) -> None:
        self.logs: dict[Partition, Log] = {}
        self.ahead: dict[Partition, set[int]] = {}
        for partition in LOGS:
            log = log_of(rng, records(rng.randrange(10**9), size, hours=self.hours, latest_s=15_000,
                                      late_share=self.late_share))  # fmt: skip
            self.ahead[partition] = set()
            times: list[int | None] = []
            for offset, value in zip(log.offsets, log.values, strict=True):
                is_event = value is not None and value not in KNOWN_BROKEN
                is_ahead = is_event and rng.random() < 0.1
                self.ahead[partition] |= {offset} if is_ahead else set()
                times.append(
                    time_of(json.loads(value or b"")) - 200_000 * is_ahead if is_event else None
                )
            self.logs[partition] = replace(log, timestamps_ms=times)

    def plan(self, rng: random.Random, steps: int) -> None:
        """Choose when the upgrade comes, if it comes at all."""
        self.changes = rng.randrange(2 * steps)

    def happen(self, world: World, step: int) -> None:
        """An upgrade: `old` ends and `new` begins, where the heads stand now."""
        if step != self.changes:
            return
        world.seen["metric changed"] += 1
        stand = world.stand()
        missed = {(entry.partition, entry.offset)
                  for entry in world.ledger.quarantine(limit=10_000)}  # fmt: skip
        world.deploy(self.after, Requested(drop=("old",)))
        spans = {"old": Span(until=stand), "new": Span(since=stand)}
        world.known = Known(spans, {"old": missed})

    def counted_from_here(self, world: World) -> Known:
        """Everything is counted by the metric of the config, and nothing by the other one."""
        names = {name for name in METRICS if name not in world.config.fingerprints()}
        return Known({name: Span(until=dict.fromkeys(self.logs, 0)) for name in names})

    def known_at_last(self, world: World, counts: Counted) -> Known:
        """What is known when the store is compared."""
        return world.known

    def compare(self, world: World) -> None:
        """Compare more than the counts of the store, at the end."""

    def expected(self, knowledge: Known) -> Counted:
        return fold(self.logs, groupings=GROUPINGS, metrics=METRICS, spans=knowledge.spans,
                    ahead=self.ahead, missed=knowledge.missed)  # fmt: skip

    def comparable_counts(self, counted: Counted) -> Counted:
        """What is compared of a ledger: how many rows had expired is up to when they came."""
        counters = {log: replace(counter, expired=0) for log, counter in counted.counters.items()}
        return replace(counted, counters=counters)


def lenient(settings: Config) -> Config:
    """The same states, and no event is too far ahead of its record."""
    return replace(settings, windows=replace(settings.windows, max_ahead_s=10**6))


class Late(Plain):
    """See the module."""

    late_share = 0.5


class Repeated(Plain):
    """See the module."""

    before, after = configs('[dedup]\nevent_id = "id"\nretention_s = 3600\nkeyed = true')

    def __init__(self, rng: random.Random, size: int) -> None:
        self.ahead = {}
        self.logs = {}
        for partition in LOGS:
            values: Values = []
            for i, value in enumerate(records(rng.randrange(10**9), size, hours=HOURS,
                                              latest_s=15_000)):  # fmt: skip
                if value is not None and value not in KNOWN_BROKEN:
                    value = json.dumps({**json.loads(value), "id": f"{i}"}).encode()
                values.append(value)
                if rng.random() < 0.3:
                    earlier = values[-1 - rng.randrange(min(len(values), 9))]
                    if earlier and earlier not in KNOWN_BROKEN:
                        # It may come again with a later time, which moves the clock of the ids.
                        repeat = json.loads(earlier)
                        later = iso(i * HOURS * 3_600_000 // size + 3_400_000)
                        repeat["ts"] = (
                            max(repeat["ts"], later) if rng.random() < 0.5 else repeat["ts"]
                        )
                        values.append(json.dumps(repeat).encode())
            self.logs[partition] = log_of(rng, values)

    def expected(self, knowledge: Known) -> Counted:
        dedup = self.before.dedup
        assert dedup is not None
        once, repeated = {}, {}
        for partition, log in self.logs.items():
            indexes = [
                i for i, value in enumerate(log.values) if value and value not in KNOWN_BROKEN
            ]
            payloads = [json.loads(log.values[i] or b"") for i in indexes]
            events = [(int(payload["id"]), time_of(payload)) for payload in payloads]
            repeats = plain(events, dedup.retention_ms, dedup.pane_ms)
            gone = {i for i, twice in zip(indexes, repeats, strict=True) if twice}
            left = [i for i in range(len(log.values)) if i not in gone]
            columns = [log.values[i] for i in left], [log.offsets[i] for i in left]
            once[partition] = Log(*columns, beginning=log.beginning, next_offset=log.next_offset)
            repeated[partition] = len(gone)
        counts = fold(once, groupings=GROUPINGS, metrics=METRICS, spans=knowledge.spans)
        return replace(counts, counters={
            log: replace(counter, rows=counter.rows + repeated[log], repeated=repeated[log])
            for log, counter in counts.counters.items()
        })  # fmt: skip


class Clocked(Repeated):
    """A repeat with a later time moves the clock of the ids and adds no id: an event that is
    older than that clock remembers comes twice after it, and counts twice."""

    def __init__(self, rng: random.Random, size: int) -> None:
        self.ahead, self.logs = {}, {}
        dedup = self.before.dedup
        assert dedup is not None
        pane_ms, retention_ms = dedup.pane_ms, dedup.retention_ms
        for partition in LOGS:
            values: Values = []
            for i in range(max(size // 5, 2)):
                at_ms = i * 2 * retention_ms
                first, second = (f"{2 * i + k}" for k in range(2))
                for id_, after_ms in (
                    (first, 0),
                    (second, 2 * pane_ms),
                    (second, retention_ms + 2 * pane_ms),
                    (first, 0),
                    (first, 0),
                ):
                    payload = json.loads(event(iso(at_ms + after_ms), rng.choice("ab"), i % 2))
                    values.append(json.dumps({**payload, "id": id_}).encode())
            self.logs[partition] = log_of(rng, values)


JOIN = """[join]
id = "id"
impression = { field = "kind", equals = "shown" }
label_window_s = 1800
idle_s = 3600
[join.outcomes]
click = { field = "kind", equals = "click" }
"""
LABEL_WINDOW_MS = 1_800_000
JOIN_EVENT = 'time = "ts"\nvariant = "variant"\nvariants = ["a", "b"]\nscore = "score"'


class Joined(Plain):
    """See the module. An event of a log that was passed over may be refused, since label windows
    are closed: which ones are is up to the run, and what the others give is not."""

    is_pending = True
    before = config(
        event=JOIN_EVENT,
        windows=WINDOWS.replace("retention_s = 3600", "retention_s = 86400"),
        slices=SLICES,
        metrics='new = { type = "HistogramAUC" }',
        rest=JOIN,
    )
    after = before

    def __init__(self, rng: random.Random, size: int) -> None:
        self.ahead = {}
        got: dict[Partition, list[tuple[float, dict[str, object]]]] = {log: [] for log in LOGS}
        for number in range(size):
            at_ms = number * HOURS * 3_600_000 // size + rng.randrange(60_000)
            shown: dict[str, object] = {"kind": "shown", "variant": rng.choice("ab"),
                                        "score": rng.randrange(64) / 64}  # fmt: skip
            delays = [rng.randrange(2 * LABEL_WINDOW_MS) for _ in range(rng.choice((0, 1, 2)))]
            timeline = [(at_ms, shown), *((at_ms + d, {"kind": "click"}) for d in delays)]
            for time_ms, details in timeline:
                fields = {**details, "id": f"i{number}", "at_ms": time_ms, "ts": iso(time_ms)}
                log = rng.choice(LOGS)
                got[log] += [(time_ms + rng.randrange(59_000), fields)] * rng.choice((1, 1, 2))
        self.logs = {}
        self.events: dict[tuple[Partition, int], dict[str, object]] = {}
        for partition, arrivals in got.items():
            fields_of = [payload for _, payload in sorted(arrivals, key=lambda pair: pair[0])]
            log = log_of(rng, [json.dumps(payload).encode() for payload in fields_of])
            self.logs[partition] = log
            places = ((partition, offset) for offset in log.offsets)
            self.events.update(zip(places, fields_of, strict=True))

    def happen(self, world: World, step: int) -> None:
        """There is no upgrade."""

    def known_at_last(self, world: World, counts: Counted) -> Known:
        """Which events are refused is known from the store."""
        return Known(refused=counts.refused)

    def expected(self, knowledge: Known) -> Counted:
        shown: dict[object, dict[str, object]] = {}
        clicks: dict[object, list[int]] = {}
        for place, payload in self.events.items():
            if place in knowledge.refused:
                continue
            if payload["kind"] == "shown":
                shown[payload["id"]] = payload
            else:
                clicks.setdefault(payload["id"], []).append(int(str(payload["at_ms"])))
        values: Values = []
        for id_, payload in shown.items():
            at_ms = int(str(payload["at_ms"]))
            label = any(0 <= t - at_ms < LABEL_WINDOW_MS for t in clicks.get(id_, ()))
            values.append(
                event(str(payload["ts"]), str(payload["variant"]), int(label), payload["score"])
            )
        whole = fold({LOGS[0]: values}, groupings=GROUPINGS, metrics={"new": METRICS["new"]})
        ends = {p: (log.next_offset, None) for p, log in self.logs.items()}
        return Counted(whole.states, {}, ends, sorted(knowledge.refused))

    def comparable_counts(self, counted: Counted) -> Counted:
        states = {
            state: content for state, content in counted.states.items() if state[0] in METRICS
        }
        heads = {log: (counted.heads[log][0], None) for log in self.logs}
        return Counted(states, {}, heads, counted.refused)


def iso(at_ms: int) -> str:
    """A time of the logs as events have it."""
    return (EPOCH + timedelta(milliseconds=at_ms)).isoformat()


def differences(
    plot: Plain, knowledge: Known, counts: Counted, floor_ms: int | None, *, whole: bool = True
) -> Iterator[str]:
    """What a ledger says otherwise than its logs: but for windows below the floor, which are gone,
    and whose rows are in the totals. whole: all is read, and nothing is to be read again."""
    expected = plot.expected(knowledge)
    if floor_ms is not None:
        assert floor_ms % plot.size_ms == 0
        states = {
            state: content
            for state, content in expected.states.items()
            if state[2] is None or state[2] >= floor_ms
        }
        expected = replace(expected, states=states)
        lowest = min(counts.heads[log][1] or 0 for log in plot.logs)
        # What is refused as closed moves no time: it may be other events in an emptied store.
        is_too_high = floor_ms > plot.before.windows.floor_ms(lowest)
        if whole and is_too_high and not plot.is_pending:
            yield f"floor {floor_ms} is higher than the retention allows"
    for partition, counter in counts.counters.items():
        if counter.expired and floor_ms is None:
            yield "rows expired without a floor"
        if counter.expired > counter.rows - counter.quarantined:
            yield f"{partition}: {counter}"
    counts = plot.comparable_counts(counts)
    for name in ("states", "counters", "heads", "refused"):
        if getattr(counts, name) != getattr(expected, name):
            yield f"{name} differ from a fold over the log"


PLOTS: Sequence[type[Plain]] = (Plain, Late, Repeated, Clocked, Joined)
