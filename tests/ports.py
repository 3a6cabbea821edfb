"""Ports of 127.0.0.1 for servers that are told their port before they start."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import Final

_LOCKS: Final = Path(tempfile.gettempdir()) / f"streammetrics-ports-{os.getuid()}"
_HELD: Final[list[int]] = []


def free_ports(count: int) -> list[int]:
    """Ports that are free now, all different, below the ephemeral range: no client is given one of
    them by the kernel. They stay ours until this process ends: other runs of the tests take others,
    also before a server listens there and while it is restarted."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(range(20_000, 32_000), 1_000):
        if _is_free(port) and _is_locked(port):
            ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError("no free port between 20000 and 32000 on 127.0.0.1")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            return False
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False


def _is_locked(port: int) -> bool:
    """Whether this process alone has the port from now on; the kernel lets go of it at the end."""
    _LOCKS.mkdir(exist_ok=True)
    file = os.open(_LOCKS / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return False
    _HELD.append(file)
    return True
