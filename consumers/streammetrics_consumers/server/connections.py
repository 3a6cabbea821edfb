"""HTTP connections of uvicorn, with two limits that uvicorn lacks: on time and on the number of
connections. The same deadline holds whenever it is the peer's turn: to complete a request, and to
read more of an answer."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from streammetrics_consumers.config.tables import ServerConfig

PROBES: Final = ("/healthz", "/readyz", "/metrics")  # answered however many requests are busy
PER_PEER: Final = ServerConfig().connections_per_peer
IN_ALL: Final = 256
SILENT_S: Final = 10.0
RESERVED: Final = (8, 32)  # of one peer, in all: these may wait however many are busy
WARN_S: Final = 60.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one server. silent_s: the time that a peer has to complete its request, and to
    read more of its answer."""

    per_peer: int = PER_PEER
    in_all: int = IN_ALL
    silent_s: float = SILENT_S

    @classmethod
    def from_peers(cls, per_peer: int) -> Limits:
        """The limits of a server with `per_peer` connections for each peer. In all, connections
        take at most half of the files that this process may open: the store needs some too."""
        in_all = max(IN_ALL, 2 * per_peer)
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if files != resource.RLIM_INFINITY:
            in_all = min(in_all, files // 2)
        return cls(per_peer, in_all)


class Droppable(Protocol):
    """An open connection."""

    peer: str

    def drop(self) -> None:
        """Close it at once."""


class OpenConnections:
    """The open connections of one server. Only its event loop may use them."""

    def __init__(self, limits: Limits, monotonic: Callable[[], float]) -> None:
        self.limits, self._monotonic = limits, monotonic
        self._waiting: dict[Droppable, None] = {}  # the one that has waited longest comes first
        self._busy: Counter[str] = Counter()
        self._probing: dict[Droppable, None] = {}  # their probes are answered: they stay open
        self._warned_s = -WARN_S

    def opened(self, connection: Droppable) -> None:
        """Add a new connection, which waits for its first request."""
        self._wait(connection)

    def begins(self, connection: Droppable) -> bool:
        """Its request is complete. False if it must be refused; the connection then still waits."""
        peer, limits = connection.peer, self.limits
        if self._busy[peer] >= limits.per_peer or self._busy.total() >= limits.in_all:
            self._warn(peer, "a request is refused")
            return False
        self._waiting.pop(connection, None)
        self._busy[peer] += 1
        return True

    def ends(self, connection: Droppable) -> None:
        """Its request was answered, and it waits for the next one."""
        self._idle(connection.peer)
        self._wait(connection)

    def begins_probe(self, connection: Droppable) -> None:
        """Its probe is complete. It counts for no limit and is not closed until `ends_probe`,
        unless its peer has many of them: those count as waiting."""
        n_probes = sum(prober.peer == connection.peer for prober in self._probing)
        if n_probes < RESERVED[0] and len(self._probing) < RESERVED[1]:
            self._probing[connection] = None
            self._waiting.pop(connection, None)

    def ends_probe(self, connection: Droppable) -> None:
        """Its probe was answered, and it waits for the next request."""
        if connection in self._probing:
            del self._probing[connection]
            self._wait(connection)

    def lost(self, connection: Droppable, *, busy: bool) -> None:
        """Remove a closed connection. busy: whether it was between `begins` and `ends`."""
        self._waiting.pop(connection, None)
        self._probing.pop(connection, None)
        if busy:
            self._idle(connection.peer)

    def _idle(self, peer: str) -> None:
        self._busy[peer] -= 1
        self._busy += Counter()  # drops those at 0

    def _wait(self, connection: Droppable) -> None:
        self._waiting[connection] = None
        peer, limits = connection.peer, self.limits
        peer_waiters = [waiter for waiter in self._waiting if waiter.peer == peer]
        many = len(peer_waiters) - max(limits.per_peer - self._busy[peer], RESERVED[0])
        in_all = len(self._waiting) - max(limits.in_all - self._busy.total(), RESERVED[1])
        drop = peer_waiters[: max(many, 0)] or list(self._waiting)[: max(in_all, 0)]
        for waiter in drop:
            self._warn(waiter.peer, "the connection that has waited longest is closed")
            del self._waiting[waiter]
            waiter.drop()

    def _warn(self, peer: str, action: str) -> None:
        now_s = self._monotonic()
        if now_s - self._warned_s < WARN_S:
            return
        self._warned_s = now_s
        log.warning(
            "%s has too many connections (at most %d from one address and %d in all): %s; behind "
            "a reverse proxy raise server.connections_per_peer",
            peer, self.limits.per_peer, self.limits.in_all, action,
        )  # fmt: skip


def peer_of(host: str) -> str:
    """The peer of an address; for IPv6 its /64 network, since one machine has all of it.

    >>> peer_of("10.0.0.7"), peer_of("2001:db8::1:2"), peer_of("::ffff:10.0.0.7")
    ('10.0.0.7', '2001:db8::/64', '10.0.0.7')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))


SEND_BUFFER: Final = 1 << 18  # bytes of an answer that the kernel buffers for a slow reader
STALL: Final = 3  # times `silent_s`: how long a reader may read nothing of an answer
REFUSAL: Final = PlainTextResponse(
    "too many requests at once from this address\n", 503, {"retry-after": "1"}
)


class HttpProtocol(H11Protocol):
    """One connection. connections: those of its server; the other arguments are uvicorn's."""

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
        self._requests = 0  # counted as busy: one, or two while the first one ends
        self._probes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A peer has connected."""
        super().connection_made(transport)
        self.peer = peer_of(self.client[0] if self.client else "")
        tcp_socket: socket.socket = transport.get_extra_info("socket")
        tcp_socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        # Linux then detects a peer that vanished without closing the connection, such as a laptop
        # that was shut, while an answer or a stream is sent to it.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            limit_ms = int(1000 * STALL * self._open.limits.silent_s)
            tcp_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit_ms)
        self._peers_turn()
        self._open.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._our_turn()
        self._open.lost(self, busy=self._requests > 0)
        self._requests, self._lost = 0, True
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The peer does not read as fast as we write."""
        super().pause_writing()
        self._peers_turn()

    def resume_writing(self) -> None:
        """The peer has read enough for us to write again."""
        super().resume_writing()
        if self._requests or self._probes:
            self._our_turn()

    def drop(self) -> None:
        """Close it at once."""
        self.transport.abort()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_probe = scope["path"] in PROBES
        if is_probe:
            self._probes += 1
            if not self._requests:
                self._open.begins_probe(self)
        elif not self._begins():
            await REFUSAL(scope, receive, send)
            self.transport.close()
            return
        self._our_turn()
        try:
            await self._inner(scope, receive, send)
        finally:
            if is_probe:
                self._probes -= 1
            else:
                self._ends()
            if not self._requests and not self._probes and not self._lost:
                self._open.ends_probe(self)
                self._peers_turn()

    def _begins(self) -> bool:
        if not self._requests and not self._open.begins(self):
            return False
        self._requests += 1
        return True

    def _ends(self) -> None:
        if not self._requests:
            return  # the connection was lost
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
