"""What a table of states holds, for the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streammetrics import Accumulator, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Key = tuple[object, ...]


def held(states: DataFrame) -> dict[Key, Accumulator]:
    """The one state of each group of a merged table."""
    rows = states.toArrow().to_pylist()
    found = {
        tuple(v for k, v in row.items() if k not in ("bucket", "state")): load(row["state"])
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def digests_of(states: DataFrame) -> dict[Key, str]:
    return {key: state.digest() for key, state in held(states).items()}
