"""A delta: what the events of one partition add, however their log is cut."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.counted_events import columns_of
from streammetrics_consumers.counting.delta import Delta, shape_groups
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.model.commit import Counters, Refused

from streammetrics import HistogramAUC, Panel, PerKey, Ratio, Windows
from tests.consumers.messages import counted, digests, in_chunks, states_of
from tests.consumers.small_config import LOG, chunk, config, event

HOUR_MS = 3_600_000


DAY = 1_704_067_200_000  # 2024-01-01T00:00:00Z


SMALL = config()


def event_at(seconds: float, **fields: object) -> bytes:
    """An event so many seconds after the day began."""
    version = datetime.fromtimestamp(DAY / 1000 + seconds, UTC)
    return event(ts=version.isoformat(), **fields)  # type: ignore[arg-type]


def fed(
    *chunks: Sequence[bytes | None],
    config: Config = SMALL,
    greatest: int | None = None,
    floor: int | None = None,
    timestamps_ms: Sequence[int | None] | None = None,
) -> Delta:
    """A delta of these chunks, one after the other."""
    delta, decoder, start = Delta(config, LOG, 0, greatest, floor), Decoder(config), 0
    for values in chunks:
        delta.add(decoder.decode(chunk(values, start, timestamps_ms)))
        start += len(values)
    return delta


def late(*seconds: float, lateness_s: int = 60, greatest: int | None = None) -> int:
    windows = f"size_s = 3600\nlateness_s = {lateness_s}"
    return fed(
        [event_at(s) for s in seconds], config=config(windows=windows), greatest=greatest
    ).counters.late


def test_a_row_is_late_by_the_earlier_rows_of_its_partition_alone() -> None:
    assert late(0, 100, 40) == 0  # exactly the allowed lateness behind
    assert late(0, 100, 39.999) == 1
    assert late(39, 100) == 0  # a later row makes no earlier one late
    assert late(200, 100, 139, 141) == 2
    assert late(0, greatest=DAY + 60_000) == 0  # lateness goes on from the last commit
    assert late(0, greatest=DAY + 60_001) == 1


def test_a_late_row_adds_to_its_window_and_does_not_move_the_watermark_back() -> None:
    delta = fed([event_at(2 * 3600), event_at(5), event_at(2 * 3600 - 61)])
    starts = {shard.start_ms for shard in states_of(delta)}
    assert starts == {None, DAY, DAY + HOUR_MS, DAY + 2 * HOUR_MS}
    assert delta.counters == Counters(rows=3, late=2)
    assert delta.greatest_event_ms == DAY + 2 * HOUR_MS


def test_a_refused_row_moves_no_watermark() -> None:
    delta = fed([event_at(0), event_at(9000, label=2), event_at(9000, variant="z"), event_at(1)])
    assert delta.greatest_event_ms == DAY + 1000
    assert delta.counters == Counters(rows=4, quarantined=2)


def test_rows_further_ahead_than_allowed_of_their_record_are_refused() -> None:
    delta = fed([event_at(100), event_at(100.001), event_at(0), event_at(5000)],
                timestamps_ms=[DAY, DAY, DAY, None])  # fmt: skip
    assert delta.counters == Counters(rows=4, future=1, quarantined=1, late=1)
    assert [(e.offset, e.reason) for e in delta.quarantine] == [(1, "future")]
    assert delta.greatest_event_ms == DAY + 5_000_000  # no record time, no comparison


def test_rows_below_the_floor_count_in_totals_alone() -> None:
    values = [event_at(0), event_at(HOUR_MS / 1000), event_at(2 * HOUR_MS / 1000)]
    below = fed(values, floor=DAY + HOUR_MS)
    free = fed(values)
    assert below.counters == Counters(rows=3, expired=1)
    totals = {key: data for key, data in digests(free).items() if key[2] is None}
    assert {key: data for key, data in digests(below).items() if key[2] is None} == totals
    assert digests(below).keys() == {key for key in digests(free) if key[2] != DAY}
    assert all(digests(free)[key] == data for key, data in digests(below).items())
    assert {key[2] for key in digests(fed([event_at(0)], floor=DAY + 1))} == {None}


def test_states_that_another_process_counted_are_added_with_those_below_the_floor() -> None:
    values = [event_at(0), event_at(HOUR_MS / 1000), event_at(2 * HOUR_MS / 1000, variant="b")]
    for parts in ((values[:2], values[2:]), (values[1:], values[:1])):
        first, second = (fed(part, floor=DAY + HOUR_MS) for part in parts)
        for states, another in zip(first.states.keyed, second.states.keyed, strict=True):
            states.join(*another.bare())
        assert digests(first) == digests(fed(values, floor=DAY + HOUR_MS))


def test_what_a_metric_refuses_goes_to_quarantine_and_its_neighbours_are_counted() -> None:
    delta = fed(
        [
            event_at(0),
            event_at(1, label=2),
            event_at(2, label=1),
            event_at(3, score=1.5),
            event_at(4),
        ]
    )
    assert [(e.offset, e.reason) for e in delta.quarantine] == [(1, "metric"), (3, "metric")]
    assert digests(delta) == digests(fed([event_at(0), event_at(2, label=1), event_at(4)]))
    assert "auc" in delta.quarantine[0].detail and "labels" in delta.quarantine[0].detail
    # What is said of an event does not depend on its batch.
    bad = [event_at(0), event_at(1, label=2), event_at(2, label=3), event_at(3, score=-1)]
    assert fed(bad).quarantine == fed(*[[value] for value in bad]).quarantine


def test_a_refusal_with_expired_rows_in_the_batch_changes_nothing_else() -> None:
    values = [
        event_at(0),
        event_at(1, label=2),
        event_at(HOUR_MS / 1000),
        event_at(HOUR_MS / 1000, score=7),
    ]
    delta = fed(values, floor=DAY + HOUR_MS)
    assert digests(delta) == digests(fed([values[0], values[2]], floor=DAY + HOUR_MS))
    assert delta.counters == Counters(rows=4, expired=1, quarantined=2)


def test_every_piece_names_its_metric_grouping_and_pane() -> None:
    pieces = list(states_of(fed([event_at(0, phase="fit"), event_at(HOUR_MS / 1000, variant="b")])))
    assert {(p.metric, p.grouping, p.start_ms, p.end_ms) for p in pieces} == {
        (metric, grouping, start, None if start is None else start + HOUR_MS)
        for metric in ("auc", "ctr")
        for grouping in (0, 1, 2)
        for start in (None, DAY, DAY + HOUR_MS)
    }
    (total,) = (p for p in pieces if p.metric == "ctr" and p.grouping == 2 and p.start_ms is None)
    assert set(total.state.keys()) == {(2, "a", "fit"), (2, "b", "fit")}


def test_one_groupings_keys_never_push_out_those_of_another() -> None:
    many = config(slices='by = [[], ["phase"]]\nmax_keys = 2')
    delta = fed([event_at(i, phase=f"p{i}") for i in range(9)], config=many)
    total = {p.grouping: p.state for p in states_of(delta) if p.metric == "ctr" and not p.start_ms}
    assert total[0].keys() == ((0,),) and total[0].overflow_state() is None
    assert len(total[1].keys()) == 2 and total[1].overflow_state() is not None


def test_chunks_must_follow_each_other() -> None:
    delta = fed([event_at(0)])
    with pytest.raises(ValueError, match="from offset 1"):
        delta.add(Decoder(SMALL).decode(chunk([event_at(1)], start=2)))


def test_an_empty_delta_stores_nothing() -> None:
    delta = fed([b"{", None])
    assert digests(delta) == {} and (delta.start, delta.end) == (0, 2)
    assert delta.counters == Counters(rows=1, quarantined=1, tombstones=1)


def test_memory_is_counted() -> None:
    small, large = fed([event_at(0)]), fed([b"x" * 5000] * 50)
    assert large.nbytes > small.nbytes + 50 * 4096


def test_memory_below_the_floor_is_measured_again_when_it_grows() -> None:
    delta, decoder = Delta(SMALL, LOG, 0, floor_ms=DAY + HOUR_MS), Decoder(SMALL)
    sizes = []
    for start, values in enumerate(
        [[event_at(7300)], [event_at(0)], [event_at(1)], [event_at(7301)]]
    ):
        delta.add(decoder.decode(chunk(values, start=start)))
        measured = delta.states.nbytes
        for keyed in delta.states.keyed:
            keyed._expired_nbytes = None
        assert delta.states.nbytes == measured
        sizes.append(measured)
    assert sizes[1] > sizes[0]


EVENTS = st.lists(
    st.builds(
        event_at,
        st.sampled_from([0, 30, 3599, 3600, 7300, 90_000]),
        variant=st.sampled_from(["a", "b", "z"]),
        label=st.sampled_from([0, 1, 2]),
        score=st.sampled_from([0.1, 0.25, 0.9, 2]),
        phase=st.sampled_from(["fit", "eval", "x"]),
    )
    | st.sampled_from([b"{", b"[]"]),
    max_size=25,
)


@given(EVENTS, st.lists(st.integers(0, 25), max_size=3))
def test_where_the_log_is_cut_into_chunks_leaves_no_trace(
    values: list[bytes], cuts: list[int]
) -> None:
    places = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    parts = [values[i:j] for i, j in pairwise(places)]
    small = config(slices='by = [[], ["phase"]]\nmax_keys = 2')
    whole = fed(values, config=small, floor=DAY + HOUR_MS)
    cut = fed(*parts, config=small, floor=DAY + HOUR_MS)
    assert digests(cut) == digests(whole)
    assert (cut.counters, cut.quarantine) == (whole.counters, whole.quarantine)
    assert (cut.greatest_event_ms, cut.end) == (whole.greatest_event_ms, whole.end)


def test_a_delta_equals_the_library_fed_directly() -> None:
    rng = np.random.default_rng(3)
    n = 300
    seconds, labels = rng.integers(0, 9000, n), rng.integers(0, 2, n)
    scores, variants = rng.random(n), rng.integers(0, 2, n)
    values = [
        event_at(int(s), variant="ab"[v], label=int(y), score=float(p))
        for s, v, y, p in zip(seconds, variants, labels, scores, strict=True)
    ]
    direct = Windows(PerKey(Panel({"auc": HistogramAUC(), "ctr": Ratio()})), size_s=3600)
    direct.update(
        DAY + seconds * 1000,
        keys=[(1, "ab"[v]) for v in variants],
        labels=labels,
        scores=scores,
        numerators=labels,
    )
    panes = {**direct.panes(), None: direct.total_state()}
    shards = [shard for shard in states_of(fed(values)) if shard.grouping == 1]
    assert len(shards) == 2 * len(panes)
    for shard in shards:
        pane = panes[shard.start_ms]
        assert isinstance(pane, PerKey)
        keys = pane.keys()
        assert keys
        for key in keys:
            panel = pane.state(key)
            assert isinstance(panel, Panel)
            assert shard.state.state(key) == panel.state(shard.metric)


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


ARRAYS = [line(i, KINDS[i % 7], VOTES[i % 5]) for i in range(70)]


def decoded(*values: bytes) -> Decoded:
    return Decoder(TABLES).decode(chunk(values))


def test_events_whose_field_is_a_number_come_apart_from_those_with_an_array() -> None:
    batch = decoded(line(0, 0, 1), line(1, [1, 0, 1], 1), line(2, 2, [1, 2, 3]), line(3, 1, 0))
    assert sorted(places.tolist() for places in shape_groups(batch)) == [[0, 3], [1], [2]]
    assert [places.tolist() for places in shape_groups(decoded(line(0, 0, 1)))] == [[0]]
    assert list(shape_groups(decoded())) == []


def test_a_number_is_a_vector_and_an_array_is_a_row() -> None:
    columns = columns_of(decoded(line(0, 0, [1, 2, 3]), line(1, 2, [0.5, 2, 3])))
    shapes = {name: np.shape(column) for name, column in columns.items()}  # type: ignore[arg-type]
    assert shapes == {
        "kind:label_or_row": (2,),
        "v:real_or_row": (2, 3),
        "probs:real_row": (2, 3),
        "c:label": (2,),
        "l:label_row": (2, 1),  # one label is a table all the same
        "s:real_row": (2, 1),
    }


def test_how_a_log_of_both_is_cut_leaves_no_trace() -> None:
    def fed(size: int) -> tuple[dict[object, bytes], list[Refused]]:
        delta = counted(TABLES, in_chunks(ARRAYS, range(0, 70, size)))
        return digests(delta), delta.quarantine

    states, refused = fed(20)
    assert all((states, refused) == fed(size) for size in (1, 3, 70))
    good = [i for i in range(70) if i % 7 < 4 and i % 5 not in (2, 3)]
    assert sorted({*range(70)} - {entry.offset for entry in refused}) == good
