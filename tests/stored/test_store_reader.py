"""`streammetrics.open`: a store and its server give the same frames, figures and verdicts."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.server.process import serving

import streammetrics as sm
from streammetrics.experiments import Recommendation
from tests.consumers import experiments_run
from tests.consumers.experiment_run import run, write
from tests.consumers.stores import make_store

pytestmark = pytest.mark.xdist_group("stored")


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an experiment whose difference is shown."""
    return run(write(tmp_path_factory.mktemp("compared")))


@pytest.fixture(scope="module", params=["store", "server"])
def reader(compared: Path, request: pytest.FixtureRequest) -> Iterator[sm.StoreReader]:
    if request.param == "store":
        with sm.open(compared) as opened:
            yield opened
        return
    with (
        serving(str(compared), ServerConfig(port=0, token="secret")) as url,
        sm.open(url, token="secret") as opened,
    ):
        yield opened


def test_the_verdict_is_a_value(reader: sm.StoreReader, compared: Path) -> None:
    with closing(Ledger.open(str(compared))) as ledger:
        results = read_results(ledger, Query())
    experiment = reader.experiment()
    assert isinstance(experiment.recommendation, Recommendation)
    assert experiment.recommendation == results.recommendation == reader.recommendation
    [comparison] = results.comparisons
    finding = experiment.finding("ctr")
    assert finding == experiment.finding("ctr.ratio", "new") == experiment.findings[0]
    assert finding.name in experiment.recommendation.rests_on
    assert finding.verdict == comparison.finding.verdict == "better"
    assert finding.effect_size == comparison.comparison.effect_size
    assert finding.anytime_lower == comparison.finding.anytime_lower
    assert math.isnan(finding.margin) and not finding.guardrail
    assert (finding.looks, finding.sentence) == (comparison.looks, comparison.finding.sentence)
    assert experiment.units == {"old": 1000, "new": 1000}
    assert experiment.state == "decided" and not experiment.sample_ratio_alarm


def test_an_experiment_is_found_by_its_name(reader: sm.StoreReader) -> None:
    assert reader.experiments() == ("",)
    assert reader.experiment("") == reader.experiment()
    with pytest.raises(sm.UnknownKeyError, match=r"expected an experiment of this store \(''\)"):
        reader.experiment("ranker")
    for metric, treatment in (("auc", None), ("ctr", "old"), ("ct", None)):
        with pytest.raises(sm.UnknownKeyError, match=r"expected one of ctr\.ratio/new"):
            reader.experiment().finding(metric, treatment)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_values_are_a_frame(reader: sm.StoreReader, compared: Path, library: str) -> None:
    pytest.importorskip(library)
    with closing(Ledger.open(str(compared))) as ledger:
        results = read_results(ledger, Query("all", headlines=True))
    frame = reader.frame(library, window="all")  # type: ignore[arg-type]
    assert len(frame) == len(results.rows) > 3
    assert list(frame["value"]) == [row.value for row in results.rows]
    assert list(frame["variant"]) == [row.slice.get("variant") for row in results.rows]
    assert list(frame["rows"]) == [row.counts["rows"] for row in results.rows]
    assert list(frame["window_end_ms"])[-1] == results.rows[-1].window.end_ms
    assert {"low", "high", "interval_lower", "interval_method", "digest"} <= set(frame.columns)


def test_a_frame_has_what_is_asked_for(reader: sm.StoreReader) -> None:
    polars = pytest.importorskip("polars")
    frame = reader.frame("polars", by=["variant"], where={"variant": "new"}, metric="ctr")
    assert frame["variant"].to_list() == ["new"] and frame["view"].to_list() == ["ratio"]
    assert frame.schema["interval_lower"] == frame.schema["value"] == polars.Float64
    assert frame.schema["window_start_ms"] == polars.Int64
    assert len(reader.frame("polars", metric="ctr", all_views=True)) > len(
        reader.frame("polars", metric="ctr")
    )
    with pytest.raises(sm.InputError) as caught:
        reader.frame(metric="cpr")
    assert caught.value.expected == "a metric of this store (ctr)"
    assert caught.value.where == f"{reader.name}, /api/results, metric"


