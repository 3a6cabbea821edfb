"""The long-running commands run and serve, and the command simulate."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

from streammetrics_consumers.cli import logs, progress
from streammetrics_consumers.cli.arguments import RUN, Arguments, UsageError
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.config.keys import read
from streammetrics_consumers.config.section import ConfigError, Override, Problem, Section
from streammetrics_consumers.config.tables import QuarantineConfig, ServerConfig
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.events.messages import MAX_EVENTS
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.generation import Requested
from streammetrics_consumers.model.partition import Name, name_of
from streammetrics_consumers.process import service
from streammetrics_consumers.process.hook_sending import require_secrets
from streammetrics_consumers.process.preflight import check, require_options
from streammetrics_consumers.process.stall_watch import StallWatch, watching_for_stalls
from streammetrics_consumers.process.stop import Stop, signals_request
from streammetrics_consumers.process.supervise import (
    WORKER,
    StatusChannel,
    status_sender,
    supervise,
)
from streammetrics_consumers.query.query import Query, parse_time
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import results_text
from streammetrics_consumers.server.assets import prepare
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.process import announce, serving
from streammetrics_consumers.simulate.experiments_simulation import ExperimentsSimulation
from streammetrics_consumers.simulate.exposures_simulation import ExposuresSimulation
from streammetrics_consumers.simulate.joined_simulation import JoinedSimulation
from streammetrics_consumers.simulate.output import MESSAGES, Stream, write
from streammetrics_consumers.simulate.stream import Format, Simulation
from streammetrics_consumers.sources import Skips
from streammetrics_consumers.sources.open_source import open_source

Clock = Callable[[], float]

FOREVER_S = 3600.0
log = logging.getLogger(__name__)

# Flags that override a key of the config.
KEYS = {
    "store": "store.url",
    "port": "server.port",
    "token": "server.token",
    "bootstrap-servers": "source.bootstrap_servers",
    "topic": "source.topic",
    "group": "source.group",
}


def run(arguments: Arguments, monotonic: Clock, clock: Clock) -> int:
    """`run CONFIG`."""
    workers = arguments.number("workers") or 0
    worker_number = os.environ.get(WORKER) or ("0" if workers == 1 else None)
    logs.to_stderr(logs.form_named(arguments.text("log")), worker=worker_number)
    config = load_config(arguments.words[0], overrides(arguments))
    options = options_of(arguments)
    if workers < 1:
        raise UsageError(f"--workers: expected 1 or more, got {workers}; leave it out for 1")
    if workers > 1 and config.source.kind == "stdin":
        raise UsageError(
            f"--workers: expected 1, since standard input cannot be shared, got {workers}; "
            "leave it out"
        )
    require_options(config, options)
    if not arguments.is_on("dry-run"):  # which sends nothing
        require_secrets(config.hooks)
    is_new = arguments.is_on("new-generation")
    if arguments.is_on("check"):
        for line in check(config, options, new_generation=is_new):
            logs.say(formatting.name(line, 500))
        return 0
    if arguments.is_on("dry-run"):
        return dry_run(config, options, monotonic)
    stop = Stop()
    with ExitStack() as stack:
        stack.enter_context(signals_request(stop))
        # Before a reader starts: the store exists, and its settings match.
        with stop.interrupting():
            opened = service.open_ledger(config, new_generation=is_new, requested=options.requested)
            with closing(opened) as ledger:
                begun = service.begin(
                    ledger, config, new_generation=is_new, requested=options.requested
                )
                store_id = ledger.store.id
        channel = stack.enter_context(closing(StatusChannel(workers if workers > 1 else 0)))
        status = StatusRecorder(monotonic, status_sender(os.environ, orphaned=stop.request))
        read_statuses = channel.workers if workers > 1 else lambda: {"0": status.snapshot()}
        if WORKER not in os.environ:  # which the process has that started this one
            stalls = StallWatch(
                config.hooks,
                store_id,
                begun.generation.id,
                lambda: [snapshot for snapshot in read_statuses().values() if snapshot is not None],
                monotonic=monotonic,
                clock=clock,
            )
            stack.enter_context(watching_for_stalls(stalls))
        if not arguments.is_on("no-serve"):
            watched = WatchedWorkers(read_statuses, monotonic, clock)
            url = stack.enter_context(serving(config.store.url, config.server, watched))
            announce(url, logs.say, token=bool(config.server.token))
            warn_where_open(config.server)
        if workers > 1:
            return _several(arguments, workers, stop, channel)
        report = stack.enter_context(progress.shown("counting", monotonic))
        # Imported objects stay: exempt them from garbage collection while we read.
        gc.freeze()
        service.run(config, options, stop=stop, report=report, status=status)
    return 0


def serve_store(arguments: Arguments, monotonic: Clock, clock: Clock) -> int:
    """`serve STORE`: serve until a stop is requested, and count nothing."""
    logs.to_stderr("text")
    flags: dict[str, Override] = {}
    for flag, where in arguments.given.items():
        value = _value(arguments, flag)
        if value is not None and value != "":
            flags[flag.replace("-", "_")] = Override(value, where)
    problems: list[Problem] = []
    server = read(Section("server", {}, problems, flags), ServerConfig)
    if problems:
        raise ConfigError("serve", problems)
    watched = WatchedWorkers(dict, monotonic, clock)
    stop = Stop()
    with (
        signals_request(stop, "stopping"),
        serving(arguments.words[0], server, watched) as url,
    ):
        prepare()
        announce(url, logs.say, token=bool(server.token))
        warn_where_open(server)
        while not stop.wait(FOREVER_S):
            pass
    return 0


def warn_where_open(server: ServerConfig) -> None:
    """Warn if other machines can connect without a token."""
    if not server.token and not _is_ours_alone(server.host):
        log.warning(
            "every client that reaches this address can read the whole store; set "
            "STREAMMETRICS_TOKEN, or serve on 127.0.0.1"
        )


def _is_ours_alone(host: str) -> bool:
    """Whether an address is reachable only from this machine.

    >>> [_is_ours_alone(host) for host in ("localhost", "::1", "0.0.0.0", "page.local")]
    [True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def dry_run(config: Config, options: Options, monotonic: Clock) -> int:
    """Read to the end into a temporary store, and print its results. Changes neither the store of
    the config nor a consumer group."""
    with closing(open_source(config, options)) as source:
        everything = tuple(map(str, source.partitions()))
    if config.source.kind == "kafka" and options.partitions is None:
        options = replace(options, partitions=everything)
    stop = Stop()
    with tempfile.TemporaryDirectory(prefix="streammetrics-") as folder:
        url = str(Path(folder) / "dry-run.db")
        config = replace(
            config,
            store=replace(config.store, url=url),
            quarantine=QuarantineConfig(),
            hooks=(),
        )
        with signals_request(stop), progress.shown("dry run", monotonic) as report:
            service.run(config, replace(options, until_end=True), stop=stop, report=report)
        if not Path(url).exists():
            return 0  # it was stopped before it started
        with closing(Ledger.open(url)) as ledger:
            results = read_results(ledger, Query())
    sys.stdout.write(results_text(results, Query(), Style.from_stream(sys.stdout), store=url))
    return 0


def _value(arguments: Arguments, flag: str) -> int | str | None:
    number = arguments.number(flag)
    return arguments.text(flag) if number is None else number


def overrides(arguments: Arguments) -> dict[str, Override]:
    """The config keys that flags or the environment override."""
    settings: dict[str, Override] = {}
    for flag, key in KEYS.items():
        value = _value(arguments, flag)
        if value is not None:
            settings[key] = Override(value, arguments.given[flag])
    for pair in arguments.several("client"):
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"-X: expected KEY=VALUE, got {pair!r}; write -X linger_ms=5")
        settings[f"source.client.{name}"] = Override(text, f"-X {name}")
    return settings


