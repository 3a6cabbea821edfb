"""What happens to a store and its workers in an order that chance alone brings about too rarely.

Each upset is a few steps of workers of its own, which take partitions over from whoever has them,
and ends with a comparison: up to where the heads stand, the ledger holds what a fold over the log
gives, also where later steps would hide a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streammetrics_consumers.ledger.failures import StoreReplaced
from streammetrics_consumers.model.partition import Partition

from tests.consumers.folded import counted
from tests.consumers.memory_source import Assign, Deliver, Log, Stall
from tests.consumers.simulation.actors import SavedStore, make_anew, require_in_order
from tests.consumers.simulation.lives import Life
from tests.consumers.simulation.plots import differences

if TYPE_CHECKING:
    from tests.consumers.simulation.interleaved import World

Upset = Callable[["World"], None]
ALL: Final = 1000  # records: more than a log has


class Differs(AssertionError):
    """The ledger is not what a fold over the log gives."""


def handed_over(world: World) -> None:
    """Workers take a partition one after the other, and each reads a few records alone."""
    for _ in range(6):
        take_over(world, world.rng.choice(list(world.logs)), world.rng.randrange(1, 4)).leave()
    compare_so_far(world)


def made_in_another_order(world: World) -> None:
    """The store is emptied, and its heads are made in another order, while a worker has records of
    one of them in hand: each head has the row number of the other now."""
    first, second = world.rng.sample(list(world.logs), 2)
    empty(world, (first, second))
    worker = take_over(world, first, world.rng.randrange(1, 12))
    empty(world, (second, first))
    worker.leave()
    compare_so_far(world)


def floor_rose_over_records_in_hand(world: World) -> None:
    """A worker has late records in hand while another one commits, and the floor rises."""
    first, second = world.rng.sample(list(world.logs), 2)
    take_over(world, first, world.rng.randrange(1, 4)).leave()
    worker = take_over(world, first, ALL)
    take_over(world, second, ALL).leave()
    worker.leave()
    compare_so_far(world)


def floor_of_a_lost_commit(world: World) -> None:
    """The floor rises, a worker leaves out late records that lie below it, and the store goes back
    to before the commit that raised it."""
    first, second = world.rng.sample(list(world.logs), 2)
    take_over(world, first, world.rng.randrange(1, 4)).leave()
    saved = SavedStore(world.ledger.store)
    worker = take_over(world, first, 0)
    take_over(world, second, ALL).leave()
    worker.now_s += 1000
    worker.step(Stall())  # it learns of the floor
    worker.step(Deliver(ALL))
    put_back(world, saved)
    worker.leave()
    compare_so_far(world)


def commit_into_another_store(world: World) -> None:
    """A worker has records in hand while another store takes the place of its own."""
    worker = take_over(world, world.rng.choice(list(world.logs)), world.rng.randrange(1, 12))
    make_anew(world.ledger.store)
    world.open()
    before = SavedStore(world.ledger.store).rows
    with suppress(StoreReplaced):
        worker.leave()
    if SavedStore(world.ledger.store).rows != before:
        raise Differs("a worker wrote into another store than the one that it had opened")


def look_beyond_the_heads(world: World) -> None:
    """Somebody claims a look and reads, and the store goes back to between the two."""
    looks, generation_id = world.looks, world.generation.id
    claimed_ms = looks.claim(world.ledger, generation_id)
    saved = SavedStore(world.ledger.store)
    take_over(world, world.rng.choice(list(world.logs)), 5).leave()
    look = looks.read(world.ledger, generation_id, claimed_ms)
    put_back(world, saved)
    looks.take(*look)
    require_in_order(world.ledger, generation_id)


def look_of_a_lost_claim(world: World) -> None:
    """Somebody reads for a look, the store goes back to before the claim, another one looks after
    a commit to the other log, and the first log is counted again."""
    looks, generation_id = world.looks, world.generation.id
    first, second = world.rng.sample(list(world.logs), 2)
    saved = SavedStore(world.ledger.store)
    take_over(world, first, 5).leave()
    lost = looks.read(world.ledger, generation_id, looks.claim(world.ledger, generation_id))
    put_back(world, saved)
    take_over(world, second, 5).leave()
    looks.take(*looks.read(world.ledger, generation_id, looks.claim(world.ledger, generation_id)))
    take_over(world, first, ALL).leave()
    looks.take(*lost)
    require_in_order(world.ledger, generation_id)


UPSETS: Final[Sequence[Upset]] = (
    handed_over,
    made_in_another_order,
    floor_rose_over_records_in_hand,
    floor_of_a_lost_commit,
    commit_into_another_store,
    look_beyond_the_heads,
    look_of_a_lost_claim,
)


# -- their steps ----------------------------------------------------------------------------------
def take_over(world: World, partition: Partition, records: int) -> Life:
    """A new worker that has taken a partition over, with some of its next records in hand."""
    life = world.born()
    life.step(Assign((partition,)))
    life.step(Deliver(records) if records else Stall())
    return life


def empty(world: World, order: Sequence[Partition] = ()) -> None:
    """The store is emptied, but for its generation, and heads are made again in this order."""
    make_anew(world.ledger.store, keep=("meta", "generation", "metric", "source"))
    world.saved.clear()
    world.heads.clear()
    world.counts_from_here()
    for partition in order:
        world.ledger.resolve(world.generation, partition, world.logs[partition].beginning)


def put_back(world: World, saved: SavedStore) -> None:
    """The store goes back to what it was."""
    saved.put_back()
    world.heads.clear()


def compare_so_far(world: World) -> None:
    """The ledger holds what a fold gives of the log up to its heads, once all that was refused is
    tried again. (When an event is closed is up to the run.)"""
    if world.plot.is_pending:
        return
    world.retry()
    stand = {head.partition: head.next_offset for head in world.ledger.heads(world.generation)}
    plot = copy(world.plot)
    plot.logs = {log: _until(world.logs[log], offset) for log, offset in stand.items()}
    floor_ms = world.ledger.generation(world.generation.id).floor_ms
    counts = counted(world.ledger)
    knowledge = plot.known_at_last(world, counts)
    for why in differences(plot, knowledge, counts, floor_ms, whole=False):
        raise Differs(f"{why}, up to {sorted(stand.values())}")


def _until(log: Log, end: int) -> Log:
    """A log as it was when `end` was its next offset."""
    n = sum(offset < end for offset in log.offsets)
    times = log.timestamps_ms
    cut = replace(
        log,
        values=log.values[:n],
        offsets=log.offsets[:n] or [-1],
        timestamps_ms=None if times is None else times[:n],
        next_offset=end,
    )
    cut.offsets = cut.offsets[:n]
    return cut
