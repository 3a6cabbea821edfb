"""A soak: a run that counts and compacts for a while holds no more at its end than in its middle.

STREAMMETRICS_SOAK_S=3600 makes it an hour; `-s` shows the table.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.consumers.running import Running, until
from tests.consumers.small_config import event, toml

pytestmark = pytest.mark.faults

SECONDS = float(os.environ.get("STREAMMETRICS_SOAK_S", "8"))
SAMPLES = 20
EVENTS_S = 4000  # written each second

MIB = 1 << 20


@dataclass(frozen=True)
class Sample:
    """What a process holds at one moment."""

    seconds: float
    memory: int
    files: int
    threads: int
    wal: int
    events: int

    def __str__(self) -> str:
        return (
            f"{self.seconds:8.1f} s {self.memory / MIB:8.1f} MiB {self.files:4d} files "
            f"{self.threads:3d} threads {self.wal / MIB:6.2f} MiB WAL {self.events:10,d} events"
        )


def sample(pid: int, store: Path, seconds: float, events: int) -> Sample:
    process = Path(f"/proc/{pid}")
    wal = store.with_name(store.name + "-wal")
    return Sample(
        seconds,
        int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        len(list((process / "fd").iterdir())),
        len(list((process / "task").iterdir())),
        wal.stat().st_size if wal.exists() else 0,
        events,
    )


@contextmanager
def growing(path: Path) -> Iterator[None]:
    """A log to which a good tenth of a second's events, and a bad one, are added all the time."""
    ended = threading.Event()

    def write() -> None:
        minute = 0
        with path.open("ab", buffering=0) as file:
            while not ended.wait(0.1):
                minute += 1
                day, hour = 1 + minute // 1440 % 28, minute // 60 % 24
                ts = f"2024-01-{day:02d}T{hour:02d}:{minute % 60:02d}:00Z"
                lines = [
                    event(ts, "ab"[i % 2], i % 2, i / 1000, user=f"u{i % 97}")
                    for i in range(EVENTS_S // 10)
                ]
                file.write(b"\n".join([*lines, b"bad"]) + b"\n")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.timeout(SECONDS + 600)
def test_memory_files_threads_and_the_log_of_the_store_are_bounded(tmp_path: Path) -> None:
    config, store, log = (tmp_path / name for name in ("c.toml", "soak.db", "events.jsonl"))
    log.touch()
    rest = '[store]\nurl = "soak.db"\ncommit_interval_s = 0.1\n[server]\nport = 0'
    config.write_text(toml(rest=rest), encoding="utf-8")
    taken: list[Sample] = []
    with growing(log), Running(config) as running:
        until(lambda: running.total("streammetrics_store_events") > 0, running)
        began_s = time.monotonic()
        for i in range(1, SAMPLES + 1):
            time.sleep(max(began_s + SECONDS * i / SAMPLES - time.monotonic(), 0))
            counted = taken[-1].events if taken else 0
            until(lambda n=counted: running.total("streammetrics_store_events") > n, running)  # type: ignore[misc]
            events = int(running.total("streammetrics_store_events"))
            assert running.get("results.txt")[0] == 200
            at_s = time.monotonic() - began_s
            taken.append(sample(running.process.pid, store, at_s, events))
            sys.stderr.write(f"{taken[-1]}\n")
        # Commits come ten times a second; without a compactor their rows would all be there.
        most = 6000 + 60 * events / EVENTS_S
        until(lambda: running.total("streammetrics_store_state_rows") < most, running)
        assert running.end() == 0, running.log
    middle, end = taken[SAMPLES // 2 :], taken[-1]
    assert end.memory < 1.15 * middle[0].memory + 16 * MIB
    assert (
        max(reading.files for reading in middle)
        <= max(reading.files for reading in taken[: SAMPLES // 2]) + 2
    )
    assert (
        max(reading.threads for reading in middle)
        <= max(reading.threads for reading in taken[:5]) + 4
    )
    assert max(reading.wal for reading in taken) < 64 * MIB
