"""Kafka topics as a source, over kafka-python. Only this package imports that library.

Exactly-once counting depends on these points, where the client's own behavior may differ:

* Reading starts at the ledger's head: we seek after every assignment, and ignore Kafka's committed
  offsets. `auto_offset_reset` is "none", so a lost offset is an error (GapError).
* Values stay bytes. A deserializer that raises would make the third poll hang.
* After any exception from a poll but that of an unreadable batch that is skipped, this source is
  unusable; the service opens another one.
* The client calls its listener from its IO thread, during our call of `poll`. The listener uses
  only the ledger and `seek`.
* `read_committed`: control records and aborted records leave holes in the offsets.
* The client fetches by topic name, so it reads a topic that was deleted and created again without
  an error. `confirm` asks for the id before records are committed.
* The client loses a join response that arrives between two polls: see `kafka_client.Group`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar, cast

import kafka.errors as errors
from kafka import ConsumerRebalanceListener, OffsetAndMetadata, TopicPartition

from streammetrics_consumers.config.source import SourceConfig
from streammetrics_consumers.model.chunk import Chunk, Headers, Lazy, SourceError
from streammetrics_consumers.model.partition import Name, Partition
from streammetrics_consumers.sources import (
    NO_SKIPS,
    Disconnected,
    GapError,
    Listener,
    NotLetIn,
    Skips,
    UnreadableBatch,
)
from streammetrics_consumers.sources.kafka import (
    MAX_POLL_S,
    PartitionId,
    Topic,
    TopicReading,
    TopicSource,
    found_topics,
    last_inside,
)
from streammetrics_consumers.sources.kafka.client_settings import (
    assignment_strategies,
    kafka_python_settings,
    masked,
)
from streammetrics_consumers.sources.kafka.kafka_client import (
    ASSIGNORS,
    DEFAULTS,
    FATAL,
    REFUSALS,
    Consumer,
    DescribedTopics,
    Fetches,
    connected,
)
from streammetrics_consumers.sources.kafka.record_batches import BatchLimits
from streammetrics_consumers.sources.kafka.record_runs import (
    NO_HEADERS,
    Record,
    RecordRun,
    joined,
)

T = TypeVar("T")

log = logging.getLogger(__name__)

CLOSE_MS: Final = 3000


class KafkaSource(TopicSource):
    """A `TopicSource` over kafka-python."""

    def __init__(
        self, config: SourceConfig, names: Sequence[Name] | None = None, skips: Skips = NO_SKIPS
    ) -> None:
        super().__init__(config, names)
        self._skips, self._servers = skips, config.bootstrap_servers
        self._settings = kafka_python_settings(config, DEFAULTS)
        self._settings["partition_assignment_strategy"] = [
            ASSIGNORS[name] for name in assignment_strategies(config)
        ]
        if names is not None:
            self._settings["group_id"] = None
        self._client = connected(self._settings, config.bootstrap_servers)
        try:
            self._described_topics = DescribedTopics(
                self._settings, config.bootstrap_servers, self.topics
            )
        except BaseException:
            self._client.close()
            raise
        try:
            limits = BatchLimits(config.max_batch_bytes)
            self._consumer = Consumer(
                limits, **self._settings, kafka_client=lambda **_: self._client
            )
            topics = found_topics(self.topics, self._described)
            for name in self.topics:  # without metadata, a group's first assignment is empty
                self._ask(partial(self._consumer.partitions_for_topic, name))
            self._reading = TopicReading(self._client.cluster.cluster_id or "kafka", topics)
        except BaseException:
            self._described_topics.close()
            self._client.close()
            raise
        log.info("kafka: connected with %s", masked(self._settings))

    # -- offsets of the log -------------------------------------------------------------------
    def beginning(self, partition: Partition) -> int:
        """The first offset that the broker still holds."""
        partition_id = _topic_partition(partition)
        return int(
            self._ask(lambda: self._consumer.beginning_offsets([partition_id]))[partition_id]
        )

    def ends(self) -> dict[Partition, int]:
        """The offset after the last committed record of each partition."""
        partition_ids = {_topic_partition(partition): partition for partition in self.partitions()}
        ends = self._ask(lambda: self._consumer.end_offsets(list(partition_ids)))
        return {partition_ids[partition_id]: int(end) for partition_id, end in ends.items()}

    def offset_at(self, partition: Partition, time_ms: int) -> int:
        """The first offset whose record timestamp is at least `time_ms`, else the end."""
        partition_id = _topic_partition(partition)
        answer = self._ask(lambda: self._consumer.offsets_for_times({partition_id: time_ms}))[
            partition_id
        ]
        return self.ends()[partition] if answer is None else int(answer.offset)

    # -- reading ------------------------------------------------------------------------------
    def assign(self, listener: Listener) -> None:
        """Join the group, or assign the partitions that `names` lists."""
        self._reading.listen(listener)
        if self._names is None:
            rebalance = _Rebalance(self._assigned, self._released)
            self._consumer.subscribe(list(self.topics), listener=rebalance)
            return
        partition_ids = [
            TopicPartition(*partition_id) for partition_id in self._reading.named(self._names)
        ]
        self._consumer.assign(partition_ids)
        self._assigned(partition_ids)
        self._reading.raise_failure()

    def poll(self, timeout_s: float) -> list[Chunk]:
        """The records that arrived, by partition. After an exception, close this source."""
        reading = self._reading
        before = reading.given.copy()
        try:
            batches = self._consumer.poll(timeout_ms=round(min(timeout_s, MAX_POLL_S) * 1000))
        except UnreadableBatch as fault:
            reading.raise_failure()
            return self._left_out(fault, before)
        except Exception as error:
            reading.raise_failure()
            raise self._explained(error) from error
        reading.raise_failure()
        if not batches:
            return self._moved(before)
        chunks = []
        with reading.lock:
            self._seek_again(before)
            for partition_id, records in batches.items():
                if self._is_kept(tuple(partition_id), before):
                    chunks.append(self._chunk(tuple(partition_id), records))
        return chunks

    def _left_out(self, fault: UnreadableBatch, before: Counter[PartitionId]) -> list[Chunk]:
        """The chunk that replaces an unreadable batch, if it may be skipped; otherwise its error is
        raised."""
        partition_id, reading = (fault.topic, fault.partition), self._reading
        if (*partition_id, fault.first) not in self._skips:
            raise fault
        last = self._last_of(fault) if fault.last is None else fault.last
        with reading.lock:
            self._seek_again(before)
            if not self._is_kept(partition_id, before):
                return []
            self._seek(partition_id, last + 1)
            return [reading.left_out(partition_id, fault.first, last)]

    def _last_of(self, fault: UnreadableBatch) -> int:
        """The last offset for which the broker sends this batch."""
        partition = TopicPartition(fault.topic, fault.partition)
        end = int(self._ask(lambda: self._consumer.end_offsets([partition]))[partition])
        with closing(Fetches(self._settings, self._servers, partition)) as fetches:
            base, after = fetches.bases(fault.first)
            if after is not None and after <= fault.first:
                raise SourceError(
                    f"kafka: {fault.topic}/{fault.partition} offset {fault.first}: a damaged batch "
                    "before it fills each fetch; raise max_partition_fetch_bytes"
                )

            def is_inside(offset: int) -> bool:
                return base is not None and base <= offset and fetches.bases(offset)[0] == base

            return last_inside(is_inside, fault.first, end if after is None else min(after, end))

    def _cleanup_policies(self) -> Mapping[str, str]:
        return self._described_topics.cleanup_policies()

    def _seek(self, partition_id: PartitionId, offset: int) -> None:
        self._consumer.seek(TopicPartition(*partition_id), offset)

    def _moved(self, before: Counter[PartitionId]) -> list[Chunk]:
        """Empty chunks for positions that moved past control records and aborted records."""
        reading, chunks = self._reading, []
        for partition_id in list(reading.positions):
            try:
                position = self._consumer.position(TopicPartition(*partition_id), timeout_ms=0)
            except Exception as error:
                raise self._explained(error) from error
            with reading.lock:
                is_kept = self._is_kept(partition_id, before)
                if is_kept and position is not None and position > reading.positions[partition_id]:
                    chunks.append(reading.chunk(partition_id, position))
        with reading.lock:
            self._seek_again(before)
        return chunks

    def _chunk(self, partition_id: PartitionId, records: Sequence[Record | RecordRun]) -> Chunk:
        """The chunk of what a poll returned: runs, or records where the layout is unknown."""
        runs = [record for record in records if isinstance(record, RecordRun)]
        runs = runs or [RecordRun.collected(cast("Sequence[Record]", records))]
        headers, count = dict[int, Headers](), 0
        for run in runs:
            headers.update((count + i, pairs) for i, pairs in run.headers.items())
            count += len(run)
        return self._reading.chunk(
            partition_id,
            runs[-1].offsets[-1] + 1,
            joined([run.offsets for run in runs]),
            joined([run.values for run in runs]),
            joined([run.timestamps_ms for run in runs]),
            joined([run.keys for run in runs]),
            Lazy(count, lambda i: headers.get(i, NO_HEADERS)),
        )

    def _is_kept(self, partition_id: PartitionId, before: Counter[PartitionId]) -> bool:
        reading = self._reading
        return (
            partition_id in reading.positions
            and reading.given[partition_id] == before[partition_id]
        )

    def _seek_again(self, before: Counter[PartitionId]) -> None:
        """Seek again in partitions assigned during the poll: the client may have set their position
        after our seek, and the returned records belong to an earlier assignment."""
        for partition_id, position in self._reading.positions.items():
            if not self._is_kept(partition_id, before):
                self._consumer.seek(TopicPartition(*partition_id), position)

    # -- monitoring ---------------------------------------------------------------------------
    def _known_end(self, partition_id: PartitionId) -> int | None:
        with suppress(errors.KafkaError):  # it was revoked a moment ago
            end = self._consumer.highwater(TopicPartition(*partition_id))
            return None if end is None else int(end)
        return None

    def is_connected(self) -> bool:
        """Whether we are connected to the leaders of our partitions. A fetch is always pending
        there, and the client closes a connection without an answer."""
        cluster = self._client.cluster
        partition_ids = [
            TopicPartition(*partition_id) for partition_id in list(self._reading.positions)
        ]
        leaders = {cluster.leader_for_partition(partition_id) for partition_id in partition_ids}
        return all(leader is not None and self._client.connected(leader) for leader in leaders)

    # -- Kafka's own offsets ------------------------------------------------------------------
    def _commit(self, offsets: Mapping[PartitionId, int]) -> None:
        self._consumer.commit_async(self._committable(offsets))

    def _committable(
        self, offsets: Mapping[PartitionId, int]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        return {
            TopicPartition(*partition_id): OffsetAndMetadata(offset, "", -1)
            for partition_id, offset in offsets.items()
        }

    def close(self) -> None:
        """Leave the group. The listener gets no more calls."""
        self._reading.listen(None)
        offsets = self._committable(self._reading.acknowledged())
        self._reading.positions.clear()
        with suppress(Exception):  # see acknowledge
            if offsets:
                self._consumer.commit(offsets, timeout_ms=CLOSE_MS)
        try:
            self._consumer.close(autocommit=False, timeout_ms=CLOSE_MS)
        except Exception as error:
            log.debug("kafka: closing: %s", error)
            self._client.close()
        self._described_topics.close()

    # -- rebalances, in the client's thread ---------------------------------------------------
    def _assigned(self, partition_ids: Sequence[TopicPartition]) -> None:
        heads = self._reading.assigned([tuple(partition_id) for partition_id in partition_ids])
        with self._reading.lock:
            self._reading.start(heads)
            for partition_id, head in heads.items():
                self._consumer.seek(TopicPartition(*partition_id), head)

    def _released(self, partition_ids: Sequence[TopicPartition], lost: bool) -> None:
        self._reading.released([tuple(partition_id) for partition_id in partition_ids], lost=lost)

    # -- topics and errors --------------------------------------------------------------------
    def _described(self) -> dict[str, Topic]:
        return self._ask(self._described_topics.ask)

    def _ask(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except errors.KafkaError as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> SourceError:
        if isinstance(error, MemoryError):
            return SourceError("kafka: out of memory while reading; give the process more")
        if isinstance(error, errors.OffsetOutOfRangeError):
            for partition_id, offset in error.args[0].items():
                return self._gap(partition_id, offset, None)
        if isinstance(error, errors.LogTruncationError):
            for partition_id, divergence in error.divergent_offsets.items():
                end = None if divergence is None else divergence.offset
                head = self._reading.positions.get(tuple(partition_id), 0)
                return self._gap(partition_id, head, end)
        if isinstance(error, errors.UnsupportedCodecError):
            return SourceError(
                f"kafka: a batch is compressed with a codec that is not installed ({error}); "
                "install it with: pip install '.[kafka]' in a clone of streammetrics"
            )
        if isinstance(error, REFUSALS):
            return NotLetIn(f"kafka: {error!r}")
        if isinstance(error, FATAL):
            return SourceError(f"kafka: {error!r}")
        return Disconnected(f"kafka: {error!r}")

    def _gap(self, partition_id: TopicPartition, head: int, end: int | None) -> GapError:
        self.confirm()  # offsets of a replaced topic are no gap
        partition = self._reading.partition(tuple(partition_id))
        first = self.beginning(partition)
        return GapError(partition, head, first, self.ends()[partition] if end is None else end)


@dataclass
class _Rebalance(ConsumerRebalanceListener):  # type: ignore[misc]  # the client ships no types
    """Forwards rebalance callbacks, in the client's thread."""

    assigned: Callable[[Sequence[TopicPartition]], None]
    released: Callable[[Sequence[TopicPartition], bool], None]

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.assigned(sorted(assigned))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.released(sorted(revoked), False)

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        self.released(sorted(lost), True)


def _topic_partition(partition: Partition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.number)
