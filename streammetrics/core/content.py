"""A setting that is too large for the head of a state: known there by the hash of its content.

Identity goes by the hash: equality, merging and bytes. The numbers themselves travel beside it
within a process, and in a pickle. What comes from bytes knows the hash alone; it can be merged,
computed and written again, and what needs the numbers says so.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bytes.codec import damaged
from streammetrics.core.errors import StateError

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared
    from streammetrics.core.settings import Setting

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_AXES: Final = 4


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Content:
    """An array of float64, known by its shape and the SHA-256 of its canonical bytes.

    data: those bytes (row by row, little-endian, no NaN, -0.0 as 0.0), or None where only the
    hash is known.

    >>> import numpy as np
    >>> table = Content.of(np.array([[0.0, 1.0], [1.0, -0.0]]))
    >>> table == Content(table.shape, table.digest), Content(table.shape, table.digest).known
    (True, False)
    """

    shape: tuple[int, ...]
    digest: str
    data: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Content:
        """That of an array of numbers without NaN, which may change afterwards."""
        data = np.ascontiguousarray(values + 0.0, "<f8").tobytes()
        return cls(values.shape, _digest(values.shape, data), data)

    @classmethod
    def read(cls, shape: Sequence[object], digest: str, data: bytes | None) -> Content:
        """What another process wrote; StateError for what `of` would not have made."""
        sizes = tuple(n for n in shape if type(n) is int and 0 <= n < 1 << 48)
        if len(sizes) < len(shape) or len(sizes) > _MAX_AXES or not _DIGEST.fullmatch(digest):
            raise damaged("a setting that is no hash and shape")
        if data is not None and (
            len(data) != 8 * math.prod(sizes) or _digest(sizes, data) != digest
        ):
            raise damaged("a setting whose content does not match its hash")
        return cls(sizes, digest, data)

    @property
    def known(self) -> bool:
        """Whether the numbers are here, and not their hash alone."""
        return self.data is not None

    def values(self, where: str) -> NDArray[np.float64]:
        """The numbers, read-only; StateError where only their hash is known.

        where: the setting, such as "IntraListSimilarity.vectors".
        """
        if self.data is None:
            metric, _, name = where.rpartition(".")
            raise StateError(
                expected=f"the numbers of {name}, which rows are counted with",
                got=f"their hash alone, {self.digest}, since bytes hold no more",
                where=where,
                hint=f"merge this state into an empty one whose {metric} was given them",
            )
        return np.frombuffer(self.data, "<f8").astype(np.float64, copy=False).reshape(self.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Content):
            return NotImplemented
        return (self.shape, self.digest) == (other.shape, other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)


def _digest(shape: tuple[int, ...], data: bytes) -> str:
    head = f"streammetrics float64 {list(shape)}\n".encode()
    return "sha256:" + hashlib.sha256(head + data).hexdigest()


def contents(settings: Mapping[str, Setting]) -> Iterator[Content]:
    """Every content among these settings and those of the metrics within them."""
    for value in settings.values():
        yield from _within(value)


def _within(value: Setting) -> Iterator[Content]:
    match value:
        case Content():
            yield value
        case tuple():
            for inner in value:
                yield from _within(inner)
        case Mapping():
            yield from contents(value)
        case _ if hasattr(value, "schema"):
            metric: Declared = value  # type: ignore[assignment]
            yield from contents(metric.settings())
