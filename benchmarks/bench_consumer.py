"""The consumer from end to end: events a second for each source and format, layer by layer.

The stream is that of `streammetrics simulate`, with one item a request. Its panel is AUC, click
rate and grouped AUC of users, in windows of six hours, by variant and segment (four groupings),
with an experiment; and five metrics of users in one experiment, and in twenty. The Kafka broker is
a real one, on the other core; this process has one core. Its own CPU time is measured, with all its
threads, because wall time on a shared machine is unreliable.

Layers: the client's bare poll; our source; decoding; metrics and routing (a delta that ends after
200,000 events, like the worker's); commits (the worker itself with its own store: its start, a
commit after each 200,000 events, and a last look at the experiment). The cost of a layer is the
difference of two medians; the layers take turns. Each figure is for one partition, from the
beginning of its log to the end. `python -m benchmarks.bench_consumer` has every format; the
question of `make bench` has files, and a JSON event a message where Java and Maven are installed.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import cast
from zlib import crc32

import msgspec
import numpy as np
from streammetrics_consumers.cli.main import COLLECTIONS
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.simulate.output import write
from streammetrics_consumers.simulate.stream import Format, Simulation
from streammetrics_consumers.sources.open_source import open_source

from benchmarks.answer import Answer, answer
from benchmarks.bare_poll import Patience, bare_poll
from benchmarks.harness import Timing, measure, timing
from benchmarks.kafka_topics import topics

LAYERS = ("bare poll", "source", "decoding", "metrics", "commit")
OPTIONS = Options(until_end=True, partitions=(0,))  # assigned: a group may be rebalanced
ROUNDS = 5
LIBRARIES = ("kafka-python", "confluent-kafka")
MESSAGES: dict[str, tuple[Format, int]] = {  # format of the config: as simulated, events a message
    "json": ("jsonl", 1),
    "ndjson": ("ndjson", 1000),
    "array": ("array", 1000),
    "arrow": ("arrow", 5000),
}
EVENTS = {"json": 200_000, "arrow": 2_000_000}


@dataclass(frozen=True, slots=True)
class Case:
    """One source and format, with its numbers of events and records."""

    name: str
    config: Path
    events: int
    records: int


class Beginning:
    """A listener that reads every partition from its beginning."""

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        """The offset to start from in each partition."""
        return dict.fromkeys(partitions, 0)

    def on_revoked(self, partitions: list[Partition]) -> None:
        """Do nothing."""

    def on_lost(self, partitions: list[Partition]) -> None:
        """Do nothing."""


def loaded(case: Case, folder: Path) -> Config:
    """The config, with a new group and a new store."""
    overrides = {"store.url": str(folder / f"{uuid.uuid4().hex}.db")}
    if "kafka" in case.name:
        overrides["source.group"] = uuid.uuid4().hex
    return load_config(case.config, overrides)


# The threads of an open client keep this process alive, so every reader is closed explicitly: a
# generator abandoned by an exception would stay open.
def read(config: Config, records: int) -> Generator[Chunk, None, None]:
    """All chunks of a source."""
    total, patience = 0, Patience()
    with closing(open_source(config, OPTIONS)) as source:
        source.assign(Beginning())
        while total < records:
            for chunk in patience.polled(source.poll(0.5)):
                total += len(chunk)
                yield chunk


def decoded(config: Config, records: int) -> Generator[Decoded, None, None]:
    """All events of a source."""
    decoder = Decoder(config)
    with closing(read(config, records)) as chunks:
        for chunk in chunks:
            yield from decoder.pieces(chunk)


def rows_of(pieces: Generator[Chunk, None, None] | Generator[Decoded, None, None]) -> int:
    """The number of events in these chunks."""
    with closing(pieces):
        return sum(len(piece.chunk if isinstance(piece, Decoded) else piece) for piece in pieces)


def counted(config: Config, records: int) -> int:
    """The number of events of a source that the metrics counted."""
    with closing(decoded(config, records)) as pieces:
        return count(config, pieces)


def count(config: Config, pieces: Iterable[Decoded]) -> int:
    """The number of events that the metrics counted, in deltas as large as a worker's."""
    delta: Delta | None = None
    rows = 0
    for piece in pieces:
        start = piece.chunk.start
        if delta is None or delta.counters.rows + len(piece.chunk) > config.store.commit_events:
            delta = Delta(config, piece.chunk.partition, start)
        before = delta.counters.rows
        delta.add(piece)
        rows += delta.counters.rows - before
    return rows


