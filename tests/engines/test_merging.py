"""States to their sum, and results to rows; cells that are no states are refused."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest

from streammetrics import (
    GroupedAUC,
    HistogramAUC,
    InputError,
    Panel,
    PerKey,
    Ratio,
    SettingsError,
    StateError,
    Windows,
    load,
)
from streammetrics.core.codec import FILE_MAGIC, frame, unframe
from streammetrics.engines import (
    Sealed,
    Sealing,
    Task,
    merge_all,
    merge_once,
    merged,
    results_rows,
    results_schema,
    seal,
)
from tests.engines.log_rows import SPEC, log_table, states, updated_states

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]' in a clone")


def test_without_provenance_nothing_is_noticed_and_bare_bytes_merge() -> None:
    state = states(TABLE, SPEC)[0]["state"]
    assert merged([state, state]) == load(state) + load(state)
    assert merged([load(state).to_bytes()]) == load(state)


def test_what_is_no_state_or_no_rule_is_refused() -> None:
    with pytest.raises(InputError, match="at least one state"):
        merged([])
    with pytest.raises(StateError):
        merged([b"nothing"])
    with pytest.raises(SettingsError, match="refuse"):
        merged([], replay="ignore")


def test_what_does_not_say_what_it_counted_is_never_a_replay() -> None:
    state = states(TABLE, SPEC)[0]["state"]
    noted = states(TABLE, SPEC, counted=Task("job", 0))[0]["state"]
    for first in (state, noted):
        assert merged([first, state], replay="skip") == load(state) + load(state)
    assert merged([noted, noted], replay="skip") == load(state)


def test_a_replay_with_other_settings_is_no_replay() -> None:
    first, second = HistogramAUC(), HistogramAUC(resolution=3)
    for state in (first, second):
        state.provenance.add("clicks/0", 0, 5)
    with pytest.raises(SettingsError, match="resolution"):
        merge_once(first, second, "skip")
    assert merge_once(first, first.copy(), "skip") is False
    assert list(first.provenance) == [("clicks/0", "", 0, 5)]
    assert merge_once(first, HistogramAUC()) is True


def large_states() -> Iterator[bytes]:
    state = GroupedAUC()
    for start in range(3):
        state.update([0, 1], [0.1, 0.2], groups=[start, start])
        yield state.to_file_bytes()


def test_states_may_come_from_an_iterator() -> None:
    assert merged(large_states()).compute().groups == 3


def test_results_are_rows_by_name_key_and_window() -> None:
    inner = PerKey(Ratio(), max_keys=1)
    metric = Windows(Panel({"ctr": inner}), size_s=60)
    metric.update([0, 0, 0], keys=["a", "b", "c"], numerators=[1, 0, 1])
    rows = results_rows(metric.to_file_bytes())
    names = [name for name, view, *_ in rows if view == "ratio"]
    assert len(names) == 4
    assert names[0].startswith("[0,60000]/ctr/") and names[1] == "[0,60000]/ctr/others"
    assert names[2].startswith("total/ctr/")


def test_results_of_a_sealed_metric_have_its_name() -> None:
    users = GroupedAUC()
    users.update([0, 1], [0.1, 0.2], groups=[7, 7])
    sealed = seal(users, Sealing("user", 1, "", "day"))
    assert results_rows(sealed) == results_rows(users) == [("GroupedAUC", "gauc", 1.0, 1.0, 1.0)]


def test_results_have_bounds_and_a_schema() -> None:
    state = updated_states(TABLE, SPEC)[()]
    rows = results_rows(state)
    (auc,) = [row for row in rows if row[:2] == ("auc", "auc")]
    assert auc[3] < auc[2] < auc[4]
    (gauc,) = [row for row in rows if row[:2] == ("gauc", "gauc")]
    assert gauc[2] == gauc[3] == gauc[4]
    assert results_rows(Ratio())[0][:2] == ("Ratio", "ratio")
    names = ["phase", "metric", "view", "value", "low", "high"]
    assert results_schema(TABLE.schema, ["phase"]).names == names
    assert results_schema().names == names[1:]


def test_metrics_of_panels_in_panels_have_a_path_each() -> None:
    inner = Panel({"b": Ratio(), "b/c": Ratio()})
    for name in ("a/b", "a/b/c"):
        with pytest.raises(SettingsError, match=f"Panel.metrics: .*got 2 metrics '{name}'"):
            Panel({"a": inner, name: Ratio()})
    rows = results_rows(Panel({"a": inner, "a/d": Ratio()}))
    assert len({row[:2] for row in rows}) == len(rows)


MOST_MEMORY = 4 << 20
TABLE = log_table(400)


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
