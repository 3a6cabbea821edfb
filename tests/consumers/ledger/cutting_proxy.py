"""A proxy before PostgreSQL that cuts a connection at a named moment of its next COMMIT.

before   the COMMIT does not reach the server, which undoes the transaction
late     the connection is cut at once, and the COMMIT reaches the server a while after that
after    the COMMIT is executed, and its answer does not come back
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal

from sqlalchemy.engine import URL, make_url

from tests.patience import LIMIT_S

Moment = Literal["before", "late", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "late", "after")

COMMIT = b"COMMIT\0"  # as the client sends it, and as the server answers
LATE_S = 0.15


class CuttingProxy:
    """Listens on a port of its own; `url` is that of the store through it."""

    def __init__(self, url: str) -> None:
        self._target: URL = make_url(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        query = {key: value for key, value in self._target.query.items() if key != "host"}
        address = self._target.set(
            host="127.0.0.1", port=self._listener.getsockname()[1], query=query
        )
        # Encrypted traffic cannot be read.
        address = address.update_query_dict({"sslmode": "disable", "gssencmode": "disable"})
        self.url = address.render_as_string(hide_password=False)
        self.moment: Moment | None = None  # cut there once
        self.choose: Callable[[], Moment | None] | None = None  # asked at every COMMIT
        self.cuts: Counter[str] = Counter()
        self._links: list[_Link] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                try:
                    server = self._connect()
                except OSError:  # the server is away
                    client.close()
                    continue
                self._links.append(_Link(self, client, server))

    def _connect(self) -> socket.socket:
        folder = self._target.query.get("host")
        if folder is None:
            return socket.create_connection(
                (self._target.host or "localhost", self._target.port or 5432)
            )
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(f"{folder}/.s.PGSQL.{self._target.port or 5432}")
        except OSError:
            server.close()
            raise
        return server

    def due(self) -> Moment | None:
        """Where to cut the COMMIT that has just come."""
        moment, self.moment = self.moment, None
        if moment is None and self.choose is not None:
            moment = self.choose()
        if moment is not None:
            self.cuts[moment] += 1
        return moment

    def close(self) -> None:
        """End all connections, and take no more."""
        _shut(self._listener)
        self._accepting.join()
        self._listener.close()
        for link in self._links:
            link.close()


class _Link:
    def __init__(self, proxy: CuttingProxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self.is_swallowing = False
        self.is_committed = threading.Event()
        self.threads = [
            threading.Thread(target=pump, daemon=True) for pump in (self._up, self._down)
        ]
        for thread in self.threads:
            thread.start()

    def _up(self) -> None:
        for data in _received(self.client):
            moment = self.proxy.due() if COMMIT in data else None
            if moment == "before":
                break
            if moment == "late":
                _shut(self.client)
                time.sleep(LATE_S)
            self.is_swallowing = moment == "after"
            with contextlib.suppress(OSError):
                self.server.sendall(data)
            if moment == "late":
                self.is_committed.wait(LIMIT_S)  # a server that finds us gone earlier undoes it
                break
        _shut(self.client), _shut(self.server)

    def _down(self) -> None:
        for data in _received(self.server):
            if COMMIT in data:
                self.is_committed.set()
            if self.is_swallowing and COMMIT in data:
                break
            with contextlib.suppress(OSError):
                self.client.sendall(data)
        _shut(self.client), _shut(self.server)

    def close(self) -> None:
        _shut(self.client), _shut(self.server)
        for thread in self.threads:
            thread.join()
        self.client.close()
        self.server.close()


def _received(link: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        while data := link.recv(1 << 16):
            yield data


def _shut(link: socket.socket) -> None:
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
