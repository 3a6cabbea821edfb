"""The ids by which repeats of events are known, as they are decoded."""

from __future__ import annotations

import json

import numpy as np
import pytest
from streammetrics_consumers.events.decoder import Decoder, EventIds
from streammetrics_consumers.events.fields import EVENT_ID

from streammetrics import hash_ids
from tests.consumers.joined_stream import EVENT as SPLIT_EVENT
from tests.consumers.joined_stream import JOIN, click, shown
from tests.consumers.small_config import chunk, config, event

DEDUP = '[dedup]\nevent_id = "id"'
MS = 1_704_067_200_000  # of `event`


def with_id(value: bytes, id_: object) -> bytes:
    return json.dumps({**json.loads(value), "id": id_}).encode()


def hashes(*ids: str) -> list[int]:
    return np.asarray(hash_ids(list(ids))).view(np.uint64).tolist()  # type: ignore[no-any-return]


def found(*values: bytes, timestamps_ms: list[int | None] | None = None) -> EventIds:
    made = Decoder(config(rest=DEDUP)).decode(chunk(values, timestamps_ms=timestamps_ms))
    assert made.event_ids is not None
    return made.event_ids


def test_a_config_without_ids_reads_none() -> None:
    assert Decoder(config()).decode(chunk([event()])).event_ids is None


def test_ids_are_those_of_good_events_and_of_refused_ones_that_have_one() -> None:
    ids = found(
        with_id(event(), "a"),
        b"{",  # no JSON
        with_id(event(variant="c"), "b"),  # an unknown variant
        event(),  # no id
        with_id(event(ts="soon"), "c"),  # no time
        with_id(event(), 7),
        with_id(event(label='"x"'), "d"),  # another type: it is not read any further
    )
    assert ids.positions.tolist() == [0, 2, 5]
    assert ids.ids.tolist() == hashes("a", "b", "7")
    assert ids.times_ms.tolist() == [MS] * 3


def test_a_time_too_far_ahead_counts_as_that_of_its_record() -> None:
    value = with_id(event(), "a")
    times: list[int | None] = [MS, MS - 100_000, MS - 100_001, None]
    assert found(*[value] * 4, timestamps_ms=times).times_ms.tolist() == [MS, MS, MS - 100_001, MS]


def test_no_metric_sees_the_ids() -> None:
    made = Decoder(config(rest=DEDUP)).decode(chunk([with_id(event(), "a")]))
    assert EVENT_ID not in made.columns
    assert EVENT_ID not in made.keys


@pytest.mark.parametrize("n", [0, 2])
def test_impressions_and_outcomes_have_ids_alike(n: int) -> None:
    of = config(event=SPLIT_EVENT, rest=JOIN + DEDUP.replace('"id"', '"event"'))
    events = [{**shown("i", 0), "event": "a"}, {**click("i", 5), "event": "b"}][:n]
    made = Decoder(of).decode(chunk([json.dumps(one).encode() for one in events]))
    assert made.event_ids is not None
    assert made.event_ids.ids.tolist() == hashes("a", "b")[:n]
