"""UserGroups: the metric itself, and its variance by leaving out one group of users at a time."""

from __future__ import annotations

import copy
import math
import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    MRR,
    BinaryConfusion,
    Calibration,
    DictionaryColumn,
    ExactAUC,
    ExactQuantiles,
    ExactUplift,
    GroupedAUC,
    HistogramAUC,
    MulticlassAUC,
    Panel,
    PerKey,
    Quantiles,
    RankingMetrics,
    Ratio,
    Regression,
    SettingsError,
    Uplift,
    UserGroups,
    compare,
    hash_ids,
    load,
)
from streammetrics.combine.coarse_form import group_metric, group_scores
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.codec import STATE_MAGIC, Writer, frame
from streammetrics.core.settings import decode_head
from streammetrics.kernels.inference.t_interval import critical
from streammetrics.kernels.inference.variances import jackknife_variance
from streammetrics.results import headlines_of, value_of, views_of
from tests.expected import same_result
from tests.oracles.users import hash_of

# W4 of the published example: users (views, clicks), as statsmodels has them.
W4 = [(10, 2), (4, 1), (7, 0), (12, 5), (3, 0), (9, 2), (5, 3), (20, 4)]


def rows(n: int, seed: int = 1) -> dict[str, Any]:
    """Users with about ten rows each, whose scores and labels hang together."""
    random = np.random.default_rng(seed)
    users = random.integers(0, max(1, n // 10), n)
    effect = random.normal(size=users.max() + 1)[users]
    labels = (random.normal(size=n) + effect > 1).astype(np.uint8)
    scores = 1 / (1 + 2.0 ** (random.normal(size=n) - labels - effect))
    return {"groups": users, "labels": labels, "scores": scores}


def groups_of(users: Any, k: int = 64, salt: str = "streammetrics") -> list[int]:
    """The group of each user, by brute force."""
    return [hash_of(user, salt) % k for user in users.tolist()]


def without(
    metric: Accumulator, columns: Mapping[str, Any], groups: list[int], group: int
) -> Accumulator:
    """The metric fed with all rows but those of one group."""
    mask = np.array(groups) != group
    state = metric.empty()
    state.update(**{name: column[mask] for name, column in columns.items() if name != "groups"})
    return state


@pytest.mark.parametrize("metric", [BinaryConfusion(), Calibration(), HistogramAUC("equal", 8)])
def test_a_replicate_is_the_metric_of_the_rows_of_all_other_groups(metric: Accumulator) -> None:
    columns = rows(800)
    state = UserGroups(metric, buckets=8)
    state.update(**columns)
    groups = groups_of(columns["groups"], 8)
    coarse_metric = state.group_metric
    assert coarse_metric is not None
    everybody = without(coarse_metric, columns, groups, -1).compute()
    for view in headlines_of(metric.compute()):
        replicates = state.compute().replicates(view)
        assert state.compute().group_estimate(view) == float(views_of(everybody)[view])
        for group, value in enumerate(replicates):
            of_others = without(coarse_metric, columns, groups, group).compute()
            assert value == float(views_of(of_others)[view])


@pytest.mark.parametrize("metric", [HistogramAUC(), ExactAUC()], ids=["bounded", "exact"])
def test_coarse_groups_show_the_variance_of_a_view_that_needs_each_score(
    metric: HistogramAUC | ExactAUC,
) -> None:
    columns = rows(6000, seed=4)
    state = UserGroups(metric)
    state.update(**columns)
    result = state.compute()
    groups = groups_of(columns["groups"])
    replicates = [without(metric, columns, groups, group).compute() for group in range(64)]
    for view in (
        *("precision_at_recall(0.8)", "recall_at_precision(0.6)", "best_f_beta(1)"),
        *("precision_at_budget(0.05)", "recall_at_budget(0.2)", "ap", "partial_auc(0.1)"),
    ):
        estimates = [float(value_of(replicate, view)) for replicate in replicates]
        ratio = result.variance_of(view).se / jackknife_variance(estimates).se
        assert 0.8 < ratio < 1.25, view
        assert abs(result.group_estimate(view) - result.estimate_of(view)) < 1e-3


def test_the_example_of_eight_users_in_four_groups_has_its_printed_error() -> None:
    # Users are in the groups of the example, i mod 4, since their ids are chosen so.
    ids, users = iter(range(10_000)), dict[int, int]()
    for number in range(8):
        users[number] = next(i for i in ids if hash_of(i, "x") % 4 == number % 4)
    state = UserGroups(Ratio(), buckets=4, salt="x")
    for number, (views, clicks) in enumerate(W4):
        state.update([users[number]] * views, numerators=[1] * clicks + [0] * (views - clicks))
    result = state.compute()
    assert round(result.estimate, 12) == 0.242857142857
    assert round(math.sqrt(result.variance), 12) == 0.032843849493
    totals = [tuple(map(sum, zip(W4[g], W4[g + 4], strict=True))) for g in range(4)]
    replicates = [(17 - clicks) / (70 - views) for views, clicks in totals]
    assert list(result.replicates()) == replicates
    assert (result.groups, result.rows, result.weights) == (4, 70, tuple(v for v, _ in totals))


def test_a_group_without_rows_has_no_replicate_and_does_not_count() -> None:
    state = UserGroups(Ratio(), buckets=64)
    state.update([1, 2, 3, 3], numerators=[1, 0, 1, 0])
    result = state.compute()
    group_count = len(set(groups_of(np.array([1, 2, 3]))))
    assert (
        sum(not math.isnan(value) for value in result.replicates())
        == result.groups
        == group_count
        > 1
    )
    assert [math.isnan(value) for value in result.replicates()] == [not n for n in result.weights]


def test_thin_data_has_no_variance_and_an_infinite_interval_with_the_reason() -> None:
    state = UserGroups(Ratio())
    for n in (0, 5):
        result = state.compute()
        assert result.groups == (n > 0)
        assert math.isnan(result.variance)
        interval = result.interval()
        assert (interval.lower, interval.upper) == (-math.inf, math.inf)
        assert interval.reason in (
            "the estimate is nan",
            "1 group with rows: at least 2 needed",
        )
        state.update(["ann"] * 5, numerators=[1, 0, 0, 1, 0])


def test_a_view_that_one_group_alone_defines_has_no_variance() -> None:
    state = UserGroups(ExactAUC(), buckets=8)
    users = np.arange(100)
    state.update(users, labels=users == 7, scores=users / 100)
    assert state.compute().variance_of("auc").reason == (
        "the estimate is undefined without one of the groups"
    )
    assert not state.confidence_interval().defined


def test_few_groups_and_a_whale_are_said_in_the_interval() -> None:
    state = UserGroups(Ratio())
    users_by_group = {hash_of(user, "streammetrics") % 64: user for user in range(2, 40)}
    users_by_group.pop(hash_of(1, "streammetrics") % 64, None)
    state.update([1] * 50 + list(users_by_group.values())[:4], numerators=[1, 0] * 27)
    result = state.compute()
    assert result.doubts == (
        "only 5 groups have rows; a reliable variance needs 16",
        "one group has 93 % of the weight",
    )
    assert all(doubt in result.interval().reason for doubt in result.doubts)


def test_rows_of_one_user_widen_the_interval_by_the_design_effect() -> None:
    random = np.random.default_rng(8)
    users = np.repeat(np.arange(2000), 20)
    rates = random.beta(1, 9, 2000)[users]
    state = UserGroups(BinaryConfusion())
    state.update(users, labels=np.ones(len(users), np.uint8), scores=random.random(40_000) < rates)
    interval = state.confidence_interval(view="recall")
    assert interval.method == "jackknife, wilson"
    assert 2 < interval.deff < 4  # 1 + 19 / 11 is true
    assert interval.n_eff == pytest.approx(40_000 / interval.deff, rel=1e-3)
    assert interval.width > 1.3 * state.confidence_interval(view="recall", cluster="none").width
    sizes = np.bincount(groups_of(users))
    assert interval.df == pytest.approx(sizes.sum() ** 2 / (sizes * sizes).sum() - 1, rel=1e-12)


def test_the_interval_of_an_area_lies_within_0_and_1_and_that_of_gini_is_twice_as_wide() -> None:
    state = UserGroups(ExactAUC())
    state.update(**rows(2000))
    area, gini = (state.confidence_interval(view=view) for view in ("auc", "gini"))
    assert area.method == gini.method == "jackknife, logit"
    bounds = 2 * area.lower - 1, 2 * area.upper - 1
    assert (gini.lower, gini.upper) == pytest.approx(bounds, rel=1e-15, abs=0)
    assert 0 < area.lower < area.estimate < area.upper < 1
    assert area.deff == pytest.approx(gini.deff, rel=1e-12)
    plain = state.confidence_interval(method="jackknife")
    assert plain.upper - plain.estimate == pytest.approx(plain.estimate - plain.lower, rel=1e-12)


def test_groups_are_those_of_the_hash_of_integers_of_strings_and_of_their_hashes() -> None:
    numbers = np.array([-5, 0, 7, 1 << 62, 7])
    names = ["ann", "bö", "", "ann", "x" * 200]
    for users, plain in (
        (numbers, numbers.tolist()),
        (numbers.tolist(), numbers.tolist()),
        (names, names),
        (np.array(names), names),
        (hash_ids(names), names),
        (DictionaryColumn(np.array([1, 1, 0]), ("a", "b", "never")), ["b", "b", "a"]),
        (DictionaryColumn(np.array([1, 1, 0, 1]), (3, -4)), [-4, -4, 3, -4]),
    ):
        state = UserGroups(Ratio(), buckets=128, salt="other")
        state.update(users, numerators=[1] * len(plain))
        groups = [hash_of(user, "other") % 128 for user in plain]
        assert state.compute().weights == tuple(groups.count(g) for g in range(128))


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(SettingsError, match="a salt other than that of the assignment"):
        UserGroups(Ratio(), salt="exp-7", assignment_salt="exp-7")
    assert UserGroups(Ratio(), assignment_salt="exp-7") == UserGroups(Ratio())  # it is not kept
    with pytest.raises(SettingsError, match="cluster"):
        UserGroups(Ratio()).confidence_interval(cluster="users")


def test_every_measure_of_ranked_lists_has_an_interval() -> None:
    random = np.random.default_rng(3)
    labels = random.random((400, 10)) < 0.2
    state = UserGroups(RankingMetrics([MRR, "HR@3"]))
    state.update(np.arange(400) % 97, labels=labels.astype(int), scores=random.random((400, 10)))
    for view in headlines_of(state.compute().value):
        interval = state.confidence_interval(view=view)
        assert interval.lower < interval.estimate < interval.upper
        assert interval.estimate == state.compute().estimate_of(view)


def test_what_is_not_of_the_metric_has_no_interval_and_the_estimate_is_its_headline() -> None:
    state = UserGroups(Ratio())
    state.update(np.arange(100), numerators=np.arange(100) % 3)
    result = state.compute()
    for view in ("estimate", "ratio"):
        assert same_result(result.interval(view), result.interval())
    for view in ("variance", "deff", "n_eff"):
        assert not result.interval(view).defined
    assert headlines_of(result) == ("estimate",)


# -- the coarse form that groups keep of a metric


SCORES: list[Accumulator] = [
    *(HistogramAUC(), HistogramAUC(range="real"), ExactAUC(), HistogramAUC("equal", 9)),
    *(MulticlassAUC(4), MulticlassAUC(4, exact=True), Uplift(), ExactUplift()),
]
OTHERS: list[Accumulator] = [
    *(Ratio(), Calibration(bins=5), BinaryConfusion(threshold=0.25), GroupedAUC()),
    HistogramAUC(grid="equal", resolution=8),
    HistogramAUC(grid="edges", edges=(0.25, 0.5)),
    MulticlassAUC(3, grid="equal", resolution=4),
]


def test_groups_count_the_scores_of_a_metric_that_keeps_them_and_keep_any_other_as_it_is() -> None:
    for metric in SCORES:
        assert list(group_scores(metric)) == [()] and group_metric(metric) is None
        weighted: Any = type(metric)(
            **metric.settings() | {"weight_unit": "1/10", "round_weights": True}
        )
        ranked: Any = group_scores(weighted)[()].ranked
        assert ranked.buckets == 256
        assert (str(ranked.weight_unit), ranked.round_weights) == ("1/10", True)
    for scoreless_metric in OTHERS:
        assert not group_scores(scoreless_metric)
        assert (
            group_metric(scoreless_metric) == scoreless_metric
            and group_metric(scoreless_metric) is not scoreless_metric
        )
    for state in (UserGroups(Ratio()), UserGroups(HistogramAUC())):  # and beside them the whole
        names = state.whole.by_name.keys()
        assert list(names) == (["metric"] if isinstance(state.metric, HistogramAUC) else [])
        assert UserGroups.from_bytes(state.to_bytes()).whole.by_name.keys() == names


def test_quantiles_of_users_have_the_variance_of_all_values_or_a_little_more() -> None:
    rng = np.random.default_rng(17)
    who = rng.integers(0, 2_000, 20_000)
    amounts = rng.lognormal(rng.normal(0, 0.5, 2_000)[who], 1)
    for values in (amounts, np.round(amounts) + 100, -amounts, np.where(amounts < 3, 5.01, 5.3)):
        exact, coarse = UserGroups(ExactQuantiles()), UserGroups(Quantiles())
        for metric in (exact, coarse):
            metric.update(who, values=values)
        for view in ("median", "p90", "p99"):
            exact_interval, coarse_interval = (m.compute().interval(view) for m in (exact, coarse))
            assert (
                coarse_interval.lower <= exact_interval.lower
                and exact_interval.upper <= coarse_interval.upper
            ), view
            if values is amounts:
                assert 0.95 < coarse_interval.deff / exact_interval.deff < 1.15
    of_4 = Quantiles(resolution=4)
    assert group_metric(Quantiles()) == of_4 == group_metric(of_4)
    plain = Quantiles(grid="edges", edges=(1.0, 2.0))
    assert group_metric(plain) == plain and group_metric(ExactQuantiles()) == ExactQuantiles()
    of_shares: Any = group_metric(Quantiles(grid="equal", range="probability", resolution=12))
    assert of_shares.resolution == 8


def test_a_grid_of_257_buckets_is_collapsed_in_groups_and_one_of_256_is_not() -> None:
    of_256, of_257 = (
        HistogramAUC(grid="edges", edges=tuple(i / 1000 for i in range(1, n))) for n in (256, 257)
    )
    assert (of_256.buckets, of_257.buckets) == (256, 257)
    assert group_metric(of_256) == of_256
    assert group_metric(of_257) is None


# -- a Panel of several metrics ------------------------------------------------------------------
def test_user_groups_of_a_panel_are_those_of_each_of_its_metrics() -> None:
    metrics = {"auc": HistogramAUC(), "exact": ExactAUC(), "ctr": Ratio(), "at": BinaryConfusion()}
    reads = {"ctr": {"numerators": "labels"}, "exact": {"scores": "other"}}
    nested = Panel({"inner": Panel(metrics, reads), "again": Ratio()}, {"again": reads["ctr"]})
    columns = rows(900) | {"other": np.random.default_rng(2).normal(size=900)}
    state, parts, panel = UserGroups(nested, 16), UserGroups(nested, 16), nested.empty()
    state.update(**columns)
    for span in (slice(300), slice(300, 900)):
        part = UserGroups(nested, 16)
        part.update(**{name: column[span] for name, column in columns.items()})
        parts.merge(part)
    assert parts == state == load(state.to_bytes())
    panel.update(**{name: column for name, column in columns.items() if name != "groups"})
    assert state.metric_state() == panel
    result = state.compute()["inner"]
    for name, metric in metrics.items():
        expected = UserGroups(metric, 16)
        inputs = {"labels": columns["labels"], "scores": columns["scores"]}
        if name == "exact":
            inputs["scores"] = columns["other"]
        if name == "ctr":
            inputs = {"numerators": columns["labels"]}
        expected.update(columns["groups"], **inputs)
        assert state.project("inner").project(name) == expected
        assert result[name].interval() == expected.compute().interval()
    keyed = PerKey(UserGroups(nested, 16))
    keyed.update(np.arange(900) % 2, **columns)
    assert keyed.state(0) + keyed.state(1) == state


def test_a_metric_that_is_not_in_the_panel_is_refused_with_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"\(ctr\), got 'crt'; did you mean 'ctr'"):
        UserGroups(Panel({"ctr": Ratio()})).project("crt")
    with pytest.raises(SettingsError, match="expected UserGroups of a Panel"):
        UserGroups(Ratio()).project("ctr")


def test_a_part_of_a_result_has_the_intervals_of_users() -> None:
    state = UserGroups(HistogramAUC())
    state.update(**rows(3000))
    result = state.compute()
    part = copy.copy(result.confusion(0.5))
    assert part.value == result.value.confusion(0.5) and part.precision == part.value.precision
    assert part.interval("recall") == result.interval("confusion(0.5).recall")
    assert part.interval("recall").deff > 1.2
    assert "no users are known" not in repr(part)


@pytest.mark.parametrize("method", ["auto", "jackknife"])
def test_a_view_of_a_part_has_the_interval_of_the_part_within_its_range(method: str) -> None:
    metric = UserGroups(ExactAUC(), 8)
    few = {"labels": np.arange(40) % 3 == 0, "scores": np.arange(40) * 7 % 10 / 10}
    metric.update(groups=np.arange(40) % 20, **few)
    result = metric.compute()
    interval = result.interval("confusion(0.5).recall", method=method)
    assert interval == result.confusion(0.5).interval("recall", method=method)
    assert 0 <= interval.lower < interval.estimate < interval.upper <= 1


def test_a_result_has_what_the_metrics_own_result_has() -> None:
    columns = rows(500)
    state, lists = UserGroups(HistogramAUC()), UserGroups(RankingMetrics(["NDCG@2"]))
    state.update(**columns)
    result = state.compute()
    assert result.auc == result.value.auc and result.rows == 500
    lists.update(["ann", "bo"], labels=[[1, 0], [0, 1]])
    assert lists.compute()["NDCG@2"] == lists.compute().value["NDCG@2"]
    for version in (result, copy.copy(result)):
        with pytest.raises(AttributeError, match="nor ScoreCurve has the attribute 'acu'"):
            _ = version.acu


def test_a_quantile_without_rows_above_it_has_no_upper_end_over_users() -> None:
    rng = np.random.default_rng(0)
    users, values = rng.integers(0, 30, 60), rng.lognormal(size=60)
    for kind in (ExactQuantiles(), Quantiles()):
        metric, control = UserGroups(kind), UserGroups(kind)
        metric.update(users, values=values)
        control.update(users[:50] + 30, values=values[:50])
        interval = metric.compute().interval("p99")
        assert interval.lower < interval.estimate and interval.upper == math.inf
        assert "no row is above it, and the rows are too few for an upper end" in interval.reason
        # Other rows can be above the greatest value of these: no difference of arms is known.
        assert compare(control, metric, view="p99").effect_size_ci_upper == math.inf


def test_the_lower_end_of_a_quantile_of_equal_rows_has_the_error_of_the_rows_below_it() -> None:
    # Of each user's 10 rows 0 to 9 are 0, on average 4.5, one is 2, and the others are 1.
    users = np.repeat(np.arange(400), 10)
    zeros = np.random.default_rng(1).choice(10, 400)
    values = np.where(np.tile(np.arange(10), 400) < np.repeat(zeros, 10), 0.0, 1.0)
    values[9::10] = 2.0
    metric = UserGroups(ExactQuantiles())
    metric.update(users, values=values)
    result = metric.compute()
    below = result.interval("share_below(1)")
    assert result.interval("share_up_to(1)").deff < 0.01  # all users agree on these
    for view, p in (("median", 0.5), ("quantile(0.47)", 0.47), ("quantile(0.6)", 0.6)):
        interval = result.interval(view)
        assert interval.estimate == interval.upper == 1.0
        assert interval.lower == (
            0.0 if below.estimate + critical(0.95, below.df) * below.se >= p else 1.0
        )
    assert result.interval("quantile(0.47)").lower == 0.0
    assert result.interval("quantile(0.6)").lower == 1.0


def test_quantiles_of_users_who_agree_have_the_interval_of_independent_rows() -> None:
    for n in (3, 30, 300):
        metric = UserGroups(ExactQuantiles())
        metric.update(np.arange(n) % 25, values=np.ones(n))
        result = metric.compute()
        for view in ("median", "p90", "p99", "iqr"):
            interval, row_interval = result.interval(view), result.value.interval(view)
            assert (interval.lower, interval.upper) == (row_interval.lower, row_interval.upper), (
                n,
                view,
            )
            assert (
                interval.defined
                or "the variance is 0" in interval.reason
                or "too few" in interval.reason
            )
            assert len(set(interval.reason.split("; "))) == len(interval.reason.split("; "))


@pytest.mark.parametrize("schema", [b"regression/3", b"regression/2"])
def test_groups_without_rows_take_no_memory_when_they_are_read(schema: bytes) -> None:
    metric = UserGroups(Panel({"of_errors": Regression(), "ctr": Ratio()}), 4096)
    spec = PerKey(metric)
    head = spec._head().replace(b"regression/3", schema)
    out = Writer()
    out.lacking = decode_head(head).lacking
    out.ints(np.array([40]))
    out.texts([b"%d" % i for i in range(10, 50)])
    metric._empty(3)._encode(out)
    data = frame(STATE_MAGIC, head, out.bytes_())
    load(spec.to_bytes())  # which imports what it needs
    tracemalloc.start()
    try:
        state = load(data)
        total = state.copy() + state
        same = total.to_bytes() == state.to_bytes()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20  # there are 163,840 groups
    finally:
        tracemalloc.stop()
    assert same and len(data) < 1_000
    assert (state.to_bytes() == data) is (schema == b"regression/3")


@pytest.mark.parametrize("metric", [Ratio(), Panel({"ctr": Ratio(), "both": Ratio()})])
def test_groups_without_rows_that_were_read_count_as_new_ones(metric: Accumulator) -> None:
    spec = UserGroups(metric, 2048)
    rows = {"groups": [1, 2, 3, 1], "numerators": [1, 0, 1, 1]}
    counted, read = spec.empty(), UserGroups.from_bytes(spec.to_bytes())
    counted.update(**rows)
    assert read == spec and read.states.nbytes == 0
    assert read + counted == counted + read == counted
    assert repr(read.compute()) == repr(spec.compute())
    if isinstance(metric, Panel):
        assert read.project("ctr") == counted.empty().project("ctr")
    read.update(**rows)
    assert read == counted
    keyed = PerKey(spec)
    keyed += PerKey.from_bytes(keyed.to_bytes())
    keyed.update(["a", "b", "a", "b"], **rows)
    assert keyed.state("a") + keyed.state("b") == counted
