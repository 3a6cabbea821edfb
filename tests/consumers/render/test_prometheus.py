"""Values, bounds, intervals and effects as gauges: those of the results, escaped and bounded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from threading import Event

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from streammetrics_consumers.ledger.ledger import Ledger, TooLarge
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.latest import LatestResults
from streammetrics_consumers.query.query import OTHER, Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.render import prometheus as module
from streammetrics_consumers.render.cells import headline_rows, results_with_texts
from streammetrics_consumers.render.prometheus import result_gauges, slice_labels
from streammetrics_consumers.server.exposition import exposition
from streammetrics_consumers.server.health import NO_WORKERS

from tests.consumers import experiment_run, experiments_run, interacting_run, meeting_run
from tests.consumers.answer_rows import altered, plain
from tests.consumers.render.corpus import corpus, rows
from tests.consumers.render.corpus import results as results_of
from tests.consumers.stores import event, make_store
from tests.patience import LIMIT_S, until

Key = tuple[str, frozenset[tuple[str, str]]]


def parsed(text: str) -> Mapping[Key, float]:
    """Every sample, as Prometheus's own parser reads it; one that came twice is an error."""
    samples = [
        ((sample.name, frozenset((k, v) for k, v in sample.labels.items() if v)), sample.value)
        for metric_set in text_string_to_metric_families(text)
        for sample in metric_set.samples
    ]
    assert len(dict(samples)) == len(samples)
    return dict(samples)


def gauges(by_window: Mapping[str, ResultsAnswer]) -> Mapping[Key, float]:
    class Found:
        def collect(self) -> object:
            return result_gauges(by_window)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Found())  # type: ignore[arg-type]
    return parsed(generate_latest(registry).decode())


def key(name: str, **labels: str) -> Key:
    return f"streammetrics_{name}", frozenset((k, v) for k, v in labels.items() if v)


def test_the_number_of_rows_is_bounded_and_what_is_left_out_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = corpus()["variants beside all rows"]
    monkeypatch.setattr(module, "ROWS", 4)
    samples = gauges({"total": results, "latest": results})
    shown = [dict(labels) for name, labels in samples if name == "streammetrics_result"]
    assert len(shown) == 8
    assert not any("variant" in labels for labels in shown)  # groupings of few names go first
    headlines = len(headline_rows(results))
    assert samples[key("results_left_out")] == 2 * (headlines - 4)


def test_rows_that_are_left_out_are_not_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [event(i, "ab"[i % 2], i % 3 == 0, i / 60, f"phase {i % 9}") for i in range(59)]
    path = make_store(tmp_path, events, slices="max_keys = 6")
    monkeypatch.setattr(module, "ROWS", 8)
    with closing(Ledger.open(str(path))) as ledger:
        part, whole = (read_results(ledger, Query(headlines=True, rows=n)) for n in (8, None))
    assert 8 <= len(part.rows) < len(whole.rows) - 8
    assert gauges({"total": part}) == gauges({"total": whole})


def test_quantiles_have_their_band_beside_their_value(tmp_path: Path) -> None:
    events = [event(i % 60, "ab"[i % 2], i % 3 == 0, i / 128) for i in range(128)]
    wait = '[metrics.wait]\ntype = "Quantiles"\ninputs = { values = "score" }\n'
    with closing(Ledger.open(str(make_store(tmp_path, events, rest=wait)))) as ledger:
        results = read_results(ledger, Query())
    samples = gauges({"total": results})
    labels = {"metric": "wait", "window": "total"}
    rows = {row.view: row for row in results.rows if row.metric == "wait" and not row.slice}
    for view in ("median", "p90", "p99"):
        row = rows[view]
        assert row.band is not UNSET and row.band.method == "band"
        ends = [
            samples[key(f"result_band_{end}", view=view, **labels)] for end in ("lower", "upper")
        ]
        assert ends == [row.band.lower, row.band.upper]
    assert 0.2 < samples[key("result_band_lower", view="median", **labels)] < 0.5
    assert samples[key("result_band_upper", view="p99", **labels)] == float("inf")
    # Every other row has none: neither in the gauges nor in the JSON, which is the whole answer's.
    assert all(dict(labels)["metric"] == "wait" for name, labels in samples if "band" in name)
    assert rows["mean"].band is UNSET and "iqr" in rows
    texts = results_with_texts(results)
    shown = {row.view: row.text for row in texts.rows if row.metric == "wait" and not row.slice}
    assert shown["p99"].band.endswith("to inf") and shown["mean"].band is UNSET  # type: ignore[union-attr]
    assert b'"band": {"deff"' in to_json(texts)
    assert json.loads(to_json(texts)) == plain(texts)


