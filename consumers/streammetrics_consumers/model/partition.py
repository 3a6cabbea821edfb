"""A log of events, and the names that people give it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, TypeAlias

# A partition as a user names it: its number, in every topic that is read, or `clicks/0`.
Name: TypeAlias = int | str

# The cluster of logs fed by a Spark streaming query: an offset is the number of one of its
# batches, and no source can read it again.
SPARK: Final = "spark"


@dataclass(frozen=True, order=True, slots=True)
class Partition:
    """One ordered log. Equal partitions are the same log with the same offsets.

    `topic_id` distinguishes a log from a later one with the same name: Kafka's topic id, or a
    digest of the beginning of a file. If a ledger knows this cluster, topic and number under
    another `topic_id`, the log was recreated, and counting must stop.
    """

    cluster: str
    topic: str
    topic_id: str
    number: int

    def __str__(self) -> str:
        """The name that results use as the key of `offsets`, such as `clicks.jsonl/0`."""
        return f"{self.topic}/{self.number}"

    def is_named(self, names: Collection[Name]) -> bool:
        """Whether one of these names matches it.

        >>> Partition("c", "clicks", "1", 0).is_named(["views/0"])
        False
        """
        return self.number in names or str(self) in names


def name_of(word: str) -> Name | None:
    """The partition name in one word of a flag; None if it is not one.

    >>> name_of("3"), name_of(" clicks/0"), name_of("clicks")
    (3, 'clicks/0', None)
    """
    topic, slash, number = word.strip().rpartition("/")
    if not number.isascii() or not number.isdecimal() or len(number) > 9 or (slash and not topic):
        return None
    return f"{topic}/{int(number)}" if slash else int(number)


def names_without(names: Collection[Name], partitions: Collection[Partition]) -> list[Name]:
    """The names that match none of these partitions, numbers first."""
    missing = [
        name
        for name in set(names)
        if not any(partition.is_named([name]) for partition in partitions)
    ]
    return sorted(missing, key=lambda name: (isinstance(name, str), name))


def names_of(partitions: Collection[Partition]) -> str:
    """The shortest names that distinguish these partitions, as text."""
    one_topic = len({partition.topic for partition in partitions}) < 2
    ordered = sorted(partitions, key=lambda partition: (partition.topic, partition.number))
    return ", ".join(
        str(partition.number) if one_topic else str(partition) for partition in ordered
    )
