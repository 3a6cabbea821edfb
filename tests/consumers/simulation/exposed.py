"""A plot with exposures: events are counted in the arms of their units once they are closed, and an
experiment is added, ended and resumed under way, at the times that are closed by then.

Exposed      the slowest log decides what is closed
PassedOver   a log that lies far behind is passed over, and what it has to say of closed times is
             refused: which events these are is up to the run, and what the others give is not
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.ledger.closing import closing_heads
from streammetrics_consumers.ledger.compact import Compactor
from streammetrics_consumers.ledger.failures import (
    SettingsChanged,
    StoreReplaced,
    StoreUnavailable,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import JOIN_START, QuarantineRow, Snapshot
from streammetrics_consumers.model.generation import EXPOSURES_PREFIX, Requested, experiment_set
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.replay.retry import retry

from tests.consumers.exposed_stream import (
    LATENESS_MS,
    Event,
    exposed_config,
    exposure,
    order,
    states_of,
    verified,
)
from tests.consumers.folded import Counted
from tests.consumers.memory_source import Deliver, Log, MemorySource
from tests.consumers.simulation.actors import SavedStore
from tests.consumers.simulation.lives import Killed
from tests.consumers.simulation.plots import LOGS, Known, Plain, lenient, log_of
from tests.consumers.simulation.upsets import ALL, Differs, Upset, put_back, take_over

if TYPE_CHECKING:
    from tests.consumers.simulation.interleaved import World

WINDOWS: Final = "size_s = 60\nlateness_s = 10\nmax_ahead_s = 10\nretention_s = 6000000"
SPAN_MS: Final = 600_000  # of event times
METRICS: Final = 'revenue = { type = "UnitMean", inputs = { values = "amount" } }'
PLAN: Final = 'control = "{control}"\ndecision = ["revenue"]\nvariants = {variants}\n'
ARMS: Final = {"ranker": ("control", "v7", "v8"), "price": ("low", "high", "higher")}
ADDED: Final = "price"  # what deployments add, end and resume
ACTIONS: Final = ("added", "ended", "resumed")
Place = tuple[Partition, int]


class Kills(random.Random):
    """Decides where closers die, and what else a broken one does. Each run seeds it."""

    is_on = True

    def passes(self, point: str) -> None:
        """A closer is at this point."""
        if self.is_on and self.random() < 0.1:
            raise Killed(point)


KILLS: Final = Kills()


@cache
def make_config(names: tuple[str, ...], rest: str = "") -> Config:
    """The config with these experiments. rest: further lines of [exposures]."""
    for name in names:
        control, *treatments = ARMS[name]
        variants = json.dumps([control, treatments[0]])
        rest += f"[experiments.{name}]\n" + PLAN.format(control=control, variants=variants)
    return exposed_config(windows=WINDOWS, metrics=METRICS, slices="by = [[]]", rest=rest)


class Exposed(Plain):
    """See the module."""

    rest = ""
    size_ms = 60_000
    is_pending = True
    deploys = 0.2  # the share of steps with a deployment
    retries = 0.2  # and of those with a retry more
    verifies = 0.15  # the share of runs that are verified too

    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng = rng
        KILLS.seed(rng.random())
        KILLS.is_on = True
        self.is_verified = rng.random() < self.verifies
        arriving: dict[Partition, list[tuple[int, Event]]] = {log: [] for log in LOGS}
        for _ in range(2 * size):
            event = _drawn(rng)
            for _ in range(rng.choice((1, 1, 1, 2))):
                shift = rng.randrange(LATENESS_MS) + (rng.random() < 0.08) * 5 * LATENESS_MS
                arriving[rng.choice(LOGS)].append((event["ts"] + shift, event))
        self.logs = {}
        self.ahead = {}
        self.events: dict[Place, Event] = {}
        for partition, arrivals in arriving.items():
            events = [event for _, event in sorted(arrivals, key=lambda pair: pair[0])]
            log = log_of(rng, [json.dumps(event).encode() for event in events])
            self.ahead[partition] = {offset for offset in log.offsets if rng.random() < 0.1}
            self.logs[partition] = log
            self.events |= {(partition, o): e for o, e in zip(log.offsets, events, strict=True)}
            log.timestamps_ms = [
                event["ts"] - 200_000 * (offset in self.ahead[partition])
                for offset, event in zip(log.offsets, events, strict=True)
            ]
        self.running = ["ranker"]
        self.phases: list[tuple[int, int | None]] = []  # closed times at which ADDED counts
        self.ended: Mapping[Partition, int] | None = None  # where the heads stood at its end

    @property
    def before(self) -> Config:  # type: ignore[override]
        """The config as it is now."""
        return make_config(tuple(self.running), self.rest)

    # -- what happens -------------------------------------------------------------------------
    def plan(self, rng: random.Random, steps: int) -> None:
        """Deployments come at any step."""

    def happen(self, world: World, step: int) -> None:
        """There may be a deployment. Nothing is ever refused as closed that is open."""
        if self.rng.random() < self.deploys:
            self.deploy(world)
        if self.rng.random() < self.retries:
            world.retry()
        closed_ms = closed_to(world)
        for entry in world.ledger.quarantine(is_done=None, limit=10_000):
            place = entry.partition, entry.offset
            if entry.reason == "closed" and self.events[place]["ts"] >= closed_ms:
                raise Differs(f"{place} was refused as closed, and is open")

    def deploy(self, world: World) -> None:
        """Add an experiment, end it, or resume it."""
        closed_ms, stand = closed_to(world), world.stand()
        metric_sets = (experiment_set(ADDED),)
        if ADDED in self.running:
            action, requested = "ended", Requested(drop=metric_sets)
            self.running.remove(ADDED)
            self.phases[-1] = (self.phases[-1][0], closed_ms)
            self.ended = stand
        elif self.ended == stand:
            return  # nothing was counted without it
        else:
            is_new = self.ended is None
            action = "added" if is_new else "resumed"
            requested = Requested() if is_new else Requested(resume=metric_sets)
            self.running.append(ADDED)
            self.phases.append((closed_ms, None))
        world.seen[action] += 1
        world.deploy(self.before, requested)

    def counted_from_here(self, world: World) -> Known:
        """A new store has all that runs from the beginning, and nothing else."""
        self.ended = None
        self.phases = [(JOIN_START, None)] if ADDED in self.running else []
        return Known()

    # -- what must come of it -----------------------------------------------------------------
    def known_at_last(self, world: World, counts: Counted) -> Known:
        """Which events are refused is known from the store."""
        return Known(refused=self.open_entries(world))

    def open_entries(self, world: World) -> set[Place]:
        """Where the events are that stay refused."""
        entries = world.ledger.quarantine(limit=100_000)
        return {(entry.partition, entry.offset) for entry in entries}

    def expected(self, knowledge: Known) -> Counted:
        accepted = [
            event
            for place, event in self.events.items()
            if place not in knowledge.refused and "user" in event
        ]
        spans = {"ranker": [(None, None)], ADDED: self.phases}
        ends = {log: (self.logs[log].next_offset, None) for log in self.logs}
        return Counted(states_of(make_config(("ranker", ADDED)), accepted, spans), {}, ends, ())

    def comparable_counts(self, counted: Counted) -> Counted:
        states = {
            where: state
            for where, state in counted.states.items()
            if not where[0].startswith(EXPOSURES_PREFIX)
        }
        heads = {log: (counted.heads[log][0], None) for log in self.logs}
        return Counted(states, {}, heads, ())

    def compare(self, world: World) -> None:
        """What is refused for being late or ahead is a fact of the log."""
        entries = {
            (entry.partition, entry.offset): entry.reason
            for entry in world.ledger.quarantine(is_done=None, limit=100_000)
        }
        newest_ms = dict.fromkeys(self.logs, 0)
        for place, event in self.events.items():
            log, time = place[0], event["ts"]
            reason = entries.get(place)
            if "user" not in event:
                expected: object = "missing_field"
            elif place[1] in self.ahead[log]:
                expected = "future"
            elif reason == "closed" and self.rest:
                continue
            elif time < newest_ms[log] - LATENESS_MS:
                expected = "late_exposure" if event["kind"] == "exposure" else "late_event"
            else:
                expected, newest_ms[log] = None, max(newest_ms[log], time)
            if reason != expected:
                raise Differs(f"{event} at {place}: refused for {reason}, expected {expected}")
        for head in world.ledger.heads(world.generation):
            n = sum(head.partition == place[0] for place in self.open_entries(world))
            if head.counters.quarantined != n:
                raise Differs(f"{head.partition}: {head.counters.quarantined} refused, {n} are")
        if self.is_verified:
            world.seen["verified"] += 1
            folder = Path(world.ledger.store.name).parent
            KILLS.is_on = False  # `verify` closes too
            outcome = verified(self.before, world.ledger, self.logs, folder)
            if not outcome.is_good:
                raise Differs(f"verify: {outcome.differences}")


class PassedOver(Exposed):
    """See the module."""

    rest = "idle_s = 70\n"


def _drawn(rng: random.Random) -> Event:
    """An exposure or an order of one of a few units, at one of a few times."""
    user = f"u{rng.randrange(5)}"
    at_ms = rng.randrange(SPAN_MS // 5_000) * 5_000
    if rng.random() < 0.4:
        name = rng.choice(("ranker", "ranker", ADDED, ADDED, "unknown"))
        return exposure(user, at_ms, name, rng.choice(ARMS.get(name, ("x",))))
    unit = None if rng.random() < 0.05 else user
    return order(unit, at_ms, rng.choice((0, 0.1, 2.5)))  # events that agree in all of it are one


def closed_to(world: World) -> int:
    """The time up to which events are closed."""
    heads = closing_heads(world.ledger.store, world.generation)
    return next((head.next_offset for head in heads if head.is_join), JOIN_START)


# -- upsets ---------------------------------------------------------------------------------------
def closed_over_records_in_hand(world: World) -> None:
    """A worker has records in hand while the other log is read to its end, and events are closed
    without them."""
    first, second = world.rng.sample(list(world.logs), 2)
    worker = take_over(world, first, world.rng.randrange(1, 12))
    take_over(world, second, ALL).leave()
    worker.leave()


def closing_that_was_lost(world: World) -> None:
    """Events are closed, a worker refuses what comes too late for that, and the store goes back to
    before the closing."""
    first, second = world.rng.sample(list(world.logs), 2)
    take_over(world, first, world.rng.randrange(1, 4)).leave()
    saved = SavedStore(world.ledger.store)
    take_over(world, second, ALL).leave()
    worker = take_over(world, first, ALL)
    put_back(world, saved)
    worker.leave()


def back_while_closing(world: World) -> None:
    """Somebody knows what can be closed, and the store goes back before it is."""
    saved = SavedStore(world.ledger.store)
    for partition in world.logs:
        commit_alone(world, partition, ALL)
    closer = take_over(world, world.rng.choice(list(world.logs)), 0).worker._closer
    assert closer is not None
    steps = closer._steps(*closer._closable(), at_once=True)
    put_back(world, saved)
    with suppress(Killed, StoreReplaced, SettingsChanged):
        list(steps)


class StaleLedger(Ledger):
    """A ledger as a slow process has read it: its entries and heads are those of a while ago."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger.store)
        self._entries = [ledger.quarantine(limit=10_000)]
        self._snapshots = [ledger.snapshot()]

    def quarantine(self, **arguments: object) -> tuple[QuarantineRow, ...]:
        return self._entries.pop() if self._entries else super().quarantine(**arguments)  # type: ignore[arg-type]

    def snapshot(self, **arguments: object) -> Snapshot:
        return self._snapshots.pop() if self._snapshots else super().snapshot(**arguments)  # type: ignore[arg-type]