def test_labels_say_what_a_slice_is_and_no_name_can_pretend_to_be_another() -> None:
    assert slice_labels({OTHER: ("variant", "phase")}) == (OTHER, "(other)=variant phase")
    assert slice_labels({OTHER: ("phase",)}) == ("", "(other)=phase")
    assert slice_labels({"a": "1,b=2"}) != slice_labels({"a": "1", "b": "2"})
    assert slice_labels({"a": None}) == ("", "a=null")
    assert slice_labels({"variant": "\ud800"}) == ("\\ud800", "")  # does not end the scrape
    win = corpus()["win"]
    for name in ('a"} 1\nevil 1', "back\\slash", "é" * 70):
        row = altered(win.rows[0], slice={"variant": name})
        samples = gauges({"total": replace(win, rows=(row,))})
        labels = [dict(labels) for name, labels in samples if name == "streammetrics_result"]
        assert [entry["variant"] for entry in labels] == [name]


def test_results_that_cannot_be_read_cost_nothing_else(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*_: object) -> ResultsAnswer:
        raise TooLarge("the states are too large")

    monkeypatch.setattr(QueryCache, "results", too_large)
    with closing(Ledger.open(str(store), pauses_s=())) as ledger:
        samples = parsed(exposition(ledger, NO_WORKERS).decode())
    assert (samples[key("results_up")], samples[key("store_up")]) == (0, 1)
    assert key("results_left_out") not in samples


