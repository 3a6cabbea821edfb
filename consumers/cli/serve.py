"""The command that shows a store and counts nothing: `streammetrics serve STORE`."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable

from consumers.cli import logs
from consumers.cli.arguments import Arguments, UsageError
from consumers.config.tables import token_problem
from consumers.process.stop import Stop, signals_request
from consumers.server.assets import prepare
from consumers.server.health import Watched
from consumers.server.open_connections import Limits
from consumers.server.process import announce, serving

HOST = "127.0.0.1"
PORT = 8765
FOREVER_S = 3600.0
log = logging.getLogger(__name__)


def serve_store(
    arguments: Arguments, monotonic: Callable[[], float], clock: Callable[[], float]
) -> int:
    """Serve until someone asks to end."""
    logs.to_stderr("text")
    port = arguments.number("port")
    if port is not None and not 0 <= port <= 65_535:
        raise UsageError(f"--port: expected 0 to 65535, came {port}; 0 is any free one")
    token = arguments.text("token") or ""
    problem = token_problem(token)
    if problem is not None:
        raise UsageError(f"{arguments.given['token']}: expected {problem}, came another; make one")
    many = arguments.number("connections-per-peer") or 0
    if not 8 <= many <= 10_000:
        raise UsageError(f"--connections-per-peer: expected 8 to 10000, came {many}; correct it")
    watched = Watched(dict, monotonic, clock)
    host = arguments.text("host") or HOST
    stop = Stop()
    with (
        signals_request(stop, "ending"),
        serving(
            arguments.words[0],
            host,
            PORT if port is None else port,
            watched,
            token=token,
            limits=Limits.of(many),
        ) as url,
    ):
        prepare()
        announce(url, logs.say, token=bool(token))
        warn_where_open(host, token)
        while not stop.wait(FOREVER_S):
            pass
    return 0


def warn_where_open(host: str, token: str) -> None:
    """Say so where other machines can ask, and need no token."""
    if not token and not _is_ours_alone(host):
        log.warning(
            "whoever reaches this machine can read all of the store; set STREAMMETRICS_TOKEN, or "
            "serve at 127.0.0.1"
        )


def _is_ours_alone(host: str) -> bool:
    """Whether only this machine can call an address.

    >>> [_is_ours_alone(host) for host in ("localhost", "::1", "0.0.0.0", "page.local")]
    [True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
