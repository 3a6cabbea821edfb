"""Tasks that fail on their first try: a fault happens once, where a file says whether it has."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Batches = Iterator["pa.RecordBatch"]
SLOW_S = 120


def failing_once(df: DataFrame, how: str, mark: Path) -> DataFrame:
    """The same table, but one task that reads it fails once, after its first batch.

    how: "raise", an exception; "exit", the process ends without a word; "killed", the executor is
    killed; "slow", the task waits until its second, speculative try is done (the file `mark second`
    says that there was one).
    """
    return df.mapInArrow(_fault(how, str(mark)), df.schema)


def _fault(how: str, mark: str) -> Callable[[Batches], Batches]:
    def fault(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if how == "slow" and context.attemptNumber() > 0:
            os.close(os.open(f"{mark} second", os.O_CREAT))
        for batch in batches:
            yield batch
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            if how == "exit":
                os._exit(1)
            elif how == "killed":
                os.kill(_parent(os.getppid()), signal.SIGKILL)  # of pyspark's daemon: the executor
            elif how == "slow":
                limit = time.monotonic() + SLOW_S
                while not os.path.exists(f"{mark} second") and time.monotonic() < limit:
                    time.sleep(0.1)
            else:
                raise RuntimeError("a fault of the test")

    return fault


def _parent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])
