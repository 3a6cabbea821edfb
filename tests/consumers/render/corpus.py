"""Answers that between them show all that a renderer can meet, built without a store."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from msgspec.structs import replace
from streammetrics_consumers.query.answers import Join, ResultsAnswer, TableLayout
from streammetrics_consumers.query.comparisons import with_report
from streammetrics_consumers.query.join_status import join_warnings, outcome_answer
from streammetrics_consumers.query.query import Slice
from streammetrics_consumers.query.results import ordered_rows
from streammetrics_consumers.query.rows import SINCE_THE_START, SliceRow, Window, WindowFinding

from streammetrics import Interval, Ratio, Units
from streammetrics.experiments import Experiment, Horizon, Plan, Report, Safeguard
from streammetrics.results import OutcomeDelays
from tests.consumers.answer_rows import altered, slice_row
from tests.consumers.exposed_cohorts import DAY_MS
from tests.consumers.render.exposed import BEFORE_THE_FIRST, EXPOSURES, answers
from tests.consumers.render.indexed import index
from tests.consumers.stores import HOSTILE

HOUR: Final = 3_600_000


def rows(slice_: Slice, n: int, window: Window = SINCE_THE_START) -> Iterator[SliceRow]:
    """Rows of four metrics of one slice, with figures that depend on `n`."""
    clicks: Mapping[str, int] = {"rows": 10_000 + n, "positives": 40 + n}
    groups = {**clicks, "groups": 312, "groups_one_class": 300}
    value = 0.7011 + n / 1000

    def row(metric: str, view: str, value: float, counts: Mapping[str, int], *, width: float = 0.0,
            interval: Interval | None = None) -> SliceRow:  # fmt: skip
        return slice_row(
            window, slice_, metric, "Any", view, value, value - width, value + width, counts, "",
            interval,
        )  # fmt: skip

    jackknife = Interval(value, value - 0.0213, value + 0.0198, method="jackknife", n=312)
    none = Interval(math.nan, math.nan, math.nan, method="jackknife", reason="one class alone")
    yield row("auc", "auc", value, clicks, width=0.00041, interval=jackknife)
    yield row("auc", "gini", 2 * value - 1, clicks, width=0.00079)
    yield row("ctr", "ratio", 0.00575, {"rows": 10_000 + n})
    yield row("gauc", "gauc", math.nan if n else 0.61, groups, interval=none)
    yield row("rank", "MRR@10", 0.25, {"rows": 100, "lists_kept": 44})
    yield row("rank", "NDCG@10", 1.0, {"rows": 100, "lists_kept": 44})


def quantiles(slice_: Slice, n: int) -> Iterator[SliceRow]:
    """Rows of two quantiles with a band, which a high one may lack on one side, and of a rate."""
    counts = {"rows": 10_000 + n}
    for view, value, above in (("median", 119.5, 124.5), ("p99", 619.0 + n, math.inf)):
        interval = Interval(value, value - 2.25, value + 2.5, method="ranks", n=10_000)
        band = Interval(value, value - 5, above, method="band", n=10_000)
        ends = SINCE_THE_START, slice_, "wait", "Quantiles", view, value, value - 0.5, value + 0.5
        yield slice_row(*ends, counts, "", interval, band)
    yield slice_row(SINCE_THE_START, slice_, "ctr", "Ratio", "ratio", 0.005, 0.005, 0.005, counts)


def results(
    *parts: Iterator[SliceRow], late: int = 0, variants: tuple[str, ...] = ()
) -> ResultsAnswer:
    """Results with these rows; the view `gini` is not shown unasked."""
    answer_rows = ordered_rows(row for part in parts for row in part)
    headlines = tuple(dict.fromkeys((r.metric, r.view) for r in answer_rows if r.view != "gini"))
    return ResultsAnswer(
        generation=1,
        offsets={"clicks/0": 20_000},
        incomplete={},
        rows_read=20_000,
        quarantined=3,
        late=late,
        future=0,
        expired=0,
        repeated=0,
        skipped=0,
        watermark_ms=1_575_158_000_000,
        rows=answer_rows,
        comparisons=(),
        recommendation=None,
        contamination=None,
        srm=None,
        notes=(),
        join=None,
        tables=TableLayout(variants, headlines=headlines),
    )


DELAYS: Final = OutcomeDelays(
    1000, 20, 8, 5, {(1, 2): 499, (2, 4): 400, (32, 64): 101}, {(64, 128): 12}
)
WAITING: Final = OutcomeDelays(0, 0, 0, 0, {}, {})
JOINED: Final = Join(
    closed_ms=1_000_000,
    label_window_s=60,
    events=100_000,
    closed=90_000,
    pending=10_000,
    share_pending=0.1,
    conflicts=0,
    late_impressions=3,
    late_outcomes=4,
    repeated=20,
    share_repeated=0.0002,
    outcomes={"click": outcome_answer(30, DELAYS)},
    warnings=(),
)
NOTHING_JOINED: Final = replace(
    JOINED,
    closed_ms=None,
    closed=0,
    pending=0,
    share_pending=math.nan,
    repeated=0,
    share_repeated=0.0,
    outcomes={"click": outcome_answer(3, WAITING)},
)


PLAN: Final = Plan(
    control="old",
    variants=("old", "new"),
    decision=("ctr",),
    guardrails=(Safeguard("stay", 0.1, True),),
    horizon=Horizon(mde=0.05),
    better={"ctr": "higher"},
)


def ratio(ones: int, total: int) -> Ratio:
    """A rate."""
    rate = Ratio()
    rate.update([1] * ones + [0] * (total - ones))
    return rate


def tested(
    clicks: tuple[int, int],
    stays: tuple[int, int] | None = None,
    *,
    totals: tuple[int, int] = (2000, 2000),
    overlap: int = 0,
    better: str = "higher",
) -> Report:
    """The report on an experiment: ones of (old, new), of so many users each."""
    arms = ("old", "new")
    states: dict[str, dict[str, Ratio]] = {
        arm: {"ctr": ratio(clicks[i], totals[i])} for i, arm in enumerate(arms)
    }
    units: dict[str, Units] = {}
    for i, arm in enumerate(arms):
        if stays is not None:
            states[arm]["stay"] = ratio(stays[i], totals[i])
        units[arm] = Units()
        units[arm].update([f"u{n}" if n < overlap else f"{arm}{n}" for n in range(totals[i])])
    rails = () if stays is None else PLAN.guardrails
    plan = dataclasses.replace(PLAN, guardrails=rails, better={"ctr": better})
    return Experiment(plan, {"": states}, {"": units}).outcome().report()


def concluded(report: Report, *, window: Window = SINCE_THE_START, looks: int = 3) -> ResultsAnswer:
    """Results with what a report says."""
    ctr_rows = [altered(row, slice={"variant": arm})
             for arm in ("old", "new") for row in rows({}, 0) if row.metric == "ctr"]  # fmt: skip
    shown = replace(
        results(iter(ctr_rows), variants=("old", "new")),
        comparisons=tuple(WindowFinding(window, finding, looks) for finding in report.findings),
        notes=report.notes,
    )
    return with_report(shown, report)


@cache
def corpus() -> Mapping[str, ResultsAnswer]:
    """Every answer, by what it shows."""
    by_variant = [rows({"variant": "bts"}, 0), rows({"variant": "random"}, 1), rows({}, 2)]
    phases = [rows({"variant": v, "phase": p}, 0) for v in "ab" for p in ("eval", None)]
    windows = [
        rows({"variant": "a"}, 0, Window(0, HOUR, "closed")),
        rows({"variant": "a"}, 1, Window(HOUR, 2 * HOUR, "closing")),
        rows({"variant": "a"}, 2, Window(2 * HOUR, 3 * HOUR, "open")),
    ]
    overflow = rows({"user": "u"}, 0), rows({"(other)": ("user",)}, 1)
    seven = [rows({"variant": f"variant {n}"}, n) for n in range(7)]
    names = (HOSTILE, "a\nrows 99", "\u202eevil", "x" * 200, "", "\ud800")
    hostile = [rows({"variant": name, "phase": name}, 0) for name in names]
    small = [altered(row, value=1e-7, low=1.1e-8, high=2e-7, interval=None)
             for row in rows({"variant": "a"}, 0)]  # fmt: skip
    huge = [altered(row, value=1.5e200, low=-math.inf, high=math.inf)
            for row in rows({"variant": "a"}, 0)]  # fmt: skip
    warned = replace(JOINED, conflicts=5, late_outcomes=4000)
    warned = replace(warned, warnings=tuple(join_warnings(warned, 0.01)))
    slow = OutcomeDelays(2, 0, 0, 0, {(1 << 20, 1 << 21): 2}, {})
    weeks = replace(JOINED, label_window_s=1_814_400.5, outcomes={"buy": outcome_answer(1, slow)})
    guardrail_report = tested((500, 1000), (1800, 1780))
    so_far, so_far_beside = answers()
    closed, closed_beside = answers(units="closed")
    endless, endless_beside = answers(None, DAY_MS, 200)
    return {
        "variants beside all rows": results(*by_variant),
        "other names are fixed in the heading": results(*phases),
        "windows": results(*windows),
        "the sum of the other keys": results(*overflow),
        "declared variants come first": results(
            *(rows({"variant": v}, n) for n, v in enumerate((None, "None", "old"))),
            variants=("old", "None"),
        ),
        "more variants than fit": results(*seven),
        "hostile names": results(*hostile),
        "names that look alike once they are cut": results(
            *(rows({"variant": "x" * 30 + end}, n) for n, end in enumerate("ab"))
        ),
        "small figures": results(iter(small)),
        "quantiles with a band": results(
            *(quantiles({"variant": name}, n) for n, name in enumerate(("control", "new")))
        ),
        "huge figures": results(iter(huge)),
        "nothing": results(),
        "what asks for attention": replace(
            results(rows({}, 0), late=4),
            repeated=5,
            skipped=20_000,
            incomplete={"clicks/0": 30_000, "clicks/1": 7},
            notes=("something is to be known",),
        ),
        "joined": replace(results(rows({}, 0)), join=JOINED),
        "joined, with warnings": replace(results(rows({}, 0)), join=warned),
        "joined over weeks": replace(results(), join=weeks),
        "joined, and no label window closed": replace(results(), join=NOTHING_JOINED),
        "win": concluded(tested((500, 1000))),
        "kept": concluded(guardrail_report),
        "kept, in one window": concluded(
            guardrail_report, window=Window(0, HOUR, "closed"), looks=0
        ),
        "broken": concluded(tested((500, 1000), (1800, 1000))),
        "lost": concluded(tested((1000, 400))),
        "no direction": concluded(tested((500, 1000), better="none")),
        "no difference": concluded(tested((250, 250), totals=(1000, 1000))),
        "too early": concluded(tested((5, 10), totals=(20, 20)), looks=0),
        "units are not as planned": concluded(tested((750, 500), totals=(3000, 1000))),
        "experiments with names": replace(
            results(rows({}, 0)),
            experiments=index(
                tested((500, 1000)),
                tested((500, 1000), (1800, 1000)),
                tested((750, 500), totals=(3000, 1000)),
            ),
        ),
        "exposed units, so far": replace(
            concluded(so_far), exposed=so_far_beside, exposures=EXPOSURES
        ),
        "exposed units, closed": replace(concluded(closed), exposed=closed_beside),
        "exposed units without a window": replace(
            concluded(endless), exposed=endless_beside, exposures=BEFORE_THE_FIRST
        ),
        "units of several variants": concluded(tested((500, 1000), overlap=100)),
    }
