"""The queries that runs are evaluated on, and the users that they are of."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import InputError, shown
from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.core.rows import Terms
from streammetrics.evaluation.judged_runs import Judgments, Run, mapping_of

Floats = NDArray[np.float64]


def queries_of(truth: Judgments, runs: Mapping[str, Run], missing: str) -> list[Hashable]:
    """The queries that all runs are evaluated on; InputError if a run has none of them."""
    for name, run in runs.items():
        if not truth.keys() & run.keys():
            judged_query, run_query = next(iter(truth)), next(iter(run), None)
            kinds = type(judged_query).__name__, type(run_query).__name__
            hint = "check that run and judgments are of the same queries"
            if kinds[0] != kinds[1]:
                hint = f"query ids are {kinds[0]} there and {kinds[1]} here: convert one side"
            raise InputError(
                expected=f"queries of the judgments, such as {shown(judged_query)}",
                got=f"none of them; the first is {shown(run_query)}",
                where=name,
                hint=hint,
            )
    if missing == "zero":
        return list(truth)
    return [query for query in truth if all(query in run for run in runs.values())]


class UsersOfQueries(NamedTuple):
    """The position of the user of each query, [n queries], and the number of users."""

    of_queries: NDArray[np.intp]
    n: int

    def take(self, queries: NDArray[np.intp]) -> UsersOfQueries:
        """The users of these queries alone."""
        users, positions = np.unique(self.of_queries[queries], return_inverse=True)
        return UsersOfQueries(positions.astype(np.intp), len(users))

    def totals(self, terms: Terms) -> Terms:
        """The terms of users: the sums of those of their queries, each rounded once."""
        weights = None if terms.weights is None else self._sums(terms.weights)
        return Terms(self._sums(terms.values), weights)

    def _sums(self, column: Floats) -> Floats:
        sums = ExactSumColumn(self.n)
        sums.add(column, self.of_queries)
        return np.array([float(sums.fraction(user)) for user in range(self.n)], np.float64)


def users_of(user_by_query: object, queries: Sequence[Hashable]) -> UsersOfQueries | None:
    """The users of these queries from {query: user}; None without users."""
    if user_by_query is None:
        return None
    users = mapping_of(user_by_query)
    if users is None:
        raise InputError(
            expected="a dict {query: user}",
            got=shown(user_by_query),
            where="users",
            hint="pass one",
        )
    lacking = [query for query in queries if query not in users]
    if lacking:
        raise InputError(
            expected="the user of each evaluated query",
            got=f"none for {len(lacking):,} of {len(queries):,}, the first is {shown(lacking[0])}",
            where="users",
            hint="name a user for each; a query of its own user may have its own id",
        )
    numbers: dict[Hashable, int] = {}
    codes: list[int] = []
    for query in queries:
        try:
            codes.append(numbers.setdefault(users[query], len(numbers)))
        except TypeError:  # as for a list
            raise InputError(
                expected="one user, as a string or an integer",
                got=shown(users[query]),
                where=f"users[{shown(query)}]",
                hint="pass one user for each query",
            ) from None
    return UsersOfQueries(np.array(codes, np.intp), len(numbers))
