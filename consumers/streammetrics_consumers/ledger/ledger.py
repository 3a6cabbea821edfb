"""The ledger: states and offsets, changed together or not at all.

A worker holds only the delta since its last commit. `commit` is one transaction:

    1. the generation is still the current one, with the same metrics, and its floor did not rise
    2. the head moves from `start` to `end`, on the condition that it still stands at `start`
    3. the delta and the refused events of these records are written

If a condition fails, nothing is written and the delta is dropped: another worker has moved the head
(Fenced; reading resumes at the head) or the settings have changed (SettingsChanged).
So recovery reads two numbers for each partition, and a zombie worker can write nothing.

A generation counts from certain logs: its topics, each of a cluster. A config with another topic or
cluster would silently add unintended events to the counts so far. So the topics are kept in the
store, and a new one is refused unless it was requested.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import Connection, insert, select

from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.former_states import as_read_now
from streammetrics_consumers.ledger.generations import begin, changes_of, require_accepted
from streammetrics_consumers.ledger.periods import (
    CountedOffsets,
    Period,
    note_offsets,
    read_history,
)
from streammetrics_consumers.ledger.read import (
    generation_of,
    last_retry,
    read_generation,
    read_generations,
    read_heads,
    read_panes,
    read_quarantine,
)
from streammetrics_consumers.ledger.schema import head, quarantine, source
from streammetrics_consumers.ledger.store import BUSY_S, PAUSES_S, Accept, Store, open_store
from streammetrics_consumers.ledger.write import (
    Fenced,
    check_generation,
    close_head,
    has_head,
    head_after_commit,
    head_after_skip,
    head_of,
    insert_head,
    live,
    move_head,
    note_lateness,
    raise_floor,
    refuse_closed,
    refuse_floor,
    skip_offsets,
    write_delta,
)
from streammetrics_consumers.model.commit import Commit, Head, QuarantineRow, Snapshot
from streammetrics_consumers.model.generation import (
    NOTHING_REQUESTED,
    Begun,
    Generation,
    Requested,
)
from streammetrics_consumers.model.partition import Partition

T = TypeVar("T")
Topic = tuple[str, str]  # cluster, topic


class NewSource(LedgerError):
    """A topic or cluster that a generation has not counted from and that was not requested."""

    exit_code = 4

    def __init__(self, counted: Collection[Topic], topics: Collection[Topic]) -> None:
        self.known, self.found = tuple(counted), tuple(topics)
        super().__init__(
            f"expected the source that the store has counted from ({_named(counted)}), got "
            f"{_named(topics)}: its events would be added to those counted. Correct the config, "
            "name another store, start over with --new-generation, or add them with --new-source"
        )


class LogChanged(LedgerError):
    """The log under this name is not the one that was counted: recreated, or of another cluster."""

    exit_code = 4

    def __init__(self, known_head: Head, other: Partition) -> None:
        self.known, self.found = known_head, other
        log = known_head.partition
        kind, flag, before, now = "cluster", "--new-source", log.cluster, other.cluster
        if before == now:
            kind, flag = "log (topic id)", "--on-gap skip"
            before, now = log.topic_id, other.topic_id
        super().__init__(
            f"{other}: this {kind} is not the one counted up to offset {known_head.next_offset}: "
            f"that was {before}, this is {now}, and its offsets refer to other events. Read the "
            "old one to its end, start with --new-generation or another store, or add its events "
            f"to those counted with {flag}"
        )


def unknown_topics(
    store: Store, generation: Generation, partitions: Collection[Partition], *, new: bool
) -> Sequence[Topic]:
    """The topics of these logs that a generation has not counted from; none if it has counted from
    no log at all. Raises NewSource if there are any, unless `new` allows them."""
    topics, missing = store.read(
        lambda connection: _topics(connection, generation, partitions, new)
    )
    return missing if topics else ()


def count_from(
    store: Store, generation: Generation, partitions: Collection[Partition], *, new: bool = False
) -> None:
    """Record that a generation counts from these logs, which are all that its config names. Raises
    NewSource as `unknown_topics` does."""

    def work(connection: Connection, _: bool) -> None:
        check_generation(connection, generation, is_exclusive=True)
        for cluster, topic in _topics(connection, generation, partitions, new)[1]:
            connection.execute(
                insert(source).values(generation=generation.id, cluster=cluster, topic=topic)
            )

    if store.read(lambda connection: _topics(connection, generation, partitions, True))[1]:
        store.write(work)


def _topics(
    connection: Connection, generation: Generation, partitions: Collection[Partition], new: bool
) -> tuple[frozenset[Topic], Sequence[Topic]]:
    """The topics that a generation has counted from, and the further topics of these logs."""
    query = select(source.c.cluster, source.c.topic).where(source.c.generation == generation.id)
    topics = frozenset((row.cluster, row.topic) for row in connection.execute(query))
    missing = sorted({(partition.cluster, partition.topic) for partition in partitions} - topics)
    if topics and missing and not new:
        raise NewSource(sorted(topics), missing)
    return topics, missing


def _named(topics: Collection[Topic]) -> str:
    return ", ".join(f"{topic} of cluster {cluster}" for cluster, topic in topics)


class TooLarge(LedgerError):
    """A read that would need more memory than it may."""


class Ledger:
    """A store of states and offsets. Any number of threads and processes may use one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # By head, the digest after our last commit: the store has the period of its offsets.
        self._noted: dict[int, str] = {}
        self._period: Period | None = None  # see `count_as`

    @classmethod
    def open(
        cls,
        url: str,
        *,
        create: bool = False,
        accept: Accept | None = None,
        sleep: Callable[[float], None] = time.sleep,
        pauses_s: tuple[float, ...] = PAUSES_S,
        busy_s: float = BUSY_S,
    ) -> Ledger:
        """The ledger at a path of a SQLite file or a URL (`sqlite:///...`, `postgresql://...`).

        Only a writer passes `create`, which also migrates an older schema to the current one,
        unless `accept` raises: see `store.open_store`. A reader reads the older schema as it is.
        Raises NotAStore, SchemaMismatch (exit 3) or StoreUnavailable (exit 75). A transaction
        whose connection fails is tried again after each of `pauses_s`, and each try waits `busy_s`
        for a lock.
        """
        store = open_store(
            url, create=create, accept=accept, sleep=sleep, pauses_s=pauses_s, busy_s=busy_s
        )
        return cls(store)

    @classmethod
    def open_to_count(
        cls,
        url: str,
        fingerprints: Mapping[str, str],
        descriptions: Mapping[str, Mapping[str, object]],
        requested: Requested = NOTHING_REQUESTED,
    ) -> Ledger:
        """The ledger to go on counting these metrics in, created where there is none. Raises
        SettingsChanged where the current generation may not go on with them and the store has an
        older schema: then it is not migrated."""

        def accept(connection: Connection, version: int) -> None:
            require_accepted(connection, version, fingerprints, descriptions, requested)

        return cls.open(url, create=True, accept=accept)

    def close(self) -> None:
        """Close the connections to the database. A second call does nothing."""
        self._store.close()

    def close_idle(self) -> None:
        """Close the connections that nobody uses at the moment, unless there is only one."""
        self._store.close_idle()

    @property
    def store(self) -> Store:
        """The database, for code that reads or merges delta rows by itself."""
        return self._store

    # -- reading ------------------------------------------------------------------------------
    def generations(self) -> tuple[Generation, ...]:
        """All generations, oldest first."""
        return self._store.read(read_generations)

    def generation(self, generation_number: int | None = None) -> Generation:
        """A generation as it is now; the current one for None."""
        return self._store.read(lambda connection: self._generation(connection, generation_number))

    def heads(self, generation: Generation) -> tuple[Head, ...]:
        """The open heads of logs, in the order of their creation."""
        heads = self._store.read(lambda connection: read_heads(connection, *live(generation)))
        return tuple(head for head in heads if not head.is_join)

    def snapshot(self, *, generation: int | None = None) -> Snapshot:
        """Heads, counters, metrics and panes, all at one moment."""

        def work(connection: Connection) -> Snapshot:
            stored = generation_of(connection, self._store.name, generation)
            heads = read_heads(connection, head.c.generation == stored.id)
            last, _ = last_retry(connection, stored.id)
            return Snapshot(stored, heads, read_panes(connection, stored), retry=last)

        return self._store.read(work)

    def quarantine(
        self,
        *,
        generation: int | None = None,
        is_done: bool | None = False,
        after: int = 0,
        limit: int = 1000,
    ) -> tuple[QuarantineRow, ...]:
        """At most `limit` refused events with an id greater than `after`, in order of id.

        is_done: False for those that are open, True for those that a retry has counted, None for
        all.
        """

        def work(connection: Connection) -> tuple[QuarantineRow, ...]:
            stored = self._generation(connection, generation)
            conditions = [quarantine.c.generation == stored.id, quarantine.c.id > after]
            if is_done is not None:
                conditions.append(quarantine.c.done == is_done)
            return read_quarantine(connection, *conditions, limit=limit)

        return self._store.read(work)

    # -- before the first record --------------------------------------------------------------
    def begin(
        self,
        fingerprints: Mapping[str, str],
        descriptions: Mapping[str, Mapping[str, object]],
        *,
        new_generation: bool = False,
        requested: Requested = NOTHING_REQUESTED,
    ) -> Begun:
        """The generation that counts these metrics.

        It is the current one if each of its metrics is unchanged. New metrics start where its
        heads stand now. Variants may be added, and epochs of an experiment that start after all
        counted events. Missing metrics end, and returning ones resume with a hole, where that is
        `requested`. Else SettingsChanged names the differences, or a new generation starts on
        request.
        """
        before: list[int] = []  # the current generation before the first try
        return self._store.write(
            lambda connection, _: begin(
                connection, fingerprints, descriptions, new_generation, before, requested
            )
        )

    def compare(
        self,
        fingerprints: Mapping[str, str],
        descriptions: Mapping[str, Mapping[str, object]],
        requested: Requested = NOTHING_REQUESTED,
    ) -> Begun | None:
        """The result that `begin` would return, without writing; None where it would start the
        first generation. Raises SettingsChanged."""

        def work(connection: Connection) -> Begun | None:
            current = read_generation(connection)
            if current is None:
                return None
            changes = changes_of(connection, current, fingerprints, descriptions, requested)
            return Begun(current, False, changes)

        return self._store.read(work)

    def as_read(
        self,
        fingerprints: Mapping[str, str],
        descriptions: Mapping[str, Mapping[str, object]],
    ) -> Generation:
        """The current generation, its metrics with the settings that this version reads in their
        states where these are not called as in a config: see `former_states.as_read_now`."""

        def work(connection: Connection) -> Generation:
            current = self._generation(connection, None)
            return as_read_now(connection, current, fingerprints, descriptions)

        return self._store.read(work)

    def resolve(self, generation: Generation, partition: Partition, start: int) -> Head:
        """The head of a log; created at offset `start` if there is none, and read back.

        After this, a crash before the first commit changes nothing. Raises LogChanged if another
        log was counted under this name.
        """

        def work(connection: Connection, _: bool) -> Head:
            check_generation(connection, generation, is_exclusive=True)
            log_head = head_of(connection, generation, partition)
            if log_head is None:
                return insert_head(connection, generation, partition, start)
            if log_head.partition != partition:
                raise LogChanged(log_head, partition)
            return log_head

        return self._store.write(work)

    # -- counting -----------------------------------------------------------------------------
    def commit(self, generation: Generation, commit: Commit) -> Head:
        """Count these records, all or none. Returns the head after the commit.

        Raises Fenced, SettingsChanged (exit 3) or StoreUnavailable (exit 75).
        """

        def work(connection: Connection, is_repeated: bool) -> None:
            if is_repeated and has_head(connection, moved):
                return  # an earlier try succeeded, and its answer was lost
            refuse_floor(commit, check_generation(connection, generation))
            refuse_closed(connection, commit)
            if move_head(connection, commit, moved):
                write_delta(connection, commit)
                if self._period and self._noted.get(moved.id) != commit.head.digest:
                    note_offsets(connection, moved, commit.start, self._period)
            elif not (
                is_repeated and has_head(connection, moved)
            ):  # the earlier try succeeded just now
                raise Fenced(f"{commit.head.partition}: no longer at {commit.start}")

        moved = head_after_commit(commit)
        self._store.write(work)
        self._noted[moved.id] = moved.digest
        return moved

    def skip(self, generation: Generation, known_head: Head, to: int) -> Head:
        """Move a head over offsets that the log has lost, and count them as lost."""

        def work(connection: Connection, is_repeated: bool) -> None:
            check_generation(connection, generation)
            if not skip_offsets(connection, known_head, moved) and not (
                is_repeated and has_head(connection, moved)
            ):
                raise Fenced(f"{known_head.partition}: no longer at {known_head.next_offset}")

        moved = head_after_skip(known_head, to)
        self._store.write(work)
        return moved

    def follow(
        self, generation: Generation, known_head: Head, partition: Partition, start: int
    ) -> Head:
        """Close a head whose log is gone or has lost its end; a new one follows `partition`."""

        def work(connection: Connection, _: bool) -> Head:
            check_generation(connection, generation, is_exclusive=True)
            if close_head(connection, known_head):
                return insert_head(connection, generation, partition, start)
            log_head = head_of(connection, generation, partition)
            if log_head is None or log_head.partition != partition:
                raise Fenced(f"{partition}: another worker follows another log")
            return log_head

        return self._store.write(work)

    def raise_floor(self, generation: Generation, floor_ms: int) -> Generation:
        """Drop the panes that start before `floor_ms`, but those of pending events. The floor never
        falls."""

        def work(connection: Connection, _: bool) -> Generation:
            now_ms = check_generation(connection, generation, is_exclusive=True)
            raise_floor(connection, generation, floor_ms)
            return replace(
                generation, floor_ms=floor_ms if now_ms is None else max(now_ms, floor_ms)
            )

        return self._store.write(work)

    def count_as(self, period: Period) -> None:
        """From now on commits note this period beside their offsets: see ledger/periods.py."""
        self._period, self._noted = period, {}

    def history(self, generation: int | None = None) -> tuple[CountedOffsets, ...]:
        """Which version of the program, with which config, counted which offsets of each log."""

        def work(connection: Connection) -> tuple[CountedOffsets, ...]:
            return read_history(connection, self._generation(connection, generation).id)

        return self._store.read(work)

    def note_lateness(self, generation: Generation, lateness_ms: int) -> Generation:
        """Record how long events of an ended window are still expected, for readers."""

        def work(connection: Connection, _: bool) -> Generation:
            note_lateness(connection, generation, lateness_ms)
            return self._generation(connection, generation.id)

        return generation if generation.lateness_ms == lateness_ms else self._store.write(work)

    def _generation(self, connection: Connection, number: int | None) -> Generation:
        return generation_of(connection, self._store.name, number)
