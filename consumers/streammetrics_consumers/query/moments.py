"""Answers of one moment: what determines them, their parts read at the same one, and results that
stay as long as their parts do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreVersion, StoreView
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.query import Query, require_generation

T = TypeVar("T")
Moment: TypeAlias = tuple[StoreVersion, tuple[int, ...]]  # of a store, and its newest looks

TRIES: Final = 5  # attempts to read the rows and the rest of an answer at one moment


def moment_of(now: StoreView) -> Moment:
    """What determines the results at a moment."""
    return now.version, now.newest_looks


def read_at_same_offsets(
    ledger: Ledger,
    query: Query,
    read: Callable[[], ResultsAnswer],
    read_other: Callable[[], tuple[T, Mapping[str, int] | None]],
) -> tuple[ResultsAnswer, T]:
    """The results of `read`, and those of `read_other` at the same offsets (None: at any).

    The other is read first: `read` reads the store at once and then computes for seconds, in which
    others may commit. If they always commit between the two, these may be of different moments.
    """
    if query.generation is not None:
        require_generation(query.generation, [generation.id for generation in ledger.generations()])
    for _ in range(TRIES):
        other_answer, offsets = read_other()
        results = read()
        if offsets is None or offsets == results.offsets:
            break
    return results, other_answer


class Last(Generic[T]):
    """Remembers one result. Objects are compared by identity, so they must not change."""

    def __init__(self) -> None:
        self._entry: tuple[tuple[object, ...], T] | None = None

    def result(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of the function on these arguments, perhaps that of the last call.

        >>> last, answer = Last(), [1, 2]
        >>> last.result(tuple, answer) is last.result(tuple, answer)
        True
        """
        entry = self._entry
        if entry is None or [*map(id, entry[0])] != [*map(id, arguments)]:
            entry = self._entry = arguments, function(*arguments)
        return entry[1]
