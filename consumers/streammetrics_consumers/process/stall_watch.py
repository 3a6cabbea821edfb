"""The event `store_stalled`: nothing is committed, although there are events.

It cannot be in the store, into which nothing is written. The process that starts the workers knows
of each when it committed last and how far it has read, and sends the event itself, as often as
needed while the stall lasts. Its key is made of the store and of the time of the last commit: so
repetitions have one key. A worker that is killed ends no stall; the process itself, when it starts
again, counts from its start, and sends another event: no store holds when it was written last.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final

from streammetrics_consumers.config.hooks import HookConfig
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.counting.worker_status import WorkerStatus
from streammetrics_consumers.model.hook_events import STORE_STALLED
from streammetrics_consumers.process.hook_request import headers_of, post
from streammetrics_consumers.process.hook_sending import Post, pause_s
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.hook_content import stall_content

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
Statuses = Callable[[], Sequence[WorkerStatus]]


@dataclass(slots=True)
class _Stall:
    """A stall, and how far a hook has sent it. body: as it was written first."""

    start_ms: int
    body: bytes = b""
    attempts: int = 0
    due_s: float = 0.0
    is_sent: bool = False
    key: str = field(default="")


class StallWatch:
    """Watches the workers of this process for hooks that ask for it.

    store_id, generation: of the store. workers: the status of each that has sent one. monotonic,
    clock: in seconds.
    """

    def __init__(
        self,
        hooks: Sequence[HookConfig],
        store_id: str,
        generation: int,
        workers: Statuses,
        *,
        monotonic: Callable[[], float],
        clock: Callable[[], float],
        post: Post = post,
    ) -> None:
        self._hooks = [hook for hook in hooks if STORE_STALLED in hook.on]
        self._store_id, self._generation, self._workers = store_id, generation, workers
        self._monotonic, self._clock, self._post = monotonic, clock, post
        self._moved_s = monotonic()  # the last commit, or time without events, or the start
        self._stalls: dict[str, _Stall] = {}

    @property
    def is_asked_for(self) -> bool:
        """Whether a hook asks for stalls."""
        return bool(self._hooks)

    def step(self) -> None:
        """Look at the workers, and send what is due."""
        now_s, since_s = self._monotonic(), self.stalled_since_s()
        for hook in self._hooks:
            if since_s is None or now_s - since_s < hook.stalled_s:
                self._stalls.pop(hook.name, None)
                continue
            start_ms = int((self._clock() - (now_s - since_s)) * 1000)
            stall = self._stalls.setdefault(hook.name, _Stall(start_ms))
            if not stall.is_sent and now_s >= stall.due_s:
                self._send(hook, stall)

    def stalled_since_s(self) -> float | None:
        """When something was committed last, by any worker that this process ever had, or there was
        nothing to commit, by the monotonic clock; None while there is nothing."""
        statuses = self._workers()
        if not any(map(_has_events, statuses)):
            self._moved_s = self._monotonic()
            return None
        commits = [status.committed_s for status in statuses if status.committed_s is not None]
        self._moved_s = max([self._moved_s, *commits])
        return self._moved_s

    def run(self, ended: Event) -> None:
        """Watch until `ended`."""
        while not ended.wait(LOOK_S):
            self.step()

    def _send(self, hook: HookConfig, stall: _Stall) -> None:
        now_ms = int(self._clock() * 1000)
        if not stall.body:
            content = stall_content(self._store_id, self._generation, stall.start_ms, now_ms)
            stall.body, stall.key = dumps(content), content.key
        try:
            secret = hook.secret()
        except ConfigError as error:
            log.warning("hook %s: %s", hook.name, error)
            return
        headers = headers_of(secret, now_ms // 1000, stall.key, STORE_STALLED, stall.body)
        reply = self._post(hook.url, stall.body, headers, hook.timeout_s)
        stall.attempts += 1
        stall.is_sent = reply.delivered
        stall.due_s = self._monotonic() + pause_s(hook, stall.attempts)
        if reply.delivered:
            log.warning("hook %s: sent %s", hook.name, STORE_STALLED)
        else:
            log.warning("hook %s: %s: %s; trying again", hook.name, STORE_STALLED, reply.text)


def _has_events(status: WorkerStatus) -> bool:
    """Whether a worker has read, or could read, events that are not committed."""
    return any(
        (partition.counted is not None and partition.position > partition.counted)
        or (partition.end is not None and partition.end > partition.position)
        for partition in status.partitions
    )


@contextmanager
def watching_for_stalls(watch: StallWatch) -> Iterator[None]:
    """The workers are watched during the block, if a hook asks for it."""
    if not watch.is_asked_for:
        yield
        return
    ended = Event()
    thread = Thread(target=watch.run, args=(ended,), name="stalls", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
