"""`run` over logs in memory, on a clock of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop

from tests.consumers.memory_source import Log, MemorySource, Step
from tests.consumers.small_config import config, event

ONE, TWO = (Partition("test", "events", "id", n) for n in range(2))
UNTIL_END = Options(until_end=True)
GOOD = event()


class Clock:
    """Time passes when someone waits, and a little at every look."""

    def __init__(self, tick_s: float = 0.0) -> None:
        self.now_s, self.tick_s = 0.0, tick_s
        self.waits: list[float] = []

    def monotonic(self) -> float:
        self.now_s += self.tick_s
        return self.now_s


class PatientStop(Stop):
    """Waits on the clock of the test."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def wait(self, seconds: float) -> bool:
        self.clock.waits.append(seconds)
        self.clock.now_s += seconds
        return self.requested


class Run:
    """Runs a config over logs in memory; each opening of the source takes the next script."""

    def __init__(self, folder: Path, logs: dict[Partition, Log], **parts: str) -> None:
        settings = config(**parts)
        store = replace(settings.store, url=str(folder / "run.db"))
        self.config = replace(settings, store=store)
        self.logs = logs
        self.clock = Clock()
        self.stop = PatientStop(self.clock)
        self.watch = StatusRecorder(self.clock.monotonic)
        self.sources: list[MemorySource] = []
        self.progress: list[Progress] = []
        self.replayable = True

    def __call__(
        self,
        options: Options = UNTIL_END,
        *scripts: Iterable[Step],
        config: Config | None = None,
        failures: Sequence[Exception] = (),
        new_generation: bool = False,
    ) -> None:
        waiting, failing = list(scripts), list(failures)

        def opener(config: Config, options: Options) -> MemorySource:
            if failing:
                raise failing.pop(0)
            script = waiting.pop(0) if waiting else ()
            source = MemorySource(self.logs, script, replayable=self.replayable)
            self.sources.append(source)
            return source

        settings = config or self.config
        if new_generation:  # as `streammetrics run` does it
            with closing(Ledger.open(settings.store.url)) as ledger:
                service.begin(ledger, settings, new_generation=True)
        service.run(
            settings,
            options,
            stop=self.stop,
            report=self.progress.append,
            monotonic=self.clock.monotonic,
            opener=opener,
            status=self.watch,
        )

    def opener(self, config: Config, options: Options) -> MemorySource:
        """The logs, without a script."""
        return MemorySource(self.logs)

    def snapshot(self) -> Snapshot:
        with closing(Ledger.open(self.config.store.url)) as ledger:
            return ledger.snapshot()

    def heads(self) -> list[tuple[int, int]]:
        return [(head.start_offset, head.next_offset) for head in self.snapshot().heads]


def log(n: int, value: bytes | None = GOOD, **more: object) -> Log:
    return Log([value] * n, **more)  # type: ignore[arg-type]


def worker_of(
    run_config: Config,
    ledger: Ledger,
    source: MemorySource,
    *,
    monotonic: Callable[[], float],
    options: Options = UNTIL_END,
    status: StatusRecorder | None = None,
) -> Worker:
    """A worker that has written down where it starts; `assign` of its source is next."""
    generation = service.begin(ledger, run_config).generation
    worker = Worker(
        run_config,
        ledger,
        generation,
        source,
        options,
        stop=Stop(),
        monotonic=monotonic,
        status=status,
    )
    worker.prepare()
    return worker


def assigned(*given: Any, **keywords: Any) -> Worker:
    """The same with its partitions."""
    worker = worker_of(*given, **keywords)
    worker.source.assign(worker)
    return worker
