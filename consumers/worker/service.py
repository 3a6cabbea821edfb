"""A process that counts: opens the ledger and the source, works, and opens the source again.

    run(config, options)           in this process, until stopped or at the end
    supervise(command, n, stop)    n processes of one Kafka group on this machine

`run` returns when it was stopped or has reached the end, and raises otherwise: ConfigError,
LedgerError, GapError, SourceError or TooManyBad.
"""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Final

from consumers.config.config import Config
from consumers.ledger.ledger import Fenced, Ledger
from consumers.ledger.rows import Begun, Generation
from consumers.sources.open_source import open_source
from consumers.sources.source import GapError, Source
from consumers.worker.reconnect import Backoff, Disconnected
from consumers.worker.stop import Stop
from consumers.worker.worker import Options, Progress, Worker

log = logging.getLogger(__name__)

END_LIMIT_S: Final = 20.0  # for a worker to commit and leave, after it was asked to
RESTARTS: Final = 5  # of one worker that a signal has killed

Opener = Callable[[Config, Options], Source]


def begin(ledger: Ledger, config: Config, *, new_generation: bool = False) -> Begun:
    """The generation that this config may write to. Raises SettingsChanged (exit 3)."""
    begun = ledger.begin(config.fingerprints(), config.descriptions, new_generation=new_generation)
    ledger.note_lateness(begun.generation, config.windows.lateness_s * 1000)
    number = begun.generation.id
    if begun.created:
        log.info("generation %d starts", number)
    for name in begun.added:
        log.info("generation %d: metric %s starts at the offsets reached so far", number, name)
    for name in begun.ended:
        log.info("generation %d: metric %s ends at the offsets reached so far", number, name)
    return begun


def run(
    config: Config,
    options: Options,
    *,
    stop: Stop,
    new_generation: bool = False,
    report: Callable[[Progress], None] = lambda progress: None,
    monotonic: Callable[[], float] = time.monotonic,
    opener: Opener = open_source,
) -> None:
    """Count until stopped, or until the end with `options.until_end`. Raises what went wrong."""
    with closing(Ledger.open(config.store.url, create=True)) as ledger:
        generation = begin(ledger, config, new_generation=new_generation).generation
        backoff = Backoff()
        while not stop.requested:
            try:
                _work(config, options, ledger, generation, backoff, stop, report, monotonic, opener)
                return
            except GapError as gap:
                if options.on_gap == "stop":
                    raise
                with suppress(Fenced):  # another worker was first; look again
                    _skip(ledger, generation, gap)
            except Disconnected as error:
                if backoff.is_hopeless:
                    raise
                pause_s = backoff.pause_s()
                log.warning("%s; opening the source again in %g s", error, pause_s)
                stop.wait(pause_s)


def _work(
    config: Config,
    options: Options,
    ledger: Ledger,
    generation: Generation,
    backoff: Backoff,
    stop: Stop,
    report: Callable[[Progress], None],
    monotonic: Callable[[], float],
    opener: Opener,
) -> None:
    """One life of a source."""

    def reported(progress: Progress) -> None:
        if progress.rows:
            backoff.reset()
        report(progress)

    with closing(opener(config, options)) as source:
        worker = Worker(
            config,
            ledger,
            generation,
            source,
            options,
            stop=stop,
            monotonic=monotonic,
            report=reported,
        )
        worker.prepare()
        worker.run()


def _skip(ledger: Ledger, generation: Generation, gap: GapError) -> None:
    """Go on behind a gap, and say what is lost."""
    for head in ledger.heads(generation):
        if head.partition != gap.partition or head.next_offset != gap.head:
            continue
        if gap.head < gap.beginning:
            ledger.skip(generation, head, gap.beginning)
            log.warning("%s; %d offsets are skipped", gap, gap.beginning - gap.head)
        else:
            ledger.follow(generation, head, gap.partition, gap.end)
            log.warning("%s; it lost its end, reading on at %d", gap, gap.end)


def supervise(command: Sequence[str], workers: int, stop: Stop) -> int:
    """Run `command` in `workers` processes until all have ended; answers the exit code.

    A worker that a signal has killed is started again, since nothing can be lost or doubled. One
    that ends with an error ends the others.
    """
    running = {i: _started(command) for i in range(workers)}
    restarts = dict.fromkeys(running, 0)
    code = 0
    asked_s: float | None = None
    while running:
        if stop.wait(0.05) and asked_s is None:
            asked_s = time.monotonic()
            for process in running.values():
                process.terminate()
        if asked_s is not None:
            time.sleep(0.05)
            if time.monotonic() - asked_s > END_LIMIT_S:
                for process in running.values():
                    process.kill()
        for i, process in list(running.items()):
            ended = process.poll()
            if ended is None:
                continue
            if ended < 0 and asked_s is None and restarts[i] < RESTARTS:
                restarts[i] += 1
                log.warning("worker %d was killed by signal %d; starting it again", i, -ended)
                running[i] = _started(command)
                continue
            del running[i]
            if ended and not code:
                code = ended if ended > 0 else 1
                stop.request()
    return code


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    # In a session of its own, so that Ctrl-C reaches us alone and each worker hears of it once: a
    # second signal would end it before it has committed.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
