"""The algebra: accumulators, the parts of their state, bytes, checks and errors.

`streammetrics.authoring` has what users and metrics import of it. The names of this package are
what the metrics of the library need besides; they may change in any release.

On glibc, memory that numpy frees is kept for the next arrays. Until a program has freed a large
array, glibc returns freed blocks from 128 kB on to the system, and gets them back page by page for
the next temporary. Kernels that work on chunks of 32,768 rows then take up to eight times as long.
Freeing one block raises that threshold to its size, once for the process (mallopt(3),
M_MMAP_THRESHOLD and M_TRIM_THRESHOLD). Its pages are never touched, so it costs microseconds and
no memory. The freed memory that a process keeps may reach twice that size.
"""

import numpy as np

from streammetrics.exports import exports

np.empty(1 << 23, np.uint8)  # bytes; glibc raises the threshold to 32 MB at most

__all__, __getattr__, __dir__ = exports(__name__)
