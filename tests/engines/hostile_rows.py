"""Rows with values that are hard to compute with, and what plain Python derives and chooses of
them."""

from __future__ import annotations

import math
from typing import Any, Final

from streammetrics import Accumulator, Moments, Panel, Ratio

SPEC: Final = Panel({"mean": Moments(), "ctr": Ratio()})
COLUMNS: Final = {
    "gain": "min(reward * weight, 1e300)",
    "values": "gain - big / 4611686018427387904",
    "numerators": "dwell_s >= 30",
}
WHERE: Final = (
    "is_known and (surface == '搜索' or surface == 'search' and "
    "-0.0 <= reward < 1e308 and big != 0)"
)
BY: Final = ("variant",)


def hostile_rows() -> Any:
    """Rows with nan, infinities, -0.0, subnormals, the limits of int64, and texts of any script."""
    reward: list[Any] = [
        0.1,
        -0.0,
        5e-324,
        math.nan,
        math.inf,
        -math.inf,
        1e308,
        2.0**53,
        3.0,
        None,
    ] * 6
    big = [2**53 + 1, 2**63 - 1, -(2**63), 0, 1, -1, 2**62, 7, 2**53, None] * 6
    surfaces = ("search", "搜索", "home", None, "search", "ｓearch", "搜索")
    surface = [surfaces[index % 7] for index in range(60)]
    keep = [
        index
        for index in range(60)
        if reward[index] is None or surface[index] != "搜索" or math.isfinite(reward[index])
    ]
    rows = {
        "variant": ["a", "b", None] * 20,
        "reward": reward,
        "weight": [0.5, 1.0, 2.0, 1e-300] * 15,
        "big": big,
        "dwell_s": [10, 30, 31, -5, 2**53 + 1] * 12,
        "surface": surface,
        "is_known": [text is not None for text in surface],
        "offset": list(range(60)),
    }
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.table(rows).take(pa.array(keep))
    # Where the condition holds, all that is read has a value.
    full = pc.and_(pc.is_valid(table["reward"]), pc.is_valid(table["big"]))
    return table.filter(pc.or_(full, pc.equal(pc.fill_null(table["surface"], "home"), "home")))


def derived_alone(table: Any) -> dict[tuple[Any, ...], str]:
    """The state of each variant, of rows that plain Python derived and kept."""
    states: dict[tuple[Any, ...], Accumulator] = {}
    for row in table.to_pylist():
        is_search = row["surface"] == "搜索" or (
            row["surface"] == "search" and -0.0 <= row["reward"] < 1e308 and row["big"] != 0
        )
        if is_search:
            state = states.setdefault((row["variant"],), SPEC.empty())
            gain = min(row["reward"] * row["weight"], 1e300)
            state.update(values=[gain - row["big"] / 2**62], numerators=[row["dwell_s"] >= 30])
    return {group: state.digest() for group, state in states.items()}