def test_who_asks_does_not_wait_for_long_and_gets_what_was_read_before(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        answers = QueryCache(ledger)
        slow, waits, go_on = Event(), Event(), Event()
        results, read = answers.results(Query()), 0
        (version, _), looks = answers.moment(), count()  # something happens again and again

        def answer(_: Query) -> ResultsAnswer:
            nonlocal read
            read += 1
            if slow.is_set():
                waits.set()
                assert go_on.wait(LIMIT_S)
            return replace(results, rows_read=read)

        answers.results = answer  # type: ignore[method-assign]
        answers.moment = lambda: (version, next(looks))  # type: ignore[method-assign]
        latest = LatestResults(answers, wait_s=0.05)
        until(lambda: "total" in latest.latest().by_window)
        slow.set()
        until(lambda: bool(latest.latest().by_window) and waits.is_set())
        last, begun = latest.latest().by_window["total"].rows_read, read  # of the last reading
        assert latest.latest().by_window["total"].rows_read == last
        assert read == begun  # one reading at a time
        slow.clear()
        go_on.set()
        until(lambda: latest.latest().by_window["total"].rows_read > last)


def test_each_experiment_with_a_name_has_it_as_a_label_and_hidden_ones_have_no_series(
    tmp_path: Path,
) -> None:
    text = experiments_run.EXPERIMENTS.replace("days = 14", "archived = true")
    store = experiment_run.run(experiments_run.write(tmp_path, text))
    with closing(Ledger.open(str(store))) as ledger:
        samples = parsed(exposition(ledger, NO_WORKERS).decode())
        pricing = read_results(ledger, Query(experiment="pricing"))
        unnamed = read_results(ledger, Query())
    assert {dict(labels).get("experiment") for _, labels in samples} == {None, "pricing"}
    for results, label in ((unnamed, {}), (pricing, {"experiment": "pricing"})):
        [row] = results.comparisons
        treatment, control = row.contrast.treatment_variant, row.contrast.control_variant
        place = {
            "metric": "ctr",
            "view": "ratio",
            "control": control,
            "treatment": treatment,
            **label,
        }
        assert samples[key("effect", **place)] == row.comparison.effect_size
        assert samples[key("effect_verdict", **place, verdict=row.finding.verdict)] == 1
        assert results.recommendation is not None and results.srm is not None
        assert samples[key("recommendation", action=results.recommendation.action, **label)] == 1
        assert samples[key("sample_ratio_alarm", **label)] == 0
        for variant, units in results.srm.counts:
            assert samples[key("units", variant=variant, **label)] == units


def test_broken_layers_and_pairs_whose_arms_depend_are_gauges(tmp_path: Path) -> None:
    with closing(Ledger.open(str(meeting_run.make(tmp_path)))) as ledger:
        samples = parsed(exposition(ledger, NO_WORKERS).decode())
    alarms = {
        series: value
        for series, value in samples.items()
        if series[0].endswith(("r_alarm", "p_alarm"))
    }
    assert alarms == {
        key("layer_alarm", layer="prices"): 1,
        key("layer_alarm", layer="looks"): 0,
        key("overlap_alarm", first="layout", second="ranker"): 1,
        key("overlap_alarm", first="layout", second="pricing"): 0,
        key("overlap_alarm", first="pricing", second="ranker"): 0,
    }


def test_effects_that_differ_between_arms_are_gauges(tmp_path: Path) -> None:
    tables = interacting_run.entries('["ctr", "loss.brier"]', ["ranker"])
    with closing(Ledger.open(str(interacting_run.make(tmp_path, tables)))) as ledger:
        samples = parsed(exposition(ledger, NO_WORKERS).decode())
    labels = {"experiment": "ranker", "treatment": "new", "metric": "ctr", "other_treatment": "new"}
    flags = {series: value for series, value in samples.items() if series[0].endswith("_differs")}
    assert flags == {
        key("interaction_differs", other="pricing", **labels): 1,
        key("interaction_differs", other="colour", **labels): 0,
    }


def test_what_is_not_known_of_layers_and_pairs_has_no_series(tmp_path: Path) -> None:
    tables = meeting_run.entries(pricing="max_units = 10\n") + meeting_run.LAYERS
    store = experiment_run.run(meeting_run.write(tmp_path, tables))
    with closing(Ledger.open(str(store))) as ledger:
        samples = parsed(exposition(ledger, NO_WORKERS).decode())
    assert samples[key("overlap_alarm", first="layout", second="ranker")] == 1
    assert key("overlap_alarm", first="pricing", second="ranker") not in samples
    assert key("layer_alarm", layer="prices") not in samples


def test_pairs_with_an_alarm_are_the_last_to_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAIRS", 1)
    with closing(Ledger.open(str(meeting_run.make(tmp_path)))) as ledger:
        samples = parsed(exposition(ledger, NO_WORKERS).decode())
    pairs = {
        series: value for series, value in samples.items() if series[0].endswith("overlap_alarm")
    }
    assert pairs == {key("overlap_alarm", first="layout", second="ranker"): 1}
    assert samples[key("results_left_out")] == 2


def test_a_row_with_the_labels_of_another_is_counted_as_left_out() -> None:
    answers = results_of(*(rows({"phase": phase}, n) for n, phase in enumerate((None, "null"))))
    samples = gauges({"total": answers})
    shown = [labels for name, labels in samples if name == "streammetrics_result"]
    assert 2 * len(shown) == len(headline_rows(answers))
    assert samples[key("results_left_out")] == len(shown)