def options_of(arguments: Arguments) -> Options:
    """The options of a run, from the flags."""
    start = arguments.text("from") or "beginning"
    if arguments.is_on("close") and not (
        arguments.is_on("until-end") or arguments.is_on("dry-run")
    ):
        raise UsageError(
            "--close: expected --until-end too, since --close closes all label windows at the "
            "end, got --close alone; add --until-end"
        )
    return Options(
        until_end=arguments.is_on("until-end"),
        close=arguments.is_on("close"),
        requested=Requested(
            arguments.several("drop-metric"),
            arguments.several("resume-metric"),
            arguments.several("restart-metric"),
            arguments.is_on("drop-windows"),
        ),
        start=(
            cast('Literal["beginning", "latest"]', start)
            if start in ("beginning", "latest")
            else parse_time(start, "--from")
        ),
        on_gap="skip" if arguments.text("on-gap") == "skip" else "stop",
        new_source=arguments.is_on("new-source"),
        partitions=partitions(arguments.text("partitions")),
        skips=skips(arguments.several("skip")),
    )


def worker_command(arguments: Arguments) -> list[str]:
    """The command of one of several workers: this one as a single worker that neither serves nor
    starts a generation. It inherits the environment, so that a secret there does not show in a list
    of processes."""
    command = [sys.executable, "-m", "streammetrics_consumers.cli", "run", arguments.words[0]]
    command += ["--no-serve", "--workers", "1"]
    for flag in RUN:
        if flag.name in ("no-serve", "workers", "new-generation", "port", "token"):
            continue
        if not arguments.given.get(flag.name, "").startswith("--"):
            continue
        if flag.kind is bool:
            command += [f"--{flag.name}"] if arguments.is_on(flag.name) else []
        elif flag.again:
            command += [f"--{flag.name}={value}" for value in arguments.several(flag.name)]
        else:
            command.append(f"--{flag.name}={arguments.text(flag.name)}")
    return command


