"""Several workers over one ledger, one step at a time, in an order that a seed decides.

Workers are killed at every point where it could matter, join and leave, partitions move with and
without a word to their old owner, records come twice, the store's connection goes before and after
COMMIT, compactors run between any two steps, windows are dropped, and a metric is added and another
ended under way. At the end all that is left is read. A seed that fails can be run alone:

    interleave(Simulation(ledger), seed)
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from consumers.config.config import Config
from consumers.ledger.compact import Compactor, Strand
from consumers.ledger.compaction import Group as Rows
from consumers.ledger.ledger import SettingsChanged, StoreUnavailable
from consumers.ledger.rows import Generation
from consumers.sources.memory_source import Again, Assign, Deliver, Log, Lose, Revoke, Stall, Step
from consumers.sources.source import Partition
from consumers.worker.worker import Worker
from streammetrics import Accumulator, HistogramAUC
from tests.consumers.folded import SIZE_MS, Counted, Span, counted, fold, records
from tests.consumers.lives import (
    POINTS,
    FusedLedger,
    FusedSource,
    Group,
    Killed,
    Life,
    Unsteady,
)
from tests.consumers.small_config import config

WINDOWS = "size_s = 3600\nlateness_s = 60\nmax_ahead_s = 100\nretention_s = 3600"
SLICES = 'by = [["variant"]]'
GROUPINGS = (("variant",),)
METRICS: Mapping[str, Accumulator] = {"old": HistogramAUC(), "new": HistogramAUC()}
BEFORE, AFTER = (
    config(windows=WINDOWS, slices=SLICES, metrics=f'{name} = {{ type = "HistogramAUC" }}')
    for name in METRICS
)
EVENTS = (
    *POINTS, "again", "revoked", "lost", "not told", "eager", "left", "store failed before",
    "store failed after", "store away", "compacted", "compaction was late", "metric changed",
    "floor rose", "zombie", "restart for settings",
)  # fmt: skip


class Differs(AssertionError):
    """The ledger is not what a fold over the log gives."""


@dataclass(frozen=True)
class Length:
    """How much happens in a run."""

    workers: int
    steps: int
    records: int  # of each log


LONG, SHORT = Length(3, 16, 24), Length(2, 6, 8)


@dataclass
class Simulation:
    """What is simulated: a ledger, and the parts of a worker that a mutant may replace."""

    ledger: FusedLedger
    source_type: type[FusedSource] = FusedSource
    worker_type: type[Worker] = Worker
    compactor_type: type[Compactor] = Compactor
    length: Length = LONG
    seen: Counter[str] = field(default_factory=Counter)


def interleave(simulation: Simulation, seed: int) -> None:
    """Run one seed in a generation of its own. Raises Differs."""
    try:
        World(simulation, seed).run()
    except Differs as error:
        raise Differs(f"seed {seed}: {error}") from error


def logs_of(rng: random.Random, size: int) -> dict[Partition, Log]:
    """Logs with holes, one of which has lost its beginning."""
    found = {}
    for number in range(2):
        values = records(rng.randrange(10**9), size, hours=6, latest_s=15_000)
        first = offset = rng.choice([0, 0, 7])
        offsets = []
        for _ in values:
            offset += rng.random() < 0.1  # a control record
            offsets.append(offset)
            offset += 1
        end = offset + rng.choice([0, 0, 2])
        found[Partition("test", "events", "id", number)] = Log(
            values, offsets, beginning=first, next_offset=end
        )
    return found


class World:
    """One run."""

    def __init__(self, simulation: Simulation, seed: int) -> None:
        self.of, self.ledger, self.seen = simulation, simulation.ledger, simulation.seen
        self.length = simulation.length
        self.rng = random.Random(seed)
        self.logs = logs_of(self.rng, simulation.length.records)
        self.group = Group()
        self.config: Config = BEFORE
        self.spans: dict[str, Span] = {"new": Span(since=dict.fromkeys(self.logs, 10**9))}
        store = self.ledger.store
        if not isinstance(store._writers, Unsteady):
            store._writers = Unsteady(store._writers)  # type: ignore[assignment]
        self.unsteady: Unsteady = store._writers  # type: ignore[assignment]
        self.unsteady.fails.clear()
        self.generation: Generation = self.ledger.begin(
            BEFORE.fingerprints(), BEFORE.descriptions, new_generation=True
        ).generation
        self.heads: dict[Partition, int] = {}
        self.compactors = [simulation.compactor_type(store, above=1) for _ in range(2)]
        self.plans: list[tuple[Compactor, Strand, Rows]] = []
        self.lives = [self.born() for _ in range(self.length.workers)]

    def born(self) -> Life:
        class Made(Life):
            source_type, worker_type = self.of.source_type, self.of.worker_type

        self.ledger.fuse = None
        return Made(self.config, self.ledger, self.generation, self.logs, self.group)

    # -- a step of one worker -----------------------------------------------------------------
    def attempt(self, index: int, *script: Step) -> None:
        """Let a worker go on, and start another in its place if it dies."""
        life = self.lives[index]
        try:
            life.step(*script)
        except Killed as point:
            self.seen[str(point)] += 1
        except StoreUnavailable:
            self.seen["store away"] += 1
        except SettingsChanged:
            self.seen["restart for settings"] += 1
        else:
            return
        self.unsteady.fails.clear()
        self.lives[index] = self.born()
        self.share(self.rng.randrange(self.length.workers), life.owned)

    def share(self, index: int, partitions: set[Partition]) -> None:
        if partitions:
            self.lives[index].owned |= partitions
            self.attempt(index, Assign(tuple(sorted(partitions))))

    def let_go(self, index: int, moved: set[Partition]) -> None:
        """Take partitions from a worker, which may hear of it in time, too late or never."""
        life = self.lives[index]
        life.owned -= moved
        how = self.rng.choice(["revoked", "lost", "not told"])
        self.seen[how] += 1
        if how == "revoked":
            self.attempt(index, Revoke(tuple(sorted(moved))))
        elif how == "lost":
            self.attempt(index, Lose(tuple(sorted(moved))))
        # Else it goes on as if they were its own, as after a long pause.

    # -- what happens -------------------------------------------------------------------------
    def run(self) -> None:
        for partition in self.logs:
            self.share(self.rng.randrange(self.length.workers), {partition})
        changes = self.rng.randrange(2 * self.length.steps)
        for step in range(self.length.steps):
            self.happen()
            if step == changes:
                self.change_metrics()
            self.compact()
            if step % 4 == 0:
                self.look()
        self.finish()
        self.compare()

    def happen(self) -> None:
        rng, index = self.rng, self.rng.randrange(self.length.workers)
        life = self.lives[index]
        if rng.random() < 0.7:
            life.now_s += self.config.store.commit_interval_s
        life.fuse.point = rng.choice(POINTS) if rng.random() < 0.4 else None
        if rng.random() < 0.2:
            how = rng.choice(["before", "after"])
            self.seen[f"store failed {how}"] += 1
            self.unsteady.fails = [how] * rng.choice([1, 1, 2])
        draw = rng.random()
        if draw < 0.6:
            held = set(life.worker._work)
            self.seen["zombie"] += bool(held - life.owned)
            self.attempt(index, Deliver(rng.randrange(1, 12)))
        elif draw < 0.7:
            self.seen["again"] += 1
            self.attempt(index, Again())
        elif draw < 0.75:
            self.attempt(index, Stall())
        elif draw < 0.8:
            self.leave(index)
        elif draw < 0.85:
            self.rebalance()
        elif life.owned:
            moved = {rng.choice(sorted(life.owned))}
            self.let_go(index, moved)
            self.share(rng.randrange(self.length.workers), moved)
        self.unsteady.fails.clear()

    def rebalance(self) -> None:
        """Eager: everybody lets go of everything."""
        self.seen["eager"] += 1
        for index in range(self.length.workers):
            if self.lives[index].owned:
                self.let_go(index, set(self.lives[index].owned))
        for partition in self.logs:
            for life in self.lives:  # one that died meanwhile was given its partitions again
                life.owned.discard(partition)
            self.share(self.rng.randrange(self.length.workers), {partition})

    def leave(self, index: int) -> None:
        """A worker ends in good order, and another one joins."""
        self.seen["left"] += 1
        life = self.lives[index]
        with suppress(Killed, StoreUnavailable, SettingsChanged):
            life.leave()
        self.unsteady.fails.clear()
        self.lives[index] = self.born()
        self.share(self.rng.randrange(self.length.workers), life.owned)

    def change_metrics(self) -> None:
        """An upgrade: `old` ends and `new` begins, where the heads stand now."""
        self.seen["metric changed"] += 1
        stand = {head.partition: head.next_offset for head in self.ledger.heads(self.generation)}
        self.config = AFTER
        self.generation = self.ledger.begin(AFTER.fingerprints(), AFTER.descriptions).generation
        self.spans = {"old": Span(until=stand), "new": Span(since=stand)}

    def compact(self) -> None:
        """Two compactors: each plans now, and merges now or some steps later."""
        rng = self.rng
        if rng.random() < 0.3:
            heads = [head.id for head in self.ledger.heads(self.generation)]
            for compactor in self.compactors:
                for strand in compactor.strands(heads)[:2]:
                    self.plans += [(compactor, strand, rows) for rows in compactor.plan(strand)]
        rng.shuffle(self.plans)
        while self.plans and rng.random() < 0.6:
            compactor, strand, rows = self.plans.pop()
            self.unsteady.fails = rng.choice([[], [], ["before"], ["after"]])[:]
            done = compactor.merge(strand, rows)
            self.seen["compaction was late" if done is None else "compacted"] += 1
            self.unsteady.fails.clear()

    def look(self) -> None:
        """No head ever goes back."""
        for head in self.ledger.heads(self.generation):
            known = self.heads.get(head.partition, 0)
            if head.next_offset < known:
                raise Differs(f"{head.partition} went back from {known} to {head.next_offset}")
            self.heads[head.partition] = head.next_offset

    # -- the end ------------------------------------------------------------------------------
    def finish(self) -> None:
        """Let all workers read on, zombies too, until every head is at its end."""
        for _ in range(100):
            self.look()
            if all(self.heads[p] >= log.next_offset for p, log in self.logs.items()):
                break
            for index in range(self.length.workers):
                life = self.lives[index]
                life.fuse.point = None
                life.now_s += 1000
                self.attempt(index)
        else:
            raise Differs("the workers do not reach the end")
        for compactor, strand, rows in self.plans:
            compactor.merge(strand, rows)

    def compare(self) -> None:
        """Everything but windows below the floor: these are gone, and their rows in the totals."""
        found = counted(self.ledger)
        floor_ms = self.ledger.generation(self.generation.id).floor_ms
        expected = fold(self.logs, groupings=GROUPINGS, metrics=METRICS, spans=self.spans)
        if floor_ms is not None:
            self.seen["floor rose"] += 1
            expected = above(expected, floor_ms)
            lowest = min(time or 0 for _, time in expected.heads.values())
            if floor_ms > self.config.floor_ms(lowest):
                raise Differs(f"floor {floor_ms} is higher than the retention allows")
        expired = {p: one.expired for p, one in found.counters.items()}
        if any(expired.values()) and floor_ms is None:
            raise Differs("rows expired without a floor")
        for partition, one in found.counters.items():
            if one.expired > one.rows - one.quarantined:
                raise Differs(f"{partition}: {one}")
        found = replace(
            found, counters={p: replace(one, expired=0) for p, one in found.counters.items()}
        )
        for name in ("states", "counters", "heads", "refused"):
            if getattr(found, name) != getattr(expected, name):
                raise Differs(f"{name} differ from a fold over the log")


def above(expected: Counted, floor_ms: int) -> Counted:
    """Without the windows below the floor."""
    assert floor_ms % SIZE_MS == 0
    states = {
        state: one
        for state, one in expected.states.items()
        if state[2] is None or state[2] >= floor_ms
    }
    return replace(expected, states=states)
