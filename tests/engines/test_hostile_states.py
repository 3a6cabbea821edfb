"""Cells of a column of states that are no states: refused, with what came and what to do."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from streammetrics import GroupedAUC, HistogramAUC, InputError, Panel, StateError
from streammetrics.core.bytes.codec import FILE_MAGIC, frame, unframe
from streammetrics.engines import Sealed, Sealing, merge_all, merged, results_rows, seal

MOST_MEMORY = 4 << 20


def envelope() -> bytes:
    """A sealed state of two users, with three notes beside it."""
    spec = Panel({"auc": HistogramAUC(), "gauc": GroupedAUC()})
    spec.update(labels=[0, 1, 0, 1], scores=[0.1, 0.2, 0.3, 0.4], groups=[7, 7, 8, 8])
    spec.provenance.add("job/tasks", 3, 4, "[] bucket 1")
    spec.provenance.add("job/tasks", 8, 9, "[] bucket 1")
    return seal(spec, Sealing("user", 4, "mod", "day"), 1).to_file_bytes()


GOOD = envelope()


def refused(data: object) -> None:
    """The cell is refused beside a good one, with all four parts, and before memory is taken."""
    tracemalloc.start()
    try:
        for cells in ([data], [GOOD, data], [data, GOOD]):
            with pytest.raises((StateError, InputError)) as caught:
                merged(cells)  # type: ignore[arg-type]
            error = caught.value
            assert all((error.expected, error.got, error.where, error.hint))
            assert len(str(error)) < 2_000
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()


def test_a_cell_that_is_no_bytes_is_refused_and_names_no_file() -> None:
    assert merge_all([GOOD]) == GOOD
    for cell in (None, "state", 5, [1, 2]):
        refused(cell)
        with pytest.raises(StateError, match="the bytes of a state"):
            results_rows(cell)  # type: ignore[arg-type]
    for torn in (b"", GOOD[:-1], GOOD + b"\0"):
        refused(torn)


def test_notes_that_nobody_wrote_are_refused() -> None:
    _, body = unframe(FILE_MAGIC, GOOD)
    strange: list[object] = [
        [["job/tasks", "", 1, 0]],
        [["job/tasks", "", 0, 10**4000]] * 2,
        [["job/tasks", "", -1, 1]],
        [[None, "", 0, 1]],
        {"job": 1},
        None,
        [[["a"]]],
    ]
    for notes in strange:
        head = json.dumps(notes, separators=(",", ":")).encode()
        refused(frame(FILE_MAGIC, head, bytes(body)))


def test_a_sealed_state_that_claims_buckets_of_elsewhere_is_refused() -> None:
    _, body = unframe(FILE_MAGIC, GOOD)
    claimed = [("day", 0, 5), ("day", 4, 5), ("day", 2**70, 2**70 + 1), ("", 1, 2), ("june", 1, 2)]
    for scope, start, end in claimed:
        notes = [[f"sealed/mod(user) mod 4/{scope}", "", start, end]]
        head = json.dumps(notes, separators=(",", ":")).encode()
        claims = frame(FILE_MAGIC, head, bytes(body))
        with pytest.raises(StateError, match="buckets"):
            merged([claims, seal(*other_bucket()).to_file_bytes()])


def other_bucket() -> tuple[Panel, Sealing, int]:
    """What is sealed beside it."""
    empty = Panel({"auc": HistogramAUC(), "gauc": GroupedAUC()})
    return empty, Sealing("user", 4, "mod", "day"), 0


def test_a_sealed_state_says_which_buckets_it_has_after_all_of_this() -> None:
    total = merged([GOOD, seal(*other_bucket()).to_file_bytes()])
    assert isinstance(total, Sealed)
    assert total.buckets == (2, 4)