def layers(case: Case, folder: Path) -> list[tuple[str, Callable[[], object]]]:
    """The timed jobs, from the bare poll to the whole consumer."""

    def fresh() -> Config:
        return loaded(case, folder)

    jobs: list[Callable[[], object]] = [
        lambda: bare_poll(fresh().source, case.records),
        lambda: rows_of(read(fresh(), case.records)),
        lambda: rows_of(decoded(fresh(), case.records)),
        lambda: counted(fresh(), case.records),
        lambda: service.run(fresh(), OPTIONS, stop=Stop()),
    ]
    pairs = list(zip(LAYERS, jobs, strict=True))
    return pairs if "kafka" in case.name else pairs[1:]


Seconds = dict[str, list[float]]


def timed(case: Case, folder: Path, rounds: int = ROUNDS) -> tuple[Seconds, Seconds]:
    """CPU and wall seconds of each round by layer, without the first one."""
    cpu: Seconds = {}
    wall: Seconds = {}
    for _ in range(rounds + 1):
        for name, job in layers(case, folder):
            started, clock = time.process_time(), time.perf_counter()
            job()
            cpu.setdefault(name, []).append(time.process_time() - started)
            wall.setdefault(name, []).append(time.perf_counter() - clock)
    return tuple(  # type: ignore[return-value]  # two of them
        {name: seconds[1:] for name, seconds in spent.items()} for spent in (cpu, wall)
    )


def row(case: Case, cpu: Seconds, wall: Seconds) -> str:
    """One line of the table."""
    costs = {name: statistics.median(spent) / case.events * 1e9 for name, spent in cpu.items()}
    bare = costs.get("bare poll", 0.0)
    metrics = costs["metrics"] - costs["decoding"]
    parts = [bare, costs["source"] - bare, costs["decoding"] - costs["source"], metrics]
    parts.append(costs["commit"] - costs["metrics"])
    line = f"{case.name:<22}" + "".join(f"{part:>9.0f}" for part in parts)
    line += (
        f"{costs['commit']:>9.0f}{1e9 / costs['metrics']:>13,.0f}{1e9 / costs['commit']:>13,.0f}"
    )
    line += f"{case.events / statistics.median(wall['commit']):>13,.0f}"
    line += f"{metrics / costs['decoding']:>10.0%}"
    return line + (f"{bare / costs['commit']:>10.0%}" if bare else f"{'':>10}")


def head() -> str:
    """The table's head."""
    names = ("poll", "source", "decoding", "metrics", "commit", "all")
    line = f"{'ns of CPU an event':<22}" + "".join(f"{name:>9}" for name in names)
    line += f"{'events/s*':>13}{'events/s':>13}{'by wall time':>13}{'metrics':>10}{'of poll':>10}"
    return line


FOOT = """\
events/s: by CPU time, with commits; *: without commits. by wall time: events/s with commits.
metrics: the cost that metrics and routing add to consuming and decoding. of poll: the client's bare
poll as a share of the whole consumer."""


CONFIG = """\
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "ts"
variant = "variant"
variants = ["control", "treatment"]
user = "user"
label = "label"
score = "score"
[windows]
size_s = 21600
[slices]
by = [[], ["variant"], ["segment"], ["variant", "segment"]]
[metrics]
auc = { type = "HistogramAUC" }
ctr = { type = "Ratio", better = "higher" }
gauc = { type = "GroupedAUC" }
[experiment]
control = "control"
decision = ["ctr"]
guardrails = [{ metric = "auc", margin = 0.01 }]
mdes = { ctr = 0.002, auc = 0.02 }
[store]
url = "demo.db"
commit_interval_s = 3600
"""


