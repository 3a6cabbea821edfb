"""Recovery time of a worker after `kill -9`, with a small and with a huge state in the store.

A store is filled with the delta of a day's stream, once per log, for as many logs as the size
needs. Then a real worker counts a file into it, is killed, and another one is started. The wall
time is from the start of the new process to its first commit, as seen by another process; it
includes the time to import the program, which is also reported and does not depend on the state.
The commit interval is a tenth of a second, because the first commit ends the measurement.
`python -m benchmarks.bench_recovery`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service
from streammetrics_consumers.simulate.output import write
from streammetrics_consumers.simulate.stream import Simulation
from streammetrics_consumers.sources.files import FileSource

from benchmarks.bench_consumer import CONFIG

EVENTS = 1_000_000  # of the counted file
ROUNDS = 5
SIZES = (1 << 20, 1 << 30)
LIMIT_S = 60.0
IMPORTS = "import streammetrics_consumers.cli.run, streammetrics_consumers.sources.files"


def first_delta(config: Config, rows: int) -> Delta:
    """The delta of the first events of the file."""
    decoder, delta = Decoder(config), None

    class Beginning:
        def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
            return dict.fromkeys(partitions, 0)

        def on_revoked(self, partitions: list[Partition]) -> None: ...
        def on_lost(self, partitions: list[Partition]) -> None: ...

    with closing(FileSource(config.source)) as source:
        source.assign(Beginning())
        while delta is None or delta.end < rows:
            for chunk in source.poll(0.5):
                delta = delta or Delta(config, chunk.partition, 0)
                for piece in decoder.pieces(chunk):
                    delta.add(piece)
    return delta


def fill(config: Config, size: int) -> int:
    """Write states of at least `size` bytes to the store of `config`; return the written bytes."""
    written = 0
    delta = first_delta(config, min(200_000, size // 60))
    with closing(Ledger.open(config.store.url, create=True)) as ledger:
        generation = service.begin(ledger, config).generation
        for number in range(1 << 20):
            log = Partition("another", "log", "another", number)
            head = ledger.resolve(generation, log, 0)
            commit = replace(commit_of(head, delta), refused=())
            ledger.commit(generation, commit)
            written += sum(len(piece.state) for piece in commit.shards)
            if written >= size:
                return written
    raise AssertionError("a million logs hold fewer bytes than required")


def counted(ledger: Ledger, topic: str) -> int:
    """The next offset of the worker's log in the ledger; -1 if there is none."""
    generation = ledger.generations()[-1]
    offsets = [h.next_offset for h in ledger.heads(generation) if h.partition.topic == topic]
    return offsets[0] if offsets else -1


def until_past(ledger: Ledger, topic: str, offset: int) -> int:
    """Wait until the log is counted beyond `offset`."""
    limit = time.monotonic() + LIMIT_S
    while (now := counted(ledger, topic)) <= offset:
        if time.monotonic() > limit:
            raise SystemExit(f"nothing was counted past offset {offset} in {LIMIT_S:g} s")
        time.sleep(0.005)
    return now


def recovery_s(config: Config) -> list[float]:
    """Seconds from the start of a process to its first commit, after each of several kills."""
    command = [
        sys.executable,
        "-m",
        "streammetrics_consumers.cli",
        "run",
        str(config.path),
        "--no-serve",
    ]
    command += ["--store", config.store.url]
    assert config.source.path is not None
    topic, times = config.source.path.name, []
    with closing(Ledger.open(config.store.url)) as ledger:
        offset = -1
        for _ in range(ROUNDS + 1):
            started = time.monotonic()
            worker = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            offset = until_past(ledger, topic, max(offset, 0))
            times.append(time.monotonic() - started)
            offset = until_past(ledger, topic, offset)
            worker.kill()
            worker.wait()
            offset = counted(ledger, topic)
            if offset >= EVENTS:
                raise SystemExit(f"the file is too short for {ROUNDS} rounds")
    return times[1:]  # the first start is no recovery


def import_s() -> float:
    """Median seconds to import the program."""
    times = []
    for _ in range(ROUNDS):
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", IMPORTS], check=True)
        times.append(time.monotonic() - started)
    return statistics.median(times)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        write(Simulation(EVENTS, 1), str(folder / "events.jsonl"), None, lambda _: None,
              time.monotonic)  # fmt: skip
        path = folder / "recovery.toml"
        path.write_text(CONFIG.replace("commit_interval_s = 1", "commit_interval_s = 0.1"))
        print(f"wall seconds, medians and ranges of {ROUNDS}")
        print(f"importing the program: {import_s():.2f}")
        for size in SIZES:
            config = load_config(path, {"store.url": str(folder / f"{size}.db")})
            nbytes = fill(config, size)
            times = recovery_s(config)
            print(
                f"from kill -9 and start to the first commit, states of {nbytes / 1e6:,.0f} MB: "
                f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
