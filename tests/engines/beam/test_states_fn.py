"""The coder and the CombineFn: every public accumulator, unchanged."""

from __future__ import annotations

import apache_beam as beam
import pytest
from apache_beam.coders import registry

from streammetrics import HistogramAUC, InputError, OverlapError, Ratio, SettingsError, load
from streammetrics.engines.beam import StateCoder, StatesFn
from streammetrics.registry import metric_types
from tests.engines.beam.pipelines import run, shards
from tests.engines.log_rows import COLUMNS, SPEC, log_table, updated_states
from tests.requirements import ROOT

GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.state"))


def noted(source: str, start: int, end: int) -> bytes:
    """A state that says what it counted."""
    state = Ratio()
    state.update([1] * (end - start))
    state.provenance.add(source, start, end)
    return state.to_file_bytes()


def test_a_state_of_every_metric_goes_through_the_coder_and_the_combine_fn() -> None:
    coder, fn = StateCoder(), StatesFn()
    for path in GOLDEN:
        assert coder.encode(coder.decode(path.read_bytes())) == path.read_bytes()
        state = load(load(path).to_bytes())  # what it counted stays behind: it is added twice
        halves = [fn.add_input(fn.create_accumulator(), state.to_bytes()) for _ in range(2)]
        total = load(fn.extract_output(fn.merge_accumulators([fn.create_accumulator(), *halves])))
        assert total.digest() == (state + state).digest(), path.stem


def test_merging_changes_only_the_first_accumulator() -> None:
    fn, first, second = StatesFn(), Ratio(), Ratio()
    first.update([1])
    second.update([0, 0])
    fn.merge_accumulators([None, first, second])
    assert (first.compute().denominator, second.compute().denominator) == (1, 2)


def test_the_coder_is_that_of_every_public_class_and_deterministic() -> None:
    for kind in metric_types().values():
        assert registry.get_coder(kind) == StateCoder()
    assert StateCoder().is_deterministic()
    assert hash(StateCoder()) == hash(StateCoder())
    assert StateCoder() != object()


def test_rows_of_all_tables_are_combined_globally() -> None:
    table = log_table()
    tables = shards(table, 9, seed=1)
    (state,) = run(
        lambda pipeline: (
            pipeline | beam.Create(tables) | beam.CombineGlobally(StatesFn(SPEC, columns=COLUMNS))
        )
    )
    assert load(state).digest() == updated_states(table, SPEC)[()].digest()


def test_states_of_each_key_survive_a_hot_key_fanout() -> None:
    parts = [("a", noted("log/0", start, start + 10)) for start in range(0, 400, 10)]
    ((key, state),) = run(
        lambda pipeline: (
            pipeline | beam.Create(parts) | beam.CombinePerKey(StatesFn()).with_hot_key_fanout(3)
        )
    )
    assert (key, load(state).compute().denominator) == ("a", 400)
    assert list(load(state).provenance) == [("log/0", "", 0, 400)]


def test_the_same_rows_twice_are_refused_or_skipped_on_request() -> None:
    twice = [noted("log/0", 0, 10), noted("log/0", 0, 10)]
    refusing, skipping = StatesFn(), StatesFn(replay="skip")
    with pytest.raises(OverlapError):
        refusing.add_inputs(None, twice)
    total = load(skipping.extract_output(skipping.add_inputs(None, twice)))
    assert total.compute().denominator == 10
    with pytest.raises(OverlapError):
        skipping.add_inputs(None, [noted("log/0", 0, 10), noted("log/0", 5, 15)])
    bare = load(twice[0]).to_bytes()  # says nothing, so it is never a replay
    total = load(skipping.extract_output(skipping.add_inputs(None, [bare, twice[0], bare])))
    assert total.compute().denominator == 30
    with pytest.raises(SettingsError, match="refuse"):
        StatesFn(replay="ignore")


def test_without_a_spec_there_are_states_and_no_rows() -> None:
    with pytest.raises(InputError, match="without_defaults"):
        StatesFn().extract_output(None)
    with pytest.raises(InputError, match=r"StatesFn\(spec\)"):
        StatesFn().add_input(None, log_table())
    fn = StatesFn(HistogramAUC())
    assert load(fn.extract_output(fn.create_accumulator())) == HistogramAUC()
    with pytest.raises(ValueError, match="resolution"):
        fn.add_input(fn.create_accumulator(), HistogramAUC(resolution=3).to_bytes())
