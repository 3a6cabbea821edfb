"""Written columns and conditions: Beam gives the digests of rows that plain Python derived."""

from __future__ import annotations

import apache_beam as beam

from streammetrics import load
from streammetrics.engines.beam import Aggregate, Merge, States, StatesFn
from tests.engines.beam.pipelines import run, shards
from tests.engines.hostile_rows import BY, COLUMNS, SPEC, WHERE, derived_alone, hostile_rows

TABLE = hostile_rows()


def test_states_are_those_of_rows_derived_before() -> None:
    counted = States(SPEC, BY, columns=COLUMNS, where=WHERE)
    pairs = run(lambda pipeline: pipeline | beam.Create(shards(TABLE, 5, 1)) | counted | Merge())
    assert {group: load(state).digest() for group, state in pairs} == derived_alone(TABLE)


def test_users_meet_in_buckets_of_the_rows_that_are_left() -> None:
    sealed = States(SPEC, BY, columns=COLUMNS, where=WHERE, user="offset", n_buckets=3)
    pairs = run(lambda pipeline: pipeline | beam.Create(shards(TABLE, 5, 1)) | sealed | Merge())
    assert {group for group, _ in pairs} == derived_alone(TABLE).keys()


def test_a_combine_function_and_results_take_them_too() -> None:
    fn = StatesFn(SPEC, columns=COLUMNS, where=WHERE)
    state = load(fn.extract_output(fn.add_input(fn.create_accumulator(), TABLE)))
    whole = SPEC.empty()
    whole.update_from(TABLE, columns=COLUMNS, where=WHERE)
    assert state.digest() == whole.digest()
    rows = run(
        lambda pipeline: (
            pipeline
            | beam.Create(shards(TABLE, 2, 1))
            | Aggregate(SPEC, BY, columns=COLUMNS, where=WHERE)
        )
    )
    assert {row["variant"] for row in rows} == {"a", "b", None}
