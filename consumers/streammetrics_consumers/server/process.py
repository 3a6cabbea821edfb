"""A server in a thread beside the counting loop: it only reads the store."""

from __future__ import annotations

import asyncio
import socket
from asyncio import Protocol
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from errno import EACCES, EADDRINUSE
from functools import partial
from threading import Event, Thread
from typing import Final, cast

import uvicorn

from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server import ServeError
from streammetrics_consumers.server.application import application
from streammetrics_consumers.server.connections import (
    HttpProtocol,
    Limits,
    OpenConnections,
)
from streammetrics_consumers.server.health import NO_WORKERS, WatchedWorkers

PAUSES_S: Final = (0.1, 0.5)  # see Ledger.open
BUSY_S: Final = 1.0
IDLE_S: Final = 60.0  # how often connections with the store that nobody uses are closed
STOP_S: Final = 5.0  # how long open requests may take once the server ends
CLOSE_S: Final = 3.0  # after which connections are closed then, also those that nobody reads


@contextmanager
def serving(
    store: str,
    settings: ServerConfig,
    watched: WatchedWorkers = NO_WORKERS,
    *,
    limits: Limits | None = None,
) -> Iterator[str]:
    """Serve a store at `http://HOST:PORT/`, the address that it yields, until the block ends.

    limits: of connections; None: those of the settings. Raises ServeError if the address is taken
    or not ours.
    """
    limits = limits or Limits.from_peers(settings.connections_per_peer)
    # Clients do not wait for long: Prometheus gives up after 10 s.
    opened = Ledger.open(store, pauses_s=PAUSES_S, busy_s=BUSY_S)
    with closing(opened) as ledger, closing(_listen(settings.host, settings.port)) as listener:
        ended = Event()
        app = application(ledger, watched, store=store, settings=settings, ended=ended.is_set)
        connections = OpenConnections(limits, watched.monotonic)
        server = _Server(
            uvicorn.Config(
                app,
                http=cast("type[Protocol]", partial(HttpProtocol, connections=connections)),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
            )
        )
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, name="http", daemon=True)
        thread.start()
        Thread(target=_close_idle, args=(ledger, ended), name="idle", daemon=True).start()
        try:
            yield address(settings.host, listener.getsockname()[1])
        finally:
            ended.set()
            server.should_exit = True
            thread.join(STOP_S + 1)


class _Server(uvicorn.Server):
    """A server that closes what is still open some time after it was told to end. uvicorn would
    cancel the answers instead, and log each of them as an error."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the connections, and wait for their answers."""
        asyncio.get_running_loop().call_later(CLOSE_S, self._abort)
        await super().shutdown(sockets)

    def _abort(self) -> None:
        for connection in list(self.server_state.connections):
            cast("HttpProtocol", connection).drop()


def _close_idle(ledger: Ledger, ended: Event) -> None:
    while not ended.wait(IDLE_S):
        ledger.close_idle()


def address(host: str, port: int) -> str:
    """The address to print.

    >>> address("::1", 80)
    'http://[::1]:80/'
    """
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def announce(url: str, say: Callable[[str], None], *, token: bool = False) -> None:
    """Report the address of the results, in the form that scripts wait for."""
    say(f"serving {url}")
    if token:
        say(f"the server requires its token: open {url}?token=TOKEN once in a browser")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        hint = "give an address of this machine with --host"
        if error.errno in (EADDRINUSE, EACCES):
            hint = "choose another with --port (0: any free one)"
        raise ServeError(
            f"{address(host, port)} cannot be served: {error.strerror or error}; {hint}"
        ) from None
