"""Cases of UserGroups, Units, UnitMean, UnitRate and UnitSums: users, and rows of theirs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from streammetrics import Accumulator, Ratio, UnitMean, UnitRate, Units, UnitSums, UserGroups
from streammetrics.testing import Case, strategies
from tests.calibration_cases import CALIBRATION
from tests.list_cases import RANKING
from tests.many_classes_cases import MANY_CLASSES
from tests.oracles import users
from tests.plain_cases import BINARY, GROUPED, RATIOS, Rows
from tests.uplift_cases import UPLIFT
from tests.weighted_cases import WEIGHTED

NAMES = st.sampled_from(["ann", "bo", "cy", "dan", "eve", "", "ünal"])

REFUSED: list[Any] = [[None], [1.5], [True], ["a", 1], [(1, 2)], [1 << 63], ["a", None], 3]


def user_groups(
    inner: Case[Any], k: int, salt: str = "a", ids: st.SearchStrategy[Any] | None = None
) -> Case[Any]:
    """Rows (user, row of the inner case)."""

    def columns(rows: Rows) -> dict[str, object]:
        return {ids_of: [user for user, _ in rows], **inner.columns([row for _, row in rows])}

    empty = UserGroups(inner.empty, k, salt)
    ids_of = next(iter(empty.arguments()))
    return Case(
        empty,
        st.tuples(strategies.ids() if ids is None else ids, inner.row),
        columns,
        refused=[
            *({ids_of: [1, 2], **bad} for bad in inner.refused if bad),
            *({**inner.columns([]), ids_of: bad} for bad in REFUSED),
        ],
        others=(UserGroups(inner.empty, 2 * k, salt), UserGroups(inner.empty, k, "b"), inner.empty),
        oracle=users.user_groups(inner.oracle, k, salt),
        name=f"UserGroups({inner}, {k})",
    )


def units(share: float, max_units: int | None) -> Case[Any]:
    """Rows (unit,)."""
    return Case(
        Units(share, max_units),
        st.tuples(st.integers(-6, 12)),
        strategies.columns("units"),
        refused=[{"units": bad} for bad in REFUSED],
        others=(Units(share / 2, max_units), Units(share, 99), Ratio()),
        oracle=users.units(Fraction(share), max_units),
    )


def of_units(kind: type[UnitMean | UnitRate], share: float, max_units: int | None) -> Case[Any]:
    """Rows (unit, value)."""
    salt = "a" if share < 1 else "streammetrics"
    variants: tuple[Accumulator, ...] = (
        kind(share / 2, max_units, salt),
        kind(share, 99, salt),
        kind(share, max_units, "b"),
        Units(share, max_units),
    )
    oracle = users.unit_mean if kind is UnitMean else users.unit_rate
    return Case(
        kind(share, max_units, salt),
        st.tuples(st.integers(-6, 12), strategies.amounts()),
        strategies.columns("units", "values"),
        refused=[
            *({"units": bad, "values": [1, 2]} for bad in REFUSED),
            *({"units": [1, 2], "values": bad} for bad in ([0.5, float("nan")], ["1"], [0.5], 1)),
        ],
        others=variants,
        oracle=oracle(Fraction(share), max_units, salt),
        small=[(1, 2), (1, 0), (2, -3), (3, 0.1)],
    )


def unit_sums(max_units: int) -> Case[Any]:
    """Rows (unit, value, denominator)."""
    return Case(
        UnitSums(max_units),
        st.tuples(st.integers(-6, 12), strategies.amounts(), st.integers(-2, 4)),
        strategies.columns("units", "values", "denominators"),
        refused=[
            *({"units": bad, "values": [1, 2], "denominators": [1, 1]} for bad in REFUSED),
            *(
                {"units": [1, 2], "values": bad, "denominators": [1, 1]}
                for bad in ([0.5, float("nan")], [1, float("inf")], ["1"], [0.5], 1)
            ),
            *(
                {"units": [1, 2], "values": [1, 2], "denominators": bad}
                for bad in ([0.5, float("inf")], [1])
            ),
        ],
        others=(UnitSums(99), Units(), Ratio()),
        oracle=users.unit_sums(max_units),
        small=[(1, 2, 1), (1, 0, 2), (2, -3, 1), (3, 0.1, 0)],
    )


# Some of them: groups know nothing of a grid or a weight.
AREAS: list[Case[Any]] = [case for case in (*BINARY, *WEIGHTED) if "AUC(" in str(case)][::4]
MANY: list[Case[Any]] = [case for case in MANY_CLASSES if "MulticlassAUC(" in str(case)][::3]

USERS: list[Case[Any]] = [
    user_groups(RATIOS[0], 4),  # type: ignore[arg-type]
    user_groups(BINARY[0], 8),
    user_groups(BINARY[-1], 2),
    user_groups(GROUPED[0], 2),
    user_groups(RANKING[0], 4, ids=NAMES),
    user_groups(CALIBRATION[0], 2),
    *(user_groups(case, 2) for case in AREAS),
    *(user_groups(case, 2) for case in MANY),
    user_groups(UPLIFT[0], 4),
    user_groups(UPLIFT[6], 2),
    units(1.0, None),
    units(0.5, None),
    units(1.0, 4),
    units(0.75, 2),
    unit_sums(3),
    unit_sums(1_000),
    *(
        of_units(kind, *settings)
        for kind in (UnitMean, UnitRate)
        for settings in ((1.0, None), (0.75, 4))
    ),
]
