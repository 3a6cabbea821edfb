"""`streammetrics eval`: the values of a file's rows, without a config."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import (
    BinaryConfusion,
    ExactAUC,
    ExactUplift,
    GroupedInterleaving,
    GroupedScores,
    ItemExposure,
    Moments,
    MulticlassConfusion,
    OffPolicy,
    evaluate,
)
from tests.requirements import Later

Capture = pytest.CaptureFixture[str]
sk = Later("sklearn.metrics")

rng = np.random.default_rng(2)
N = 600
ROWS = polars.DataFrame({
    "label": rng.integers(0, 2, N),
    "score": rng.random(N),
    "variant": rng.choice(["b", "a\x1b[31m"], N),
    "day": rng.integers(1, 3, N),
    "query": [f"q{i}" for i in rng.integers(0, 40, N)],
    "grade": rng.integers(0, 4, N),
    "treated": rng.integers(0, 2, N),
})  # fmt: skip

LOG = ROWS.select("label", "score", logged=0.02 + polars.col("score") * 0.9,
                  target=0.05 + (polars.col("day") - 1) * 0.9)  # fmt: skip
OF_POLICY = ["--logged", "logged", "--target", "target", "--rewards", "label"]


def write_jsonl(frame: polars.DataFrame, path: Path) -> None:
    frame.write_ndjson(path)


WRITE: dict[str, Callable[[polars.DataFrame, Path], Any]] = {
    ".parquet": polars.DataFrame.write_parquet,
    ".csv": polars.DataFrame.write_csv,
    ".jsonl": write_jsonl,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "day.parquet"
    ROWS.write_parquet(path, row_group_size=250)
    return path


def values(capsys: Capture, path: Path, *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["eval", str(path), "--json", *words]) == 0
    lines: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return lines


def test_every_format_has_the_values_of_scikit_learn_by_group(
    tmp_path: Path, capsys: Capture
) -> None:
    words = ["--labels", "label", "--scores", "score", "--metrics", "auc,logloss,f1,ctr"]
    for suffix, write in WRITE.items():
        path = tmp_path / f"day{suffix}"
        write(ROWS, path)
        lines = values(capsys, path, *words, "--by", "variant,day")
        assert len(lines) == 16
        for line in lines:
            part = ROWS.filter(
                (polars.col("variant") == line["slice"]["variant"])
                & (polars.col("day") == line["slice"]["day"])
            )
            labels, scores = part["label"].to_numpy(), part["score"].to_numpy()
            expected = {
                "auc": sk.roc_auc_score(labels, scores),
                "log_loss": sk.log_loss(labels, scores),
                "f1": sk.f1_score(labels, scores >= 0.5),
                "ctr": labels.mean(),
            }[line["metric"]]
            assert line["value"] == pytest.approx(expected, rel=1e-12), suffix
            assert line["lower"] < expected < line["upper"]
            assert line["counts"]["rows"] == len(part)


def test_measures_of_lists_are_over_all_rows_of_a_list(file: Path, capsys: Capture) -> None:
    metric = GroupedScores(["NDCG@3", "AP(rel=2)"], ids="exact", score_type="float64")
    metric.update(ROWS["grade"], ROWS["score"], groups=ROWS["query"].to_list())
    words = ["--labels", "grade", "--scores", "score", "--lists", "query"]
    for names in ("ndcg@3,map(rel=2)", "NDCG @ 3,AP(rel=2),ndcg@3"):
        lines = values(capsys, file, *words, "--metrics", names)
        assert {line["metric"]: line["value"] for line in lines} == dict(metric.compute())
        assert lines[0]["slice"] == {}


def test_uplift_compares_the_treated_with_the_others(file: Path, capsys: Capture) -> None:
    metric = ExactUplift()
    metric.update(ROWS["label"], ROWS["score"], ROWS["treated"])
    words = ["--labels", "label", "--scores", "score", "--treated", "treated"]
    qini, ate, auuc, auc = values(capsys, file, *words, "--metrics", "qini,ate,auuc,auc")
    result = metric.compute()
    assert (qini["value"], ate["value"], auuc["value"]) == (result.qini, result.ate, result.gain)
    assert ate["lower"] < ate["value"] < ate["upper"] and auc["metric"] == "auc"
    assert "UserGroups has one" in qini["reason"] and qini["counts"]["rows"] == N
    names = "uplift_in_part(1),uplift_in_part(2, 5),treated_share"
    top, second, share = values(capsys, file, *words, "--metrics", names)
    assert top["value"] == result.uplift_by_part()[0] and second["metric"] == "uplift_in_part(2, 5)"
    assert (second["value"], share["value"]) == (result.uplift_by_part(5)[1], result.treated_share)
    for name, hint in (
        ("uplift_in_part", "write uplift_in_part(1, 10)"),
        ("uplift_in_part(1,2,3)", "write uplift_in_part(1, 10)"),
        ("uplift_in_part(11)", "pass 1 for the rows with the highest scores"),
        ("uplift_by_decile", "uplift_in_part(1) is the uplift in the first of ten parts"),
        ("f_beta(1,2)", "write f_beta(2)"),
    ):
        assert main(["eval", str(file), *words, "--metrics", name]) == 2
        assert hint in capsys.readouterr().err


def test_the_table_names_what_each_value_is_over(file: Path, capsys: Capture) -> None:
    words = "--labels label --scores score --lists query --by variant --metrics gauc,ne,mrr,ks"
    assert main(["eval", str(file), *words.split()]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    head, *lines = out.splitlines()
    assert head.split() == ["variant", "metric", "value", "95", "%", "CI", "over"]
    assert [line.split()[1] for line in lines[:4]] == ["gauc", "normalized_entropy", "MRR", "ks"]
    assert lines[0].endswith(" groups") and lines[2].endswith(" lists") and " to " in lines[2]
    assert lines[3].endswith(" rows")
    assert lines[8] == "intervals assume that rows and lists are independent"


def test_a_threshold_decides_what_a_prediction_is_and_the_table_says_so(
    file: Path, capsys: Capture
) -> None:
    words = ["--labels", "label", "--scores", "score", "--metrics", "recall,auc"]
    labels, scores = ROWS["label"].to_numpy(), ROWS["score"].to_numpy()
    for threshold in ("0.5", "0.3", "0"):
        flags = ["--threshold", threshold] * (threshold != "0.5")
        recall, _ = values(capsys, file, *words, *flags)
        hits = ((scores >= float(threshold)) & (labels == 1)).sum()
        assert recall["value"] == hits / (labels == 1).sum()
        assert main(["eval", str(file), *words, *flags]) == 0
        message = f"recall: a score of {threshold} or more is a prediction of 1"
        assert message in capsys.readouterr().out


def test_views_that_choose_a_threshold_show_it(file: Path, capsys: Capture) -> None:
    curve = ExactAUC()
    curve.update(ROWS["label"], ROWS["score"])
    result, words = curve.compute(), ["--labels", "label", "--scores", "score", "--metrics"]
    chosen = {
        "precision_at_recall(0.8)": result.best("precision", recall_at_least=0.8).points[0],
        "recall_at_precision(0.6)": result.best("recall", precision_at_least=0.6).points[0],
        "best_f_beta(1)": result.best("f_beta", beta=1).points[0],
        "best_f_beta(2)": result.best("f_beta", beta=2).points[0],
        "precision_at_budget(0.05)": result.threshold_for(predicted_positive=0.05),
        "recall_at_budget(.07)": result.threshold_for(predicted_positive=0.07),
    }
    names = ",".join(chosen).replace("best_f_beta(1)", "best-F1").replace("_at_", "-at-")
    lines = values(capsys, file, *words, names)
    assert [line["metric"] for line in lines] == [*chosen]
    for line, (view, point) in zip(lines, chosen.items(), strict=True):
        assert line["threshold"] == point.threshold
        assert line["value"] == result.interval(view).estimate
    assert main(["eval", str(file), *words, "auc,best_f1,recall_at_precision(1)"]) == 0
    head, area, best, none, *notes = capsys.readouterr().out.splitlines()
    assert head.split()[-2:] == ["threshold", "over"] and area.split()[-3] == "—"
    assert float(best.split()[-3]) == chosen["best_f_beta(1)"].threshold  # not rounded
    assert none.startswith("recall_at_precision(1)")
    assert "a value whose threshold was chosen on these rows is optimistic" in notes


def test_other_views_with_arguments_are_those_of_the_library(file: Path, capsys: Capture) -> None:
    words = ["--labels", "label", "--scores", "score", "--threshold", "0.3", "--metrics"]
    rates, curve = BinaryConfusion(threshold=0.3), ExactAUC()
    for metric in (rates, curve):
        metric.update(ROWS["label"], ROWS["score"])
    lines = values(capsys, file, *words, "f_beta(2),partial_auc(0.1),confusion(0.7).recall")
    expected = [rates.compute().f_beta(2), curve.compute().partial_auc(0.1)]
    assert [line["value"] for line in lines] == [
        *expected,
        curve.compute().confusion(0.7).recall,
    ]
    assert "threshold" not in lines[0]


def test_numbers_have_moments_and_items_of_two_teams_a_preference(
    file: Path, capsys: Capture
) -> None:
    numbers, teams = Moments(), GroupedInterleaving(ids="exact")
    numbers.update(ROWS["grade"])
    teams.update(ROWS["label"], ROWS["day"] - 1, groups=ROWS["query"].to_list())
    expected, words = numbers.compute(), ["--values", "grade", "--metrics", "std,max,skewness,mean"]
    shown = [expected.std, expected.maximum, expected.skewness, expected.mean]
    assert [x["value"] for x in values(capsys, file, *words)] == shown
    pair = values(capsys, file, "--labels", "label", "--values", "grade", "--metrics", "mean,rate")
    assert [x["metric"] for x in pair] == ["mean", "ctr"]
    assert [x["value"] for x in pair] == [expected.mean, ROWS["label"].mean()]
    (rate,) = values(capsys, file, "--labels", "label", "--metrics", "mean")
    assert rate == pair[1]
    path = file.with_name("teams.parquet")
    ROWS.with_columns(team=polars.col("day") - 1).write_parquet(path)
    words = ["--labels", "label", "--lists", "query", "--teams", "team"]
    lines = values(capsys, path, *words, "--metrics", "preference,e_value")
    assert [x["value"] for x in lines] == [teams.compute().preference, teams.compute().e_value]
    assert lines[0]["upper"] == teams.compute().interval().upper


def test_the_value_of_another_policy_is_that_of_the_library(file: Path, capsys: Capture) -> None:
    policy = OffPolicy()
    columns = {"logged": LOG["logged"], "target": LOG["target"], "rewards": LOG["label"]}
    policy.update(**columns, predicted_logged=LOG["score"], predicted_target=LOG["score"] / 2)
    LOG.with_columns(half=polars.col("score") / 2).write_parquet(file)
    names = "snips,ips,clipped,dr,sndr,ESS,raw.snips"
    models = ["--predicted-logged", "score", "--predicted-target", "half"]
    lines = values(capsys, file, *OF_POLICY, *models, "--metrics", names)
    result = policy.compute()
    expected = [getattr(result, name) for name in names.split(",")[:5]]
    expected += [result.effective_sample_size, result.raw.snips]
    assert [x["value"] for x in lines] == expected
    assert lines[3]["upper"] == result.interval("dr").upper
    # A prediction that no requested value needs is not read.
    assert values(capsys, file, *OF_POLICY, *models[:2], "--metrics", "snips")[0] == {
        **lines[0],
        "counts": {**lines[0]["counts"], "rows_predicted": 0},
    }


def test_predicted_classes_have_the_values_of_the_library_and_scores_those_of_two_classes(
    file: Path, capsys: Capture
) -> None:
    guesses = rng.integers(0, 4, N)
    ROWS.with_columns(guess=guesses).write_parquet(file)
    classes = MulticlassConfusion(n_classes=4)
    classes.update(ROWS["grade"], guesses)
    result, names = classes.compute(), "g_mean,macro_f1,f1(micro),rates(2).recall"
    words = ["--labels", "grade", "--predictions", "guess", "--n-classes", "4"]
    lines = values(capsys, file, *words, "--metrics", names)
    for line in lines:
        interval = result.interval(line["metric"])
        bounds = interval.estimate, interval.lower, interval.upper
        assert (line["value"], line["lower"], line["upper"]) == bounds
    assert [entry["metric"] for entry in lines] == names.split(",")
    two = BinaryConfusion()
    two.update(ROWS["label"], ROWS["score"])
    (line,) = values(capsys, file, *words[2:], "--labels", "label", "--scores", "score",
                    "--metrics", "g_mean")  # fmt: skip
    assert line["value"] == two.compute().g_mean


def test_shown_items_have_the_inequality_of_their_exposure(file: Path, capsys: Capture) -> None:
    lists = [rng.permutation(30)[: index % 7].tolist() for index in range(N)]
    ROWS.with_columns(shown=polars.Series(lists, dtype=polars.List(polars.Int64))).write_parquet(
        file
    )
    shown = ItemExposure(n_items=30, k=4)
    shown.update(lists)
    words = ["--shown", "shown", "--n-items", "30", "--k", "4", "--metrics", "exposure_gini"]
    (line,) = values(capsys, file, *words)
    assert line["value"] == shown.compute().gini
    assert main(["eval", str(file), *words]) == 0
    out = capsys.readouterr().out
    assert "exposure_gini: of the first 4 items of each list" in out and "514 lists" in out


def test_the_table_says_why_a_value_is_missing_or_doubtful_and_of_which_group(
    file: Path, capsys: Capture
) -> None:
    few = polars.when(polars.arange(0, N) < 50).then(polars.lit("few")).otherwise(polars.lit("all"))
    LOG.with_columns(part=few).write_parquet(file)
    words = [*OF_POLICY, "--by", "part", "--metrics", "snips,clipped,largest_weight,raw.ips"]
    assert main(["eval", str(file), *words]) == 0
    _, *table = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in table[4:6]] == ["undefined", "undefined"]
    assert table[4].split()[:2] == ["few", "snips"] and table[7].split()[2] != "undefined"
    assert table[9] == "clipped: a weight over 10 is clipped to it"
    notes = "\n".join(table[10:])
    assert "doubts about snips, raw.ips (all): the mean weight is" in notes
    assert "no value of snips, clipped (few): the effective sample size is" in notes
    assert "no interval of largest_weight: the largest weight of more rows is not known" in notes


def test_a_file_of_one_row_or_none_says_so(tmp_path: Path, capsys: Capture) -> None:
    outputs = []
    for n in (0, 1):
        path = tmp_path / f"{n}.parquet"
        LOG.head(n).with_columns(target=0.0).write_parquet(path)
        assert main(["eval", str(path), *OF_POLICY, "--metrics", "effective_sample_size"]) == 0
        outputs.append(capsys.readouterr().out.splitlines())
    assert outputs[0][1] == "no rows"
    assert outputs[1][1].endswith(" 1 row")
    assert outputs[1][-1] == "no value of effective_sample_size: all weights are 0"


def test_very_many_reasons_are_cut(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "many.parquet"
    logged = np.repeat(np.linspace(0.1, 0.9, 30), 8)
    logged[::8] = 0.05
    frame = polars.DataFrame({"logged": logged, "target": 0.5, "label": 1})
    frame.with_columns(day=polars.arange(0, 240) // 8).write_parquet(path)
    assert main(["eval", str(path), *OF_POLICY, "--by", "day", "--metrics", "snips"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("no value of snips (") for line in lines) == 20
    assert lines[-1].endswith(" more reasons: use --json")


def test_groups_are_in_the_order_of_their_numbers_and_very_many_are_cut(
    tmp_path: Path, capsys: Capture
) -> None:
    n = 1200
    path = tmp_path / "many.parquet"
    polars.DataFrame({"label": [1] * n, "day": [None, *range(1, n)]}).write_parquet(path)
    assert main(["eval", str(path), "--labels", "label", "--by", "day", "--metrics", "ctr"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:12]] == [str(i) for i in range(1, 13)]
    assert lines[-1] == "200 more lines: use --json"
    assert len(values(capsys, path, "--labels", "label", "--by", "day", "--metrics", "ctr")) == n


def test_words_without_a_meaning_are_exit_2(file: Path, capsys: Capture) -> None:
    for words, message in (
        ("--labels label", "expected --metrics NAMES"),
        ("--metrics ctr", "expected --labels COLUMN"),
        ("--labels lable --metrics ctr", "--labels: expected a column of day.parquet"),
        ("--labels lable --metrics ctr", "did you mean `label`?"),
        ("--labels xyz --metrics ctr", "'xyz'; name one of these"),
        (
            "--labels variant --metrics ctr",
            "a column of numbers, got 'variant', which has texts",
        ),
        (
            "--label label --metrics ctr",
            "--label label; did you mean --labels?",
        ),
        ("--labels label --by day,vriant --metrics ctr", "did you mean `variant`?"),
        ("--labels label --metrics auc", "--metrics auc: expected --scores COLUMN"),
        ("--labels label --scores score --metrics ndcg@5", "expected --lists COLUMN"),
        ("--labels label --scores score --metrics qini", "expected --treated COLUMN"),
        ("--labels label --scores score --metrics ndgc@5", "did you mean 'NDCG@5'?"),
        ("--labels label --scores score --metrics loglos", "did you mean `log_loss`?"),
        ("--labels label --metrics best_f1", "best_f1: expected --scores COLUMN"),
        ("--labels label --lists query --metrics preference", "expected --teams COLUMN"),
        (
            "--metrics mean",
            "ike) or --labels COLUMN (labels: 0 and 1, grades, or classes from 0), got nothing",
        ),
        ("--logged score --metrics snips", "expected --target COLUMN (probabilities of the same"),
        ("--logged score --metrics snips", "), --rewards COLUMN (rewards of the actions, such"),
        (
            "--logged score --target score --rewards label --predicted-logged score --metrics dr",
            "--metrics dr: expected --predicted-target COLUMN (",
        ),
        ("--labels label --predictions day --metrics g_mean", ") or --n-classes N (the number "),
        ("--shown day --n-items 9 --metrics exposure_gini", "expected --k N (the number of first"),
        ("--shown variant --n-items 9 --k 2 --metrics gini", "a column of arrays, got 'variant'"),
        ("--labels label --predicted-logged xyz --metrics ctr", "--predicted-logged: expected a"),
        ("--labels label --metrics snip", "did you mean `snips`?"),
        ("--labels label --metrics psi", "got 'psi'; drift is of two state files: see "),
        ("--labels label --metrics threshold_for(0.05)", "; recall_at_budget(0.05) and "),
        ("--labels label --metrics xyz", "got 'xyz'; name one of auc, "),
        *(
            (f"--labels label --scores score --metrics {name}", hint)
            for name, hint in (
                ("precision_at_recall", "got none; write precision_at_recall(0.8)"),
                (
                    "recall_at_budget()",
                    "a number in brackets, got (); write recall_at_budget(0.05)",
                ),
                ("best_f_beta(x)", "got (x); write best_f_beta(2)"),
                ("precision_at_recall(1.5)", "a share from 0 to 1, got 1.5; if it is a percentage"),
                ("f_beta(-1)", "f_beta(-1): expected a finite number of at least 0"),
                ("precision_at_recal(0.8)", "did you mean `precision_at_recall`?"),
            )
        ),
    ):
        assert main(["eval", str(file), *words.split()]) == 2, words
        out, err = capsys.readouterr()
        assert out == "" and message in err, words
    assert main(["eval", "day.xlsx", "--labels", "a", "--metrics", "ctr"]) == 2
    assert "ends in .parquet, .csv" in capsys.readouterr().err


def test_quantiles_are_those_of_numpy_and_need_no_labels(file: Path, capsys: Capture) -> None:
    names = "median,p99.9,quantile(0.07),maximum,P75"
    lines = values(capsys, file, "--values", "score", "--metrics", names)
    scores = ROWS["score"].to_numpy()
    levels = (0.5, 0.999, None, 1.0, 0.75)
    assert [line["value"] for line in lines] == [
        # Of 600 rows the 0.07-quantile is the 42nd; numpy takes the 43rd, since 600 * 0.07 > 42.
        np.sort(scores)[41] if level is None else np.quantile(scores, level, method="inverted_cdf")
        for level in levels
    ]
    assert [line["metric"] for line in lines] == names.lower().split(",")
    assert all(line["lower"] <= line["value"] <= line["upper"] for line in lines[:1])
    assert "not known" in lines[3]["reason"]
    for words, message in (
        ("--metrics p99", "--metrics p99: expected --values COLUMN"),
        ("--values score --metrics p99,auc", "--metrics auc: expected --labels COLUMN (labels: 0 "),
        ("--values score --metrics quantile", "got none; write quantile(0.5)"),
        ("--values variant --metrics p99", "a column of numbers, got 'variant'"),
    ):
        assert main(["eval", str(file), *words.split()]) == 2, words
        assert message in capsys.readouterr().err, words


def test_bad_rows_and_files_are_named_with_their_place(tmp_path: Path, capsys: Capture) -> None:
    bad = ROWS.with_columns(label=polars.when(polars.arange(0, N) == 555).then(7).otherwise(0))
    bad.write_parquet(tmp_path / "bad.parquet", row_group_size=100)
    ROWS.with_columns(score=polars.lit(None, polars.Float64)).write_parquet(
        tmp_path / "null.parquet"
    )
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "torn.csv").write_bytes(b"label,score\n1,2\n1,2,3\n")
    for name, message in (
        ("bad.parquet", "bad.parquet, row 555 (the first is 0), label: expected 0 or 1"),
        ("null.parquet", "row 0 (the first is 0), score: expected"),
        ("torn.parquet", "torn.parquet: expected a .parquet file"),
        ("torn.csv", "torn.csv: expected a .csv file"),
        ("absent.csv", "absent.csv: No such file or directory"),
    ):
        words = ["--labels", "label", "--scores", "score", "--metrics", "auc"]
        assert main(["eval", str(tmp_path / name), *words]) == 1, name
        out, err = capsys.readouterr()
        assert out == "" and message in err and "Traceback" not in err, err


def test_a_run_is_evaluated_against_judgments_also_by_subtopic(
    tmp_path: Path, capsys: Capture
) -> None:
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q1 1 a 1\nq1 2 a 1\nq1 2 b 1\nq2 1 c 0\nq3 1 d 1\n")
    run.write_text("q1 Q0 b 1 2.5 x\nq1 Q0 a 2 1.5 x\nq2 Q0 c 1 1 x\nq9 Q0 c 1 1 x\n")
    names = "alpha_nDCG@2,ERR-IA@2,P@1"
    lines = values(capsys, run, "--qrels", str(qrels), "--metrics", names)
    expected = evaluate(qrels, run, names.split(","))
    assert {line["metric"]: line["value"] for line in lines} == dict(expected)
    assert lines[0]["upper"] == expected.interval("alpha_nDCG@2").upper
    assert main(["eval", str(run), "--qrels", str(qrels), "--metrics", names]) == 0
    out = capsys.readouterr().out
    assert "AlphaNDCG@2" in out and "2 lists" in out
    assert out.count("no interval") == out.count("0, which says nothing about other rows")
    assert "1 query of the judgments that the run lacks: counted as 0" in out
    assert "1 query of the run without judgments: left out" in out
    assert "1 query with nothing relevant: left out" in out


def test_subtopics_of_rows_are_a_column_of_arrays(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        '{"q":"a","y":1,"s":2.5,"t":["x"],"n":"x"}\n{"q":"a","y":1,"s":1.5,"t":["x"],"n":"x"}\n'
        '{"q":"a","y":1,"s":0.5,"t":["y","z"],"n":"x"}\n{"q":"b","y":1,"s":1,"t":["y"],"n":"y"}\n'
    )
    columns = ["--labels", "y", "--scores", "s", "--lists", "q"]
    names = "StRecall@2,ndcg@2"
    lines = values(capsys, file, *columns, "--subtopics", "t", "--metrics", names)
    assert [line["value"] for line in lines] == [2 / 3, 1.0]
    for flags, message in (
        ([], "--metrics strec@2: expected --subtopics COLUMN"),
        (["--subtopics", "n"], "expected a column of arrays, got 'n', which has texts"),
    ):
        assert main(["eval", str(file), *columns, *flags, "--metrics", "strec@2"]) == 2
        assert message in capsys.readouterr().err


def test_a_run_takes_measures_of_lists_alone(tmp_path: Path, capsys: Capture) -> None:
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q1 0 a 1\n")
    run.write_text("q1 Q0 a 1 1 x\n")
    for words, message in (
        ("--metrics auc", "expected a measure of lists such as ndcg@10, got 'auc'"),
        ("--metrics P@1 --labels y", "--labels: expected none with --qrels"),
        ("--metrics P@1 --by y", "--by: expected a file of queries and their values, got 'y'"),
        ("", "expected --metrics NAMES"),
    ):
        assert main(["eval", str(run), "--qrels", str(qrels), *words.split()]) == 2, words
        assert message in capsys.readouterr().err, words
    assert main(["eval", str(run), "--qrels", str(run), "--metrics", "P@1"]) != 0
    assert "this looks like a run" in capsys.readouterr().err
