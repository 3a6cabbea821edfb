"""The receipt of a Kafka consumer is that of a backfill in Beam."""

from __future__ import annotations

from pathlib import Path

import apache_beam as beam

from streammetrics import load
from streammetrics.engines.beam import Merge, States
from tests.engines.beam.pipelines import run, shards
from tests.engines.receipt import COLUMNS, VARIANTS, consumed, logged, of_the_window


def test_a_consumer_and_a_backfill_in_beam_give_the_same_receipt(
    kafka: str, tmp_path: Path
) -> None:
    live = consumed(kafka, tmp_path)
    tables = shards(of_the_window(logged()), 5, seed=1)
    count = States(live["a"].empty(), ["variant"], columns=COLUMNS)
    found = run(lambda pipeline: pipeline | beam.Create(tables) | count | Merge())
    assert {group: load(state).digest() for group, state in found} == {
        (variant,): live[variant].digest() for variant in VARIANTS
    }
