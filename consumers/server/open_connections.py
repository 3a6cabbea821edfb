"""How many connections a server keeps open, in all and for each peer.

A connection *waits* until its request is complete, and again after its answer; in between it is
*busy*. Where there are too many, the one that has waited longest is closed, so that a new one can
always say what it asks for: whoever opens connections and sends nothing closes their own. A busy
one is never closed, and one that becomes busy past the limit is refused. Probes are not counted
as busy: they are answered past every limit.
"""

from __future__ import annotations

import ipaddress
import logging
import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

PER_PEER: Final = 64
IN_ALL: Final = 256
SILENT_S: Final = 10.0
RESERVED: Final = (8, 32)  # of one peer, in all: they may wait however many are busy
WARN_S: Final = 60.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one server. silent_s: how long a peer may take to complete its request, and to
    read more of its answer."""

    per_peer: int = PER_PEER
    in_all: int = IN_ALL
    silent_s: float = SILENT_S

    @classmethod
    def of(cls, per_peer: int) -> Limits:
        """Those of a server whose peers may have `per_peer` connections each. In all they take half
        of the files that this process may open: the store needs some too."""
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
    """The open connections of one server; of its event loop alone."""

    def __init__(self, limits: Limits, monotonic: Callable[[], float]) -> None:
        self.limits, self._monotonic = limits, monotonic
        self._waiting: dict[Droppable, None] = {}  # the one that has waited longest comes first
        self._busy: Counter[str] = Counter()
        self._warned_s = -WARN_S

    def opened(self, connection: Droppable) -> None:
        """A connection was made, and waits."""
        self._wait(connection)

    def begins(self, connection: Droppable) -> bool:
        """Its request is complete; False where it is to be refused, and waits on."""
        peer, limits = connection.peer, self.limits
        if self._busy[peer] >= limits.per_peer or self._busy.total() >= limits.in_all:
            self._warn(peer, "a request is refused")
            return False
        self._waiting.pop(connection, None)
        self._busy[peer] += 1
        return True

    def ends(self, connection: Droppable) -> None:
        """It was answered, and waits for the next request."""
        self._idle(connection.peer)
        self._wait(connection)

    def lost(self, connection: Droppable, *, busy: bool) -> None:
        """It is closed. busy: between `begins` and `ends`."""
        self._waiting.pop(connection, None)
        if busy:
            self._idle(connection.peer)

    def _idle(self, peer: str) -> None:
        self._busy[peer] -= 1
        self._busy += Counter()  # drops those at 0

    def _wait(self, connection: Droppable) -> None:
        self._waiting[connection] = None
        peer, limits = connection.peer, self.limits
        theirs = [one for one in self._waiting if one.peer == peer]
        many = len(theirs) - max(limits.per_peer - self._busy[peer], RESERVED[0])
        in_all = len(self._waiting) - max(limits.in_all - self._busy.total(), RESERVED[1])
        drop = theirs[: max(many, 0)] or list(self._waiting)[: max(in_all, 0)]
        for one in drop:
            self._warn(one.peer, "the connection that has waited longest is closed")
            del self._waiting[one]
            one.drop()

    def _warn(self, peer: str, what: str) -> None:
        now_s = self._monotonic()
        if now_s - self._warned_s < WARN_S:
            return
        self._warned_s = now_s
        log.warning(
            "%s has too many connections (at most %d of one address and %d in all): %s; behind a "
            "reverse proxy raise server.connections_per_peer",
            peer, self.limits.per_peer, self.limits.in_all, what,
        )  # fmt: skip


def peer_of(host: str) -> str:
    """Whose address it is: that of an IPv6 network of 64 bits, since one machine has all of it.

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
