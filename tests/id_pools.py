"""Integer ids of every kind that a table of ids could take for one another.

Most pools hold few enough ids that a draw meets many of them again.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

_RNG = np.random.default_rng(1868)
_ENDS: Final = np.iinfo(np.int64)
_ONE_BIT: Final = np.array([1 << i for i in range(63)] + [_ENDS.min], np.int64)

POOLS: Final[dict[str, Ids]] = {
    "dense": np.arange(300),
    "dense, around 0": np.arange(-150, 150),
    "0 alone": np.zeros(1, np.int64),
    "negative": -1 - np.arange(300) * 7919,
    "one bit": np.concatenate([[0], _ONE_BIT, -_ONE_BIT[:-1], ~_ONE_BIT]),
    "all but a few bits": np.concatenate([[0, -1], _ONE_BIT - 1, ~(_ONE_BIT | 1)]),
    "multiples of 2**40": np.arange(-150, 150) << 40,
    "multiples of 2**32 and their like below": np.concatenate(
        [np.arange(150) << 32, np.arange(150), np.arange(150) << 32 | np.arange(150)]
    ),
    "0 and sparse ones": np.concatenate([[0], _RNG.integers(1, 100_000, 3_000)]),
    "all of int64": np.concatenate(
        [
            [0, -1, _ENDS.min, _ENDS.max],
            _RNG.integers(_ENDS.min, _ENDS.max, 3_000, endpoint=True),
        ]
    ),
}
EVERY: Final[Ids] = np.unique(np.concatenate(list(POOLS.values())))
