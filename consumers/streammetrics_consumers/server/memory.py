"""The memory that this process may use and uses: the limit of its container, and what is resident.

The limit is that of the control group (version 2 or 1) of the process, such as a pod's
`resources.limits.memory`, or else the memory of the machine.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

FILES: Final = {  # by version of control groups: where they are mounted, and the file of the limit
    2: ("sys/fs/cgroup", "memory.max"),
    1: ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
}
CACHE_SHARE: Final = 4  # the cache of answers may take this part of the limit
FULL: Final = 0.75  # of the limit: with more resident memory the cache is emptied
LEAST: Final = 1 << 20


def memory_limit(root: Path = Path("/")) -> int:
    """The bytes that this process may use. root: of the file system, other than "/" in tests."""
    limits = [machine_bytes(root), *_group_limits(root)]
    return min((limit for limit in limits if limit), default=1 << 30)


def default_cache_bytes(root: Path = Path("/")) -> int:
    """The limit of a cache without `[server] cache_bytes`."""
    return max(memory_limit(root) // CACHE_SHARE, LEAST)


def resident_bytes(process: int | str = "self") -> int | None:
    """The resident memory of a process; None if the system does not tell."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def is_full(limit: int) -> bool:
    """Whether this process uses most of the memory that it may use."""
    return (resident_bytes() or 0) > FULL * limit


def return_memory() -> None:
    """Return freed memory to the system, which glibc keeps otherwise."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        return  # another C library


def machine_bytes(root: Path = Path("/")) -> int | None:
    """The memory of the machine; None if the system does not tell."""
    try:
        for line in (root / "proc/meminfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "MemTotal":
                return int(value.split()[0]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return None


def _group_limits(root: Path) -> Iterator[int | None]:
    """The limits of the control groups of this process, and of those around them."""
    for version, group in _groups(root):
        mount, name = FILES[version]
        for folder in (group, *group.parents):  # in a container, its own group is the mount itself
            yield _limit(root / mount / str(folder).lstrip("/") / name)


def _groups(root: Path) -> Iterator[tuple[int, PurePosixPath]]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, _, other_fields = line.partition(":")
        controllers, _, path = other_fields.partition(":")
        if number == "0" and not controllers:
            yield 2, PurePosixPath(path)
        elif "memory" in controllers.split(","):
            yield 1, PurePosixPath(path)


def _limit(path: Path) -> int | None:
    try:
        return int(path.read_text())  # version 2 writes "max" for none
    except (OSError, ValueError):
        return None
