"""Several workers over one ledger, one step at a time, in an order that a seed decides.

Workers are killed at every point where it could matter, join and leave, partitions move with and
without a word to their old owner, records come twice, the store's connection goes before and after
COMMIT, compactors run between any two steps, windows are dropped, a metric is added and another
ended under way, refused events are tried again, looks are taken, and the store goes back, is
emptied, or is another one. Events are plain, come again, or are joined: see `plots.py`. At the end
all that is left is read. A seed that fails can be run alone:

    interleave(Simulation(ledger), seed)
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.ledger.failures import (
    LedgerError,
    SettingsChanged,
    StoreReplaced,
    StoreUnavailable,
)
from streammetrics_consumers.model.generation import Generation, Requested
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.replay.retry import retry

from tests.consumers.folded import counted
from tests.consumers.memory_source import (
    Again,
    Assign,
    Deliver,
    Lose,
    MemorySource,
    Revoke,
    Stall,
    Step,
)
from tests.consumers.simulation.actors import Compactions, Looks, OutOfOrder, SavedStore, make_anew
from tests.consumers.simulation.lives import (
    LONG,
    POINTS,
    FusedLedger,
    Group,
    Killed,
    Length,
    Life,
    Unsteady,
)
from tests.consumers.simulation.plots import PLOTS, Known, Plain, differences, lenient
from tests.consumers.simulation.upsets import UPSETS, Differs, Upset, empty, put_back

EVENTS = (
    *POINTS, "again", "revoked", "lost", "not told", "eager", "left", "store failed before",
    "store failed after", "store away", "compacted", "compaction was late", "metric changed",
    "floor rose", "zombie", "restart for settings", "retried", "looked", "look was late",
    "went back", "emptied", "another store", "restart for the store", "refused as closed",
    *(plot.__name__ for plot in PLOTS), *(upset.__name__ for upset in UPSETS),
)  # fmt: skip


@dataclass
class Simulation:
    """What is simulated: a ledger, how much happens to it, and what the logs hold."""

    ledger: FusedLedger
    length: Length = LONG
    plots: Sequence[type[Plain]] = PLOTS
    upsets: Sequence[Upset] = UPSETS
    upset_share: float = 0.1  # of the steps
    lost_share: float = 0.03  # of the steps: the store is emptied, and as often another one
    seen: Counter[str] = field(default_factory=Counter)


def interleave(simulation: Simulation, seed: int) -> None:
    """Run one seed in a generation of its own. Raises Differs."""
    world = World(simulation, seed)
    try:
        world.run()
    except (Differs, OutOfOrder) as error:
        raise Differs(f"seed {seed}: {error}") from error
    finally:
        world.close()


class World:
    """One run."""

    def __init__(self, simulation: Simulation, seed: int) -> None:
        self.of, self.seen = simulation, simulation.seen
        self.length = simulation.length
        self.rng = random.Random(seed)
        plot = self.rng.choice(simulation.plots)
        self.seen[plot.__name__] += 1
        self.plot = plot(self.rng, simulation.length.records)
        self.logs = self.plot.logs
        self.group = Group()
        self.config: Config = self.plot.before
        self.known = Known()
        self.compactions = Compactions(self.rng, self.seen)
        self.saved: list[SavedStore] = []
        self.looks = Looks(self.rng, self.seen)
        self.ledgers: list[FusedLedger] = []
        make_anew(simulation.ledger.store)
        self.open()
        self.lives = [self.born() for _ in range(self.length.workers)]

    def open(self) -> None:
        """Open the store that is there now, and begin to count into it."""
        self.ledger = opened(Path(self.of.ledger.store.name))
        self.ledgers.append(self.ledger)
        self.unsteady = Unsteady(self.ledger.store._writers)
        self.ledger.store._writers = self.unsteady  # type: ignore[assignment]
        self.generation: Generation = self.ledger.begin(
            self.config.fingerprints(), self.config.descriptions
        ).generation
        self.heads: dict[Partition, int] = {}
        self.saved.clear()
        self.counts_from_here()
        self.compactions.open(self.ledger)

    def counts_from_here(self) -> None:
        """The store has counted nothing."""
        self.known = self.plot.counted_from_here(self)

    def close(self) -> None:
        for ledger in self.ledgers:
            ledger.close()

    def born(self) -> Life:
        self.ledger.fuse = None
        return Life(self.config, self.ledger, self.generation, self.logs, self.group)

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
        except StoreReplaced:
            self.seen["restart for the store"] += 1
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
        self.plot.plan(self.rng, self.length.steps)
        for step in range(self.length.steps):
            self.happen()
            self.plot.happen(self, step)
            self.compactions.happen(self.ledger, self.unsteady)
            self.looks.happen(self.ledger, self.generation.id)
            if self.rng.random() < 0.15:
                self.retry()
            self.store_changes()
            self.upset()
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
            partitions = set(life.worker._work)
            self.seen["zombie"] += bool(partitions - life.owned)
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
        with suppress(Killed, StoreUnavailable, SettingsChanged, StoreReplaced):
            life.leave()
        self.unsteady.fails.clear()
        self.lives[index] = self.born()
        self.share(self.rng.randrange(self.length.workers), life.owned)

    def stand(self) -> dict[Partition, int]:
        """Where the heads stand."""
        heads = self.ledger.heads(self.generation)
        return dict.fromkeys(self.logs, 0) | {head.partition: head.next_offset for head in heads}

    def deploy(self, config: Config, requested: Requested) -> None:
        """A new config: workers of the former one go on until the store refuses them."""
        self.config = config
        self.generation = self.ledger.begin(
            config.fingerprints(), config.descriptions, requested=requested
        ).generation
        self.saved.clear()

    def retry(self) -> None:
        """Refused events are tried again, by two at once, of whom one may fail."""
        wide = lenient(self.config)
        with suppress(StoreUnavailable):
            self.unsteady.fails = self.rng.choice([[], [], ["before"], ["after"]])[:]
            for page in retry(wide, self.ledger, now_ms=lambda: 0, page=self.rng.choice((1, 3, 99)),
                              opener=lambda config, options: MemorySource(self.logs)):  # fmt: skip
                self.seen["retried"] += bool(page.counted)
        self.unsteady.fails.clear()

    def store_changes(self) -> None:
        """The store goes back, is emptied, or is another one."""
        rng, store = self.rng, self.ledger.store
        if rng.random() < 0.2:
            self.saved.append(SavedStore(store))
        draw = rng.random()
        if draw < 0.1 and self.saved:
            self.seen["went back"] += 1
            self.saved = self.saved[: rng.randrange(len(self.saved)) + 1]
            put_back(self, self.saved[-1])
        elif self.of.lost_share and draw < 0.1 + self.of.lost_share:
            self.seen["emptied"] += 1
            empty(self)
        elif draw < 0.1 + 2 * self.of.lost_share:
            self.seen["another store"] += 1
            make_anew(store)
            self.open()

    def upset(self) -> None:
        """See upsets.py."""
        if self.rng.random() < self.of.upset_share:
            upset = self.rng.choice(self.of.upsets)
            self.seen[upset.__name__] += 1
            with suppress(Killed):
                upset(self)

    def look(self) -> None:
        """No head ever goes back."""
        for head in self.ledger.heads(self.generation):
            last_offset = self.heads.get(head.partition, 0)
            if head.next_offset < last_offset:
                raise Differs(
                    f"{head.partition} went back from {last_offset} to {head.next_offset}"
                )
            self.heads[head.partition] = head.next_offset

    # -- the end ------------------------------------------------------------------------------
    def finish(self) -> None:
        """Let all workers read on, zombies too, until every head is at its end."""
        for _ in range(100):
            self.look()
            if all(self.heads.get(p, -1) >= log.next_offset for p, log in self.logs.items()):
                break
            for index in range(self.length.workers):
                life = self.lives[index]
                life.fuse.point = None
                life.now_s += 1000
                self.attempt(index)
        else:
            raise Differs("the workers do not reach the end")
        self.compactions.finish()
        self.retry()
        self.looks.finish(self.ledger, self.generation.id)
        if self.plot.is_pending:
            self.close_everything()

    def close_everything(self) -> None:
        """Close what is pending, however often the process that does it dies."""
        is_closed = False
        while not is_closed:
            with suppress(Killed):
                closer = self.born().worker._closer
                assert closer is not None
                closer.close(everything=True)
                is_closed = True

    def compare(self) -> None:
        """Everything but windows below the floor: these are gone, and their rows in the totals."""
        counts = counted(self.ledger)
        floor_ms = self.ledger.generation(self.generation.id).floor_ms
        self.known = self.plot.known_at_last(self, counts)
        self.seen["refused as closed"] += bool(self.known.refused)
        self.seen["floor rose"] += floor_ms is not None
        for why in differences(self.plot, self.known, counts, floor_ms):
            raise Differs(why)
        if self.ledger.snapshot().incomplete:
            raise Differs("what was lost is counted again, and results are incomplete all the same")
        self.plot.compare(self)


# -- whether a program that is broken on purpose is found out --------------------------------------
FEW = 30  # seeds, in which most mistakes are found


def opened(place: Path) -> FusedLedger:
    """The ledger at a path, or that of simulations in a folder."""
    path = place / "simulated.db" if place.is_dir() else place
    ledger = FusedLedger.open(str(path), create=True, pauses_s=(0.0,), sleep=lambda seconds: None)
    assert isinstance(ledger, FusedLedger)
    return ledger


def first_found(
    simulation: Simulation, seeds: Sequence[int], *errors: type[Exception]
) -> int | None:
    """The first of these seeds that fails, None where none does."""
    # Some are found by the store's own conditions.
    failures: tuple[type[Exception], ...] = (Differs, LedgerError, *errors)
    for seed in seeds:
        try:
            interleave(simulation, seed)
        except SettingsChanged:
            raise  # a mistake of the simulation: it asks for no change that may be refused
        except failures:
            return seed
    return None
