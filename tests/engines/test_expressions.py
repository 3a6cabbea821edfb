"""Written columns and conditions give the same states by every route of `streammetrics.engines`."""

from __future__ import annotations

import math
from typing import Any

import pytest

from streammetrics import ExactQuantiles, InputError, Moments, PerKey
from streammetrics.engines import (
    Positions,
    aggregate,
    merged,
    partial,
    states_by_group,
    update_from,
)
from streammetrics.engines.keyed import shards
from streammetrics.testing import Case
from tests.depth import classes_first
from tests.engines.every_case import OF_ENGINES, rows_of
from tests.engines.hostile_rows import BY, COLUMNS, SPEC, WHERE, derived_alone, hostile_rows

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]' in a clone")


def digests(states: Any) -> dict[tuple[Any, ...], str]:
    return {group: state.digest() for group, state in states}


def test_every_route_gives_the_states_of_rows_derived_one_by_one() -> None:
    table = hostile_rows()
    expected = derived_alone(table)
    assert len(expected) == 3 and len(table) > 20, (len(expected), len(table))
    batches = table.to_batches(max_chunksize=7)
    groups = states_by_group(batches, SPEC, BY, columns=COLUMNS, where=WHERE)
    assert digests(groups) == expected
    partial_states = partial(batches, SPEC, BY, columns=COLUMNS, where=WHERE)
    rows = [row for batch in partial_states for row in batch.to_pylist()]
    assert {(row["variant"],): merged([row["state"]]).digest() for row in rows} == expected
    keyed = merged(state for _, state in shards(batches, SPEC, BY, COLUMNS, WHERE))
    assert isinstance(keyed, PerKey)
    assert {key: keyed.state(key).digest() for key in keyed.keys()} == expected  # noqa: SIM118
    whole = SPEC.empty()
    for batch in batches:
        update_from(whole, batch, COLUMNS, WHERE)
    ((group, state),) = states_by_group(batches, SPEC, columns=COLUMNS, where=WHERE)
    assert group == () and state.digest() == whole.digest()
    figures = aggregate(batches, SPEC, BY, columns=COLUMNS, where=WHERE).to_pylist()
    assert {row["variant"] for row in figures} == {"a", "b", None}


def test_rows_left_out_have_no_group_but_are_in_the_provenance() -> None:
    batch = pa.record_batch({"k": ["a", "b"], "v": [1.0, 2.0], "offset": [4, 5]})
    (states,) = partial(
        [batch],
        Moments(),
        ["k"],
        columns={"values": "v"},
        where="v < 2",
        counted=Positions((), "offset"),
    )
    assert states["k"].to_pylist() == ["a"]
    state = merged(states["state"].to_pylist())
    assert "[4, 6)" in str(state.provenance)
    assert list(states_by_group([batch], Moments(), columns={"values": "v"}, where="v > 9")) == []


def test_the_errors_of_all_routes_show_the_place() -> None:
    batch = pa.record_batch({"v": [1.0, 2.0, None], "k": [1, 2, 3]})
    for route in (
        lambda: list(partial([batch], Moments(), columns={"values": "v * k"}, where="k > 1")),
        lambda: list(
            states_by_group([batch], Moments(), columns={"values": "v * k"}, where="k > 1")
        ),
        lambda: aggregate([batch], Moments(), columns={"values": "v * k"}, where="k > 1"),
        lambda: update_from(Moments(), batch, {"values": "v * k"}, "k > 1"),
    ):
        with pytest.raises(InputError) as refused:
            route()
        assert refused.value.where.startswith("v[2], read by ")
        assert refused.value.where.endswith("columns['values'], column 1")
        assert str(refused.value).endswith("    v * k\n    ^")


def test_metrics_that_take_infinities_have_them() -> None:
    batch = pa.record_batch({"a": [1.0, -1.0, 0.5], "b": [0, 0, 2]})
    state = ExactQuantiles()
    update_from(state, batch, {"values": "a / b"})
    expected = ExactQuantiles()
    expected.update([math.inf, -math.inf, 0.25])
    assert state == expected


@pytest.mark.parametrize("case", classes_first(OF_ENGINES), ids=str)
def test_every_metric_counts_the_rows_that_meet_a_condition(case: Case[Any]) -> None:
    rows = rows_of(case)
    keep = [i % 3 != 1 for i in range(rows.batch.num_rows)]
    batch = rows.batch.append_column("is_kept", pa.array(keep))
    all_rows, selection, chosen = (rows.spec.empty() for _ in range(3))
    update_from(all_rows, batch, where="is_kept or not is_kept")
    assert all_rows.digest() == rows.whole.digest()
    try:
        update_from(chosen, rows.batch.filter(pa.array(keep)))
    except InputError as error:  # fewer rows may be none
        with pytest.raises(InputError) as refused:
            update_from(selection, batch, where="is_kept")
        assert refused.value.expected == error.expected
    else:
        update_from(selection, batch, where="is_kept")
        assert selection.digest() == chosen.digest()