def test_comparisons_are_a_frame(reader: sm.StoreReader) -> None:
    pytest.importorskip("polars")
    experiment = reader.experiment()
    frame = experiment.to_frame("polars")
    assert frame["verdict"].to_list() == ["better"] and frame["direction_better"][0] == "higher"
    assert frame["effect_size"][0] == experiment.findings[0].effect_size
    assert json.loads(json.dumps(experiment.to_dict()))["margin"] == [None]


def test_a_figure_is_that_of_the_page(reader: sm.StoreReader) -> None:
    history = reader.figure("ctr", "history", theme="dark")
    assert str(history["$schema"]).startswith("https://vega.github.io/schema/vega-lite/")
    assert history != reader.figure("ctr", "history")
    assert reader.figure("ctr", "effect")["data"]
    with pytest.raises(sm.InputError, match="kind: expected"):
        reader.figure("ctr", "pie")
    pytest.importorskip("altair")
    assert reader.plot("ctr", "history").to_dict()["data"]


def test_a_notebook_shows_a_store_and_its_experiment(reader: sm.StoreReader) -> None:
    html = reader._repr_html_()
    assert "ctr" in html and "ctr.ratio/new: better" in html
    assert repr(reader) == f"<StoreReader of {reader.name}>"
    assert "ctr.ratio/new: better" in repr(reader.experiment())


def test_hostile_names_are_text_in_a_notebook(tmp_path: Path) -> None:
    settings = '[experiment]\ncontrol = "a"\ndecision = ["ctr"]\nname = "<script>&"\nmde = 0.1\n'
    with sm.open(make_store(tmp_path, rest=f"{settings}cluster = 'none'\n")) as store:
        html = store._repr_html_()
    assert "&lt;script&gt;&amp;" in html and "<script" not in html


def test_a_store_without_an_experiment_has_values_only(tmp_path: Path) -> None:
    with sm.open(str(make_store(tmp_path))) as store:
        assert store.metrics() == ("auc", "ctr") and store.experiments() == ()
        with pytest.raises(sm.UnknownKeyError, match="none is declared"):
            store.experiment()
        assert "auc" in store._repr_html_()


@pytest.mark.parametrize("source", [None, 5, b"store.db"])
def test_what_is_no_source_is_refused(source: object) -> None:
    with pytest.raises(sm.InputError, match="expected the path of a SQLite file"):
        sm.open(source)  # type: ignore[arg-type]


def test_a_wrong_token_is_refused(compared: Path) -> None:
    with (
        serving(str(compared), ServerConfig(port=0, token="secret")) as url,
        pytest.raises(sm.InputError, match="expected the token of this server"),
    ):
        sm.open(url, token="other").metrics()


def test_what_is_missing_is_said_with_its_extra() -> None:
    script = (
        "import sys\nsys.modules['sqlalchemy'] = None\nimport streammetrics\n"
        "assert not any(name.startswith('streammetrics_') for name in sys.modules)\n"
        "try:\n    streammetrics.open('experiment.db')\n"
        "except streammetrics.SettingsError as error:\n    print(error)\n"
        "streammetrics.open('http://localhost:1')"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout == (
        "open(source): expected the package sqlalchemy, which reads stores, got an installation "
        "without it; install it with pip install '.[serve]' in a clone of streammetrics; "
        "http://HOST:PORT needs no extra\n"
    )


def test_each_experiment_of_a_store_is_read_by_its_name(tmp_path: Path) -> None:
    with sm.open(experiments_run.make(tmp_path)) as store:
        assert store.experiments() == ("", *experiments_run.NAMES)
        with pytest.raises(sm.UnknownKeyError, match="name one of them"):
            store.experiment()
        for name in store.experiments():
            experiment = store.experiment(name)
            assert experiment.name == name and experiment.findings
            frame = store.frame("polars", experiment=name)
            variants = {finding.treatment_variant for finding in experiment.findings}
            assert variants < set(frame["variant"].to_list())
            assert store.figure("ctr", "effect", experiment=name) != store.figure("ctr", "history")
        assert "The ranker" in store._repr_html_()