def _several(arguments: Arguments, workers: int, stop: Stop, channel: StatusChannel) -> int:
    # The new generation exists; a worker that started another one would fence the others.
    os.environ.pop("STREAMMETRICS_NEW_GENERATION", None)
    return supervise(worker_command(arguments), workers, stop, channel)


def partitions(text: str | None) -> tuple[Name, ...] | None:
    """The value of `--partitions`."""
    if text is None:
        return None
    names = [name_of(word) for word in text.split(",")]
    if None in names:
        raise UsageError(
            "--partitions: expected numbers of partitions, such as 0,1, or their names, such as "
            f"clicks/0, got {text!r}; correct it"
        )
    return tuple(dict.fromkeys(name for name in names if name is not None))


def skips(texts: Sequence[str]) -> Skips:
    """The values of `--skip`."""
    batches = set()
    for text in texts:
        match = re.fullmatch(r"(.+)/(\d{1,9}):(\d{1,18})", text, re.ASCII)
        if match is None:
            raise UsageError(
                f"--skip: expected TOPIC/PARTITION:OFFSET, such as clicks/0:1000, got {text!r}; "
                "copy it from the error that names the batch"
            )
        batches.add((match[1], int(match[2]), int(match[3])))
    return Skips(frozenset(batches))


def simulate(arguments: Arguments, monotonic: Clock) -> int:
    """`simulate`."""
    logs.to_stderr("text")
    where = arguments.text("output") or "-"
    rate = arguments.real("rate")
    if rate is not None and not 0 < rate < 1e9:
        raise UsageError(
            f"--rate: expected a number above 0, got {rate:g}; leave it out for no limit"
        )
    form = cast("Format", arguments.text("format"))
    batch = arguments.number("batch") or 0
    if not 0 < batch <= MAX_EVENTS:
        raise UsageError(f"--batch: expected 1 to {MAX_EVENTS} events per message, got {batch}")
    if form in MESSAGES and not where.startswith("kafka://"):
        raise UsageError(
            f"--format {form}: expected -o kafka://HOST/TOPIC, since such messages are Kafka's, "
            f"got -o {where}; write jsonl or csv there"
        )
    kinds = [name for name in ("join", "experiments", "exposures") if arguments.is_on(name)]
    if len(kinds) > 1:
        flags = " and ".join(f"--{name}" for name in kinds)
        expected = "--join, --experiments or --exposures"
        raise UsageError(f"simulate: expected {expected}, got {flags}; leave one out")
    kind = kinds[0] if kinds else ""
    _check_topics(where, kind)
    events, seed = arguments.number("events") or 0, arguments.number("seed") or 0
    items = arguments.number("items") or 0
    stream: Stream
    try:
        if kind == "experiments":
            stream = ExperimentsSimulation(events, seed, form, items)
        elif kind == "exposures":
            users = arguments.number("n-users") or 0
            stream = ExposuresSimulation(users, seed, form, events)
        else:
            plain = Simulation(events, seed, form, items=items)
            stream = JoinedSimulation(plain) if kind == "join" else plain
    except ValueError as error:
        raise UsageError(f"simulate: {error}") from None
    with progress.shown("simulating", monotonic) as report:
        write(stream, where, rate, report, monotonic, batch)
    return 0


def _check_topics(where: str, kind: str) -> None:
    """UsageError for several topics that the stream does not have."""
    topics = where.count(",") + 1 if where.startswith("kafka://") else 1
    most = {"join": 2, "exposures": 4}.get(kind, 1)
    if topics not in (1, most):
        expected = f"one topic or {most}" if most > 1 else "one topic"
        hint = "" if most > 1 else "; add --join to write to two, or --exposures to write to four"
        raise UsageError(f"-o: expected {expected}, got {where}{hint}")
