"""The algebra: accumulators, the parts of their state, bytes, checks and errors.

Memory that numpy frees is kept for the next arrays, where the C library is glibc: until a program
has freed a large array, glibc gives freed memory back to the system from 128 kB on, and takes it
again page by page for the next temporary. Kernels that work on chunks of 32,768 rows then take up
to eight times as long. Freeing one block raises that bound to its size, once and for the process
(mallopt(3), M_MMAP_THRESHOLD and M_TRIM_THRESHOLD). Its pages are never touched, so it costs
microseconds and no memory. What a program holds freed for itself may reach twice that.
"""

import numpy as np

np.empty(1 << 23, np.uint8)  # bytes; glibc raises the bound to 32 MB at most
