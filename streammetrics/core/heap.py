"""Memory that numpy frees is kept for the next arrays, where the C library is glibc.

Until a program has freed a large array, glibc gives freed memory back to the system from 128 kB
on, and takes it again page by page for the next temporary: kernels that work on chunks of 32,768
rows then take up to eight times as long. Freeing one block raises that bound to its size, once and
for the process (mallopt(3), M_MMAP_THRESHOLD and M_TRIM_THRESHOLD); its pages are never touched,
so it costs microseconds and no memory. What a program holds freed for itself may reach twice that.
"""

from __future__ import annotations

from typing import Final

import numpy as np

_KEPT: Final = 1 << 23  # bytes; glibc heeds no more than 32 MB


def keep_freed_memory() -> None:
    """Raise the bound; elsewhere nothing happens."""
    np.empty(_KEPT, np.uint8)
