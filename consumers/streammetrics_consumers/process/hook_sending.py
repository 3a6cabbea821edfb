"""Sending the events of hooks, which looks have added to the ledger.

Separate threads send them, one for each hook that has something to send, so that neither counting
nor another hook waits for a receiver. What cannot be sent stays in the ledger, also over a restart.
Each event arrives at least once, always as the same bytes; its key identifies it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Final

from streammetrics_consumers.config.hooks import HookConfig
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.outbox import HookRow, claim, due_hooks, note_answer
from streammetrics_consumers.ledger.sent_hooks import SentHooks
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.hook_events import HookState
from streammetrics_consumers.process.hook_request import HookReply, headers_of, post

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0  # between two looks for something to send
END_S: Final = 15.0  # to send the rest, when the run ends
SPARE_S: Final = 30.0  # of a claim, beside the time of an attempt
Post = Callable[[str, bytes, Mapping[str, str], float], HookReply]


class HookSender:
    """Sends what is due of these hooks. clock: seconds since 1970."""

    def __init__(
        self,
        store: Store,
        hooks: Sequence[HookConfig],
        clock: Callable[[], float],
        post: Post = post,
    ) -> None:
        self._store, self._clock, self._post = store, clock, post
        self._hooks = {hook.name: hook for hook in hooks}
        self._sent = SentHooks(store)
        self._warned: dict[str, str] = {}  # by hook, the last warning; "" has those of the store
        self._threads: dict[str, Thread] = {}
        self._file = Lock()  # of what was sent
        self._ends = Event()

    def begin(self) -> None:
        """Have the ledger know what was sent from it, before a look adds anything. Raises
        LedgerError, and OSError."""
        self._begin()

    def run(self, ended: Event) -> None:
        """Send until `ended`, and then what is due, for a while."""
        while True:
            last = ended.wait(LOOK_S)
            self.step()
            if last:
                self._finish()
                return

    def step(self) -> None:
        """Start to send what is due."""
        for name, thread in list(self._threads.items()):
            if not thread.is_alive():
                del self._threads[name]
        free = self._hooks.keys() - self._threads.keys()
        try:
            now_ms = self._now_ms()
            due = self._store.read(lambda read: due_hooks(read, free, now_ms), patient=False)
            if not due or not self._begin():
                return
        except (LedgerError, OSError) as error:
            self._warn("", f"hooks wait: {error}")
            return
        for name in sorted(due):
            thread = Thread(target=self._send, args=(self._hooks[name],), name="hook", daemon=True)
            self._threads[name] = thread
            thread.start()

    def _begin(self) -> bool:
        """Whether anything may be sent."""
        with self._file:
            why = self._sent.begin(self._now_ms())
        if why is None:
            self._warned.pop("", None)
            return True
        self._warn(
            "",
            f"hooks are held, and nothing is sent: {why}; `streammetrics hooks STORE` shows them, "
            "and releases or drops them",
        )
        return False

    def _warn(self, name: str, text: str) -> None:
        """Log a warning, unless it is the last one of this hook."""
        if self._warned.get(name) != text:
            self._warned[name] = text
            log.warning("%s", text)

    def _finish(self) -> None:
        """Wait for attempts, and make those that are due meanwhile."""
        deadline_s = self._clock() + END_S
        while self._threads and self._clock() < deadline_s:
            for thread in list(self._threads.values()):
                thread.join(max(0.0, deadline_s - self._clock()))
            self.step()
        self._ends.set()

    def _send(self, hook: HookConfig) -> None:
        """Send all that is due of a hook."""
        try:
            while not self._ends.is_set() and self._send_one(hook):
                self._warned.pop(hook.name, None)
        except (LedgerError, OSError, ConfigError) as error:
            self._warn(hook.name, f"hook {hook.name} waits: {error}")

    def _send_one(self, hook: HookConfig) -> bool:
        """Make one attempt; returns whether anything was due."""
        secret = hook.secret()
        claim_ms = int((hook.timeout_s + SPARE_S) * 1000)
        row = claim(self._store, hook.name, hook.host, self._now_ms(), claim_ms)
        if row is None:
            return False
        message = row.message
        with self._file:
            self._sent.attempts(row)
        headers = headers_of(
            secret, int(self._clock()), message.key, message.subject.event, message.body
        )
        reply = self._post(hook.url, message.body, headers, hook.timeout_s)
        state, due_ms = self._next_state(hook, row, reply)
        if state != "waiting":
            with self._file:
                self._sent.ended(row, state, reply.text)
        is_noted = note_answer(self._store, row, state, reply.text, self._now_ms(), due_ms)
        self._report(hook, row, state, reply, is_noted=is_noted)
        return True

    def _next_state(
        self, hook: HookConfig, row: HookRow, reply: HookReply
    ) -> tuple[HookState, int]:
        """The state after an attempt, and when the next one is due."""
        now_ms = self._now_ms()
        if reply.delivered:
            return "sent", now_ms
        if now_ms - row.message.created_ms >= hook.give_up_s * 1000:
            return "failed", now_ms
        return "waiting", now_ms + int(pause_s(hook, row.attempts) * 1000)

    def _report(
        self, hook: HookConfig, row: HookRow, state: HookState, reply: HookReply, *, is_noted: bool
    ) -> None:
        subject = row.message.subject
        description = formatting.name(
            " ".join(filter(None, (subject.event, row.message.name, subject.metric, subject.arm))),
            200,
        )
        if state == "sent":
            log.info("hook %s: sent %s", hook.name, description)
        else:
            ends = "given up" if state == "failed" else "trying again"
            if not is_noted:
                ends = "it was held, dropped or tried again meanwhile"
            log.warning("hook %s: %s: %s; %s", hook.name, description, reply.text, ends)

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def pause_s(hook: HookConfig, attempts: int) -> float:
    """The pause after this number of attempts.

    >>> hook = HookConfig("https://x.example", ("worse",), retry_s=1.0, max_retry_s=5.0)
    >>> [pause_s(hook, attempts) for attempts in (1, 2, 3, 4, 10_000)]
    [1.0, 2.0, 4.0, 5.0, 5.0]
    """
    return float(min(hook.retry_s * 2.0 ** min(attempts - 1, 60), hook.max_retry_s))


def require_secrets(hooks: Sequence[HookConfig]) -> None:
    """Raise ConfigError where a secret is missing, before a run begins."""
    for hook in hooks:
        hook.secret()


@contextmanager
def sending(
    hooks: Sequence[HookConfig], store: Store, clock: Callable[[], float], post: Post = post
) -> Iterator[None]:
    """Events of hooks are sent during the block. Raises LedgerError, and ConfigError."""
    if not hooks:
        yield
        return
    require_secrets(hooks)
    sender, ended = HookSender(store, hooks, clock, post), Event()
    sender.begin()
    thread = Thread(target=sender.run, args=(ended,), name="hooks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(END_S + LOOK_S)