def retried_after_a_while(world: World) -> None:
    """Somebody reads the refused events to try them again; meanwhile somebody else does, or events
    are closed."""
    for partition in world.logs:
        take_over(world, partition, world.rng.randrange(1, 12)).leave()
    stale = StaleLedger(world.ledger)
    if world.rng.random() < 0.5:
        world.retry()
    else:
        for partition in world.logs:
            take_over(world, partition, ALL).leave()
    logs: Mapping[Partition, Log] = world.logs
    with suppress(StoreUnavailable):
        for page in retry(lenient(world.config), stale, now_ms=lambda: 0, page=10_000,
                          opener=lambda config, options: MemorySource(logs)):  # fmt: skip
            world.seen["retried late"] += bool(page.counted)


def closed_after_a_deployment(world: World) -> None:
    """A worker of the former config has nothing in hand, and comes to close what one of the present
    config has committed, who died before it could close."""
    former = take_over(world, world.rng.choice(list(world.logs)), 0)
    plot = world.plot
    assert isinstance(plot, Exposed)
    plot.deploy(world)
    for partition in world.logs:
        commit_alone(world, partition, world.rng.randrange(1, 20))
    with suppress(SettingsChanged):
        former.leave()


def commit_alone(world: World, partition: Partition, records: int) -> None:
    """A worker commits some records, and dies before it could close any."""
    worker = take_over(world, partition, records)
    worker.fuse.point = "after it"
    with suppress(Killed):
        worker.leave()


def merged_after_a_closing(world: World) -> None:
    """Two compactors plan to merge rows, and come to it when more is closed, both of them."""
    compactors = [Compactor(world.ledger.store, above=1) for _ in range(2)]
    for _ in range(2):
        for partition in world.logs:
            commit_alone(world, partition, 3)
            take_over(world, partition, 6).leave()
    plans = [
        (merger, run, rows)
        for merger in compactors
        for run in merger.runs()
        for rows in merger.plan(run)
    ]
    for partition in world.logs:
        take_over(world, partition, ALL).leave()
    for compactor, run, rows in plans:
        outcome = compactor.merge(run, rows)
        world.seen["compaction was late" if outcome is None else "compacted"] += 1


def back_after_all_was_read(world: World) -> None:
    """All workers have read all, and the store goes back."""
    saved = SavedStore(world.ledger.store)
    for index, life in enumerate(world.lives):
        life.now_s += 1000
        world.attempt(index, Deliver(ALL))
    put_back(world, saved)


UPSETS: Final[Sequence[Upset]] = (
    back_after_all_was_read,
    back_while_closing,
    closed_after_a_deployment,
    closed_over_records_in_hand,
    closing_that_was_lost,
    merged_after_a_closing,
    retried_after_a_while,
)
