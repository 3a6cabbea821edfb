"""Server-sent events, which notify a page when it should ask again.

`moved` is sent when events were counted or a look was taken, `health` when the state changes and
every few seconds, `away` if the store does not answer. They have no results: a page asks for those
that it shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.json_kinds import Answer, Json
from streammetrics_consumers.server.health import Health, HealthMonitor, HealthSnapshot

LOOK_S: Final = 1.0
HEALTH_S: Final = 5.0
WAIT_S: Final = 0.1  # how long a stream may delay the end of the server
STREAMS: Final = 32
STREAM: Final = "text/event-stream"
# A proxy that buffers an answer before it passes it on (nginx) would hold events back for ever.
HEADERS: Final = {"x-accel-buffering": "no"}


class Events:
    """The streams of one server. ended: whether the server is about to end."""

    def __init__(self, monitor: HealthMonitor, ended: Callable[[], bool]) -> None:
        self._monitor, self._ended = monitor, ended
        self._open = 0

    def answer(self, method: str) -> Response:
        """One more stream; status 503 if there are too many."""
        if method == "HEAD":
            return Response(media_type=STREAM, headers=HEADERS)
        if self._open >= STREAMS:
            raise HTTPException(503, f"{STREAMS} pages follow this server, which is the limit")
        # Counted before the first event: many may ask before one of them is sent.
        self._open += 1
        return _Stream(self._stream(), self._close)

    def _close(self) -> None:
        self._open -= 1

    async def _stream(self) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        sent: dict[str, Json] = {}
        quiet_s = HEALTH_S
        while not self._ended():
            snapshot, health = await run_in_threadpool(self._look)
            news = {"moved": _moved(snapshot), "away": None}
            if snapshot.away is not None:
                news = {"moved": sent.get("moved"), "away": {"got": snapshot.away}}
            for name, data in news.items():
                if data != sent.get(name) and data is not None:
                    yield event(name, data)
            if health.state != sent.get("state") or quiet_s >= HEALTH_S:
                yield event("health", health)
                quiet_s = 0.0
            sent = {**news, "state": health.state}
            quiet_s += LOOK_S
            await self._pause()

    def _look(self) -> tuple[HealthSnapshot, Health]:
        return self._monitor.snapshot(), self._monitor.health()

    async def _pause(self) -> None:
        for _ in range(round(LOOK_S / WAIT_S)):
            if not self._ended():
                await asyncio.sleep(WAIT_S)


class _Stream(StreamingResponse):
    """A stream that calls `close` when it ends, whether or not it was begun."""

    def __init__(self, content: AsyncIterator[bytes], close: Callable[[], None]) -> None:
        super().__init__(content, media_type=STREAM, headers=HEADERS)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()


def event(name: str, data: Json | Answer) -> bytes:
    r"""One event. Its data is one line: the JSON has only the final line break.

    >>> event("moved", {"looks": 1})
    b'event: moved\ndata: {"looks": 1}\n\n'
    """
    return b"event: " + name.encode() + b"\ndata: " + dumps(data) + b"\n"


def _moved(snapshot: HealthSnapshot) -> Json:
    return {
        "moment": snapshot.version,
        "outline": snapshot.outline,
        "rows_read": snapshot.counters.rows,
        "looks": snapshot.looks,
    }
