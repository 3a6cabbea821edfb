"""Exposures from end to end: what an event and a commit cost whose arms are found in five
experiments, beside events that carry them; and a store of many exposed units: bytes, memory, a
restart, a closing.

Each figure but that of a commit is of a process of its own, `streammetrics run` over a file into
SQLite; seconds are of its CPU, user and system, and memory is its greatest. `python -m
benchmarks.bench_exposed_company [--quick] [--units N] [--written]`; with `--written` the exposures
of all units but a few are written into the store as if they had been closed, which takes seconds
for a million units: `--units 10000000 --written`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.config.states import empty_exposed
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.exposure_closing import KNOWN
from streammetrics_consumers.ledger.closing import join_head, known_bytes, write_closing
from streammetrics_consumers.ledger.delta_metadata import shard_of
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Commit, Counters
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service

from benchmarks.bench_commits import delta_of
from benchmarks.bench_recovery import counted as offset_of
from benchmarks.harness import processor, versions
from benchmarks.workloads import generator
from streammetrics import DictionaryColumn, HashedIds, hash_ids

EXPERIMENTS: Final = 5
START_MS: Final = 1_764_547_200_000
EVENTS_A_SECOND: Final = 1_000  # in event time
EXPOSED_MS: Final = 14 * 86_400_000  # the time in which all users are exposed
GOAL: Final = 4.0
FINDS: Final = "finds all arms"
TARGETS: Final = (
    f"targets: {GOAL:g} times an event with its arms; 2 times a commit; 500 MB; a restart of 2 s"
)
COMMIT: Final = 20_000  # events of a measured commit
COMMITS: Final = 7
WRITTEN_RANGES: Final = 1 << 7  # of units, of rows that are written into a store
LOG: Final = "events.jsonl"
CONFIG: Final = """\
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "ts"
time_unit = "ms"
user = "user"
{arms}
[slices]
by = [[]]
[windows]
size_s = 86400
[metrics]
revenue = {{ type = "UnitMean", inputs = {{ values = "amount" }} }}
[store]
url = "store.db"
commit_interval_s = 5
"""
EXPOSED: Final = """\
[exposures]
field = "kind"
equals = "exposure"
experiment = "exp"
arm = "arm"
"""
CARRIED: Final = 'assignments = "exps"\n'
PLAN: Final = """
[experiments.e{}]
variants = ["control", "new"]
control = "control"
decision = ["revenue"]
mde = 0.1
look_every_s = 86_400
"""


class Cost(NamedTuple):
    """Of one process: seconds of CPU and of the clock, and MB."""

    cpu_s: float
    wall_s: float
    memory_mb: float


def config_of(*, exposed: bool, experiments: int = EXPERIMENTS) -> str:
    """The config of this number of experiments."""
    arms = "" if exposed else CARRIED
    tables = "".join(PLAN.format(i) for i in range(experiments))
    return CONFIG.format(arms=arms) + (EXPOSED if exposed else "") + tables


def arm_of(user: int, experiment: int) -> str:
    """The arm of a user."""
    return "new" if user * 2_654_435_761 >> (8 + experiment) & 1 else "control"


def exposures(users: range, start_ms: int) -> Iterator[bytes]:
    """Each user is exposed to all experiments."""
    for number, user in enumerate(users):
        ts = start_ms + number * EXPOSED_MS // len(users)
        for experiment in range(EXPERIMENTS):
            arm = arm_of(user, experiment)
            yield (
                f'{{"kind":"exposure","ts":{ts},"user":"u{user}","exp":"e{experiment}",'
                f'"arm":"{arm}"}}\n'
            ).encode()


def outcomes(n: int, users: int, start_ms: int, *, carried: int) -> Iterator[bytes]:
    """Purchases of users; carried: with their arms in this number of experiments."""
    chosen = generator(39).integers(0, users, n).tolist()
    for number, user in enumerate(chosen):
        event = {"kind": "purchase", "ts": start_ms + number * 1_000 // EVENTS_A_SECOND,
                 "user": f"u{user}", "amount": number % 97 / 4}  # fmt: skip
        if carried:
            event["exps"] = {f"e{i}": arm_of(user, i) for i in range(carried)}
        yield json.dumps(event, separators=(",", ":")).encode() + b"\n"


def write(folder: Path, lines: Iterable[bytes]) -> None:
    """Append events to the log, and one of nobody an hour later, which closes them."""
    last = b""
    with (folder / "events.jsonl").open("ab") as file:
        for line in lines:
            file.write(line)
            last = line
        event = json.loads(last)
        nobody = {"kind": "purchase", "ts": event["ts"] + 3_600_000, "user": "nobody", "amount": 0}
        file.write(json.dumps({**nobody, "exps": {}}).encode() + b"\n")


def counted(folder: Path) -> Cost:
    """Count the log to its end."""
    command = ["-m", "streammetrics", "run", "run.toml", "--until-end", "--no-serve"]
    started_s = time.monotonic()
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, *command], cwd=folder, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit((folder / "log").read_text()[-3000:])
    wall_s = time.monotonic() - started_s
    return Cost(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss / 1e3)


def costs_of_events(n: int) -> str:
    """Microseconds of an event that carries its arm in one experiment and in all, and of one that
    finds its arms in all. The users are a tenth of the events; what a run costs that counts no
    event is subtracted, and the exposures are counted before."""
    costs = {}
    for name, carried in (("carries one arm", 1), ("carries all arms", EXPERIMENTS), (FINDS, 0)):
        exposed = not carried
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            (folder / "run.toml").write_text(
                config_of(exposed=exposed, experiments=carried or EXPERIMENTS), encoding="utf-8"
            )
            first = exposures(range(n // 10), START_MS) if exposed else outcomes(
                1_000, n // 10, START_MS, carried=carried
            )  # fmt: skip
            write(folder, first)
            counted(folder)
            idle = counted(folder)
            later_ms = START_MS + 30 * 86_400_000
            write(folder, outcomes(n, n // 10, later_ms, carried=carried))
            costs[name] = (counted(folder).cpu_s - idle.cpu_s) * 1e6 / n
    lines = [
        f"{name:18} {cost:8.1f}; to find all takes {costs[FINDS] / cost:.2f} times as long"
        for name, cost in costs.items()
    ]
    title = f"an event in {EXPERIMENTS} experiments, {n:,} events, microseconds of CPU"
    return "\n".join([title, *lines])


def costs_of_commits(users: int) -> str:
    """Milliseconds of CPU of a commit of events that carry their arms, and of one of events that
    wait for them: the states, and the transaction."""
    costs = {}
    for name, exposed in (("carry their arms", False), ("wait for them", True)):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "run.toml"
            path.write_text(config_of(exposed=exposed), encoding="utf-8")
            config, times = load_config(path, {"store.url": f"{directory}/store.db"}), []
            with closing(Ledger.open(config.store.url, create=True)) as ledger:
                generation = service.begin(ledger, config).generation
                head = ledger.resolve(generation, Partition("bench", "events", "id", 0), 0)
                for number in range(COMMITS):
                    start_ms = START_MS + number * COMMIT
                    carried = 0 if exposed else EXPERIMENTS
                    events = outcomes(COMMIT, users, start_ms, carried=carried)
                    delta = delta_of(config, head, [*events])
                    began_s = time.process_time()
                    head = ledger.commit(generation, commit_of(head, delta))
                    times.append((time.process_time() - began_s) * 1e3)
            costs[name] = statistics.median(times)
    lines = [f"{name:18} {cost:8.1f}" for name, cost in costs.items()]
    title = f"a commit of {COMMIT:,} events that ..., milliseconds of CPU"
    return "\n".join([title, *lines])


def write_known(folder: Path, users: range) -> None:
    """Write exposures of users to all experiments into a store, as closings do."""
    units = hash_ids([f"u{user}" for user in users]).view(np.int64)
    numbers = np.arange(users.start, users.stop)
    times_ms = START_MS - EXPOSED_MS + (numbers - users.start) * EXPOSED_MS // len(users)
    order = np.argsort(units.view(np.uint64), kind="stable")
    cuts = np.arange(1, WRITTEN_RANGES, dtype=np.uint64) << np.uint64(57)  # of equal ranges
    parts = np.split(order, np.searchsorted(units.view(np.uint64)[order], cuts))
    config = load_config(folder / "run.toml", {"store.url": str(folder / "store.db")})
    assert config.exposures is not None and config.closing is not None
    arms = [np.array([arm_of(u, e) == "new" for u in users]) for e in range(EXPERIMENTS)]
    with closing(Ledger.open(config.store.url)) as ledger:
        generation = ledger.generations()[-1]
        head = join_head(ledger.store, generation)
        for place, chosen in enumerate(parts):
            state = empty_exposed(config.exposed_columns, config.exposures)
            for experiment in range(EXPERIMENTS):
                arm = DictionaryColumn(arms[experiment][chosen].astype(np.intp), ("control", "new"))
                ids = units[chosen].view(HashedIds)
                state.update_exposures(ids, times_ms[chosen], f"e{experiment}", arm)
            state.close(START_MS)
            start, shard = head.next_offset, shard_of(KNOWN, place, WRITTEN_RANGES, state)
            end = start + config.closing.pane_ms
            commit = Commit(head, start, end, None, Counters(), [shard])
            write_closing(ledger.store, generation, commit, (), ())
            head = join_head(ledger.store, generation)


class Restart(NamedTuple):
    """Seconds from the start of a process to its first commit, of the clock and of CPU, and the
    longest time between two commits after it."""

    first_s: float
    first_cpu_s: float
    pause_s: float


def restarted(folder: Path, records: int) -> Restart:
    """Start a worker, and kill it once it has counted this number of records; commits are due
    every tenth of a second."""
    text = (folder / "run.toml").read_text(encoding="utf-8")
    path = folder / "restarted.toml"
    path.write_text(text.replace("commit_interval_s = 5", "commit_interval_s = 0.1"))
    command = ["-m", "streammetrics", "run", path.name, "--no-serve"]
    with closing(Ledger.open(str(folder / "store.db"))) as ledger:
        offset = offset_of(ledger, LOG)
        end, began_s = offset + records, time.monotonic()
        process = subprocess.Popen(
            [sys.executable, *command], cwd=folder, stderr=subprocess.DEVNULL
        )
        commits_s, cpu_s = [], 0.0
        while offset < end:
            time.sleep(0.005)
            now = offset_of(ledger, LOG)
            if now > offset:
                commits_s.append(time.monotonic())
                cpu_s = cpu_s or cpu_s_of(process.pid)
                offset = now
            if process.poll() is not None:
                raise SystemExit("the worker has ended")
        process.kill()
        process.wait()
    pauses = [later - earlier for earlier, later in itertools.pairwise(commits_s)]
    return Restart(commits_s[0] - began_s, cpu_s, max(pauses, default=0.0))


def cpu_s_of(process: int) -> float:
    """The seconds of CPU of a process so far."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def costs_of_units(units: int, events: int, *, written: bool) -> str:
    """Of a store of this many units, each exposed to all experiments. written: they are written
    into the store, and not counted."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "run.toml").write_text(config_of(exposed=True), encoding="utf-8")
        few = min(units, 1_000) if written else units
        write(folder, exposures(range(few), START_MS))
        built = counted(folder)
        if written:
            write_known(folder, range(few, units))
        nbytes = sum(path.stat().st_size for path in folder.glob("store.db*"))
        with closing(Ledger.open(str(folder / "store.db"))) as ledger:
            exposure_bytes = known_bytes(ledger.store, ledger.generations()[-1], KNOWN.metric)
        later_ms = START_MS + 30 * 86_400_000
        write(folder, outcomes(events, units, later_ms, carried=0))
        restart = restarted(folder, events // 2)
        rest = counted(folder)
    exposed = units * EXPERIMENTS
    lines = [f"{units:,} units exposed to {EXPERIMENTS} experiments: {exposed:,} exposures"]
    if not written:
        lines += [
            f"counting, µs an exposure               {built.cpu_s * 1e6 / exposed:8.1f}",
            f"memory of that worker, MB              {built.memory_mb:8.0f}",
        ]
    return "\n".join([
        *lines,
        f"bytes of the store, an exposure        {nbytes / exposed:8.1f}",
        f"bytes of known exposures, not packed   {exposure_bytes / exposed:8.1f}",
        f"a restart to its first commit, s       {restart.first_s:8.1f} "
        f"({restart.first_cpu_s:.1f} of CPU)",
        f"longest time between commits after, s  {restart.pause_s:8.1f}",
        f"the rest of {events:,} events, s of CPU {rest.cpu_s:9.1f}",
        f"memory of that worker, MB              {rest.memory_mb:8.0f}",
    ])  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few units and events")
    parser.add_argument("--units", type=int, help="exposed units (default: 1,000,000)")
    parser.add_argument("--written", action="store_true", help="write them into the store at once")
    parser.add_argument("--events", type=int, help="later events (default: 200,000)")
    options = parser.parse_args(argv)
    units = options.units or (20_000 if options.quick else 1_000_000)
    events = options.events or (20_000 if options.quick else 200_000)
    print(processor(), versions(), TARGETS, sep="\n", flush=True)
    if not options.written:
        print(f"\n{costs_of_events(events)}", flush=True)
        print(f"\n{costs_of_commits(events // 10)}", flush=True)
    print(f"\n{costs_of_units(units, events, written=options.written)}", flush=True)


if __name__ == "__main__":
    main()
