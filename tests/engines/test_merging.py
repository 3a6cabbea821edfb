"""merge_all and results_rows: states to their sum, and results to rows."""

from __future__ import annotations

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
from streammetrics.engines import (
    Sealing,
    Task,
    merge_once,
    merged,
    results_rows,
    results_schema,
    seal,
)
from tests.engines.impressions import SPEC, log, single, states

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'streammetrics[parquet]'")


def test_without_provenance_nothing_is_noticed_and_bare_bytes_merge() -> None:
    state = states(log(), SPEC)[0]["state"]
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
    state = states(log(), SPEC)[0]["state"]
    noted = states(log(), SPEC, counted=Task("job", 0))[0]["state"]
    for first in (state, noted):
        assert merged([first, state], replay="skip") == load(state) + load(state)
    assert merged([noted, noted], replay="skip") == load(state)


def test_a_replay_with_other_settings_is_no_replay() -> None:
    first, other = HistogramAUC(), HistogramAUC(resolution=3)
    for state in (first, other):
        state.provenance.add("clicks/0", 0, 5)
    with pytest.raises(SettingsError, match="resolution"):
        merge_once(first, other, "skip")
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
    found = results_rows(metric.to_file_bytes())
    names = [name for name, view, *_ in found if view == "ratio"]
    assert len(names) == 4
    assert names[0].startswith("[0,60000]/ctr/") and names[1] == "[0,60000]/ctr/others"
    assert names[2].startswith("total/ctr/")


def test_results_of_a_sealed_metric_have_its_name() -> None:
    users = GroupedAUC()
    users.update([0, 1], [0.1, 0.2], groups=[7, 7])
    sealed = seal(users, Sealing("user", 1, "", "day"))
    assert results_rows(sealed) == results_rows(users) == [("GroupedAUC", "gauc", 1.0, 1.0, 1.0)]


def test_results_have_bounds_and_a_schema() -> None:
    state = single(log())
    rows = results_rows(state)
    (auc,) = [row for row in rows if row[:2] == ("auc", "auc")]
    assert auc[3] < auc[2] < auc[4]
    (gauc,) = [row for row in rows if row[:2] == ("gauc", "gauc")]
    assert gauc[2] == gauc[3] == gauc[4]
    assert results_rows(Ratio())[0][:2] == ("Ratio", "ratio")
    names = ["mobile", "metric", "view", "value", "low", "high"]
    assert results_schema(log(1).schema, ["mobile"]).names == names
    assert results_schema().names == names[1:]
