"""Sealed: a state with exact totals in place of users whose rows are complete."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, cast

from streammetrics.combine.children import ProductColumn
from streammetrics.combine.panel import require_empty
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.codec import Reader
from streammetrics.core.declared import Declared
from streammetrics.core.errors import OverlapError, SettingsError, StateError, shown
from streammetrics.core.layouts import Schemas
from streammetrics.core.parts.part import Part
from streammetrics.core.settings import nested_settings
from streammetrics.core.totals import WithoutRows, totals_of

_PREFIX: Final = "sealed/"
_SOURCE: Final = re.compile(r"sealed/[^/]*\([^/]*\) mod ([1-9][0-9]{0,9})/(.*)", re.DOTALL)
_MAX_BUCKETS: Final = 1 << 31
_TOTALS: Final = "totals"


@dataclass(frozen=True)
class Sealing:
    """How rows are sent to tasks by a hash of the user, so that one task has all rows of a user.

    of: the column of the users. n_buckets: the number of buckets, each the work of one task. hash:
    the name of the hash, such as "xxhash64"; user u is in bucket hash(u) mod n_buckets. scope: a
    name for the set of rows, such as "2026-11-01": the sealed GAUCs of days do not add up to a
    week's, since a user of two days is one user of the week. Rows that one task counts have one
    bucket.

    >>> Sealing(of="user", n_buckets=64, hash="xxhash64", scope="2026-11-01").source
    'sealed/xxhash64(user) mod 64/2026-11-01'
    """

    of: str
    n_buckets: int
    hash: str
    scope: str

    def __post_init__(self) -> None:
        for name in ("of", "hash", "scope"):
            text: object = getattr(self, name)
            if not isinstance(text, str) or ("/" in text and name != "scope"):
                raise _bad(name, "a string" + " without /" * (name != "scope"), text)
        if type(self.n_buckets) is not int or not 1 <= self.n_buckets <= _MAX_BUCKETS:
            raise _bad("n_buckets", f"an integer from 1 to {_MAX_BUCKETS}", self.n_buckets)

    @property
    def source(self) -> str:
        """The name of the buckets of this sealing in provenance."""
        return f"{_PREFIX}{self.hash}({self.of}) mod {self.n_buckets}/{self.scope}"


class TotalsColumn(ProductColumn):
    """Totals, each of which is read with its provenance: the proof that it may merge."""

    @property
    def stacks(self) -> bool:
        return False


class Totals(Part[TotalsColumn]):
    """The totals of the setting `metric`."""

    def empty(self, owner: Declared, width: int) -> TotalsColumn:
        return TotalsColumn({_TOTALS: _totals_of(owner)._empty(width)}, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> TotalsColumn:
        return TotalsColumn({_TOTALS: _totals_of(owner)._decode(width, data)}, width)


class Sealed(WithoutRows, schema="sealed/2"):
    """A metric over complete users: sums over users instead of the users themselves.

    `seal` makes one. It is an output: it merges with states of other buckets, and takes no rows.

    Settings
        metric: the empty metric; a Panel may hold metrics with users and without. scope: a name for
        the set of rows; states of different scopes refuse to merge.
    Rows
        None: new rows for a scope require that it is computed again.
    State
        For a GroupedAUC the sums of areas and weights, each area in whole units of 2**-96; for a
        GroupedScores the moments of lists; for another metric its state. The bytes do not depend on
        how users were hashed into buckets.
    Result
        The result of the metric, with its intervals.
    Undefined
        As that of the metric.
    Exactness
        As for the metric. A GAUC is off by at most 2**-97 before rounding, and its certain bounds
        are wider by as much.
    Cost
        A kilobyte for each GroupedAUC or GroupedScores, whatever their rows.
    Source
        Its provenance lists its buckets: two states that have the same bucket refuse to merge, as
        do states of different hashes, columns, or numbers of buckets.

    >>> from streammetrics import GroupedAUC
    >>> users = GroupedAUC()
    >>> users.update([0, 1, 1], [0.1, 0.2, 0.3], groups=[7, 7, 8])
    >>> sealed = seal(users, Sealing("user", 2, "xxhash64", "today"), bucket=1)
    >>> sealed.compute().gauc, sealed.complete
    (1.0, False)
    """

    _schemas: ClassVar[Schemas] = {"sealed/1": {"grouped-scores-totals/1"}}

    metric: Accumulator
    scope: str
    totals = Totals()

    _nests: ClassVar[bool] = False

    def check_settings(self) -> None:
        self._set("metric", require_empty(self.metric, "Sealed.metric"))
        _require_sealable(self.metric)
        scope: object = self.scope
        if not isinstance(scope, str):
            raise _bad("scope", "a string", scope)

    def arguments(self) -> Mapping[str, bool]:
        return {}

    def compute(self) -> object:
        """The result of the metric over the users of these buckets."""
        return self.inner.compute()

    @property
    def inner(self) -> Accumulator:
        """The totals, without proof of their buckets; for a Panel, a Panel of the same names."""
        return self.totals.by_name[_TOTALS]

    @property
    def buckets(self) -> tuple[int, int]:
        """The number of its buckets, and of all buckets; (0, 0) if provenance does not say."""
        own_buckets = all_buckets = 0
        for source, _, start, end in self.provenance:
            if source_match := _SOURCE.fullmatch(source):
                own_buckets, all_buckets = own_buckets + end - start, int(source_match[1])
        return own_buckets, all_buckets

    @property
    def complete(self) -> bool:
        """Whether all buckets are in it, those without rows included."""
        own_buckets, all_buckets = self.buckets
        return 0 < all_buckets == own_buckets

    def _merge(self, other: Accumulator) -> None:
        self._require_same_settings(other)
        own_proof, other_proof = self._proof(), cast("Sealed", other)._proof()
        if own_proof and other_proof and own_proof != other_proof:
            raise OverlapError(
                expected=_said(own_proof),
                got=_said(other_proof),
                where="Sealed.merge",
                hint="seal all rows of a scope by one hash of one column, and keep groups apart; "
                "if groups share users, recompute the whole from its rows",
            )
        super()._merge(other)

    def _proof(self) -> tuple[str, str] | None:
        """The source of its buckets, and the piece; None for an empty state."""
        rows = [row for row in self.provenance if row[0].startswith(_PREFIX)]
        if not rows and self == self.empty():
            return None
        pieces = {(source, piece) for source, piece, _, _ in rows}
        source_match = _SOURCE.fullmatch(rows[0][0]) if len(pieces) == 1 else None
        if (
            source_match is None
            or source_match[2] != self.scope
            or rows[-1][3] > int(source_match[1])
        ):
            source_text = ", ".join(
                f"{source}: [{start}, {end})" for source, _, start, end in rows[:3]
            )
            raise StateError(
                expected=f"a sealed state with its list of buckets of {shown(self.scope)}",
                got=f"provenance {shown(source_text)}" if rows else "no provenance",
                where="Sealed",
                hint="keep the whole envelope, to_file_bytes(), not only the state bytes",
            )
        return pieces.pop()


def seal(state: Accumulator, sealing: Sealing, bucket: int = 0, piece: str = "") -> Sealed:
    """The totals of a state that has all rows of the users of this bucket.

    state: not changed. bucket: from 0 to n_buckets - 1. piece: the selection of rows, such as a
    group of `by`; states of different pieces do not merge. The provenance of the state is kept. The
    caller must ensure that all rows of a user are here: `groupBy` of the bucket does, `rebalance`
    does not.

    SettingsError for a metric that cannot be sealed: PerKey, Windows and UserGroups of a metric
    with users (group the rows by the key or the window instead), and one with `max_rows`.
    """
    if type(bucket) is not int or not 0 <= bucket < sealing.n_buckets:
        raise _bad("bucket", f"an integer from 0 to {sealing.n_buckets - 1}", bucket)
    sealed = Sealed(state.empty(), sealing.scope)
    sealed.__dict__["totals"] = TotalsColumn({_TOTALS: totals_of(state).copy()}, 1)
    sealed.__dict__["_total_count"] = sealed._exact_total_count()
    for row in state.provenance:
        source, version, start, end = row
        sealed.provenance.add(source, start, end, version)
    sealed.provenance.add(sealing.source, bucket, bucket + 1, piece)
    return sealed


def _totals_of(owner: Declared) -> Accumulator:
    return totals_of(cast("Accumulator", owner.settings()["metric"]).empty())


def _require_sealable(metric: Accumulator) -> None:
    if totals_of(metric) is not metric:
        return
    for inner in nested_settings(metric):
        if isinstance(inner, Accumulator) and totals_of(inner) is not inner:
            raise SettingsError(
                expected=f"a {type(inner).__name__} by itself or in a Panel",
                got=f"one inside a {type(metric).__name__}, whose parts share users",
                where="Sealed.metric",
                hint="group the rows by the key or the window, and seal each group",
            )


def _said(proof: tuple[str, str]) -> str:
    source, piece = proof
    return f"{source}, {piece}" if piece else source


def _bad(where: str, expected: str, got: object) -> SettingsError:
    return SettingsError(
        expected=expected,
        got=shown(got),
        where=f"sealing, {where}",
        hint="see the docstring of Sealing",
    )
