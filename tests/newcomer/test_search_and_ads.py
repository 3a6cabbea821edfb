"""Tasks that people in search, recommendation and ads have first, each a short script.

Their numbers are those of pytrec_eval, scikit-learn, scipy and numpy for the same rows.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import pytrec_eval
from markdown_it import MarkdownIt

from tests.newcomer.day import ANSWERS, ARMS, EXACTLY, LANGUAGE, QRELS, RUN, TUNED, Ran, frames
from tests.requirements import Later

metrics, stats = Later("sklearn.metrics"), Later("scipy.stats")
calibration = Later("sklearn.calibration")
pytestmark = pytest.mark.docs


def of_trec_eval(run: Mapping[str, Any], name: str) -> list[float]:
    """The value of each query."""
    values = pytrec_eval.RelevanceEvaluator(QRELS, {name}).evaluate(run)
    return [values[query][name] for query in QRELS]


def spent(variant: str, column: str) -> Any:
    """What each user of a variant spent."""
    return frames().people.filter(variant=variant)[column].to_numpy()


def welch(control: Any, treatment: Any) -> tuple[float, float, float]:
    """The interval of the difference of two means, and its p-value."""
    test = stats.ttest_ind(treatment, control, equal_var=False)
    interval = test.confidence_interval()
    return interval.low, interval.high, test.pvalue


def interval_of(comparison: Any) -> tuple[float, float, float]:
    """The same of a comparison."""
    ends = comparison.effect_size_ci_lower, comparison.effect_size_ci_upper
    return (*ends, comparison.pvalue)


def test_the_slices_of_a_ranking_are_a_group_by_of_the_values_of_trec_eval(ran: Ran) -> None:
    result = ran("ranking_slices")["found"]
    peer_frame = pl.DataFrame(
        {
            "language": [LANGUAGE[query] for query in QRELS],
            "map": of_trec_eval(RUN, "map"),
            "ndcg@10": of_trec_eval(RUN, "ndcg_cut_10"),
        }
    )
    slices = peer_frame.group_by("language").mean()
    assert set(result.slices) == set(slices["language"]) == {"de", "en", "fr"}
    for row in slices.iter_rows(named=True):
        for name in ("map", "ndcg@10"):
            assert result.slices[row["language"]][name] == pytest.approx(row[name], rel=1e-12)
            assert result[name] == pytest.approx(peer_frame[name].mean(), rel=1e-12)


def test_two_systems_differ_as_a_paired_t_test_of_the_values_of_trec_eval_says(ran: Ran) -> None:
    variables = ran("compare_systems")
    for name, peer_name in (("map", "map"), ("ndcg@10", "ndcg_cut_10")):
        difference = variables["compared"].difference("tuned", name)
        test = stats.ttest_rel(of_trec_eval(TUNED, peer_name), of_trec_eval(RUN, peer_name))
        t = test.confidence_interval()
        assert (difference.lower, difference.upper) == pytest.approx((t.low, t.high), rel=1e-9)
        assert difference.pvalue == pytest.approx(test.pvalue, rel=1e-9)
    assert "map & tuned" in variables["table"]
    assert "^{***}$" in variables["table"]


def test_clicks_without_grades_are_relevant(ran: Ran) -> None:
    variables = ran("implicit_feedback")
    top = frames().shown.filter(pl.col("score").rank("ordinal", descending=True).over("user") <= 5)
    hits = top.join(frames().clicked, on=["user", "item"]).group_by("user").len("hits")
    users = frames().clicked.group_by("user").len("clicked").join(hits, on="user", how="left")
    users = users.with_columns(pl.col("hits").fill_null(0))
    assert variables["hit_rate"] == (users["hits"] > 0).mean()
    recall = (users["hits"] / users["clicked"]).mean()
    assert variables["recall"] == pytest.approx(recall, rel=EXACTLY)


def test_gauc_is_the_mean_of_the_areas_of_users_by_impressions(ran: Ran) -> None:
    variables = ran("gauc_by_user")
    users = [rows for _, rows in frames().day.group_by("user") if rows["click"].n_unique() == 2]
    areas = [metrics.roc_auc_score(rows["click"], rows["score"]) for rows in users]
    mean = np.average(areas, weights=[len(rows) for rows in users])
    assert variables["gauc"] == pytest.approx(mean, rel=EXACTLY)
    assert (variables["users"], variables["of_one_class"]) == (
        *(len(users), frames().day["user"].n_unique() - len(users)),
    )


def test_deciles_and_their_error_contain_those_of_scikit_learn(ran: Ran) -> None:
    variables = ran("calibration_by_decile")
    scores = frames().day["score"].to_numpy()
    observed, predicted = calibration.calibration_curve(
        frames().labels, scores, n_bins=10, strategy="quantile"
    )
    frame = variables["frame"]
    assert len(frame) == len(observed) == 10
    assert (frame["share_low"].to_numpy() <= observed + EXACTLY).all()
    assert (frame["share_high"].to_numpy() >= observed - EXACTLY).all()
    error = np.abs(observed - predicted).mean()  # each tenth has 600 rows
    assert variables["ece"].low <= error <= variables["ece"].high
    assert variables["ece"].width < 0.1 * error


def rows_of_markdown(text: str) -> dict[str, list[str]]:
    """The cells of each row after its name, as markdown-it reads them."""
    rows: list[list[str]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(token.content)
    return {name: cells for name, *cells in rows}


def rows_of_latex(text: str) -> dict[str, list[str]]:
    """The same of a table of LaTeX without special characters."""
    lines = (line.removesuffix("\\\\") for line in text.replace("\\_", "_").splitlines())
    rows = [[cell.strip() for cell in line.split("&")] for line in lines if "&" in line]
    return {name: cells for name, *cells in rows}


def test_results_are_read_again_as_markdown_latex_csv_and_a_wide_frame(
    ran: Ran, folder: Path
) -> None:
    wide = ran("results_table")["wide"]
    variants = {variant: frames().day.filter(variant=variant) for variant in ARMS}
    areas = {v: metrics.roc_auc_score(rows["click"], rows["score"]) for v, rows in variants.items()}
    losses = {v: metrics.log_loss(rows["click"], rows["score"]) for v, rows in variants.items()}
    for name, peer_values in (("auc.auc", areas), ("losses.log_loss", losses)):
        values = dict(wide.select("key", name).iter_rows())
        assert values == pytest.approx(peer_values, rel=EXACTLY)
    texts = {kind: (folder / f"results.{kind}").read_text() for kind in ("md", "tex", "csv")}
    read = rows_of_markdown(texts["md"]), rows_of_latex(texts["tex"])
    frame = pd.read_csv(io.StringIO(texts["csv"]))
    for variant in ARMS:
        rows = f"{len(variants[variant]):,}"
        for name, peer_values in (("auc.auc", areas), ("losses.log_loss", losses)):
            printed = f"{peer_values[variant]:.5f}"
            for rows_of in read:
                assert rows_of[f"{variant}: {name}"][:2] == [rows, printed]
            of_csv = frame[frame["name"] == f"{variant}: {name}"]
            assert of_csv["value"].item() == float(printed)


def test_p95_and_p99_are_those_of_numpy(ran: Ran) -> None:
    variables = ran("latencies")
    latencies = frames().day.filter(variant="new")["latency_ms"].to_numpy()
    p95, p99 = np.quantile(latencies, [0.95, 0.99], method="inverted_cdf")
    assert variables["exact_p99"] == p99
    for value, peer_value in ((variables["p95"], p95), (variables["p99"], p99)):
        assert value.low <= peer_value <= value.high
        assert value.width < 2**-7 * peer_value


def test_an_a_b_test_of_a_csv_file_is_welchs_test_over_users(ran: Ran) -> None:
    variables = ran("ab_from_csv")
    arms = [spent(variant, "during") for variant in ARMS]
    low, high, pvalue = welch(*arms)
    assert interval_of(variables["welch"]) == pytest.approx((low, high, pvalue), rel=1e-9)
    per_user = variables["found"]
    assert per_user.effect_size == pytest.approx(arms[1].mean() - arms[0].mean(), rel=1e-12)
    # The jackknife of 64 groups of users knows this error to some 9 in 100.
    width = per_user.effect_size_ci_upper - per_user.effect_size_ci_lower
    assert width == pytest.approx(high - low, rel=0.15)


def test_cuped_subtracts_what_users_spent_before_by_the_slope_over_users(ran: Ran) -> None:
    variables = ran("cuped")
    before, during = ([spent(variant, name) for variant in ARMS] for name in ("before", "during"))
    moments = [len(x) * np.cov(x, y, bias=True) for x, y in zip(before, during, strict=True)]
    theta = sum(moment[0, 1] for moment in moments) / sum(moment[0, 0] for moment in moments)
    control, new = (y - theta * x for x, y in zip(before, during, strict=True))
    assert variables["adjusted"].effect_size == pytest.approx(
        new.mean() - control.mean(), rel=1e-10
    )
    assert variables["adjusted"].std_error == pytest.approx(
        np.hypot(stats.sem(new), stats.sem(control)), rel=0.15
    )
    assert variables["adjusted"].std_error < 0.8 * variables["plain"].std_error


def test_a_plan_for_one_look_is_the_usual_formula(ran: Ran) -> None:
    variables = ran("plan")
    z = stats.norm.isf(0.025) + stats.norm.isf(0.1)
    users = z**2 * (0.05 * 0.95 + 0.055 * 0.945) / 0.005**2
    assert variables["once"].control == variables["once"].treatment == np.ceil(users)
    assert variables["once"].units < variables["daily"].units


def test_the_sample_ratio_is_tested_by_chi_square(ran: Ran) -> None:
    variables = ran("sample_ratio")
    peer_result = stats.chisquare([len(spent(variant, "before")) for variant in ARMS])
    result = variables["found"]
    assert (result.statistic, result.pvalue) == pytest.approx(
        (peer_result.statistic, peer_result.pvalue)
    )


def test_psi_is_that_of_the_deciles_of_the_reference(ran: Ran) -> None:
    result = ran("score_drift")["found"]
    reference, today = frames().day["old_score"].to_numpy(), frames().day["score"].to_numpy()
    ends = np.quantile(reference, np.arange(1, 10) / 10, method="inverted_cdf")
    rows = [np.bincount(np.searchsorted(ends, scores)) for scores in (reference, today)]
    p, q = ((counts + 0.5) / (len(today) + 5) for counts in rows)  # half a row more in each bin
    assert result.psi == pytest.approx(np.sum((p - q) * np.log(p / q)), rel=1e-12)
    assert result.ks == pytest.approx(stats.ks_2samp(reference, today).statistic, rel=EXACTLY)
    distance = stats.wasserstein_distance(reference, today)
    assert result.wasserstein == pytest.approx(distance, rel=1e-12)


def test_macro_f1_and_the_matrix_of_many_classes_are_those_of_scikit_learn(ran: Ran) -> None:
    result = ran("many_classes")["result"]
    labels, predicted = frames().day["category"], frames().day["predicted_category"]
    macro = metrics.f1_score(labels, predicted, average="macro")
    assert result.macro_f1 == pytest.approx(macro, rel=EXACTLY)
    assert result.accuracy == metrics.accuracy_score(labels, predicted)
    kappa = metrics.cohen_kappa_score(labels, predicted)
    assert result.kappa == pytest.approx(kappa, rel=EXACTLY)
    assert (np.array(result.matrix) == metrics.confusion_matrix(labels, predicted)).all()


def test_errors_of_prices_are_those_of_scikit_learn(ran: Ran) -> None:
    result = ran("prices")["errors"]
    price, predicted = frames().day["price"], frames().day["predicted_price"]
    assert result.mae == pytest.approx(metrics.mean_absolute_error(price, predicted), rel=EXACTLY)
    rmse = metrics.root_mean_squared_error(price, predicted)
    assert result.rmse == pytest.approx(rmse, rel=EXACTLY)
    assert result.r2 == pytest.approx(metrics.r2_score(price, predicted), rel=EXACTLY)


def clustered_error(values: Sequence[float]) -> float:
    """The standard error of a mean whose residuals are correlated within three neighbours."""
    residuals = np.asarray(values, float) - np.mean(values)
    clusters = residuals.reshape(-1, 3).sum(axis=1)
    n = len(clusters)
    return float(np.sqrt(n / (n - 1) * np.sum(clusters**2)) / len(residuals))


def test_a_log_of_a_language_model_has_the_error_of_its_clusters(ran: Ran) -> None:
    variables = ran("llm_logs")
    base, tuned = (np.array(ANSWERS[model], float) for model in ("base", "tuned"))
    assert variables["found"]["match"] == np.mean(base)
    assert variables["interval"].se == pytest.approx(clustered_error(base), rel=1e-12)
    t = stats.ttest_1samp((tuned - base).reshape(-1, 3).mean(axis=1), 0)
    interval, difference = t.confidence_interval(), variables["difference"]
    ends = difference.lower, difference.upper, difference.pvalue
    assert ends == pytest.approx((interval.low, interval.high, t.pvalue), rel=1e-9)
