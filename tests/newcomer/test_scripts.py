"""Tasks of a new user, each a short script that says only what the README and the site say.

The scripts read files of one day from the folder where they run. Their numbers are those of
scikit-learn, pytrec_eval and scipy for the same rows. test_search_and_ads.py has the others.
"""

from __future__ import annotations

import ast
import html
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import pytrec_eval

from streammetrics import ExactAUC
from tests.newcomer.day import EXACTLY, QRELS, RUN, SCRIPTS, Ran, frames
from tests.requirements import ROOT, Later
from tests.site_blocks import blocks

metrics, stats = Later("sklearn.metrics"), Later("scipy.stats")
FILES = sorted(SCRIPTS.glob("*.py"))


def test_there_are_25_scripts_of_at_most_12_lines() -> None:
    lines = [[line for line in script.read_text().splitlines() if line] for script in FILES]
    assert [len(script_lines) <= 12 for script_lines in lines] == [True] * 25


def test_what_a_script_imports_is_shown_in_code_on_a_page_before_the_reference() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = "\n".join(block.text for page in pages for block in blocks(page.read_text()))
    imports = [
        name.name
        for script in FILES
        for line in ast.walk(ast.parse(script.read_text()))
        if isinstance(line, ast.ImportFrom) and str(line.module).startswith("streammetrics")
        for name in line.names
    ]
    assert len(imports) > 45
    assert [name for name in imports if not re.search(rf"\b{name}\b", shown)] == []


@pytest.mark.docs
def test_metrics_by_variant_are_those_of_scikit_learn(ran: Ran) -> None:
    variables = ran("metrics_by_variant")
    assert set(variables["areas"]) == {"control", "new"}
    for variant, area in variables["areas"].items():
        rows = frames().day.filter(pl.col("variant") == variant)
        assert area.low <= metrics.roc_auc_score(rows["click"], rows["score"]) <= area.high
        loss = metrics.log_loss(rows["click"], rows["score"])
        assert variables["losses"][variant] == pytest.approx(loss, rel=EXACTLY)
        of_area = variables["frame"].filter(key=variant, name="auc.auc")
        assert of_area["exact_high"].item() == area.high
        assert of_area["rows"].item() == len(rows)


@pytest.mark.docs
def test_a_training_loop_begins_each_epoch_anew_and_goes_on_from_its_checkpoint(ran: Ran) -> None:
    variables = ran("training_loop")
    peer_areas = [metrics.roc_auc_score(frames().labels, scores) for scores in frames().epochs]
    assert variables["history"] == pytest.approx(peer_areas, rel=EXACTLY)
    assert variables["resumed"].compute().auc == variables["history"][-1]


@pytest.mark.docs
def test_eight_processes_count_what_one_counts(folder: Path) -> None:
    script = SCRIPTS / "eight_processes.py"
    subprocess.run([sys.executable, script], cwd=folder, check=True)
    day, serial_state = ExactAUC.load(folder / "day.state"), ExactAUC()
    serial_state.update(frames().labels, frames().day["score"])
    assert day.digest() == serial_state.digest()
    peer_area = metrics.roc_auc_score(frames().labels, frames().day["score"])
    assert day.compute().auc == pytest.approx(peer_area, rel=EXACTLY)


@pytest.mark.docs
def test_qrels_and_a_run_give_the_values_of_pytrec_eval(ran: Ran) -> None:
    result = ran("qrels_and_run")["found"]
    peer_values = pytrec_eval.RelevanceEvaluator(
        QRELS, {"ndcg_cut_10", "map", "recip_rank", "recall_100"}
    ).evaluate(RUN)
    measures = {"ndcg_cut_10": 'NDCG(gain="linear")@10', "map": "AP", "recip_rank": "MRR"}
    measures["recall_100"] = "R@100"
    for name, measure in measures.items():
        values = [peer_values[query][name] for query in QRELS]
        assert [result.per_query[q][measure] for q in QRELS] == pytest.approx(values, rel=1e-12)
        t = stats.ttest_1samp(values, 0).confidence_interval()
        interval = result.interval(measure)
        assert (interval.lower, interval.upper) == pytest.approx((t.low, t.high), rel=1e-9)


