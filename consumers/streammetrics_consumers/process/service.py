"""A counting process: opens the ledger and the source, counts, and reopens the source on failure.

`run` returns when it was stopped or has reached the end. Otherwise it raises ConfigError,
LedgerError, GapError, SourceError or ErrorBudgetExceeded.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Final

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.retention import KEEP_WINDOWS, windows_dropped
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.counting.worker_status import RecordingLedger, StatusRecorder
from streammetrics_consumers.ledger.failures import NoStoreYet, SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.periods import Period
from streammetrics_consumers.ledger.schema import VERSION
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.generation import NOTHING_REQUESTED, Begun, Generation, Requested
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.model.version import program_version
from streammetrics_consumers.process.experiment_looks import Looker
from streammetrics_consumers.process.hook_sending import sending
from streammetrics_consumers.process.quarantine_topic import forwarding
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.sources import Disconnected, GapError, Source
from streammetrics_consumers.sources.open_source import open_source

log = logging.getLogger(__name__)

ANSWER_S: Final = 3.0  # for a source to respond after a stop signal
Opener = Callable[[Config, Options], Source]
FIRST_PAUSE_S: Final = 0.5
GREATEST_PAUSE_S: Final = 30.0
FIRST_TRIES: Final = 6  # about half a minute, if nothing was ever read


def open_ledger(
    config: Config,
    *,
    new_generation: bool = False,
    requested: Requested = NOTHING_REQUESTED,
) -> Ledger:
    """The ledger of a config, to count into. A store of an older schema is migrated, if this config
    may go on with it. Raises SettingsChanged (exit 3) where it may not: then the store is as it
    was."""
    if new_generation:
        return Ledger.open(config.store.url, create=True)
    with suppress(NoStoreYet), closing(Ledger.open(config.store.url)) as ledger:
        dropped = windows_dropped(ledger, config)
        if dropped and not requested.drop_windows:
            raise SettingsChanged([dropped], KEEP_WINDOWS)
    return Ledger.open_to_count(
        config.store.url, config.fingerprints(), config.descriptions, requested
    )


def begin(
    ledger: Ledger,
    config: Config,
    *,
    new_generation: bool = False,
    requested: Requested = NOTHING_REQUESTED,
) -> Begun:
    """The generation that this config may write to. Raises SettingsChanged (exit 3)."""
    begun = ledger.begin(
        config.fingerprints(),
        config.descriptions,
        new_generation=new_generation,
        requested=requested,
    )
    ledger.note_lateness(begun.generation, config.windows.lateness_s * 1000)
    ledger.count_as(Period(program_version(), VERSION, config.hash, config.settings))
    number = begun.generation.id
    if begun.created:
        log.info("generation %d starts", number)
    changes = begun.changes
    for name in changes.ended_experiments:
        message = f"experiment {name} ends" if name else "the running experiment ends"
        log.warning("generation %d: %s", number, message)
    for name in changes.moved_ends:
        log.info("generation %d: %s ends at another time", number, name)
    for names, template in (
        (changes.added, "metric %s starts at the offsets reached so far"),
        (changes.ended, "metric %s ends at the offsets reached so far"),
        (changes.restarted, "metric %s is counted anew from the offsets reached so far"),
        (changes.resumed, "metric %s resumes, with a hole up to the offsets reached so far"),
        (changes.variants, "variant %s is counted from now on"),
        (changes.epochs, "a new epoch of the experiment starts at %s"),
    ):
        for name in names:
            log.info("generation %d: %s", number, template % name)
    return begun


def run(
    config: Config,
    options: Options,
    *,
    stop: Stop,
    report: Callable[[Progress], None] = lambda progress: None,
    monotonic: Callable[[], float] = time.monotonic,
    clock: Callable[[], float] = time.time,
    opener: Opener = open_source,
    status: StatusRecorder | None = None,
) -> None:
    """Count until stopped, or until the end with `options.until_end`. For errors see the module.

    After each step of a worker, it reports progress, and takes a look at the experiment if one is
    due.
    """
    status = status or StatusRecorder(monotonic)
    with stop.interrupting():
        opened = open_ledger(config, requested=options.requested)
    with (
        closing(opened),
        forwarding(config, opened.store) as moved,
        sending(config.hooks, opened.store, clock),
    ):
        ledger = RecordingLedger(opened.store, status, monotonic, moved)
        generation = begin(ledger, config, requested=options.requested).generation
        every_s = {name: experiment.look_every_s for name, experiment in config.experiments.items()}
        looker = Looker(
            ledger, generation.id, every_s, monotonic=monotonic, clock=clock, hooks=config.hooks
        )
        backoff = Backoff()
        while not stop.requested:
            try:
                status.opening()
                with stop.ending_within(ANSWER_S):
                    source = opener(config, options)
                with closing(source):
                    worker = Worker(
                        config,
                        ledger,
                        generation,
                        source,
                        options,
                        stop=stop,
                        monotonic=monotonic,
                        status=status,
                    )
                    for progress in _steps(worker, stop):
                        if progress.rows:
                            backoff.reset()
                        report(progress)
                        if worker.has_committed:  # looks read many states
                            looker.step()
                if options.until_end and not stop.requested:
                    looker.last()
                return
            except GapError as gap:
                if options.on_gap == "stop":
                    raise
                with suppress(Fenced):  # another worker was first; try again
                    _skip(ledger, generation, gap)
            except Disconnected as error:
                if backoff.is_hopeless:
                    raise
                pause_s = backoff.pause_s()
                log.warning("%s; reopening the source in %g s", error, pause_s)
                status.failed()
                stop.wait(pause_s)


def _steps(worker: Worker, stop: Stop) -> Iterator[Progress]:
    """Prepare a worker and run it, unless a stop is requested before."""
    with stop.ending_within(ANSWER_S):
        worker.prepare()
    if not stop.requested:
        yield from worker.run()


def _skip(ledger: Ledger, generation: Generation, gap: GapError) -> None:
    """Continue after a gap, and log the loss."""
    for head in ledger.heads(generation):
        if head.partition != gap.partition or head.next_offset != gap.head:
            continue
        if gap.head < gap.beginning:
            ledger.skip(generation, head, gap.beginning)
            log.warning("%s; skipping %d lost offsets", gap, gap.beginning - gap.head)
        else:
            ledger.follow(generation, head, gap.partition, gap.end)
            log.warning("%s; the log has lost its end, continuing at %d", gap, gap.end)


class Backoff:
    """Pauses that double until something is read.

    >>> backoff = Backoff()
    >>> backoff.pause_s(), backoff.pause_s(), backoff.pause_s()
    (0.5, 1.0, 2.0)
    >>> backoff.reset()
    >>> backoff.pause_s()
    0.5
    """

    def __init__(self) -> None:
        self._failures = 0
        self._ever_read = False

    @property
    def is_hopeless(self) -> bool:
        """Whether nothing was ever read after the maximum number of attempts."""
        return not self._ever_read and self._failures >= FIRST_TRIES

    def reset(self) -> None:
        """Start over after a successful read."""
        self._failures = 0
        self._ever_read = True

    def pause_s(self) -> float:
        """The pause before the next attempt."""
        pause_s = min(FIRST_PAUSE_S * 2.0**self._failures, GREATEST_PAUSE_S)
        self._failures += 1
        return pause_s