def written(folder: Path, name: str, source: str) -> Path:
    """The config with another source."""
    path = folder / f"{name.replace(' ', '-')}.toml"
    path.write_text(CONFIG.replace('kind = "file"\npath = "events.jsonl"\n', source))
    return path


def kafka_cases(
    folder: Path, bootstrap: str, topic: Callable[[], str], events: int, only: str
) -> Iterator[Case]:
    """A topic for each format, read with each library."""
    for form, (simulated, size) in MESSAGES.items():
        if not any(only in f"{library} {form}" for library in LIBRARIES):
            continue
        n = events or EVENTS.get(form, 300_000)
        name = topic()
        where = f"kafka://{bootstrap}/{name}"
        stream = Simulation(n, 1, simulated)
        write(stream, where, None, lambda _: None, time.monotonic, size)
        for library in LIBRARIES:
            text = (
                f'kind = "kafka"\nbootstrap_servers = "{bootstrap}"\ntopic = "{name}"\n'
                f'group = "g"\nformat = "{form}"\nlibrary = "{library}"\n'
            )
            label = f"{library} {form}"
            yield Case(label, written(folder, label, text), n, -(-n // size))


def file_cases(folder: Path, events: int) -> Iterator[Case]:
    """The stream as a file of each format."""
    import pyarrow.csv
    import pyarrow.parquet

    n = events or 300_000
    for form in ("jsonl", "csv", "parquet"):
        path = folder / f"events.{form}"
        if form == "parquet":
            # The malformed events of the CSV stream would spoil the column types.
            table = pyarrow.csv.read_csv(folder / "good.csv")
            pyarrow.parquet.write_table(table, path)
        else:
            write(
                Simulation(n, 1, cast("Format", form)),
                str(path),
                None,
                lambda _: None,
                time.monotonic,
            )
        if form == "csv":
            good = [line for line in path.read_bytes().splitlines() if is_good(line)]
            (folder / "good.csv").write_bytes(b"\n".join(good) + b"\n")
        rows = len(good) - 1 if form == "parquet" else n
        text = f'kind = "file"\npath = "{path.name}"\nformat = "{form}"\n'
        yield Case(f"file {form}", written(folder, f"file-{form}", text), rows, rows)


EXPERIMENTS = (1, 20)
OF_USERS = """\
scores = { type = "Ratio", inputs = { numerators = "score" } }
places = { type = "Ratio", inputs = { numerators = "position" } }
clicks = { type = "Ratio", inputs = { numerators = "label", denominators = "position" } }
"""


def experiment_cases(folder: Path, events: int) -> Iterator[Case]:
    """Events that carry their arms of 20 experiments, read with one of these and with all: each
    counts five metrics in groups of users."""
    simulated, path = folder / "simulated.jsonl", folder / "arms.jsonl"
    stream = Simulation(events, 1, "jsonl")
    write(stream, str(simulated), None, lambda _: None, time.monotonic)
    with path.open("wb") as file:
        for line in simulated.read_bytes().splitlines():
            whole = line.endswith(b"}")
            arms = crc32(line.partition(b'"user":')[2].partition(b",")[0])
            texts = ",".join(
                f'"e{i}":"{("control", "treatment")[arms >> i & 1]}"'
                for i in range(EXPERIMENTS[-1])
            )
            file.write(line[:-1] + f',"exps":{{{texts}}}}}\n'.encode() if whole else line + b"\n")
    text = f'kind = "file"\npath = "{path.name}"\nformat = "jsonl"\n'
    for n in EXPERIMENTS:
        name = f"{n} experiment{'s' if n > 1 else ''}"
        config_path = written(folder, name.replace(" ", "-"), text)
        head, _, experiment_table = config_path.read_text().partition("[experiment]\n")
        head = head.replace('user = "user"', 'user = "user"\nassignments = "exps"')
        head = head.replace('gauc = { type = "GroupedAUC" }\n', OF_USERS)
        store = experiment_table[experiment_table.index("[store]") :]
        tables = (
            f'[experiments.e{i}]\nvariants = ["control", "treatment"]\ncontrol = "control"\n'
            'decision = ["ctr"]\nmetrics = ["auc", "scores", "places", "clicks"]\nmde = 0.002\n'
            for i in range(n)
        )
        config_path.write_text("".join([head, *tables, store]))
        yield Case(name, config_path, events, events)


def is_good(line: bytes) -> bool:
    """Whether a line of the simulated CSV stream is complete and has the columns' types."""
    fields = line.split(b",")
    if len(fields) != 9 or not line.isascii():
        return False
    return fields[0] == b"ts" or (fields[0].endswith(b"Z") and fields[5][:1] == b"0")


@contextmanager
def rare_collections() -> Iterator[None]:
    """Python's search for garbage as `streammetrics run` sets it, until the block ends: else it
    scans our modules and each message of a client, again and again."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*COLLECTIONS)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def anchor() -> Timing:
    """The cost of the decoding of such lines into objects by msgspec alone, for the targets."""
    from benchmarks.bench_decoding import Event, good_events  # which reads our config

    events, decode = good_events(), msgspec.json.Decoder(Event).decode
    return measure("msgspec", len(events), lambda: list(map(decode, events)), peer="msgspec")


def ask(quick: bool) -> Answer:
    """The layers of each file format, and of a JSON event a message where a broker can be started.

    A later layer includes those before it, and the last one is the whole consumer."""
    events = 300_000 if quick else 600_000
    cores = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        cases = [*file_cases(folder, events), *experiment_cases(folder, events // 3)]
        log = (folder / "events.jsonl").read_bytes()
        profile = answer(
            "consumer",
            "A consumer, layer by layer",
            rows=events,
            arrays=[np.frombuffer(log, np.uint8)],
            unit="event",
        )
        stack.callback(os.sched_setaffinity, 0, cores)
        if shutil.which("java") and shutil.which("mvn"):
            broker = stack.enter_context(topics())
            cases += kafka_cases(folder, broker.bootstrap, broker.new_topic, events, "python json")
        else:
            profile.missing.append("Kafka, which needs Java and Maven")
        os.sched_setaffinity(0, sorted(cores)[:1])
        stack.enter_context(rare_collections())
        profile.add(anchor())
        for case in cases:
            cpu, _ = timed(case, folder, 2 if quick else ROUNDS)
            before = 0.0
            for layer, seconds in cpu.items():
                costs = [spent / case.events * 1e9 for spent in seconds]
                profile.add(timing(f"{case.name}: {layer}", [statistics.median(costs) - before]))
                before = statistics.median(costs)
            profile.add(timing(f"{case.name}: all", costs))
            if case.name.endswith(("experiment", "experiments")):
                for layer, words in (("decoding", "decoded"), ("metrics", "counted")):
                    costs = [spent / case.events * 1e9 for spent in cpu[layer]]
                    profile.add(timing(f"{case.name}: {words}", costs))
    profile.notes.append(
        "A layer is the difference of two measurements. bare poll: the Kafka client's own, which "
        "our source replaces in part, so the source may be below 0. metrics: the updates; commit: "
        f"a store with its start and last look, and a commit each 200,000 of {events:,} events. "
        "decoded, counted: all layers up to this one."
    )
    return profile


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_consumer")
    parser.add_argument("--events", type=int, default=0, help="number of events of each format")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, topics() as broker:
        folder = Path(directory)
        versions = f"Python {platform.python_version()}, numpy {np.__version__}"
        print(f"{versions}, {platform.machine()}, one core, medians of {ROUNDS}\n\n{head()}")
        of_kafka = kafka_cases(
            folder, broker.bootstrap, broker.new_topic, options.events, options.only
        )
        with rare_collections():
            for case in chain(of_kafka, file_cases(folder, options.events)):
                if options.only in case.name:
                    print(row(case, *timed(case, folder)), flush=True)
        print(FOOT)


if __name__ == "__main__":
    main()
