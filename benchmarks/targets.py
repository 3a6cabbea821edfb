"""The target cost of each kind of work, and the required lead over its peers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.answer import Answer, digits, markdown
from benchmarks.harness import Timing

# Nanoseconds are those of one machine. By question: the limit of the same run that its targets are
# compared with on any machine, and the nanoseconds that it took on that one. Exact areas sort. The
# others count, which gains less from AVX-512: on two processors the same HistogramAUC took 19 and
# 22 times as long as reading its rows, but 0.41 and 0.75 of a sort.
READ: Final = "read"
SORT: Final = "sort"
FLOORS: Final[Mapping[str, tuple[str, float]]] = {
    "histogram-auc": (READ, 0.11),
    "exact-auc": (SORT, 4.2),
    "grouped-auc": (READ, 0.4),
    "ranking": (READ, 8.0),
    "confusion": (READ, 0.1),
    "exact-sum": (READ, 0.225),
}


@dataclass(frozen=True, slots=True)
class Target:
    """The target of one line of a question.

    at_most: nanoseconds, or a multiple of the line `of`, which may be a limit. ahead: the required
    lead by peer. work: its name in the README, which shows six; "" if it is not shown there.
    """

    key: str
    line: str
    at_most: float
    of: str = ""
    ahead: Mapping[str, float] = field(default_factory=dict)
    work: str = ""

    def limit(self, answer: Answer) -> float:
        """The greatest allowed time, in nanoseconds."""
        return self.at_most * (timing_of(answer, self.of).median if self.of else 1)

    def measured(self, answer: Answer) -> bool:
        """Whether an answer has the lines; that of a quick run has fewer."""
        try:
            timing_of(answer, self.line), self.limit(answer)
        except KeyError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Figure:
    """The target of a figure that is no time, from the points of a question."""

    key: str
    name: str
    at_most: float
    of_points: Callable[[Sequence[Mapping[str, Any]]], float]

    def value(self, answer: Answer | None) -> float | None:
        """The figure; None if it was not measured."""
        if answer is None:
            return None
        try:
            return self.of_points(answer.points)
        except KeyError:
            return None


def _column_of(series: str, column: str) -> Callable[[Sequence[Mapping[str, Any]]], float]:
    """A column of the point of a series."""

    def read(points: Sequence[Mapping[str, Any]]) -> float:
        return float({p["series"]: p for p in points}[series][column])

    return read


def _growth(series: str, cost: str) -> Callable[[Sequence[Mapping[str, Any]]], float]:
    """The cost of a row at 100,000,000 rows, over that at 10,000,000; "read": of a read."""

    def read(points: Sequence[Mapping[str, Any]]) -> float:
        costs = {p["rows"]: p[cost] for p in points if p["series"] == series}
        ratio = costs[100_000_000] / costs[10_000_000]
        return float(ratio if cost in ("ns", "read") else ratio / 10)

    return read


_BATCHES: Final = (
    ("1,000,000", 2.0, 130.0),
    ("10,000", 2.4, 130.0),
    ("1,000", 2.6, 130.0),
    ("100", 6.0, 130.0),
)
# The targets of what has many keys, large states or processes were set on a machine where np.sort
# takes 6.6 ns; they are multiples of it, with two digits.
_SORT: Final = "np.sort float32"
_VARIANCE: Final = "np.var"
_SLICES: Final = "10,000 slices: results --by variant,country"
_GROUPS: Final = "20,000 groups"
_COMMITS: Final = "every 5 s, resolution 8"
_JSON: Final = (
    "1,000 slices: results --by variant,country --json --views headline",
    "1,000 slices: results --by variant,country --json --views all",
    f"{_SLICES} --json --views headline",
)
# Metrics by the one that stores its rows as they do.
_SHARED: Final = {
    "Quantiles": "HistogramAUC",
    "Uplift": "HistogramAUC",
    "Moments": "Regression",
    "OffPolicy, inverse propensities": "Regression",
    "OffPolicy, doubly robust": "OffPolicy, inverse propensities",
    "Interleaving": "BinaryConfusion",
    "ExactQuantiles": "ExactAUC",
    "ExactUplift": "ExactAUC",
    "GroupedInterleaving": "GroupedAUC",
}
_OF_SHARED: Final = {
    "Quantiles": 1.2,
    "OffPolicy, inverse propensities": 2.0,
    "OffPolicy, doubly robust": 2.0,
}
_OF_LISTS: Final = {
    "NDCG, logged positions": "NDCG",
    "F1": "precision and recall",
}
_EXPOSED: Final = ("UnitMean, 1 experiment", "UnitMean, 5 experiments")
_SMALL: Final = (
    *("weighted", "keyed", "windowed", "grouped", "hashed ids", "paired", "panel", "multilabel"),
    *("off-policy", "catalog", "exposure", "ranked list"),
)
_CONFUSED: Final = {"scikit-learn": 55.0, "torchmetrics": 7.0}

TARGETS: Final = (
    *(
        Target(
            "histogram-auc",
            f"uniform, batches of {size}",
            most,
            ahead={"torchmetrics": ahead, "KLL sketch": 8},
            work="`HistogramAUC`, batches of 10,000 rows" if size == "10,000" else "",
        )
        for size, most, ahead in _BATCHES
    ),
    # Uniform scores are the hardest for its grid: half of them also use its distance from 1.
    *(
        Target("histogram-auc", f"click probabilities, batches of {size}", most)
        for size, most, _ in _BATCHES
    ),
    Target("exact-auc", "float32 in [0, 1], one batch", 7,
           ahead={"polars": 7, "scikit-learn": 35}, work="`ExactAUC`, one batch of float32"),
    Target("exact-auc", "float32 of either sign, one batch", 11),
    Target("exact-auc", "float64 in [0, 1], one batch", 4, "np.sort float64"),
    Target("exact-auc", "float64 of either sign, one batch", 4, "np.sort float64"),
    Target("exact-auc", "float32 in [0, 1], batches of 10,000", 27),
    Target("exact-auc", "float32, 4 digits, batches of 10,000", 5),
    Target("exact-auc", "float32 in [0, 1], batches of 10,000, ten reads", 1.4,
           "float32 in [0, 1], batches of 10,000"),
    Target("exact-auc", "read after a poll of 10,000 rows, a new row", 750),
    Target("grouped-auc", "one batch", 25, ahead={"polars": 6, "scikit-learn": 1_000},
           work="`GroupedAUC`, 20 rows a user, one batch"),
    Target("grouped-auc", "batches of 10,000", 50),
    Target("grouped-auc", "strings, batches of 10,000", 150),
    Target("grouped-auc", "batches of 10,000, ten reads", 1.4, "batches of 10,000"),
    Target("grouped-auc", "read after a poll of 10,000 rows, a row", 0.1, "batches of 10,000"),
    Target("grouped-auc", "to_bytes", 6.8, _SORT),
    Target("ranking", "scored, float32", 480, ahead={"pytrec_eval": 30, "ranx": 38},
           work="`RankingMetrics`, NDCG, MRR, HR and AP at 10, a list of 20 to 100 items"),
    Target("ranking", "ranked already", 160),
    Target("confusion", "2 classes, batches of 1,000,000", 0.35, ahead=_CONFUSED),
    Target("confusion", "100 classes, batches of 1,000,000", 1.4),
    Target("exact-sum", "in [0, 1]", 2.4, ahead={"math.fsum": 10},
           work="`Ratio`: exact, order-free sums of values in [0, 1]"),
    Target("exact-sum", "any size, 1e-150 to 1e150", 4.3, ahead={"math.fsum": 10}),
    # Numpy's variance takes two passes over float64 and keeps nothing.
    Target("calibration", "Regression, float64", 22, _VARIANCE),
    Target("calibration", "OffPolicy, clicks", 22, _VARIANCE),
    Target("calibration", "OffPolicy, amounts", 42, _VARIANCE),
    Target("calibration", "Moments, float64", 29, _VARIANCE),
    Target("calibration", "Calibration, float64", 54, _VARIANCE, ahead={"scikit-learn": 1.2}),
    Target("calibration", "the same, batches of 1,000", 57, _VARIANCE),
    Target("merging", "HistogramAUC, 4,096 buckets", 4_300, ahead={"torchmetrics": 5}),
    Target("merging", "GroupedAUC, shards, a key", 23, ahead={"polars": 12}),
    Target("sliding-auc", "window of 1,000, one event at a time", 8_000,
           work="`SlidingAUC`, a window of 1,000 rows: an event in, one out, and the area"),
    Target("sliding-auc", "window of 1,000,000, one event at a time", 15_000),
    *(
        Target("shared-states", f"{name}, batches of {size}", _OF_SHARED.get(name, 1.5),
               f"{baseline}, batches of {size}")
        for name, baseline in _SHARED.items()
        for size in ("1,000,000", "10,000")
    ),
    *(Target("shared-states", name, 1.5, baseline) for name, baseline in _OF_LISTS.items()),
    *(Target("shared-states", name, 2, "NDCG")
      for name in ("α-nDCG", "ERR-IA", "subtopic recall")),
    # Of lists of ten items; counting these alone takes half of it.
    *(Target("shared-states", name, 25) for name in ("CatalogMetrics", "ItemExposure")),
    *(Target("shared-states", f"{name}, batches of {size}", 20)
      for name in ("ExactQuantiles", "ExactQuantiles, float64")
      for size in ("1,000,000", "10,000")),
    # Of rows of ten labels.
    *(Target("classes", f"MultilabelConfusion, batches of {size}", 60)
      for size in ("200,000", "1,000")),
    *(
        Target("shared-states", f"{name}, {view}", most, f"{name}, an update")
        for name in ("HistogramAUC", "ExactAUC")
        for view, most in (
            ("precision at a recall", 1.5), ("threshold of a share", 1.5), ("drift of two", 3)
        )
    ),
    Target("panel", "Panel of ten", 1.3, "sum of the kernels"),
    *(
        Target("by-key", f"{form}, batches of {size}, a distinct key", 38, _SORT)
        for form in ("integers", "dictionary of strings", "list of strings", "list of tuples")
        for size in ("1,000", "10,000", "100,000")
    ),
    Target("by-key", "a state that fills, a row of the last two fifths", 1.2,
           "a state that fills, a row of the first two fifths"),
    Target("by-key", "HistogramAUC in 20 experiments, batches of 10,000", 120, _SORT),
    Target("by-key", "HistogramAUC in 20 experiments, batches of 100,000", 120, _SORT),
    Target("by-key", "50 metrics in 20 experiments, batches of 10,000", 3_000, _SORT),
    Target("by-key", "50 metrics in 20 experiments, batches of 100,000", 3_000, _SORT),
    # 5 microseconds where a call of plain arrays takes 1.1.
    *(
        Target("small-calls", f"{name}, {form}", 4.5, "plain arrays")
        for name in _SMALL
        for form in ("lists", "arrays")
    ),
    *(
        Target("small-calls", f"calls of 256 rows by 1,000 keys, {form}", 0.11, "plain arrays")
        for form in ("integers", "strings")
    ),
    Target("user-groups", "HistogramAUC, what groups add", 3.6, _SORT),
    *(
        Target("exposures", f"{line}, arms from exposures", 4, f"{line}, arms in the event")
        for line in _EXPOSED
    ),
    # The sort of a key's 200 rows.
    Target("compute-by-key", "Ratio", 0.76, _SORT),
    Target("compute-by-key", "BinaryConfusion", 1.5, _SORT),
    Target("compute-by-key", "HistogramAUC", 7.6, _SORT),
    Target("compute-by-key", "Calibration", 15, _SORT),
    Target("compute-by-key", "RankingMetrics", 7.6, _SORT),
    Target("compute-by-key", "Panel of ten", 1.1, "its metrics one by one"),
    Target("compute-by-key", "24 windows of Panel of ten", 47, _SORT),
    Target("many-groups", f"{_GROUPS}, partial", 2, f"{_GROUPS}, PerKey to bytes"),
    Target("many-groups", f"{_GROUPS}, aggregate", 1, f"{_GROUPS}, PerKey to its table"),
    Target("many-groups", "6 groups", 5, "1 group"),
    Target("decoding", "none bad", 2.1, "msgspec"),
    Target("decoding", "1 % bad", 1.1, "1 % bad, its events each alone"),
    # 2,300, 1,200, 3,600 and 2,400 ns an event where msgspec takes 460.
    Target("consumer", "file jsonl: all", 5, "msgspec"),
    Target("consumer", "file parquet: all", 2.6, "msgspec"),
    Target("consumer", "kafka-python json: all", 7.8, "msgspec"),
    Target("consumer", "confluent-kafka json: all", 5.2, "msgspec"),
    # Each experiment adds arms to read and slots to add to, not another pass over the rows.
    Target("consumer", "20 experiments: decoded", 1.1, "1 experiment: decoded"),
    Target("consumer", "20 experiments: counted", 3, "1 experiment: counted"),
    # The sort of a million rows.
    Target("results", "the first metric, beyond numpy", 9.1, _SORT),
    Target("results", "status", 53, _SORT),
    Target("results", "results of one slice", 76, _SORT),
    Target("results", "report of one slice", 152, _SORT),
    Target("results", "1,000 slices: results --by variant,country", 150, _SORT),
    Target("results", _SLICES, 910, _SORT),
    Target("items", "a page by item, after a commit", 46, _SORT),
    Target("items", "a page by item, again", 3, _SORT),
    Target("items", "a scrape, again", 0.76, _SORT),
    # Of what polars takes for the value without its interval.
    Target("eval", "AUC", 0.6, "polars, AUC"),
    Target("eval", "AUC, float64", 0.6, "polars, AUC, float64"),
    Target("eval", "log loss and click rate", 1.8, "polars, log loss and click rate"),
    Target("eval", "GAUC", 1, "polars, GAUC"),
    Target("eval", "AUC, 100,000,000 rows", 0.6, "polars, AUC"),
    # The sort of a thousand.
    Target("store", "a commit without its events", 9_100, _SORT),
    Target("store", "its events, 1,000 of them", 45, _SORT),
    Target("store", "verify of that file", 1.5, "counting a file of 200,000 events of one log"),
)  # fmt: skip

_READ: Final = "compute after 10,000 new rows"
FIGURES: Final = (
    Figure("results", f"{_SLICES}, peak MB", 400, _column_of(_SLICES, "peak MB")),
    *(
        Figure("results", f"{words}, peak MB", 150, _column_of(words, "peak MB"))
        for words in _JSON
    ),
    Figure("items", "a page by item, kB on the wire", 250,
           _column_of("a page by item", "kB on the wire")),
    Figure("items", "a page by item, peak MB", 250, _column_of("a page by item", "peak MB")),
    *(
        Figure("eval", f"{line}, peak MB", 500, _column_of(line, "peak MB"))
        for line in ("AUC", "AUC, float64", "log loss and click rate", "GAUC")
    ),
    Figure("store", f"{_COMMITS}, GB a day", 40, _column_of(_COMMITS, "GB a day")),
    Figure("store", f"{_COMMITS}, stored over least", 1.25,
           _column_of(_COMMITS, "stored over least")),
    *(
        Figure("growth", f"{name}, {work} of 100,000,000 rows, of 10,000,000", 1.5,
               _growth(name, cost))
        for name in ("ExactAUC", "GroupedAUC")
        for cost, work in (("ns", "updates"), ("compute", "first compute"),
                           ("bytes in", "from_bytes"))
    ),
    *(
        Figure("growth", f"{name}, {_READ} of 100,000,000 rows, of 10,000,000", 3.0,
               _growth(name, "read"))
        for name in ("ExactAUC", "GroupedAUC")
    ),
)  # fmt: skip


def timing_of(answer: Answer, name: str) -> Timing:
    """The line of this name, or the limit."""
    for timing in (*answer.timings, answer.sort, answer.read):
        if timing.name == name:
            return timing
    raise KeyError(f"{answer.key} has no line {name!r}")


def table(answers: Mapping[str, Answer], keys: Collection[str]) -> str:
    """Each target of the questions of these keys with its measured time; ✗ if it is missed,
    judged by a ratio if it has one."""
    lines = []
    for target in [goal for goal in TARGETS if goal.key in keys]:
        answer = answers.get(target.key)
        if answer is None or not target.measured(answer):
            lines.append([f"{target.key}: {target.line}", *["not measured", *4 * [""]]])
            continue
        timing, limit = timing_of(answer, target.line), target.limit(answer)
        most = digits(limit) + (f" ({target.at_most:g} × {target.of})" if target.of else "")
        peers = []
        for peer, times in target.ahead.items():
            same = [t.median for t in answer.timings if t.peer == peer and t.task == timing.task]
            ahead = min(same, default=0.0) / timing.median
            peers.append(f"{peer} {digits(ahead)} of {times:g}{_miss(ahead >= times)}")
        work = f"{target.key}: {target.line}"
        measured = digits(timing.median)
        allowed, against = "", ""
        if target.key in FLOORS and not target.of:
            floor, ns = FLOORS[target.key]
            times = timing.median / (answer.read if floor == READ else answer.sort).median
            allowed = f"{digits(target.at_most / ns)} × {floor}"
            against = f"{digits(times)} × {floor}{_miss(times <= target.at_most / ns)}"
        else:
            measured += _miss(timing.median <= limit)
        lines.append([work, most, measured, allowed, against, "; ".join(peers)])
    columns = ["at most", "measured", "at most × limit", "measured × limit"]
    head = ["work, in ns", *columns, "ahead of a peer, times"]
    return markdown([head, *lines])


def figures(answers: Mapping[str, Answer], questions: Collection[str]) -> str:
    """The targets of these questions that are no times; ✗ if one is missed."""
    lines = []
    for figure in [goal for goal in FIGURES if goal.key in questions]:
        value = figure.value(answers.get(figure.key))
        text = "not measured" if value is None else digits(value) + _miss(value <= figure.at_most)
        lines.append([f"{figure.key}: {figure.name}", digits(figure.at_most), text])
    return markdown([["figure", "at most", "measured"], *lines]) if lines else ""


def summary(answers: Mapping[str, Answer]) -> str:
    """The table of the README."""
    lines = []
    for target in TARGETS:
        answer = answers.get(target.key)
        if not target.work or answer is None or not target.measured(answer):
            continue
        timing = timing_of(answer, target.line)
        best = answer.best_peer(timing)
        against = digits(timing.median / answer.sort.median) if answer.sort.median else ""
        peer = f"{digits(best.median / timing.median)} ({best.peer})" if best else ""
        lines.append([target.work, digits(timing.median), against, peer])
    return markdown([["work", "ns", "× `np.sort`", "fastest peer, × ours"], *lines])


def _miss(is_met: bool) -> str:
    return "" if is_met else " ✗"
