"""Every state that is read is that of an independent fold, whichever rows stand for it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update
from streammetrics_consumers.ledger.delta_metadata import SHARD_BYTES
from streammetrics_consumers.ledger.schema import delta
from streammetrics_consumers.replay.scratch import Findings

from tests.consumers.counting.grouped_run import SLICES, GroupedRun, values
from tests.consumers.memory_run import ONE, Run
from tests.consumers.memory_source import Log
from tests.consumers.replay.verified_run import change, verified
from tests.consumers.small_config import event
from tests.consumers.stores import filled_once, over_stores
from tests.consumers.views_once import views_computed_once
from tests.depth import tries

pytestmark = pytest.mark.usefixtures("each_store")


@pytest.fixture(autouse=True)
def shown_once() -> Iterator[None]:
    with views_computed_once():
        yield


Values = list[bytes | None]
Damage = Callable[[Connection, ColumnElement[bool]], None]


def anything(run: GroupedRun, rng: random.Random) -> None:
    """One thing that may happen to a ledger."""
    action = rng.choices(["commit", "compact", "floor", "retry"], [20, 5, 0.4, 0.8])[0]
    if action == "commit":
        log = rng.choice(list(run.heads))
        limit = rng.choice((SHARD_BYTES, SHARD_BYTES, 1500))
        run.commit(log, rng.choice((1, 2, 3, 5, 8, 30)), limit, version_2=rng.random() < 0.1)
    elif action == "compact":
        run.compact(
            rng.choice((1, 2, 5, None)),
            above=rng.choice((1, 2, 4)),
            leave=rng.randrange(3),
            merge_bytes=rng.choice((1500, 5000, 32 << 20)),
            row_bytes=rng.choice((400, 1500, 4000, 8 << 20, 8 << 20)),
        )
    elif action == "floor":
        run.raise_floor(rng.randrange(3))
    else:
        run.retry()


@pytest.mark.parametrize(
    ("databases", "seed", "things"),
    over_stores((4, 6), *((n, tries(30, 40)) for n in range(tries(1, 24))), postgres=tries(1, 24)),
    indirect=["databases"],
)
def test_whatever_happens_each_state_is_that_of_an_independent_fold(
    tmp_path: Path, seed: int, things: int
) -> None:
    rng = random.Random(seed)
    logs = [values(seed + 100 * log, 150, rng.choice((2, 4, 6))) for log in range(2)]
    with GroupedRun(tmp_path, logs) as run:
        for i in range(things):
            anything(run, rng)
            if i % 4 == 3:
                run.require_true_readers()
            if i % 8 == 7:
                run.require_true_states()
        run.require_verified()
        run.compact(above=1)
        run.require_true_states()
        run.require_true_readers()
        run.require_verified()


def few(*phases: str) -> Values:
    """An event of each phase, of one user, a second after the other."""
    return [event(f"2024-01-01T00:00:{i:02d}Z", "a", i % 2, phase=p) for i, p in enumerate(phases)]


def checked(run: GroupedRun) -> None:
    run.require_true_states()
    run.require_true_readers()
    run.require_verified()


OWN = [*((place, 0, 6, False) for place in (1, 2, 3)), (4, 0, 6, True)]  # of phases p to u
# The phases of the log, the size of each commit, the rows of totals before and after a compaction.
SCENES = {
    "keys that are too many only together give the coarser ones rows": (
        "pqrstu", [2, 2, 2], None, OWN,
    ),
    # The second commit has no rows of coarser groupings, the first and the third have.
    "rows that others stand between are merged only with these": (
        "pqrstupqpqrstu", [6, 2, 6], None,
        [*((place, 0, 14, False) for place in (1, 2, 3)), (4, 0, 14, True)],
    ),
    "rows of the finest groupings are all that is written": (
        "pq", [2], [(3, 0, 2, True), (4, 0, 2, True)], None,
    ),
    "a commit of more keys than are kept has rows of each grouping": ("pqrstu", [6], OWN, None),
    "rows that keep their keys apart together are merged into one": (
        "pqpq", [1, 1, 1, 1], None, [(3, 0, 4, True), (4, 0, 4, True)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("databases", "scene"),
    over_stores(*((name,) for name in SCENES), postgres=2),
    indirect=["databases"],
)
def test_rows_stand_for_coarser_groupings_where_their_keys_are_few(
    tmp_path: Path, scene: str
) -> None:
    phases, sizes, before, after = SCENES[scene]
    with GroupedRun(tmp_path, [few(*phases)]) as run:
        for size in sizes:
            run.commit(ONE, size)
        assert before is None or run.totals() == before
        checked(run)
        if after is not None:
            run.compact(1, above=1)
            checked(run)
            run.compact(above=1)
            assert run.totals() == after
            checked(run)


def test_a_row_that_is_cut_by_ranges_of_keys_stands_for_itself_alone(tmp_path: Path) -> None:
    with GroupedRun(tmp_path, [few(*"pqrs")]) as run:
        run.commit(ONE, 4, 320)
        assert [row for row in run.totals() if row[3]] == [(4, 0, 4, True)]  # it has one key
        checked(run)


def test_rows_of_an_older_store_are_read_beside_new_ones(tmp_path: Path) -> None:
    with GroupedRun(tmp_path, [few(*"pqpqpq")]) as run:
        for i in range(3):
            run.commit(ONE, 2, version_2=i != 1)
        assert [row[:3] for row in run.totals() if row[0] == 0] == [(0, 0, 2), (0, 4, 6)]
        checked(run)
        run.compact(above=1)
        assert run.totals() == [(place, 0, 6, False) for place in range(5)]
        checked(run)


OF_TOTAL = and_(delta.c.metric == "auc", delta.c.window_start_ms.is_(None), delta.c.retry.is_(None))


def first(connection: Connection, condition: ColumnElement[bool]) -> int:
    id_ = connection.scalar(select(delta.c.id).where(OF_TOTAL, condition).order_by(delta.c.id))
    assert id_ is not None
    return int(id_)


def other_state(connection: Connection, condition: ColumnElement[bool]) -> None:
    row = first(connection, condition)
    rows = connection.execute(select(delta.c.state, delta.c.nbytes).where(OF_TOTAL, condition))
    states = {shard.nbytes: shard.state for shard in rows.all()[1:]}
    (nbytes, state), *_ = states.items()
    connection.execute(update(delta).where(delta.c.id == row).values(state=state, nbytes=nbytes))


def gone(connection: Connection, condition: ColumnElement[bool]) -> None:
    connection.execute(delete(delta).where(delta.c.id == first(connection, condition)))


def doubled(connection: Connection, condition: ColumnElement[bool]) -> None:
    row = connection.execute(select(delta).where(delta.c.id == first(connection, condition))).one()
    connection.execute(insert(delta).values({**row._mapping, "id": 10_000}))


def cut(connection: Connection, condition: ColumnElement[bool]) -> None:
    row = delta.c.id == first(connection, condition)
    connection.execute(update(delta).where(row).values(state=b"SMST", nbytes=4))


def shortened(connection: Connection, condition: ColumnElement[bool]) -> None:
    row = delta.c.id == first(connection, condition)
    connection.execute(update(delta).where(row).values(end_offset=delta.c.start_offset + 1))


@pytest.mark.parametrize(
    ("databases", "damage", "finest", "shown"),
    over_stores(
        (gone, 3, {1, 2, 3}),
        (other_state, 4, {0, 4}),
        (doubled, 3, {1, 2, 3}),
        (cut, 4, {0, 4}),
        (shortened, 3, {1, 2, 3}),
        postgres=1,
    ),
    indirect=["databases"],
)
def test_damage_of_a_row_is_found_in_each_grouping_that_it_stands_for(
    tmp_path: Path, damage: Damage, finest: int, shown: set[int]
) -> None:
    log = values(1, 40, 2)

    def counted() -> None:
        with GroupedRun(tmp_path, [log]) as whole:
            for _ in range(4):
                whole.commit(ONE, 10)
            whole.require_verified()

    run = Run(tmp_path, {ONE: Log(list(log))}, slices=SLICES)
    filled_once(Path(run.config.store.url), ("groupings",), counted)
    change(run, lambda connection: damage(connection, delta.c.grouping == finest))
    findings = verified(run, tmp_path)
    assert differing_groupings(findings) == shown
    assert findings.count == len(shown)


def test_a_flag_that_was_changed_is_found_in_the_coarser_groupings_if_any_follows(
    tmp_path: Path,
) -> None:
    with GroupedRun(tmp_path, [few(*"pqrstu", "p")]) as run:
        run.commit(ONE, 6)
        run.commit(ONE, 1)

        def flagged(grouping: int, flag: bool) -> set[int]:
            row = and_(OF_TOTAL, delta.c.grouping == grouping, delta.c.for_coarser.is_(not flag))
            change(run.run, lambda c: c.execute(update(delta).where(row).values(for_coarser=flag)))
            return differing_groupings(verified(run.run, tmp_path))

        assert flagged(1, True) == set()
        assert flagged(3, True) == {1, 2}
        assert flagged(3, False) == {1, 2}


def differing_groupings(findings: Findings) -> set[int]:
    """The groupings of the differences, all of totals of one metric."""
    pattern = re.compile(r"metric auc, grouping (\d), total, events/0: ")
    matches = [pattern.match(difference) for difference in findings.differences]
    return {int(match[1]) for match in matches if match is not None}
