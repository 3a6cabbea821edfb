"""Drifts in answers: the drift of the states that the store has, by window and slice."""

from __future__ import annotations

import json
import math
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.catalogue import Catalogue
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.history import HistoryReader
from streammetrics_consumers.query.query import Lines, Query, QueryError, Span, parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.rows import SliceRow
from streammetrics_consumers.render.cells import results_with_texts

from streammetrics import HistogramAUC, Ratio, drift, load
from tests.consumers.stores import event, make_store, write_config

HOUR = 3_600_000
RANDOM = np.random.default_rng(7)
EVENTS = [
    event(60 * hour + i % 60, "ab"[i % 2], int(RANDOM.random() < 0.3), round(x, 3))
    for hour in range(3)
    for i, x in enumerate(RANDOM.beta(2 + 3 * (hour == 2), 5, 400).tolist())
]
DRIFTS = """
[drift.before]
metric = "auc"
[drift.first]
metric = "auc"
reference = "1970-01-01T00:00:00Z/1970-01-01T01:00:00Z"
label = 0
bins = 5
[drift.saved]
metric = "auc"
reference = "ref.state"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drift")
    (folder / "ref.state").write_bytes(scores(lambda e: e["score"] > 0.2).to_file_bytes())
    return make_store(folder, EVENTS, rest=DRIFTS)


def scores(takes: object) -> HistogramAUC:
    records = [record for record in EVENTS if takes(record)]  # type: ignore[operator]
    state = HistogramAUC()
    state.update([record["label"] for record in records], [record["score"] for record in records])
    return state


def hour_of(record: dict[str, object]) -> int:
    return int(str(record["ts"])[11:13])


def read(store: Path, query: Query) -> ResultsAnswer:
    with closing(Ledger.open(str(store))) as ledger:
        return read_results(ledger, query)


def row_of(answer: ResultsAnswer, metric: str, view: str, **slice_: str) -> SliceRow:
    (row,) = (r for r in answer.rows if (r.metric, r.view, r.slice) == (metric, view, slice_))
    return row


@pytest.mark.parametrize(
    ("metric", "reference", "label", "bins"),
    [
        ("before", scores(lambda e: hour_of(e) == 1 and e["variant"] == "b"), None, 10),
        ("first", scores(lambda e: hour_of(e) == 0 and e["variant"] == "b"), 0, 5),
        ("saved", scores(lambda e: e["score"] > 0.2), None, 10),
    ],
)
def test_a_slice_is_compared_with_the_same_slice_of_the_reference_or_with_a_saved_state(
    store: Path, metric: str, reference: HistogramAUC, label: int | None, bins: int
) -> None:
    answer = read(store, parse_query("latest", "variant", metric=metric))
    assert {row.metric for row in answer.rows} == {metric}
    current = scores(lambda e: hour_of(e) == 2 and e["variant"] == "b")
    expected = drift(reference, current, label=label, bins=bins)
    for view in ("psi", "psi_pvalue", "ks", "ks_band", "wasserstein", "js_distance"):
        row, value = row_of(answer, metric, view, variant="b"), getattr(expected, view)
        assert row.value == float(value), view
        bounds = getattr(value, "low", value), getattr(value, "high", value)
        if view in ("psi_pvalue", "ks_band"):
            assert math.isnan(row.low) and math.isnan(row.high)
        else:
            assert (row.low, row.high) == bounds
        assert (row.type, row.interval) == ("Drift", None)
    assert row.counts == {
        "rows": expected.rows,
        "reference_rows": expected.reference_rows,
        "bins": expected.bins,
    }


def test_drifts_follow_the_metrics_and_only_their_headlines_are_shown_by_default(
    store: Path,
) -> None:
    answer = read(store, Query("latest", frozenset(), headlines=True))
    metrics = list(dict.fromkeys(metric for metric, _ in answer.tables.headlines))
    assert metrics == ["auc", "ctr", "before", "first", "saved"]
    views = [view for metric, view in answer.tables.headlines if metric == "first"]
    assert views == ["psi", "psi_pvalue", "ks", "ks_band", "wasserstein"]
    assert {row.metric for row in answer.rows} == set(metrics)
    # A metric that is named is alone.
    single_answer = read(store, Query("latest", frozenset(), metric="auc"))
    assert {row.metric for row in single_answer.rows} == {"auc"}


def test_a_window_without_a_reference_says_so_and_the_total_has_no_window_before(
    store: Path,
) -> None:
    total = read(store, Query("total", frozenset()))
    assert {row.metric for row in total.rows} == {"auc", "ctr", "first", "saved"}
    first = results_with_texts(read(store, Query(Span(0, HOUR), frozenset(), metric="before")))
    row = row_of(first, "before", "ks")
    assert (str(row.value), row.counts["reference_rows"]) == ("nan", 0)
    assert row.text and row.text.reason == "the reference has no rows"  # type: ignore[union-attr]
    p = row_of(first, "before", "psi_pvalue")
    assert (p.value, p.text.value) == (1.0, "1.00")  # type: ignore[union-attr]


def test_the_digest_of_a_drift_changes_with_both_states(store: Path) -> None:
    def digests(metric: str, window: str | Span) -> set[str]:
        answer = read(store, Query(window, frozenset(), metric=metric))
        assert len({row.digest for row in answer.rows}) == 1
        return {row.digest for row in answer.rows}

    third_hour = Span(2 * HOUR, 3 * HOUR)
    assert digests("first", third_hour) == digests("first", "latest")
    assert not digests("first", third_hour) & digests("before", third_hour)
    assert not digests("first", third_hour) & digests("first", Span(HOUR, 2 * HOUR))


def test_a_file_that_is_gone_or_of_another_grid_costs_its_drift_alone_and_a_note_says_so(
    store: Path,
) -> None:
    path = store.with_name("ref.state")
    content = path.read_bytes()
    try:
        for data, message in (
            (b"", "an undamaged state"),
            (HistogramAUC(resolution=3).to_file_bytes(), "resolution=3, as in the reference"),
            (None, "No such file"),
        ):
            path.write_bytes(data) if data is not None else path.unlink()
            answer = read(store, Query("latest", frozenset()))
            assert {row.metric for row in answer.rows} == {"auc", "ctr", "before", "first"}
            (note,) = answer.notes
            lines = Query("latest", frozenset(), lines=Lines(1, "value"))
            assert read(store, lines).notes == answer.notes
            assert note.startswith("drift saved is not computed: ") and message in note
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize("metric", ["before", "first", "saved"])
def test_the_first_lines_of_a_drift_are_in_the_order_of_its_own_values(
    store: Path, metric: str
) -> None:
    rows = read(store, Query("all", frozenset({"variant"}), metric=metric)).rows
    candidates = [
        row
        for row in rows
        if (row.view, row.slice.get("variant")) == ("ks", "b") and row.counts["reference_rows"]
    ]
    most = max(candidates, key=lambda row: row.value)
    lines = Lines(1, "value", "b", down=True, view="ks")
    first_rows = read(store, Query("all", frozenset({"variant"}), metric=metric, lines=lines)).rows
    assert {row.window for row in first_rows} == {most.window}
    assert next(row for row in first_rows if row.slice == {"variant": "b"}) == most


def test_a_drift_is_listed_with_its_views_and_has_a_history(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        catalogue = Catalogue(ledger, "a.db")
        metric = catalogue.known("first")
        assert (metric.type, metric.figures, metric.view(None)) == ("Drift", (), "psi")
        listed = json.loads(catalogue.to_json())["metrics"]
        assert [entry["name"] for entry in listed] == ["auc", "before", "first", "saved", "ctr"]
        assert [entry["figures"] for entry in listed[1:4]] == [["history"]] * 3
        with pytest.raises(QueryError, match=r"\(auc, before, ctr, first, saved\)"):
            catalogue.known("last")
        reader = HistoryReader(ledger, QueryCache(ledger), catalogue)
        _, history = reader.read(Query(by=frozenset()), "before", "ks")
    (series,) = history.series
    assert [str(value) for value in series.value[:1]] == ["nan"]
    latest = row_of(read(store, Query("latest", frozenset())), "before", "ks")
    assert series.value[-1] == latest.value and series.low[-1] == latest.low


def test_a_drift_has_no_state_to_export(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(QueryError, match="a metric, which has a state, got the drift before"):
        from streammetrics_consumers.query.state_files import export

        with closing(Ledger.open(str(store))) as ledger:
            export(ledger, Query("latest", metric="before"))
    assert main(["export", str(store), "-o", str(out)]) == 0
    assert sorted(load(out).metrics) == ["auc", "ctr"]  # type: ignore[attr-defined]


def test_a_config_may_add_and_remove_a_drift_at_any_time(store: Path) -> None:
    folder = store.parent
    drifts = DRIFTS.replace("first", "start")
    assert main(["run", str(write_config(folder, rest=drifts)), "--until-end", "--no-serve"]) == 0
    answer = read(store, Query("latest", frozenset()))
    assert {row.metric for row in answer.rows} == {"auc", "ctr", "before", "start", "saved"}
    assert answer.generation == 1
    assert main(["run", str(write_config(folder, rest=DRIFTS)), "--until-end", "--no-serve"]) == 0


def test_two_state_files_are_compared_by_the_command_line(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(tmp_path / name) for name in ("reference", "current")]
    for path, hour in zip(paths, (0, 2), strict=True):
        window = f"1970-01-01T0{hour}:00:00Z/1970-01-01T0{hour + 1}:00:00Z"
        assert main(["export", str(store), "--window", window, "-o", path]) == 0
    assert main(["drift", *paths, "--json", "--bins", "5", "--label", "0"]) == 0
    output = json.loads(capsys.readouterr().out)
    states = [scores(lambda e, h=h: hour_of(e) == h) for h in (0, 2)]
    expected = drift(*states, label=0, bins=5)
    (result,) = output["results"]  # a ratio has no distribution
    assert (output["format"], result["path"]) == ("streammetrics-drift/1", ["auc"])
    assert result["views"]["psi"]["value"] == expected.psi
    assert result["counts"] == {"rows": expected.rows, "reference_rows": expected.reference_rows,
                             "bins": 5}  # fmt: skip
    assert result["certain"] is expected.certain() is True
    assert main(["drift", *paths]) == 0
    text = capsys.readouterr().out
    assert "current against reference" in text and "yes, KS is above its band" in text
    assert "psi pvalue         <0.0001" in text


def test_state_files_that_cannot_be_compared_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, state in (("a", HistogramAUC()), ("b", HistogramAUC(resolution=3)), ("c", Ratio())):
        (tmp_path / name).write_bytes(state.to_file_bytes())
    for name, code, message in (
        ("b", 3, "resolution=8, as in the reference, got 3"),
        ("c", 1, f"{tmp_path / 'c'}: expected a state of Quantiles"),
        ("d", 1, "expected a state file, got No such file"),
        ("/dev/zero", 1, "/dev/zero: expected a state file, got Is a device"),
    ):
        assert main(["drift", str(tmp_path / "a"), str(tmp_path / name)]) == code
        assert message in capsys.readouterr().err
    assert main(["drift", str(tmp_path / "a")]) == 2
