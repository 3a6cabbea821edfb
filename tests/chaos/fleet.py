"""Worker processes that are killed, stopped, ended and started again, and what became of them."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.consumers.killed_worker import Tally
from tests.consumers.simulation.lives import POINTS
from tests.patience import LIMIT_S
from tests.requirements import ROOT

SESSION_S = 1.0  # after which the group forgets a member that says nothing
ZOMBIE = "stop at before the transaction"  # it wakes when its session is over
SLEEP_LIMIT_S = 30.0
TRY_AGAIN = 75  # the exit code of a worker that could not reach its broker or store


@dataclass
class Process:
    """One worker: how it was started, and when it goes on if it is stopped."""

    popen: subprocess.Popen[bytes]
    name: str
    fused: bool  # it kills itself at some point
    zombie: bool  # it stands still before a commit
    wakes_s: float | None = None
    overtaken: int = 0  # it sleeps on until others have counted so many records
    asked: bool = False  # to end


class Fleet:
    """Some workers of one group. `seen` counts what was done to them: at most `kills` deaths."""

    def __init__(
        self, config: Path, folder: Path, size: int, kills: int, rng: random.Random
    ) -> None:
        self.config, self.folder, self.size, self.rng = config, folder, size, rng
        self.kills = kills
        self.seen: Counter[str] = Counter()
        self.workers: list[Process] = []
        self.produced = self.counted = 0  # records, as the siege knows them
        self._started = 0
        self._stood: dict[str, int] = {}  # who was stopped, and its refused commits before

    def fill(self, *, fused: bool) -> None:
        """Start as many as are missing; with `fused`, half of them will kill themselves, and until
        a zombie's commit was refused one of them will be the next zombie."""
        while len(self.workers) < self.size:
            self._started += 1
            name = f"worker-{self._started}"
            draw = self.rng.random()
            burns = fused and self._kills_left() > 0 and draw < 0.5
            point = self.rng.choice(POINTS) if burns else "-"
            needed = (
                fused and not any(worker.zombie for worker in self.workers) and not self.refused()
            )
            zombie = needed or (fused and draw > 0.8)
            if zombie:
                burns, point = False, ZOMBIE
            count = 1 if needed else self.rng.randrange(1, 5)
            command = [sys.executable, "-m", "tests.consumers.killed_worker", point]
            command += [str(count), str(self.folder / f"{name}.tally")]
            with (self.folder / f"{name}.log").open("wb") as log:
                popen = subprocess.Popen(
                    [*command, "run", str(self.config), "--no-serve"],
                    cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                )  # fmt: skip
            self.workers.append(Process(popen, name, burns, zombie))

    def tend(self) -> None:
        """Wake those whose time has come, and take note of those that have ended."""
        for worker in list(self.workers):
            if worker.wakes_s is None and _is_stopped(worker.popen.pid):
                self._note_stop(worker)
            if worker.wakes_s is not None and self._may_wake(
                worker, time.monotonic() - worker.wakes_s
            ):
                worker.popen.send_signal(signal.SIGCONT)
                worker.wakes_s, worker.zombie = None, False
            code = worker.popen.poll()
            if code is None:
                continue
            self.workers.remove(worker)
            if code == -signal.SIGKILL:
                self.seen["kills"] += 1
            elif code == TRY_AGAIN:
                self.seen["gave up"] += 1
            elif code == -signal.SIGTERM and not self._has_begun(worker):
                continue  # it was asked before Python could hear
            elif code or not worker.asked:
                log = (self.folder / f"{worker.name}.log").read_text(errors="replace")
                raise AssertionError(f"{worker.name} ended with {code}:\n{log[-4000:]}")

    def kill(self, most: int) -> None:
        """SIGKILL to some of them at the same moment."""
        for worker in self._sample(most):
            if worker.fused or self._kills_left() > 0:
                worker.fused = True  # its death is counted when it is seen
                worker.popen.kill()

    def stop(self) -> None:
        """SIGSTOP to one of them; SIGCONT follows when its session is over."""
        for worker in self._sample(1):
            if worker.wakes_s is None:
                worker.popen.send_signal(signal.SIGSTOP)
                self._note_stop(worker)

    def ask(self) -> None:
        """SIGTERM to one of them. If it has read anything, it must end with code 0."""
        for worker in self._sample(1):
            self._ask(worker)

    def have_zombie(self) -> None:
        """Ask one of them to end if none is a zombie, or about to end: the next one will be."""
        if not any(worker.zombie or worker.asked for worker in self.workers):
            self.ask()

    def end(self, limit_s: float = LIMIT_S) -> None:
        """SIGTERM to all. Each must end in time, with code 0 or by a fuse that burns."""
        for worker in self.workers:
            worker.wakes_s = -SLEEP_LIMIT_S if worker.wakes_s is not None else None
            self._ask(worker)
        limit = time.monotonic() + limit_s
        while self.workers:
            assert time.monotonic() < limit, f"{self.workers} do not end"
            time.sleep(0.05)
            self.tend()

    def close(self) -> None:
        """End whatever is left, by force."""
        for worker in self.workers:
            worker.popen.kill()
            worker.popen.wait()

    def tallies(self) -> tuple[int, ...]:
        """The sum of all tallies: taken, duplicates, commits, fenced."""
        counts = [Tally.read(path) for path in sorted(self.folder.glob("*.tally"))]
        return tuple(map(sum, zip(*counts, strict=True))) if counts else (0, 0, 0, 0)

    def refused(self) -> int:
        """How many of those that were stopped had a commit refused when they woke."""
        return sum(self._fenced(name) > before for name, before in self._stood.items())

    def _fenced(self, name: str) -> int:
        return Tally.read(self.folder / f"{name}.tally")[3]

    def _has_begun(self, worker: Process) -> bool:
        return (self.folder / f"{worker.name}.tally").exists()

    def _ask(self, worker: Process) -> None:
        if not worker.asked:
            worker.asked = True
            worker.popen.terminate()
            self.seen["asked to end"] += 1

    def _note_stop(self, worker: Process) -> None:
        worker.wakes_s = time.monotonic() + self.rng.uniform(2, 4) * SESSION_S
        worker.overtaken = self.produced if worker.zombie else 0
        self._stood.setdefault(worker.name, self._fenced(worker.name))
        self.seen["stops"] += 1

    def _may_wake(self, worker: Process, late_s: float) -> bool:
        """Its time is over. Who holds what it was about to commit is overtaken first, but does not
        wait for ever: all others may be zombies too."""
        return late_s >= SLEEP_LIMIT_S or (late_s >= 0 and self.counted >= worker.overtaken)

    def _kills_left(self) -> int:
        return self.kills - self.seen["kills"] - sum(worker.fused for worker in self.workers)

    def _sample(self, most: int) -> list[Process]:
        """Of those that are awake: one that sleeps is to wake as a zombie."""
        self.tend()
        awake = [worker for worker in self.workers if worker.wakes_s is None]
        return self.rng.sample(awake, min(self.rng.randrange(1, most + 1), len(awake)))


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False
