"""A process that looks at an experiment, and kills itself (SIGKILL) at a point of it.

It looks once for each time that it is sent, in seconds, and answers a line: whether it took the
states, and whether a look was new. "none" is no point.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from multiprocessing import connection as pipes
from typing import Any

import streammetrics_consumers.process.experiment_looks as looking
from sqlalchemy import Connection, Engine, event
from streammetrics_consumers.ledger.ledger import Ledger

from tests.consumers.killed_worker import Fuse

POINTS = ("before the claim", "in the claim", "after the claim", "with the states read",
          "in the look", "after the look")  # fmt: skip
EVERY_S = 60.0


def install(fuse: Fuse, engine: Engine) -> list[str]:
    """From now on this process passes its points; what it did is added to what is answered."""
    module: Any = looking
    claim, view, take = module.claim, module.view, module.take
    done: list[str] = []
    within = [""]

    def claimed(*arguments: Any, **more: Any) -> bool:
        fuse.passes("before the claim")
        within[0] = "in the claim"
        found = bool(claim(*arguments, **more))
        within[0] = ""
        if found:
            fuse.passes("after the claim")
        return found

    def viewed(*arguments: Any, **more: Any) -> Any:
        found = view(*arguments, **more)
        done.append("read")
        fuse.passes("with the states read")
        return found

    def taken(*arguments: Any) -> bool:
        within[0] = "in the look"
        found = bool(take(*arguments))
        within[0] = ""
        fuse.passes("after the look")
        if found:
            done.append("new")
        return found

    def commits(_: Connection) -> None:
        if within[0]:
            fuse.passes(within[0])  # all is written, and nothing is there yet

    module.claim, module.view, module.take = claimed, viewed, taken
    event.listen(engine, "commit", commits)
    return done


def answering(ledger: Ledger, fuse: Fuse) -> Callable[[float], str]:
    """From now on this process looks when it is called, and answers what it did."""
    done, number = install(fuse, ledger.store.engine), ledger.generation().id

    def answer(now_s: float) -> str:
        done.clear()
        clock = partial(float, now_s)
        looking.Looker(ledger, number, EVERY_S, monotonic=lambda: 0.0, clock=clock).step()
        return " ".join(done)

    return answer


def look(point: str, store: str, asked: pipes.Connection[str, float]) -> None:
    """Be such a process, until nobody can ask any more."""
    with closing(Ledger.open(store)) as ledger, suppress(EOFError):
        answer = answering(ledger, Fuse(point, 1))
        while True:
            asked.send(answer(asked.recv()))
