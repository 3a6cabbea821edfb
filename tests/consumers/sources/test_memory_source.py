import pytest
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources.memory_source import (
    Again,
    Assign,
    Deliver,
    Fail,
    Log,
    Lose,
    MemorySource,
    Revoke,
    Stall,
)
from streammetrics_consumers.sources.source import GapError, Listener

ONE, TWO = Partition("c", "t", "i", 1), Partition("c", "t", "i", 2)


class Heads(Listener):
    """A listener that remembers what it was told."""

    def __init__(self, heads: dict[Partition, int] | None = None) -> None:
        self.heads = heads or {}
        self.told: list[tuple[str, list[Partition]]] = []

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        self.told.append(("assigned", partitions))
        return {partition: self.heads.get(partition, 0) for partition in partitions}

    def on_revoked(self, partitions: list[Partition]) -> None:
        self.told.append(("revoked", partitions))

    def on_lost(self, partitions: list[Partition]) -> None:
        self.told.append(("lost", partitions))


def spans(chunks: list[Chunk]) -> list[tuple[int, int, int]]:
    return [(chunk.partition.number, chunk.start, chunk.end) for chunk in chunks]


def test_without_a_script_everything_is_delivered_in_order() -> None:
    source = MemorySource({ONE: Log([b"a", b"b", None]), TWO: Log([b"c"])}, limit=2)
    source.assign(Heads())
    assert spans(source.poll(0)) == [(1, 0, 2), (2, 0, 1)]
    assert spans(source.poll(0)) == [(1, 2, 3)]
    assert source.poll(0) == []


def test_reading_starts_at_the_heads() -> None:
    source = MemorySource({ONE: Log([b"a", b"b"])})
    source.assign(Heads({ONE: 1}))
    (chunk,) = source.poll(0)
    assert (chunk.values, list(chunk.offsets)) == ([b"b"], [1])


@pytest.mark.parametrize("head", [1, 6])
def test_a_head_outside_of_the_log_is_a_gap(head: int) -> None:
    source = MemorySource({ONE: Log([b"a"] * 3, beginning=2)})
    with pytest.raises(GapError):
        source.assign(Heads({ONE: head}))


def test_offsets_may_have_holes_and_the_end_may_lie_past_the_last_record() -> None:
    log = Log([b"a", b"b"], offsets=[3, 7], next_offset=9)
    source = MemorySource({ONE: log}, limit=1)
    source.assign(Heads())
    assert spans(source.poll(0)) == [(1, 0, 4)]
    assert spans(source.poll(0)) == [(1, 4, 9)]
    assert source.ends() == {ONE: 9}


def test_the_script_is_followed_step_by_step() -> None:
    heads = Heads()
    steps = [Stall(), Deliver(1), Again(), Fail(OSError("gone")), Revoke((ONE,)), Assign((TWO,)),
             Lose((TWO,)), Deliver()]  # fmt: skip
    source = MemorySource({ONE: Log([b"a", b"b"]), TWO: Log([b"c"])}, steps, assigned=[ONE])
    source.assign(heads)
    assert source.poll(0) == []
    first = source.poll(0)
    assert spans(first) == [(1, 0, 1)] and source.poll(0) == first
    with pytest.raises(OSError, match="gone"):
        source.poll(0)
    assert [source.poll(0) for _ in range(4)] == [[], [], [], []]
    assert heads.told == [
        ("assigned", [ONE]), ("revoked", [ONE]), ("assigned", [TWO]), ("lost", [TWO]),
    ]  # fmt: skip


def test_a_log_grows() -> None:
    log = Log([b"a"])
    source = MemorySource({ONE: log})
    source.assign(Heads())
    source.poll(0)
    log.append(b"b", None)
    (chunk,) = source.poll(0)
    assert (chunk.values, chunk.end) == ([b"b", None], 3)


def test_it_shows_what_the_reader_did() -> None:
    source = MemorySource({ONE: Log([b"a"])})
    with pytest.raises(SourceError):
        source.poll(0)
    source.assign(Heads())
    source.acknowledge({ONE: 1})
    source.close()
    assert (source.acknowledged, source.closed) == ({ONE: 1}, True)
