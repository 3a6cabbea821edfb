"""Preference: which of two rankers users prefer, from lists that both of them drafted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

from streammetrics.estimators.estimator import NoInterval
from streammetrics.estimators.request import Lacking
from streammetrics.estimators.share import Share
from streammetrics.estimators.wins import NetWins, Wins
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.dirichlet_multinomial import Successes, log_e_of_successes
from streammetrics.kernels.inference.paired import mcnemar
from streammetrics.present.view import HIGHER, LOWER, NONE, POSITIVE, SHARE, View
from streammetrics.results.has_intervals import HasIntervals

_HALF: Final = Fraction(1, 2)
PRIOR: Final = 100  # the weight of the prior, in lists that one side wins
_NO_CLICK: Final = "no {unit} has a click"
NULL: Final = (
    "pvalue and e_value are against clicks that ignore teams, not against a preference of 0 on "
    "average over users"
)


def _measure_of_error(view: str) -> NoInterval[object]:
    why = f"no formula for {view}, which is itself a measure of error"
    return NoInterval(why, of_error=True)


def _wins(preference: Preference) -> Wins | Lacking:
    a, b, n = preference._counts
    units = preference.independent
    return Wins(a, b, n, units) if n else Lacking(_NO_CLICK.format(unit=units[:-1]))


def _share_won(side: int) -> Share[Preference]:
    def counts(preference: Preference) -> tuple[int, int] | Lacking:
        wins = _wins(preference)
        return wins if isinstance(wins, Lacking) else (wins[:2][side], wins.n)

    return Share(counts)


_PREFERENCE: Final[NetWins[Preference]] = NetWins(_wins)
_WIN_SHARE_A: Final = _share_won(0)
_WIN_SHARE_B: Final = _share_won(1)


@dataclass(frozen=True, eq=False, repr=False)
class Preference(HasIntervals):
    """Lists that A or B won, ties, and lists without a click.

    preference: (wins_b - wins_a) / (2 n) of the n lists with a click, from -1/2 (A wins every one)
    to 1/2 (B does). pvalue: of the sign test, exact and two-sided, for one look that was fixed
    beforehand. e_value: valid at every look; 20 rejects at the level 0.05. Both leave out ties, and
    test that clicks ignore teams. rows: the counted rows. wins_a and the others are None past
    `max_rows`; reason: why nothing more is known, if so.

    >>> found = Preference(2, 5, 1, 2, rows=10)
    >>> found.preference, round(found.pvalue, 9), round(found.e_value, 9)
    (0.1875, 0.453125, 1.008500295)
    """

    independent: ClassVar[str] = "lists"
    wins_a: int | None
    wins_b: int | None
    ties: int | None
    no_click: int | None
    rows: int
    reason: str = ""

    def _notes(self) -> Iterator[str]:
        yield NULL

    @property
    @View(
        estimator=_PREFERENCE,
        better=HIGHER,
        range=(-0.5, 0.5),
        undefined=_NO_CLICK,
        headline=1,
        effect=True,
    )
    def preference(self) -> float:
        """The share of lists with a click that B wins, ties as half a win, less 1/2."""
        a, b, n = self._counts
        return ratio(b - a, 2 * n)

    @property
    @View(estimator=_WIN_SHARE_A, better=LOWER, range=SHARE, undefined=_NO_CLICK)
    def win_share_a(self) -> float:
        """The share of lists with a click that A wins."""
        return _WIN_SHARE_A.estimate(self)

    @property
    @View(estimator=_WIN_SHARE_B, better=HIGHER, range=SHARE, undefined=_NO_CLICK)
    def win_share_b(self) -> float:
        """The share of lists with a click that B wins."""
        return _WIN_SHARE_B.estimate(self)

    @property
    @View(
        better=NONE,
        range=SHARE,
        estimator=_measure_of_error("pvalue"),
    )
    def pvalue(self) -> float:
        """Of the sign test: how often fair coins would differ at least as much."""
        a, b, _ = self._counts
        return mcnemar(a, b)[1]

    @property
    @View(
        better=NONE,
        range=POSITIVE,
        estimator=_measure_of_error("e_value"),
    )
    def e_value(self) -> float:
        """B(50 + wins_b, 50 + wins_a) / B(50, 50) · 2^n, n the lists that one side won;
        infinite past the largest float."""
        a, b, _ = self._counts
        try:
            return math.exp(log_e_of_successes([Successes(a, b, _HALF)], PRIOR))
        except OverflowError:
            return math.inf

    @property
    def _counts(self) -> tuple[int, int, int]:
        """Wins of A and of B, and the lists with a click."""
        a, b = self.wins_a or 0, self.wins_b or 0
        return a, b, a + b + (self.ties or 0)


class GroupPreference(Preference):
    """The preference of groups: sessions, users, or lists whose items are separate rows.

    The e-value and an always-valid interval hold at every look if each group is complete once it is
    counted, as lists and ended sessions are. The winner of a group that gets further rows may
    change, which is one more chance at each look: of such groups, as users who come back, both hold
    for one look alone. Then count lists, in UserGroups(Interleaving()).
    """

    independent: ClassVar[str] = "groups"
