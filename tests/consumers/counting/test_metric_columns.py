"""From events with arrays to vectors and tables, however a log is cut."""

from __future__ import annotations

import numpy as np
import pytest
from streammetrics_consumers.counting.delta import Delta, columns_of, of_one_shape
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.model.commit import Refused

from tests.consumers.messages import states_of
from tests.consumers.small_config import LOG, chunk, config

TABLES = config(
    event='time = "ts"\nlabel = "kind"\nscore = "probs"',
    slices='by = [[], ["fold"]]',
    metrics="""
auc = { type = "MulticlassAUC", n_classes = 3, exact = true }
voted = { type = "MulticlassConfusion", n_classes = 3, inputs = { predictions = "v", labels = "c" }}
one = { type = "MultilabelConfusion", n_labels = 1, inputs = { labels = "l", scores = "s" } }
""",
)


def line(i: int, kind: object, vote: object, score: float = 0.5) -> bytes:
    probs = [i % 7 / 8, score, i % 5 / 8]
    text = (
        f'{{"ts":"2024-01-01T{i % 24:02}:00:00Z","fold":{i % 3},"kind":{kind},"c":{i % 3},'
        f'"v":{vote},"probs":{probs},"l":[{i % 2}],"s":[{score}]}}'
    )
    return text.encode()


KINDS: tuple[object, ...] = (0, [1, 0, 1], 2, [0, 0, 0], 9, [0, 0, 9], [1])
VOTES: tuple[object, ...] = ([0.1, 0.2, 0.3], 1, 4, [3, 2], 0)
EVENTS = [line(i, KINDS[i % 7], VOTES[i % 5]) for i in range(70)]


def decoded(*values: bytes) -> Decoded:
    return Decoder(TABLES).decode(chunk(values))


def test_events_whose_field_is_a_number_come_apart_from_those_with_an_array() -> None:
    found = decoded(line(0, 0, 1), line(1, [1, 0, 1], 1), line(2, 2, [1, 2, 3]), line(3, 1, 0))
    assert sorted(places.tolist() for places in of_one_shape(found)) == [[0, 3], [1], [2]]
    assert [places.tolist() for places in of_one_shape(decoded(line(0, 0, 1)))] == [[0]]
    assert list(of_one_shape(decoded())) == []


def test_a_number_is_a_vector_and_an_array_is_a_row() -> None:
    found = columns_of(decoded(line(0, 0, [1, 2, 3]), line(1, 2, [0.5, 2, 3])))
    shapes = {name: np.shape(column) for name, column in found.items()}  # type: ignore[arg-type]
    assert shapes == {
        "kind:label_or_row": (2,),
        "v:real_or_row": (2, 3),
        "probs:real_row": (2, 3),
        "c:label": (2,),
        "l:label_row": (2, 1),  # one label is a table all the same
        "s:real_row": (2, 1),
    }


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3, 70])
def test_how_a_log_of_both_is_cut_leaves_no_trace(size: int) -> None:
    def fed(size: int) -> tuple[dict[tuple[object, ...], bytes], list[Refused]]:
        delta = Delta(TABLES, LOG, 0)
        for start in range(0, len(EVENTS), size):
            delta.add(Decoder(TABLES).decode(chunk(EVENTS[start : start + size], start)))
        return {shard[:4]: shard.state.to_bytes() for shard in states_of(delta)}, delta.quarantine

    states, refused = fed(size)
    assert (states, refused) == fed(20)
    good = [i for i in range(70) if i % 7 < 4 and i % 5 not in (2, 3)]
    assert sorted({*range(70)} - {entry.offset for entry in refused}) == good
