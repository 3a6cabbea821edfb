"""What the areas of groups say together."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupedArea:
    """GAUC, with everything that it counted and what its comparisons rest on.

    gauc: Σ w·AUC / Σ w over the groups that have both labels, correctly rounded; nan where there
    is none, or where `reason` says why.
    groups: all of them; groups_kept: those with both labels; groups_one_class: the others.
    rows, positives: of all groups, one-class ones included. Past `max_rows` only rows are known,
    and the other counts are None.
    compared_as: the precision in which scores were compared. ids: the kind of the group ids.

    >>> result = GroupedArea(0.75, 3, 2, 1, 10, 4, "float32", "hashed")
    >>> print(result.exactness)
    exact unless ids collide (probability about 1.6e-19); scores compared as float32
    """

    gauc: float
    groups: int | None
    groups_kept: int | None
    groups_one_class: int | None
    rows: int
    positives: int | None
    compared_as: str
    ids: str
    reason: str = ""

    @property
    def exactness(self) -> str:
        """In words: whether ids are exact, and in which precision scores were compared."""
        what = "exact"
        if self.ids == "hashed":
            what += f" unless ids collide (probability about {self.collision_probability():.1e})"
        return f"{what}; scores compared as {self.compared_as}"

    def collision_probability(self) -> float:
        """An upper bound of the probability that two of the groups share a hash of 64 bits.

        g(g − 1)/2 pairs, each with 2⁻⁶⁴; 0 where ids are not hashed.
        """
        if self.ids != "hashed" or self.groups is None:
            return 0.0
        return min(1.0, math.comb(self.groups, 2) / 2.0**64)
