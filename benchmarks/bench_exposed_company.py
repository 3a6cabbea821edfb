"""Exposures from end to end: what an event costs that finds its arms in five experiments, beside
one that carries them; and a store of many exposed units: bytes, memory, a restart, a closing.

Each figure is of a process of its own, `streammetrics run` over a file into SQLite; seconds are of
its CPU, user and system, and memory is its greatest. `python -m benchmarks.bench_exposed_company
[--quick] [--units N]`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.harness import processor, versions
from benchmarks.workloads import generator

EXPERIMENTS: Final = 5
START_MS: Final = 1_764_547_200_000
EVENTS_A_SECOND: Final = 1_000  # in event time
EXPOSED_MS: Final = 14 * 86_400_000  # the time in which all users are exposed
GOAL: Final = 4.0
FINDS: Final = "finds all arms"
TARGETS: Final = f"targets: {GOAL:g} times an event with its arms; 500 MB; a restart of 2 s"
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
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
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


def costs_of_units(units: int, events: int) -> str:
    """Of a store of this many units, each exposed to all experiments."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "run.toml").write_text(config_of(exposed=True), encoding="utf-8")
        write(folder, exposures(range(units), START_MS))
        built = counted(folder)
        nbytes = sum(path.stat().st_size for path in folder.glob("store.db*"))
        again = counted(folder)
        later_ms = START_MS + 30 * 86_400_000
        write(folder, outcomes(events, units, later_ms, carried=0))
        closing = counted(folder)
    exposed = units * EXPERIMENTS
    return "\n".join([
        f"{units:,} units exposed to {EXPERIMENTS} experiments: {exposed:,} exposures",
        f"bytes of the store, an exposure        {nbytes / exposed:8.1f}",
        f"counting, µs an exposure               {built.cpu_s * 1e6 / exposed:8.1f}",
        f"memory of that worker, MB              {built.memory_mb:8.0f}",
        f"a restart that counts nothing, s       {again.wall_s:8.1f} ({again.cpu_s:.1f} of CPU)",
        f"memory of that worker, MB              {again.memory_mb:8.0f}",
        f"{events:,} later events, s of CPU          {closing.cpu_s - again.cpu_s:8.1f}",
        f"memory of that worker, MB              {closing.memory_mb:8.0f}",
    ])  # fmt: skip


def main(given: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few units and events")
    parser.add_argument("--units", type=int, help="exposed units (default: 1,000,000)")
    parser.add_argument("--events", type=int, help="later events (default: 200,000)")
    asked = parser.parse_args(given)
    units = asked.units or (20_000 if asked.quick else 1_000_000)
    events = asked.events or (20_000 if asked.quick else 200_000)
    print(processor(), versions(), TARGETS, sep="\n", flush=True)
    print(f"\n{costs_of_events(events)}", flush=True)
    print(f"\n{costs_of_units(units, events)}", flush=True)


if __name__ == "__main__":
    main()
