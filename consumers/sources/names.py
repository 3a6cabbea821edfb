"""Partitions by the names that a person gives them: see `source.Name`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from consumers.sources.source import Name, Partition


def name_of(word: str) -> Name | None:
    """What a word of a flag means; None where it means nothing.

    >>> name_of("3"), name_of(" clicks/0"), name_of("clicks")
    (3, 'clicks/0', None)
    """
    topic, slash, number = word.strip().rpartition("/")
    if not number.isascii() or not number.isdecimal() or len(number) > 9 or (slash and not topic):
        return None
    return f"{topic}/{int(number)}" if slash else int(number)


def names_without(names: Collection[Name], there: Collection[Partition]) -> list[Name]:
    """The names that mean none of these partitions, numbers first."""
    missing = [name for name in set(names) if not any(one.is_named([name]) for one in there)]
    return sorted(missing, key=lambda name: (isinstance(name, str), name))


def names_of(partitions: Collection[Partition]) -> str:
    """The shortest names that tell these partitions apart, to read."""
    one_topic = len({partition.topic for partition in partitions}) < 2
    return ", ".join(str(one.number) if one_topic else str(one) for one in _ordered(partitions))


def _ordered(partitions: Collection[Partition]) -> Sequence[Partition]:
    return sorted(partitions, key=lambda one: (one.topic, one.number))
