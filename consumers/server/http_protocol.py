"""HTTP over one connection, by uvicorn, with what uvicorn has not: time limits and a limit of
connections. The same deadline holds whenever it is the peer's turn: to complete a request, and to
read more of an answer."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final, cast

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from consumers.server.open_connections import OpenConnections, peer_of
from consumers.server.probes import PROBES

SEND_BUFFER: Final = 1 << 18  # bytes of an answer that the system keeps for a slow reader
STALL: Final = 3  # times `silent_s`: how long a reader may take none of an answer
REFUSAL: Final = PlainTextResponse(
    "too many requests at once from this address\n", 503, {"retry-after": "1"}
)


class HttpProtocol(H11Protocol):
    """One connection. connections: those of its server; the rest is uvicorn's."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: OpenConnections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.peer = ""
        self._open = connections
        self._inner, self.app = cast(ASGIApp, self.app), cast(Any, self._answer)
        self._requests = 0  # that are counted as busy: one, or two while the first one ends
        self._deadline: asyncio.TimerHandle | None = None
        self._lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A peer has connected."""
        super().connection_made(transport)
        self.peer = peer_of(self.client[0] if self.client else "")
        found: socket.socket = transport.get_extra_info("socket")
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        # Linux then notices a peer that has vanished without a word, such as a laptop that was
        # closed, while an answer or a stream goes out to it.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            limit_ms = int(1000 * STALL * self._open.limits.silent_s)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit_ms)
        self._peers_turn()
        self._open.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self._our_turn()
        self._open.lost(self, busy=self._requests > 0)
        self._requests, self._lost = 0, True
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The peer does not read as fast as we answer."""
        super().pause_writing()
        self._peers_turn()

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        if self._requests:
            self._our_turn()

    def drop(self) -> None:
        """Close it at once."""
        self.transport.abort()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in PROBES and not self._begins():
            await REFUSAL(scope, receive, send)
            self.transport.close()
            return
        self._our_turn()
        try:
            await self._inner(scope, receive, send)
        finally:
            if scope["path"] not in PROBES:
                self._ends()
            if not self._requests and not self._lost:
                self._peers_turn()

    def _begins(self) -> bool:
        if not self._requests and not self._open.begins(self):
            return False
        self._requests += 1
        return True

    def _ends(self) -> None:
        if not self._requests:
            return  # it was closed
        self._requests -= 1
        if not self._requests:
            self._open.ends(self)

    def _peers_turn(self) -> None:
        self._our_turn()
        self._wait()

    def _our_turn(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _wait(self) -> None:
        unread = self.transport.get_write_buffer_size()
        limit_s = self._open.limits.silent_s * (STALL if unread else 1)
        self._deadline = self.loop.call_later(limit_s, self._late, unread)

    def _late(self, before: int) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread < before:  # it reads, however slowly
            self._wait()
        elif unread:
            self.transport.abort()
        else:
            self.transport.close()
