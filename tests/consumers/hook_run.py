"""Runs with hooks: a config whose arm `old` is worse, and a receiver in a thread of the test."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.outbox import HookRow, read_rows

from tests.consumers.experiment_run import write

SECRET: Final = b"a secret of the tests, 32 bytes."
NOWHERE: Final = "http://127.0.0.1:9/"  # where nobody listens
VARIABLE: Final = "STREAMMETRICS_TEST_SECRET"
os.environ[VARIABLE] = SECRET.decode()
HARM: Final = ("guardrail_broken", "worse", "sample_ratio", "recommendation")


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived. is_good: whether its signature is that of the body."""

    path: str
    headers: dict[str, str]
    body: bytes
    is_good: bool

    @property
    def event(self) -> dict[str, Any]:
        """The event in the body."""
        event: dict[str, Any] = json.loads(self.body)
        return event

    @property
    def subject(self) -> tuple[object, ...]:
        """What no receiver may get with two contents."""
        event = self.event
        action = event["recommendation"]["action"] if event["event"] == "recommendation" else None
        return event["experiment"], event["event"], event["metric"], event["arm"], action


@dataclass
class Receiver:
    """What was received, and the status of each answer: 503 while it is away, else one of `answers`
    after the other, and then 204. delivered: what was answered so."""

    answers: list[int] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    delivered: list[Received] = field(default_factory=list)
    away: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    before_answer: Callable[[], None] = lambda: None
    url: str = ""

    @property
    def subjects(self) -> list[tuple[object, ...]]:
        """What was received, without repetitions of one key."""
        by_key = {request.headers["Idempotency-Key"]: request.subject for request in self.received}
        return list(by_key.values())

    def require_good(self) -> None:
        """Each is signed, and no event was received with two contents or two keys."""
        assert all(arrival.is_good for arrival in self.received)
        contents: dict[tuple[object, ...], set[bytes]] = {}
        for request in self.received:
            assert request.headers["Idempotency-Key"] == request.event["key"]
            contents.setdefault(request.subject, set()).add(request.body)
        assert {subject for subject, bodies in contents.items() if len(bodies) > 1} == set()


@contextmanager
def receiving(receiver: Receiver | None = None) -> Iterator[Receiver]:
    """A receiver that listens during the block."""
    receiver = receiver or Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            signed = self.headers["Streammetrics-Timestamp"].encode() + b"." + body
            digest = hmac.new(SECRET, signed, hashlib.sha256).hexdigest()
            is_good = self.headers["Streammetrics-Signature"] == f"sha256={digest}"
            receiver.received.append(Received(self.path, dict(self.headers.items()), body, is_good))
            status = receiver.answers.pop(0) if receiver.answers else 204
            status = 503 if receiver.away else status
            if status == 204:
                receiver.delivered.append(receiver.received[-1])
            receiver.before_answer()
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hooks/of-tests?token=of-the-address"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def hook(
    url: str,
    events: Sequence[str] = HARM,
    rest: str = "",
    name: str = "flags",
    retry_s: float = 0.05,
) -> str:
    """The table of a hook, which tries again at once, or only after a run with a longer pause."""
    return (
        f'[hooks.{name}]\nurl = "{url}"\non = {json.dumps(list(events))}\n'
        f'secret_env = "{VARIABLE}"\nretry_s = {retry_s}\nmax_retry_s = {4 * retry_s}\n{rest}\n'
    )


def config(folder: Path, hooks: str, rows: int = 2000) -> Path:
    """The config of a small experiment in which `old` is worse and breaks its guardrail."""
    path = write(folder, rows=rows)
    text = path.read_text(encoding="utf-8")
    text = text.replace('control = "old"', 'control = "new"').replace(
        'ctr = { type = "Ratio", better = "higher" }',
        'ctr = { type = "Ratio", better = "higher" }\nrail = { type = "Ratio", better = "higher" }',
    )
    rail = 'guardrails = [{ metric = "rail", margin = 0.02 }]\n'
    path.write_text(text + "\nmdes = { rail = 0.05 }\n" + rail + hooks, encoding="utf-8")
    return path


def rows_of(store: Path | str) -> list[HookRow]:
    """The events of hooks that a store has, the oldest first."""
    with closing(Ledger.open(str(store))) as ledger:
        return ledger.store.read(read_rows)[::-1]


def looks_of(store: Path | str) -> int:
    """The number of looks that a store has."""
    with closing(Ledger.open(str(store))) as ledger:
        query = select(schema.look.c.id)
        return len(ledger.store.read(lambda connection: connection.execute(query).all()))
