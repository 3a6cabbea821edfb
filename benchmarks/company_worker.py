"""A worker that counts the log of a company, for `benchmarks.bench_company`.

`python -m benchmarks.company_worker PLAN TALLY` is `streammetrics run --no-serve` over this log. It
adds the CPU time of its main thread to a stage, and writes the sums into the file TALLY as it goes,
so that they outlive a SIGKILL. Where there is no broker, a record is there for the worker as soon
as its time has come.
"""

from __future__ import annotations

import gc
import os
import struct
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.counting import worker
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.counting.housekeeping import IdleCompactor
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker_status import RecordingLedger
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service
from streammetrics_consumers.process.experiment_looks import STEP_S, Looker
from streammetrics_consumers.process.stop import Stop, signals_request
from streammetrics_consumers.sources import Listener, Source
from streammetrics_consumers.sources.open_source import open_source

from benchmarks.company_log import LOG, Plan, Pool

POLLED: Final = {"arrow": 4, "json": 5_000}  # records of a poll, at most
STAGES: Final = ("start", "source", "decode", "metrics", "states", "transaction", "compaction",
                 "looks", "else")  # fmt: skip
COUNTS: Final = ("events", "commits", "bytes", "longest_s", "process_s")


class PacedLog:
    """The source of a plan without a broker."""

    replayable = True

    def __init__(self, plan: Plan) -> None:
        self._plan, self._pool = plan, Pool(Path(plan.pool))
        self._at = 0

    def partitions(self) -> list[Partition]:
        """The one log."""
        return [LOG]

    def beginning(self, partition: Partition) -> int:
        """It has all of its records."""
        return 0

    def ends(self) -> dict[Partition, int]:
        """The number of records by now."""
        return {LOG: self._plan.due(time.time())}

    def assign(self, listener: Listener) -> None:
        """Read from the listener's offset."""
        self._at = listener.on_assigned([LOG])[LOG]

    def seek(self, partition: Partition, offset: int) -> None:
        """Read from this offset."""
        self._at = offset

    def poll(self, timeout_s: float) -> list[Chunk]:
        """Some of the records that are there; waits for one at most this long."""
        ready = self._plan.due(time.time())
        if ready <= self._at:
            time.sleep(min(timeout_s, 0.02))
            return []
        start, self._at = self._at, min(ready, self._at + POLLED[self._plan.form])
        values = self._pool.records(start, self._at)
        return [Chunk(LOG, start, self._at, range(start, self._at), values)]

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Nobody asks for the lag."""

    def close(self) -> None:
        """Nothing is open."""


class Tally:
    """The CPU seconds of the main thread by stage, and counts, in a file."""

    FORM: Final = struct.Struct(f"<{len(STAGES) + len(COUNTS)}d")

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        self.spent = dict.fromkeys(STAGES, 0.0)
        self.counts = dict.fromkeys(COUNTS, 0.0)
        self._stage, self._since = "start", 0.0

    def enter(self, stage: str) -> str:
        """From now on the time is of this stage; returns the stage before."""
        now, before = time.thread_time(), self._stage
        self.spent[before] += now - self._since
        self._stage, self._since = stage, now
        return before

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A block whose time is of a stage."""
        before = self.enter(name)
        try:
            yield
        finally:
            self.enter(before)

    def write(self) -> None:
        """Write all that was counted so far."""
        self.enter(self._stage)
        self.counts["process_s"] = time.process_time()
        os.pwrite(self._file, self.FORM.pack(*self.spent.values(), *self.counts.values()), 0)

    @classmethod
    def read(cls, path: Path) -> dict[str, float]:
        """The sums by name; nothing before the first `write`."""
        data = path.read_bytes() if path.exists() else b""
        values = (
            cls.FORM.unpack(data) if len(data) == cls.FORM.size else (0.0,) * (cls.FORM.size // 8)
        )
        return dict(zip((*STAGES, *COUNTS), values, strict=True))


def install(tally: Tally) -> None:
    """From now on the workers of this process add to a tally."""

    class TimedDecoder(Decoder):
        def pieces(self, chunk: Chunk) -> Iterator[Decoded]:
            pieces = super().pieces(chunk)
            while True:
                with tally.stage("decode"):
                    piece = next(pieces, None)
                if piece is None:
                    return
                yield piece

    class TimedDelta(Delta):
        def add(self, decoded: Decoded) -> None:
            with tally.stage("metrics"):
                super().add(decoded)

    class TimedLedger(RecordingLedger):
        def commit(self, of: Generation, commit: Commit) -> Head:
            began_s = time.monotonic()
            with tally.stage("transaction"):
                moved = super().commit(of, commit)
            tally.counts["events"] += commit.counters.rows
            tally.counts["commits"] += 1
            tally.counts["bytes"] += sum(len(shard.stored) for shard in commit.shards)
            longest_s = max(tally.counts["longest_s"], time.monotonic() - began_s)
            tally.counts["longest_s"] = longest_s
            return moved

    class TimedCompactor(IdleCompactor):
        def step(self, *, idle: bool) -> None:
            with tally.stage("compaction"):
                super().step(idle=idle)

    class TimedLooker(Looker):
        def step(self, most_s: float = STEP_S) -> None:
            with tally.stage("looks"):
                super().step(most_s)

    def timed_commit_of(head: Head, delta: Delta) -> Commit:
        with tally.stage("states"):
            return commit_of(head, delta)

    vars(service).update(RecordingLedger=TimedLedger, Looker=TimedLooker)
    vars(worker).update(
        Decoder=TimedDecoder,
        Delta=TimedDelta,
        IdleCompactor=TimedCompactor,
        commit_of=timed_commit_of,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Count until a signal."""
    plan_file, tally_file = sys.argv[1:] if argv is None else argv
    plan, tally = Plan.read(Path(plan_file)), Tally(Path(tally_file))
    install(tally)
    stop = Stop()

    def opener(config: Config, options: Options) -> Source:
        source = open_source(config, options) if plan.kafka else PacedLog(plan)
        poll = source.poll

        def timed_poll(timeout_s: float) -> list[Chunk]:
            with tally.stage("source"):
                return poll(timeout_s)

        source.poll = timed_poll  # type: ignore[method-assign]
        tally.enter("else")
        return source

    with signals_request(stop):
        config = load_config(Path(plan.config))
        gc.freeze()  # as `run` does
        service.run(
            config, Options(), stop=stop, opener=opener, report=lambda _progress: tally.write()
        )
    tally.write()


if __name__ == "__main__":
    main()
