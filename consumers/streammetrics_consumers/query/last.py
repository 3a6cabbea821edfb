"""The last result of a function, which is kept while its arguments are the very same objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Last(Generic[T]):
    """Remembers one result. Objects are compared by identity, so they must not change."""

    def __init__(self) -> None:
        self._entry: tuple[tuple[object, ...], T] | None = None

    def of(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of the function on these arguments, perhaps that of the last call.

        >>> last, answer = Last(), [1, 2]
        >>> last.of(tuple, answer) is last.of(tuple, answer)
        True
        """
        entry = self._entry
        if entry is None or [*map(id, entry[0])] != [*map(id, arguments)]:
            entry = self._entry = arguments, function(*arguments)
        return entry[1]
