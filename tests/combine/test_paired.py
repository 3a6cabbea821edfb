"""Two models on the same rows: their values, their difference, its error, and what is refused."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Bounded,
    Calibration,
    ExactAUC,
    ExactQuantiles,
    GroupedAUC,
    GroupedScores,
    HistogramAUC,
    InputError,
    MulticlassConfusion,
    OffPolicy,
    Paired,
    PerKey,
    RankingMetrics,
    Ratio,
    Regression,
    UserGroups,
    hash_ids,
    load,
)
from streammetrics.combine import PairedResult
from streammetrics.core.errors import StateError
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes
from streammetrics.kernels.inference.t_interval import critical, two_sided_p
from streammetrics.present.views import range_of
from tests.expected import examples_of

RNG = np.random.default_rng(20)
N = 600
USERS = RNG.integers(0, 80, N)
LABELS = RNG.integers(0, 2, N)
NOISE = RNG.normal(0, 1, N)
A = 1 / (1 + np.exp(-(1.2 * LABELS + NOISE)))
B = 1 / (1 + np.exp(-(0.9 * LABELS + NOISE + RNG.normal(0, 0.3, N))))
ROWS: dict[str, Any] = {"labels": LABELS, "scores_a": A, "scores_b": B}


def fed(metric: Accumulator, **columns: Any) -> PairedResult[Any]:
    state = Paired(metric)
    state.update(**(columns or ROWS))
    return state.compute()


def t_test(differences: Any) -> float:
    """The standard error of a mean difference."""
    return float(np.std(differences, ddof=1) / math.sqrt(len(differences)))


def users_of(buckets: int, per_bucket: int = 3) -> dict[tuple[int, int], str]:
    """Names whose groups are known, by group and number."""
    names = [f"u{i}" for i in range(400)]
    groups = unit_hashes(hash_ids(names), salt_word("streammetrics"), "x") % np.uint64(buckets)
    users: dict[tuple[int, int], str] = {}
    for name, group in zip(names, groups.tolist(), strict=True):
        number = next(i for i in range(400) if (group, i) not in users)
        users[group, number] = name
    return {key: name for key, name in users.items() if key[1] < per_bucket}


def test_each_model_is_the_metric_itself() -> None:
    columns = {**ROWS, "groups": USERS}
    for metric in (ExactAUC(), UserGroups(HistogramAUC())):
        takes = metric.arguments()
        state = Paired(metric)
        state.update(**{name: columns[name] for name in state.arguments() if name in columns})
        for model, scores in (("a", A), ("b", B)):
            single_state = metric.empty()
            inputs = {"labels": LABELS, "scores": scores, "groups": USERS}
            single_state.update(**{name: c for name, c in inputs.items() if name in takes})
            assert state.model(model) == single_state
    result = state.compute()
    assert float(result.difference) == float(result.a) - float(result.b)


def test_means_have_the_error_of_the_differences_of_rows() -> None:
    losses = [-np.log(np.where(LABELS, s, 1 - s)) for s in (A, B)]
    for metric, view, differences in (
        (Calibration(), "log_loss", losses[0] - losses[1]),
        (Calibration(), "brier", (A - LABELS) ** 2 - (B - LABELS) ** 2),
        (Regression(), "mae", abs(A - LABELS) - abs(B - LABELS)),
        (Regression(), "mse", (A - LABELS) ** 2 - (B - LABELS) ** 2),
    ):
        interval = fed(metric).interval(view)
        assert interval.se == pytest.approx(t_test(differences), rel=1e-9)
        assert interval.estimate == pytest.approx(differences.mean(), rel=1e-9)
        assert (interval.method, interval.df, interval.n) == ("t", N - 1.0, N)


def test_measures_of_lists_have_the_error_of_the_differences_of_lists() -> None:
    tables = {name: column.reshape(-1, 6) for name, column in ROWS.items()}
    tables["labels"] = tables["labels"] * (np.arange(len(tables["labels"])) % 9 > 0)[:, None]
    differences = []
    for labels, a, b in zip(*tables.values(), strict=True):
        result = fed(RankingMetrics(["NDCG@3"]), labels=[labels], scores_a=[a], scores_b=[b])
        differences.append(float(result.difference))
    numbers = [d for d in differences if not math.isnan(d)]
    whole = fed(RankingMetrics(["MRR", "NDCG@3"]), **tables).interval("NDCG@3")
    assert whole.se == pytest.approx(t_test(numbers), rel=1e-9) and whole.n == len(numbers) < len(
        differences
    )
    groups = {"groups": [f"list {i // 6}" for i in range(N)]}
    columns = {name: column.ravel() for name, column in tables.items()}
    items = fed(GroupedScores(["NDCG@3"], ids="exact", score_type="float64"), **columns, **groups)
    assert items.interval().se == pytest.approx(whole.se, rel=1e-12)
    assert items.interval().reason.startswith("lists are taken as independent")


def test_gauc_of_users_in_known_groups_has_the_known_error() -> None:
    """Computed in exact fractions and with scikit-learn's area of each user."""
    rows = {
        "u0": "0 0 5|0 11 1|0 -14 -13|0 12 9|1 0 27|0 -8 -1",
        "u1": "1 7 17|0 4 6|1 -1 6|1 3 8|1 -1 4|0 13 -11|0 -13 -15",
        "u2": "0 -1 15|0 1 1|0 10 6|0 -14 -6|1 -1 -7|0 8 3",
        "u3": "0 4 5|0 -4 11|0 14 10|0 -4 -3|0 1 2",
        "u4": "1 5 12|0 -7 -11|0 -5 -8|0 -19 -1|1 17 -4|0 -21 13",
        "u5": "0 2 -15|0 -6 -12|0 -10 -9|0 13 -1|1 5 5|0 4 -4",
        "u6": "1 15 -2|1 11 20|1 -6 0|0 -5 -16|1 10 -5|1 16 2|0 -5 12",
        "u7": "0 2 -1|0 5 -2|0 2 12|0 -3 -1|1 17 12|0 -4 6|0 -8 5",
    }
    names = users_of(4, 2)
    users, table = [], []
    for number, text in enumerate(rows.values()):
        for row in text.split("|"):
            users.append(names[number % 4, number // 4])
            table.append([int(x) for x in row.split()])
    labels, a, b = np.array(table).T
    columns = {"labels": labels, "scores_a": a, "scores_b": b, "users": users}
    gauc = GroupedAUC(ids="exact")
    interval = fed(UserGroups(gauc, buckets=4), **columns, groups=users).interval()
    assert interval.estimate == pytest.approx(-0.030555555555555555, rel=1e-9)
    assert interval.se == pytest.approx(0.14727662998487756, rel=1e-9)
    effective = 50**2 / (2 * 12**2 + 2 * 13**2)  # the rows of the groups are nearly equal
    assert interval.df == pytest.approx(effective - 1, rel=1e-12)
    assert interval.method == "jackknife"
    assert "only 4 groups" in interval.reason
    del columns["users"]
    of_users = fed(gauc, **columns, groups=users)
    assert of_users.interval().n == 7, "u3 has one class"
    indices_by_user = {u: np.flatnonzero(np.array(users) == u) for u in dict.fromkeys(users)}
    terms = []
    for indices in indices_by_user.values():
        inputs = {"labels": labels[indices], "scores_a": a[indices], "scores_b": b[indices]}
        if len(set(labels[indices].tolist())) == 2:
            terms.append((len(indices), float(fed(ExactAUC(), **inputs).difference)))
    w, d = np.array(terms).T
    mean = (w * d).sum() / w.sum()
    residuals = w * (d - mean)
    assert of_users.interval().se == pytest.approx(
        math.sqrt(7 / 6 * (residuals**2).sum()) / w.sum(), rel=1e-9
    )


def test_a_mean_over_groups_of_users_has_the_known_error() -> None:
    names = users_of(4, 2)
    a = [1.0, 0.63, 0.5, 0.43, 1.0, 0.0, 0.92, 0.71]
    b = [0.63, 0.63, 1.0, 0.39, 0.86, 0.0, 0.75, 0.5]
    users = [names[i // 2, i % 2] for i in range(8)]
    result = fed(UserGroups(Ratio(), 4), groups=users, numerators_a=a, numerators_b=b)
    assert result.interval().se == pytest.approx(0.0985599436891073, rel=1e-9)
    interval = fed(Ratio(), numerators_a=a, numerators_b=b).interval()
    assert interval.se == pytest.approx(0.09043422037196823, rel=1e-9)


def test_every_known_value_of_two_models_on_the_same_rows(data: Path) -> None:
    cases = examples_of(data, 10)
    assert len(cases) == 9
    for case in cases:
        inputs, value = case["inputs"], case["value"]
        if case["metric"] == "paired_auc_clustered":
            buckets = inputs["buckets"]
            k = 1 << (max(buckets)).bit_length()
            users = users_of(k)
            columns = {
                "labels": inputs["y"],
                "scores_a": inputs["score_a"],
                "scores_b": inputs["score_b"],
            }
            groups = [users[bucket, 0] for bucket in buckets]
            interval = fed(UserGroups(ExactAUC(), k), groups=groups, **columns).interval()
            figures = [interval.estimate, interval.se]
            assert figures == pytest.approx([value[x] for x in ("difference", "se")], rel=1e-9)
            assert value["df"] - 0.1 < interval.df <= value["df"]  # groups differ a little in rows
        elif case["metric"] == "paired_auc":
            columns = {
                "labels": inputs["y"],
                "scores_a": inputs["score_a"],
                "scores_b": inputs["score_b"],
            }
            result = fed(ExactAUC(), **columns)
            interval = result.interval()
            figures = [result.a, result.b, result.difference, interval.se]
            assert figures == pytest.approx([value[x] for x in ("a", "b", "difference", "se")])
            assert float(result.difference) / interval.se == pytest.approx(value["z"], rel=1e-9)
        elif case["metric"] == "paired_mean":
            columns = {"numerators_a": inputs["a"], "numerators_b": inputs["b"]}
            rows = fed(Ratio(), **columns).interval()
            buckets = inputs["buckets"]
            number = {i: buckets[:i].count(bucket) for i, bucket in enumerate(buckets)}
            users = users_of(4)
            groups = [users[bucket, number[i]] for i, bucket in enumerate(buckets)]
            of_users = fed(UserGroups(Ratio(), 4), groups=groups, **columns).interval()
            figures = [rows.estimate, rows.se, of_users.se, of_users.df]
            names = ("difference", "se_rows", "se_buckets", "df")
            assert figures == pytest.approx([value[x] for x in names], rel=1e-9)
        else:
            assert case["id"] == "10/users/gauc"  # the test above


def test_a_grid_has_nearly_the_error_of_the_scores_and_certain_bounds() -> None:
    exact, grid = fed(ExactAUC()), fed(HistogramAUC(resolution=4))
    bounded = grid.difference
    assert isinstance(bounded, Bounded) and bounded.low <= float(exact.difference) <= bounded.high
    fine = fed(HistogramAUC()).error_of().variance
    assert fine == pytest.approx(exact.error_of().variance, rel=0.05)
    assert grid.error_of("gini").variance == 4 * grid.error_of("auc").variance
    a, b = grid.value_a.auc, grid.value_b.auc
    assert (bounded.low, bounded.high) == pytest.approx((a.low - b.high, a.high - b.low))
    error, off = math.sqrt(grid.error_of().variance), bounded.high - bounded.value
    assert grid.interval().width == pytest.approx(
        2 * off + 2 * critical(0.95, grid.error_of().df) * error, rel=1e-9
    )
    assert grid.pvalue == two_sided_p(bounded.value - off, error, grid.error_of().df)


def test_two_confusion_matrices_have_the_error_of_all_rows_left_out_in_turn() -> None:
    span = slice(0, 80)
    rows = {name: column[span] for name, column in ROWS.items()}
    result = fed(BinaryConfusion(0.6), **rows)
    labels, tables = rows["labels"], []
    for index in range(80):
        mask = np.arange(80) != index
        y, a, b = (labels[mask] > 0, *(rows[f"scores_{m}"][mask] >= 0.6 for m in "ab"))
        tables.append([2 * (p & y).sum() / (p.sum() + y.sum()) for p in (a, b)])
    f1 = np.subtract(*np.array(tables).T)
    error = math.sqrt(79 / 80 * ((f1 - f1.mean()) ** 2).sum())
    assert result.interval("f1").se == pytest.approx(error, rel=1e-9)
    assert (result.interval("f1").method, result.interval("f1").df) == ("jackknife", 79.0)
    right = [(rows[f"scores_{m}"] >= 0.6) == labels for m in "ab"]
    error = t_test(right[0].astype(float) - right[1])
    assert result.interval("accuracy").se == pytest.approx(error, rel=1e-9)
    columns = {"labels": labels, "predictions_a": right[0] * 2, "predictions_b": right[1] * 2}
    many = fed(MulticlassConfusion(3), **{**columns, "labels": labels * 0 + 2})
    assert many.interval("accuracy").se == pytest.approx(error, rel=1e-9)
    test = many.mcnemar()
    only = (right[0] & ~right[1]).sum(), (right[1] & ~right[0]).sum()
    assert test == result.mcnemar() and (test.only_a, test.only_b) == only


def test_a_table_without_a_row_that_decides_has_no_interval() -> None:
    result = fed(BinaryConfusion(), labels=[1, 0, 1], scores_a=[1, 0, 0], scores_b=[1, 1, 0])
    assert result.interval("precision").reason.startswith("the estimate is undefined without one")
    assert result.interval("accuracy").defined


@pytest.mark.parametrize("metric", [ExactAUC(), HistogramAUC(), BinaryConfusion()])
def test_labels_of_two_kinds_have_no_formula_for_two_classes(metric: Accumulator) -> None:
    state = Paired(metric, "labels")
    state.update(labels_a=LABELS, labels_b=1 - LABELS, scores=A)
    assert "no formula for independent rows" in state.compute().interval().reason


def test_mcnemar_needs_rows_that_are_right_or_wrong() -> None:
    for result, got in (
        (fed(ExactAUC()), "got ExactCurve"),
        (fed(BinaryConfusion(), **ROWS, weights=[2] * N), "rows are weighted"),
        (fed(UserGroups(BinaryConfusion()), **ROWS, groups=USERS), "users, who may have"),
    ):
        with pytest.raises(InputError, match=got):
            result.mcnemar()


def test_scores_in_lower_precision_are_paired_in_it() -> None:
    tiny = np.arange(N) * 1e-16
    narrow = fed(ExactAUC(score_type="float32"), labels=LABELS, scores_a=A, scores_b=A + tiny)
    wide = fed(ExactAUC(), labels=LABELS, scores_a=tiny, scores_b=tiny[::-1])
    assert float(narrow.error_of().variance) == 0.0 < wide.error_of().variance


def test_equal_models_differ_by_0_and_no_p_value_is_below_1() -> None:
    result = fed(ExactAUC(), labels=LABELS, scores_a=A, scores_b=A)
    assert result.difference == 0.0 and math.isnan(result.pvalue)
    assert result.interval().reason == "the variance is 0, which says nothing about other rows"


def test_why_there_is_no_interval_is_said() -> None:
    weights = {**ROWS, "weights": np.arange(N) % 2 * 2}
    lists = {"labels_a": [[1, 0], [0, 1]], "labels_b": [[0, 1], [0, 0]]}
    for result, view, why in (
        (fed(HistogramAUC(), **weights), None, "rows are weighted"),
        (fed(HistogramAUC()), "ap", r"no formula .* Paired\(UserGroups"),
        (fed(ExactAUC(max_rows=9)), None, "600 rows exceed max_rows=9"),
        (fed(Calibration(), labels=[1, 0], scores_a=[0, 0.5], scores_b=[0.5] * 2), None, "inf"),
        (fed(ExactAUC(), labels=[1, 1], scores_a=[1, 2], scores_b=[2, 1]), None, "nan"),
    ):  # fmt: skip
        interval = result.interval(view)
        assert not interval.defined and math.isnan(result.pvalue_of(view))
        assert re.search(why, interval.reason)
    apart = r"; count each model apart in UserGroups: compare\(a, b, paired=True\)"
    values = {"values_a": [1.0, 2.0, 4.0], "values_b": [2.0, 2.0, 3.0]}
    for metric, users in (
        (ExactQuantiles(), {}),
        (UserGroups(ExactQuantiles()), {"groups": "abc"}),
    ):
        models = Paired(metric, columns="values")
        models.update(**values, **{name: list(ids) for name, ids in users.items()})
        for view, why in (
            ("median", f".*{apart} has that of a quantile"),
            ("minimum", "the least and the greatest value of more rows are not known"),
            ("iqr", "a range of quantiles has an interval, but no standard error"),
        ):
            assert re.fullmatch(why, models.compute().interval(view).reason), view
    unlike = Paired(RankingMetrics(["MRR"]), columns="labels")
    unlike.update(**lists)
    assert unlike.compute().interval().reason.startswith("1 lists weigh differently")


def test_models_have_their_own_intervals_and_a_p_value_has_none() -> None:
    pair = fed(Calibration())
    for name, result in (("a", pair.value_a), ("b", pair.value_b)):
        assert pair.interval(name) == result.interval()
    assert pair.interval("pvalue").reason.startswith("no formula for pvalue")
    assert pair.interval("difference") == pair.interval() == pair.interval("log_loss")
    with pytest.raises(InputError, match="'auto' or 't', got 'delong'"):
        pair.interval(method="delong")
    with pytest.raises(InputError, match="level"):
        pair.interval(level=95)
    with pytest.raises(InputError, match="a view of CalibrationFigures"):
        pair.difference_of("auc")
    columns = pair.to_dict()
    bounds = dict(zip(columns["name"], columns["exact_low"], strict=True))
    assert bounds["pvalue"] is None and None not in (bounds["a"], bounds["difference"])


@pytest.mark.parametrize("users", [{}, {"groups": np.arange(200)}])
def test_a_difference_has_the_range_of_both_models_also_where_it_follows_from_their_rows(
    users: dict[str, Any],
) -> None:
    metric = UserGroups(Ratio()) if users else Ratio()
    share, mean = np.tile([0, 1, 1, 0], 50), np.tile([9.0, 10.0, 12.0, 10.0], 50)
    pair = fed(metric, numerators_a=share, numerators_b=mean, **users)
    for result, sign in (
        (pair, 1),
        (fed(metric, numerators_a=mean, numerators_b=share, **users), -1),
    ):
        interval = result.interval()
        assert interval.lower < interval.estimate == -9.75 * sign < interval.upper
    assert [range_of(pair, name) for name in ("a", "b")] == [(0.0, 1.0), (-math.inf, math.inf)]


@pytest.mark.parametrize(
    ("metric", "columns", "message"),
    [
        (ExactAUC(), {**ROWS, "groups": USERS}, r"Paired\(UserGroups\(ExactAUC"),
        (ExactAUC(), {"labels": LABELS, "scores": A}, "scores_a= and scores_b="),
        (ExactAUC(), {"labels": LABELS, "scores_a": A}, "the column 'scores_b'.*scores_a="),
        (ExactAUC(), {**ROWS, "scores_b": A[1:]}, "model b, scores: expected 600"),
        (Calibration(), {**ROWS, "scores_b": A * np.nan}, r"model b, scores\[0\].*"),
        (ExactAUC(), {**ROWS, "score_b": A}, "did you mean 'scores_b'"),
    ],
)
def test_rows_of_one_model_alone_are_refused(
    metric: Accumulator, columns: dict[str, Any], message: str
) -> None:
    state = Paired(metric)
    before = state.digest()
    with pytest.raises(InputError, match=message):
        state.update(**columns)
    assert state.digest() == before


def test_models_are_paired_for_each_key() -> None:
    by_key = PerKey(Paired(Calibration()))
    keys = np.where(USERS % 2, "odd", "even")
    by_key.update(keys=keys, **ROWS)
    for key in ("odd", "even"):
        of_key = {name: column[keys == key] for name, column in ROWS.items()}
        assert by_key.compute()[key] == fed(Calibration(), **of_key)
        assert by_key.compute()[key].interval() == fed(Calibration(), **of_key).interval()


@pytest.mark.parametrize("tiny", [5e-324, 1e-200, 1.1e-162, 1e-100])
@pytest.mark.parametrize("large", [0.0, 1.0, 1e100])
def test_differences_whose_squares_are_0_as_floats_are_read(tiny: float, large: float) -> None:
    paired = Paired(Regression())
    paired.update(
        labels=[0.0, 0.0, large], scores_a=[tiny, -tiny, large], scores_b=[0.0, tiny, 2 * large]
    )
    assert load(paired.to_bytes()) == paired


def test_sums_that_no_differences_have_are_refused() -> None:
    for cell in range(3):  # d, w and d²
        paired = Paired(Regression())
        paired.update(labels=[0.0, 1.0], scores_a=[0.5, 0.5], scores_b=[0.25, 1.0])
        paired.compute()
        change = -1.0 if cell == 2 else 9.0
        paired.row_sums.add(np.array([change]), np.array([cell]))
        with pytest.raises(StateError, match="impossible differences"):
            load(paired.to_bytes())


def test_a_pair_without_an_interval_says_why_and_gives_no_advice_that_does_not_help() -> None:
    columns = {"logged": [0.5] * 300, "rewards": [1, 0, 0] * 100}
    targets = {"target_a": [0.5] * 300, "target_b": [0.25, 0.5, 0.75] * 100}
    pair, of_users = Paired(OffPolicy()), Paired(UserGroups(OffPolicy()))
    pair.update(**columns, **targets)
    of_users.update(**columns, **targets, groups=range(300))
    result, clustered = pair.compute(), of_users.compute()
    why = result.interval("snips").reason
    assert why.startswith("no formula for independent rows; pair users:")
    assert clustered.interval().defined
    why = "it grows with the rows, and estimates nothing beyond them"
    for figures in (result, clustered):
        assert figures.interval("effective_sample_size").reason == why
    quantiles = Paired(UserGroups(ExactQuantiles()), columns=("values",))
    quantiles.update(groups=range(300), values_a=range(300), values_b=range(1, 301))
    assert "compare(a, b, paired=True)" in quantiles.compute().interval("median").reason
    assert "paired=True" not in quantiles.compute().interval("maximum").reason


def test_a_pair_without_support_says_what_its_models_lack() -> None:
    columns = {"logged": [0.5] * 90, "rewards": [1, 0, 0] * 30}
    few, fewer = [0.5] * 90, [0.5] * 60 + [0.0] * 30
    lacks = "the effective sample size is {}, needs 100".format
    for metric, groups in ((OffPolicy(), {}), (UserGroups(OffPolicy()), {"groups": range(90)})):
        same, unequal = (
            fed(metric, **columns, **groups, target_a=few, target_b=b) for b in (few, fewer)
        )
        for result, why in (
            (same, lacks("90.0")),
            (unequal, f"a: {lacks('90.0')}; b: {lacks('60.0')}"),
        ):
            assert math.isnan(float(result.difference)) and math.isnan(result.pvalue)
            assert result.interval().reason == why
            assert {row["reason"] for row in result.to_frame("polars").to_dicts()[:3]} == {why}
            assert not math.isnan(float(result.difference_of("raw.snips")))


def test_a_user_with_most_of_the_rows_leaves_few_degrees_of_freedom() -> None:
    """Of 40 users one has half of the rows: their groups are as sure as 4 equal ones."""
    users = np.array([0] * 195 + [1 + i % 39 for i in range(195)])
    labels = (np.arange(390) % 3 == 0).astype(int)
    rng = np.random.default_rng(6)
    a, b = rng.uniform(0.05, 0.95, (2, 390))
    result = fed(UserGroups(Calibration()), labels=labels, scores_a=a, scores_b=b, groups=users)
    rows = np.array([n for n in result.value_a.weights if n])
    effective = rows.sum() ** 2 / (rows * rows).sum()
    interval = result.interval()
    assert 3 < effective < 4.5 < len(rows)
    assert interval.df == pytest.approx(effective - 1, rel=1e-12)
    q = critical(0.95, effective - 1)
    assert interval.upper - interval.estimate == pytest.approx(q * interval.se, rel=1e-9)
    p = two_sided_p(interval.estimate, interval.se, effective - 1)
    assert result.pvalue == pytest.approx(p, rel=1e-12)
    # Users with equal rows, one in each group, are as many as they are.
    equal = UserGroups(Calibration(), buckets=4096)
    once = np.arange(390)
    result = fed(equal, labels=labels, scores_a=a, scores_b=b, groups=once)
    rows = np.array([n for n in result.value_a.weights if n])
    assert result.interval().df == pytest.approx(390**2 / (rows * rows).sum() - 1, rel=1e-12)
