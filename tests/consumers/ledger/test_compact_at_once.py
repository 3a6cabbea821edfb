"""Compactors, workers, retention and readers at the same time, as threads and as processes."""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event

import pytest
from streammetrics_consumers.ledger.compact import Compactor
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation

from tests.consumers.ledger.counted_log import (
    HOUR,
    PANES,
    begun,
    committed,
    filled,
    require_true_rows,
    state_of,
    sums,
)
from tests.consumers.stores import stored
from tests.depth import tries
from tests.requirements import ROOT

pytestmark = pytest.mark.faults

KEYS = 20
COMMAND = (sys.executable, "-m", "streammetrics_consumers.cli", "compact")


@pytest.mark.usefixtures("each_store")
@pytest.mark.parametrize("seed", range(tries(1, 12)))
def test_two_compactors_whose_steps_take_turns(ledger: Ledger, seed: int) -> None:
    """Each looks, plans and merges when a seed says so, so that plans are old when they are done;
    commits come in between."""
    rng = random.Random(seed)
    generation, heads = filled(ledger, 20, keys=KEYS, seed=seed, limit=900)
    plans: list[list[tuple[object, object]]] = [[], []]
    compactors = [Compactor(ledger.store, above=1 + 4 * i, row_bytes=900) for i in range(2)]
    merged = lost = 0
    for _ in range(60):
        turn = rng.randrange(2)
        compactor = compactors[turn]
        if rng.random() < 0.1:
            log = rng.randrange(3)
            heads[log] = committed(ledger, generation, heads[log], 9, keys=KEYS, limit=900)
        if not plans[turn]:
            plans[turn] = [(s, g) for s in compactor.runs() for g in compactor.plan(s)]
            rng.shuffle(plans[turn])
        elif compactor.merge(*plans[turn].pop()) is None:  # type: ignore[arg-type]
            lost += 1
        else:
            merged += 1
    assert merged and lost, "both happened"
    require_true_rows(stored(ledger), KEYS, 900)


@pytest.mark.usefixtures("each_store")
def test_threads_that_commit_merge_and_read(ledger: Ledger) -> None:
    generation, heads = begun(ledger)
    over, start = Event(), Barrier(6)

    def work(head: Head) -> Head:
        start.wait()
        for _ in range(20):
            head = committed(ledger, generation, head, 14, keys=KEYS, limit=900)
        return head

    def merge(above: int) -> int:
        start.wait()
        merged, is_last = 0, False
        while not is_last:
            is_last = over.is_set()
            merged += sum(1 for _ in Compactor(ledger.store, above=above, row_bytes=900).steps())
        return merged

    def look() -> int:
        start.wait()
        looks = 0
        while not looks or not over.is_set():
            require_sums(ledger)
            looks += 1
        return looks

    with ThreadPoolExecutor(6) as pool:
        workers = [pool.submit(work, head) for head in heads]
        mergers = [pool.submit(merge, above) for above in (1, 3)]
        reader = pool.submit(look)
        try:
            ends = [worker.result().next_offset for worker in workers]
        finally:
            over.set()
        assert ends == [20 * 14] * 3
        # Which of them is faster is not known.
        assert sum(merger.result() for merger in mergers)
        assert reader.result()
    require_true_rows(stored(ledger), KEYS, 900)


def require_sums(ledger: Ledger) -> None:
    """What one snapshot says is what its heads say was counted."""
    contents = stored(ledger)
    ends = {head.id: (head.partition.number, head.next_offset) for head in contents.seen.heads}
    for (pane, head), data in sums(contents).items():
        number, end = ends[head]
        assert state_of(pane, range(end), KEYS, number).to_bytes() == data
    if all(end for _, end in ends.values()):
        assert len(sums(contents)) == len(PANES) * len(ends)


@pytest.mark.usefixtures("each_store")
def test_a_floor_that_rises_while_its_windows_are_merged(ledger: Ledger) -> None:
    generation, _ = filled(ledger, 90, keys=KEYS)
    start = Barrier(3)

    def merge() -> None:
        start.wait()
        list(Compactor(ledger.store, above=1).steps())

    def rise() -> Generation:
        start.wait()
        return ledger.raise_floor(generation, 2 * HOUR)

    with ThreadPoolExecutor(3) as pool:
        mergers, raised = [pool.submit(merge) for _ in range(2)], pool.submit(rise)
        assert raised.result().floor_ms == 2 * HOUR
        for merger in mergers:
            merger.result()
    contents = stored(ledger)
    assert {size.pane for size in contents.seen.panes} == {PANES[0]}
    require_true_rows(contents, KEYS)


def test_a_compactor_that_is_killed_leaves_all_or_nothing_of_a_group(tmp_path: Path) -> None:
    path = tmp_path / "killed.db"
    rng = random.Random(1)
    with closing(Ledger.open(str(path), create=True)) as ledger:
        generation, heads = filled(ledger, 100, keys=KEYS)
        for _ in range(4):
            for log in range(3):
                for _ in range(5):
                    heads[log] = committed(ledger, generation, heads[log], 9, keys=KEYS)
            process = subprocess.Popen([*COMMAND, str(path)], cwd=ROOT)
            try:
                process.wait(rng.uniform(0.5, 1.2))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            require_true_rows(stored(ledger), KEYS)
