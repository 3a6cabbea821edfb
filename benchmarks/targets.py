"""The target cost of each kind of work, and the required lead over its peers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from benchmarks.answer import Answer, digits, markdown
from benchmarks.harness import Timing

# Nanoseconds are those of one machine, on which np.sort took SORT for each of ten million float32.
# Targets relative to that, for equally many rows, can be judged on any machine.
SORT: Final = 4.2
SORTED: Final = ("histogram-auc", "exact-auc", "grouped-auc", "confusion", "exact-sum")


@dataclass(frozen=True, slots=True)
class Target:
    """The target of one line of a question.

    at_most: nanoseconds, or a multiple of the line `of`. ahead: the required lead by peer. work:
    its name in the README, which shows six; "" if it is not shown there.
    """

    key: str
    line: str
    at_most: float
    of: str = ""
    ahead: Mapping[str, float] = field(default_factory=dict)
    work: str = ""

    def limit(self, answer: Answer) -> float:
        """The greatest allowed time, in nanoseconds."""
        return self.at_most * (named(answer, self.of).median if self.of else 1)


_BATCHES: Final = (
    ("1,000,000", 2.0, 130.0),
    ("10,000", 2.4, 130.0),
    ("1,000", 2.6, 130.0),
    ("100", 6.0, 130.0),
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
    Target("grouped-auc", "one batch", 25, ahead={"polars": 6, "scikit-learn": 1_000},
           work="`GroupedAUC`, 20 rows a user, one batch"),
    Target("grouped-auc", "batches of 10,000", 50),
    Target("grouped-auc", "strings, batches of 10,000", 150),
    Target("ranking", "scored, float32", 480, ahead={"pytrec_eval": 30, "ranx": 38},
           work="`RankingMetrics`, NDCG, MRR, HR and AP at 10, a list of 20 to 100 items"),
    Target("ranking", "ranked already", 160),
    Target("confusion", "2 classes, batches of 1,000,000", 0.35, ahead=_CONFUSED),
    Target("confusion", "100 classes, batches of 1,000,000", 1.4),
    Target("exact-sum", "in [0, 1]", 2.4, ahead={"math.fsum": 10},
           work="`Ratio`: exact, order-free sums of values in [0, 1]"),
    Target("exact-sum", "any size, 1e-150 to 1e150", 4.3, ahead={"math.fsum": 10}),
    Target("merging", "HistogramAUC, 4,096 buckets", 4_300, ahead={"torchmetrics": 5}),
    Target("merging", "GroupedAUC, shards, a key", 23, ahead={"polars": 12}),
    Target("sliding-auc", "window of 1,000, one event at a time", 8_000,
           work="`SlidingAUC`, a window of 1,000 rows: an event in, one out, and the area"),
    Target("sliding-auc", "window of 1,000,000, one event at a time", 15_000),
    Target("panel", "Panel of ten", 1.3, "sum of the kernels"),
)  # fmt: skip


def named(answer: Answer, name: str) -> Timing:
    """The line of this name."""
    for timing in answer.timings:
        if timing.name == name:
            return timing
    raise KeyError(f"{answer.key} has no line {name!r}")


def has(answer: Answer, name: str) -> bool:
    """Whether there is a line of this name: a quick run has fewer."""
    return any(timing.name == name for timing in answer.timings)


def table(answers: Mapping[str, Answer]) -> str:
    """Each target with its measured time; ✗ if it is missed, judged by a ratio if it has one."""
    lines = []
    for target in TARGETS:
        answer = answers.get(target.key)
        if answer is None or not has(answer, target.line):
            continue
        ours, limit = named(answer, target.line), target.limit(answer)
        most = digits(limit) + (f" ({target.at_most:g} × {target.of})" if target.of else "")
        peers = []
        for peer, times in target.ahead.items():
            same = [t.median for t in answer.timings if t.peer == peer and t.task == ours.task]
            ahead = min(same, default=0.0) / ours.median
            peers.append(f"{peer} {digits(ahead)} of {times:g}{_miss(ahead >= times)}")
        work = f"{target.key}: {target.line}"
        measured = digits(ours.median)
        asked, against = "", ours.median / answer.sort.median if answer.sort.median else 0.0
        sorts = digits(against) if against else ""
        if target.key in SORTED and not target.of:
            asked = digits(target.at_most / SORT)
            sorts += _miss(against <= target.at_most / SORT)
        else:
            measured += _miss(ours.median <= limit)
        lines.append([work, most, measured, asked, sorts, "; ".join(peers)])
    columns = ["at most", "measured", "at most × sort", "measured × sort"]
    head = ["work, in ns", *columns, "ahead of a peer, times"]
    return markdown([head, *lines])


def summary(answers: Mapping[str, Answer]) -> str:
    """The table of the README."""
    lines = []
    for target in TARGETS:
        answer = answers.get(target.key)
        if not target.work or answer is None or not has(answer, target.line):
            continue
        ours = named(answer, target.line)
        best = answer.best_peer(ours)
        against = digits(ours.median / answer.sort.median) if answer.sort.median else ""
        peer = f"{digits(best.median / ours.median)} ({best.peer})" if best else ""
        lines.append([target.work, digits(ours.median), against, peer])
    return markdown([["work", "ns", "× `np.sort`", "fastest peer, × ours"], *lines])


def _miss(met: bool) -> str:
    return "" if met else " ✗"
