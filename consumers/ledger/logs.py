"""Which logs a generation counts from: its topics, each of a cluster.

A config that names another topic or another cluster than before would add events that nobody meant
to the counts so far, without a word. So the topics are kept in the store, and another one is
refused unless it was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, insert, select

from consumers.ledger.failures import LedgerError
from consumers.ledger.schema import source
from consumers.ledger.store import Store
from consumers.ledger.write import check_generation
from consumers.model.commit import Head
from consumers.model.generation import Generation
from consumers.model.partition import Partition

Topic = tuple[str, str]  # cluster, topic


class NewSource(LedgerError):
    """A topic, or a cluster, that a generation has not counted from and that nobody asked for."""

    exit_code = 4

    def __init__(self, known: Collection[Topic], found: Collection[Topic]) -> None:
        self.known, self.found = tuple(known), tuple(found)
        super().__init__(
            f"expected the source that the store has counted from ({_named(known)}), came "
            f"{_named(found)}: its events would be added to what is counted. Correct the config, "
            "name another store, start over with --new-generation, or add them with --new-source"
        )


class LogChanged(LedgerError):
    """The log under this name is not the one that was counted: made anew, or another cluster."""

    exit_code = 4

    def __init__(self, known: Head, found: Partition) -> None:
        self.known, self.found = known, found
        was, now = known.partition, found
        what = "cluster" if was.cluster != now.cluster else "log (topic id)"
        flag = "--on-gap skip" if was.cluster == now.cluster else "--new-source"
        pair = (was.cluster, now.cluster) if was.cluster != now.cluster else (
            was.topic_id, now.topic_id)  # fmt: skip
        super().__init__(
            f"{found}: this is another {what} than the one counted up to offset "
            f"{known.next_offset}: it was {pair[0]}, now it is {pair[1]}; its offsets mean other "
            "events. Read the old one to its end, start with --new-generation or another store, "
            f"or add this one to what is counted with {flag}"
        )


def unknown_topics(
    store: Store, of: Generation, partitions: Collection[Partition]
) -> Sequence[Topic]:
    """The topics of these logs that a generation has not counted from; none where it has counted
    from no log at all."""
    known = store.read(lambda connection: _known(connection, of))
    return sorted(_topics(partitions) - known) if known else ()


def require_known(store: Store, of: Generation, partitions: Collection[Partition]) -> None:
    """Raise NewSource where there are `unknown_topics`."""
    missing = unknown_topics(store, of, partitions)
    if missing:
        raise NewSource(sorted(store.read(lambda connection: _known(connection, of))), missing)


def count_from(
    store: Store, of: Generation, partitions: Collection[Partition], *, new: bool = False
) -> None:
    """Keep that a generation counts from these logs, all of them that its config names.

    Raises NewSource where there are `unknown_topics`, unless `new` says that they are meant.
    """

    def work(connection: Connection, _: bool) -> None:
        check_generation(connection, of, alone=True)
        known = _known(connection, of)
        missing = sorted(_topics(partitions) - known)
        if known and missing and not new:
            raise NewSource(sorted(known), missing)
        for cluster, topic in missing:
            connection.execute(
                insert(source).values(generation=of.id, cluster=cluster, topic=topic)
            )

    if _topics(partitions) - store.read(lambda connection: _known(connection, of)):
        store.write(work)


def _known(connection: Connection, of: Generation) -> frozenset[Topic]:
    query = select(source.c.cluster, source.c.topic).where(source.c.generation == of.id)
    return frozenset((row.cluster, row.topic) for row in connection.execute(query))


def _topics(partitions: Collection[Partition]) -> frozenset[Topic]:
    return frozenset((partition.cluster, partition.topic) for partition in partitions)


def _named(topics: Collection[Topic]) -> str:
    return ", ".join(f"{topic} of cluster {cluster}" for cluster, topic in topics)
