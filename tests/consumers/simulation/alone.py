"""The single run of an experiment: a store that counts it and no other one over the same offsets,
with looks at the same offsets. Both stores must say the same of it, to the byte."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, select
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import RETRIES
from streammetrics_consumers.ledger.schema import look, look_reading
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import QuarantineRow
from streammetrics_consumers.model.generation import Requested, experiment_set
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.experiment_looks import look_now
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.replay.retry import retry

from tests.consumers.folded import counted
from tests.consumers.memory_source import Log, MemorySource
from tests.consumers.simulation.actors import make_anew
from tests.consumers.simulation.plots import lenient
from tests.consumers.simulation.upsets import Differs

if TYPE_CHECKING:
    from tests.consumers.simulation.experiments import Course

Place = tuple[Partition, int]


class StoredLook(NamedTuple):
    """A look as it is stored: the next offsets of the logs, the last retry, the newest event time,
    and its readings by comparison."""

    offsets: Mapping[str, int]
    retry: int
    watermark_ms: int | None
    readings: Mapping[str, tuple[object, ...]]


def looks_at(ledger: Ledger, name: str) -> list[StoredLook]:
    """All looks at an experiment, in order."""
    experiment = declared(ledger.generation(), name)
    assert experiment is not None

    def work(connection: Connection) -> list[StoredLook]:
        readings: dict[int, dict[str, tuple[object, ...]]] = defaultdict(dict)
        for row in connection.execute(select(look_reading)):
            readings[row.look][row.comparison] = tuple(row)[2:]
        rows = connection.execute(
            select(look).where(look.c.experiment == experiment.fingerprint).order_by(look.c.place)
        )
        stored_looks = []
        for row in rows:
            offsets = json.loads(row.heads)
            number = offsets.pop(RETRIES, 0)
            stored_looks.append(StoredLook(offsets, number, row.watermark_ms, readings[row.id]))
        return stored_looks

    return ledger.store.read(work)


def verdicts(ledger: Ledger, name: str) -> list[str]:
    """What a reader is told of each comparison of an experiment, as text."""
    answer = read_results(ledger, Query(experiment=name))
    return [f"{effect.comparison} {effect.finding} {effect.looks}" for effect in answer.comparisons]


def states_of(ledger: Ledger, name: str) -> dict[Any, bytes]:
    """The states of an experiment."""
    prefix = f"{experiment_set(name)}/"
    return {key: data for key, data in counted(ledger).states.items() if key[0].startswith(prefix)}


class ChosenEntries(Ledger):
    """A ledger that shows only some of its refused events, so that a retry counts these."""

    chosen: Collection[Place] = ()

    def quarantine(self, **arguments: Any) -> tuple[QuarantineRow, ...]:
        entries = super().quarantine(**arguments)
        return tuple(e for e in entries if (e.partition, e.offset) in self.chosen)


@dataclass
class Alone:
    """The store of one experiment, and how far it was counted."""

    ledger: ChosenEntries
    config: Config
    logs: Mapping[Partition, Log]
    retries: Mapping[int, Collection[Place]]  # events by the retry that counts them
    retry: int = 0

    def begin(self, config: Config, requested: Requested) -> None:
        """Go on with a config."""
        self.config = config
        self.generation = self.ledger.begin(
            config.fingerprints(), config.descriptions, requested=requested
        ).generation

    def advance(self, offsets: Mapping[str, int], last_retry: int) -> None:
        """Count up to these offsets, and what the retries have counted up to this one."""
        for partition, log in self.logs.items():
            if str(partition) in offsets:
                self._count(partition, log, offsets[str(partition)])
        for number in sorted(self.retries):
            if self.retry < number <= last_retry:
                self.ledger.chosen, self.retry = self.retries[number], number
                config = lenient(self.config)
                for _ in retry(config, self.ledger, now_ms=lambda: 0, page=100_000,
                               opener=lambda config, options: MemorySource(self.logs)):  # fmt: skip
                    pass

    def _count(self, partition: Partition, log: Log, end: int) -> None:
        head = self.ledger.resolve(self.generation, partition, log.beginning)
        start = head.next_offset
        if start >= end:
            return
        places = [i for i, offset in enumerate(log.offsets) if start <= offset < end]
        times = log.timestamps_ms
        chunk = Chunk(
            partition,
            start,
            end,
            [log.offsets[i] for i in places],
            [log.values[i] for i in places],
            timestamps_ms=None if times is None else [times[i] for i in places],
        )
        delta = Delta(self.config, partition, start, head.greatest_event_ms)
        for decoded in Decoder(self.config).pieces(chunk):
            delta.add(decoded)
        self.ledger.commit(self.generation, commit_of(head, delta))


Step = tuple[Mapping[str, int], int, int, str]  # offsets, the last retry, an order, and what to do


def steps_of(
    course: Course, looks: Sequence[StoredLook], logs: Collection[Partition]
) -> Iterator[Step]:
    """What has happened to an experiment, unordered."""
    for place, phase in enumerate(course.phases):
        for order, edge in ((0, phase.since), (2, phase.until)):
            if edge is not None:
                stand = {str(log): edge.stand.get(log, 0) for log in logs}
                yield stand, edge.retry, order, ("end" if order else "resume" if place else "add")
    for stored_look in looks:
        yield stored_look.offsets, stored_look.retry, 1, "look"


def require_as_alone(
    ledger: Ledger,
    path: Path,
    name: str,
    course: Course,
    logs: Mapping[Partition, Log],
    configs: tuple[Config, Config],
) -> int:
    """Raise Differs where a store says anything else of an experiment than its single run, whose
    store is made at `path`; answers the number of looks. configs: without any experiment, and with
    this one."""
    looks, retries = looks_at(ledger, name), defaultdict[int, list[Place]](list)
    for row in ledger.quarantine(is_done=True, limit=100_000):
        retries[row.retry or 0].append((row.partition, row.offset))
    single_ledger = ChosenEntries.open(str(path), create=True)
    make_anew(single_ledger.store)
    single_ledger.close()
    with closing(ChosenEntries.open(str(path))) as single_ledger:
        assert isinstance(single_ledger, ChosenEntries)
        run = Alone(single_ledger, configs[0], logs, retries)
        run.begin(configs[0], Requested())
        for step in sorted(steps_of(course, looks, logs), key=_order):
            _take(run, step, name, configs)
        if not course.phases:
            return 0
        ends = {str(partition): log.next_offset for partition, log in logs.items()}
        run.advance(ends, max(retries, default=0))
        _compare(ledger, name, looks, single_ledger)
    return len(looks)


def _order(step: Step) -> tuple[int, int, int]:
    offsets, last_retry, order, _ = step
    return sum(offsets.values()), last_retry, order


def _take(run: Alone, step: Step, name: str, configs: tuple[Config, Config]) -> None:
    offsets, last_retry, _, action = step
    if action == "look":
        run.advance(offsets, last_retry)
        look_now(run.ledger, run.generation.id, None, name)
        return
    beginnings = {str(partition): log.beginning for partition, log in run.logs.items()}
    read = {log: offset for log, offset in offsets.items() if offset > beginnings[log]}
    run.advance(read, last_retry)
    metric_sets = (experiment_set(name),)
    requested = {
        "end": Requested(drop=metric_sets),
        "resume": Requested(resume=metric_sets),
        "add": Requested(),
    }
    run.begin(configs[action != "end"], requested[action])


def _compare(ledger: Ledger, name: str, looks: Sequence[StoredLook], reference: Ledger) -> None:
    if states_of(ledger, name) != states_of(reference, name):
        raise Differs(f"states of {name} differ from those of it alone")
    expected = looks_at(reference, name)
    for look_, expected_look in zip(looks, expected, strict=False):
        if look_._replace(retry=0) != expected_look._replace(retry=0):
            raise Differs(
                f"a look at {name} differs from that at it alone: {look_}, {expected_look}"
            )
    if len(looks) != len(expected):
        raise Differs(f"{len(looks)} looks at {name}, and {len(expected)} at it alone")
    if verdicts(ledger, name) != verdicts(reference, name):
        raise Differs(f"the verdict on {name} differs from that on it alone")
