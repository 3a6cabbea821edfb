"""`streammetrics` in a process that stands still the n-th time it comes to a point, and goes on.

    python -m tests.consumers.paused_worker POINT N GO NOTES run CONFIG --no-serve

GO is a file: the worker waits until it is there, and its other threads live on (a slow update). Or
it is "SIGSTOP", which stops all of them, until someone sends SIGCONT; "SIGTERM", which asks it to
end and lets it go on; or "SIGTERM SIGTERM", which asks twice. The points are those of
`interleaved.py`; "-" stands for none. Each commit that the ledger took adds a line to the file
NOTES: the number of the partition and its head before and after. Beside it lies the tally of each
process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.generation import Generation

from tests.consumers.killed_worker import Fuse, Tally, install

PAUSED = "the worker pauses"


class Pause(Fuse):
    """Stands still at one point in the life of this process."""

    def __init__(self, point: str, count: int, go: str) -> None:
        super().__init__(point, count)
        self.go = go

    def passes(self, point: str) -> None:
        if point != self.point:
            return
        self.left -= 1
        if self.left:
            return
        os.write(2, f"{PAUSED}\n".encode())
        if self.go.startswith("SIG"):
            for name in self.go.split():
                os.kill(os.getpid(), signal.Signals[name])
                time.sleep(0.2 if name == "SIGTERM" else 0)  # it is heard by the main thread
        else:
            while not Path(self.go).exists():
                time.sleep(0.02)


def note_commits(notes: str) -> None:
    """From now on each commit that the ledger takes is written down, in one write."""
    file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    true_commit = Ledger.commit

    def commit(self: Ledger, of: Generation, commit: Commit) -> Head:
        head = true_commit(self, of, commit)
        os.write(file, f"{head.partition.number} {commit.start} {commit.end}\n".encode())
        return head

    Ledger.commit = commit  # type: ignore[method-assign]


if __name__ == "__main__":
    point, count, go, notes, *command = sys.argv[1:]
    note_commits(notes)
    install(Pause(point, int(count), go), Tally(f"{notes}.{os.getpid()}"))
    raise SystemExit(main(command))