@pytest.mark.docs
def test_two_models_differ_as_scikit_learn_and_a_paired_t_test_say(ran: Ran) -> None:
    variables = ran("two_models")
    areas = [
        metrics.roc_auc_score(frames().labels, frames().day[name])
        for name in ("score", "old_score")
    ]
    assert variables["area"].estimate == pytest.approx(areas[0] - areas[1], rel=1e-12)
    assert variables["area"].lower > 0
    scores = [frames().day[name].to_numpy() for name in ("score", "old_score")]
    losses = [
        -np.log(np.where(frames().labels == 1, probabilities, 1 - probabilities))
        for probabilities in scores
    ]
    t = stats.ttest_rel(*losses).confidence_interval()
    interval = (variables["loss"].lower, variables["loss"].upper)
    assert interval == pytest.approx((t.low, t.high), rel=1e-9)


@pytest.mark.docs
def test_the_best_threshold_is_that_of_the_curve_of_scikit_learn(ran: Ran, folder: Path) -> None:
    variables = ran("best_threshold")
    fpr, tpr, _ = metrics.roc_curve(frames().labels, frames().day["score"])
    assert variables["best"].value.low <= max(tpr - fpr) <= variables["best"].value.high
    predicted = frames().day["score"].to_numpy() >= variables["point"].threshold
    rates = variables["point"].rates
    assert rates.recall == metrics.recall_score(frames().labels, predicted)
    assert rates.precision == metrics.precision_score(frames().labels, predicted)
    picture = (folder / "roc.svg").read_text()
    assert "All impressions" in picture
    assert f"AUC {metrics.roc_auc_score(frames().labels, frames().day['score']):.3f}" in picture


@pytest.mark.docs
def test_a_metric_of_ones_own_is_a_mean_with_an_interval(ran: Ran) -> None:
    variables = ran("own_metric")
    price, predicted = (frames().day[name].to_numpy() for name in ("price", "predicted_price"))
    peer_error = metrics.mean_absolute_percentage_error(price, predicted)
    assert variables["error"] == pytest.approx(peer_error, rel=EXACTLY)
    t = stats.ttest_1samp(np.abs(price - predicted) / price, 0).confidence_interval()
    interval = (variables["interval"].lower, variables["interval"].upper)
    assert interval == pytest.approx((t.low, t.high), rel=1e-12)


@pytest.mark.docs
def test_each_hour_of_a_day_has_the_area_of_its_rows(ran: Ran, folder: Path) -> None:
    variables = ran("day_of_windows")
    frame = variables["frame"].filter(pl.col("window_start_ms").is_not_null(), name="auc")
    assert len(frame) == 24
    start = pl.from_epoch("window_start_ms", "ms").dt.hour()
    for hour, low, high in frame.select(start, "exact_low", "exact_high").iter_rows():
        rows = frames().day.filter(pl.col("at").dt.hour() == hour)
        assert low <= metrics.roc_auc_score(rows["click"], rows["score"]) <= high
    peer_area = metrics.roc_auc_score(frames().labels, frames().day["score"])
    assert variables["whole_day"].low <= peer_area <= variables["whole_day"].high
    assert "A day" in (folder / "day.svg").read_text()


@pytest.mark.docs
def test_an_a_b_verdict_rests_on_the_effect_and_the_error_over_users(ran: Ran) -> None:
    variables = ran("ab_verdict")
    users = (
        frames().day.group_by("user", "variant").agg(clicks=pl.col("click").sum(), rows=pl.len())
    )
    means, variances = [], []
    for variant in ("control", "new"):
        arm_users = users.filter(variant=variant)
        means.append(arm_users["clicks"].sum() / arm_users["rows"].sum())
        residuals = (arm_users["clicks"] - means[-1] * arm_users["rows"]).to_numpy()
        variances.append((stats.sem(residuals) / np.mean(arm_users["rows"].to_numpy())) ** 2)
    report = variables["report"]
    effect = report.findings[0].contrast.comparison
    assert effect.effect_size == pytest.approx(means[1] - means[0], rel=1e-12)
    # The jackknife of 64 groups of users knows this error to some 9 in 100.
    error = (effect.effect_size_ci_upper - effect.effect_size_ci_lower) / 2 / stats.norm.isf(0.025)
    assert error == pytest.approx(np.sqrt(sum(variances)), rel=0.15)
    assert report.recommendation.action == "ship"


@pytest.mark.docs
def test_a_report_has_the_numbers_of_the_day(
    ran: Ran, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    ran("report")
    page = (folder / "day.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))
    for variant in ("control", "new"):
        rows = frames().day.filter(pl.col("variant") == variant)
        area = metrics.roc_auc_score(rows["click"], rows["score"])
        assert f"auc auc {variant} {area:.3f} [" in text
        assert f"ctr ratio {variant} {rows['click'].mean():.3f} exact" in text


def test_make_static_checks_the_types_of_all_scripts() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"] and "tests/newcomer/scripts" in settings["files"]
