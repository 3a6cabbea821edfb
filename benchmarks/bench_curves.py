"""The cost of each view of a curve, from a histogram and from an exact bag, and of scikit-learn.

scikit-learn starts from the rows each time; ours reads a state that already has them, whose cost
`bench_histogram_auc` and `bench_exact_auc` measure. The first view other than `auc` counts the
points of the curve, which has its own line; each view is measured after that. Every answer is
first compared with scikit-learn's. `python -m benchmarks.bench_curves`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

from benchmarks.curve_peers import PEERS, VIEWS, Labels, Scores, agree
from benchmarks.harness import Timing, measure, read_limit, versions
from benchmarks.workloads import click_scores, labels
from streammetrics import ExactAUC, HistogramAUC

LARGE, SMALL = 10_000_000, 1_000_000


@dataclass(frozen=True, slots=True)
class Workload:
    """Rows, scikit-learn's answers, and the time of each call; here a call counts as a row."""

    truth: Labels
    scores: Scores
    answers: dict[str, Any]
    times: dict[str, Timing]
    read: Timing


def workload(rows: int) -> Workload:
    """Clicks, and scikit-learn on them."""
    truth, scores = labels(rows), click_scores(rows)
    answers = {name: peer(truth, scores) for name, peer in PEERS.items()}
    times = {name: measure(name, 1, lambda p=p: p(truth, scores)) for name, p in PEERS.items()}  # type: ignore[misc]
    return Workload(truth, scores, answers, times, read_limit(1, [truth, scores]))


def report(title: str, state: HistogramAUC | ExactAUC, work: Workload) -> str:
    """A line for each view of the state of these rows."""
    state.update(work.truth, work.scores)
    curve = state.compute()
    curve.roc()  # the points are counted now
    for name, peer_answer in work.answers.items():
        agree(curve, name, peer_answer)
    curve = state.compute()
    curve.roc()

    def points() -> None:
        state.compute().roc()

    # A copy has the points, but no cached values of views.
    jobs = [
        measure("compute and auc", 1, lambda: state.compute().auc),
        measure("compute, the points, and roc", 1, points),
        *(measure(name, 1, lambda view=view: view(copy(curve))) for name, view in VIEWS.items()),  # type: ignore[misc]
    ]
    lines = [
        f"{title}, {len(work.truth):,} rows, {len(curve.scores):,} points",
        versions(),
        "",
        f"{'µs':<30}{'median':>12}{'range':>24}{'x read':>9}{'scikit-learn':>14}{'x ours':>11}",
        _line(work.read, work.read),
        *(_line(t, work.read, work.times.get(t.name)) for t in jobs),
    ]
    return "\n".join(lines)


def _line(t: Timing, read: Timing, peer: Timing | None = None) -> str:
    spread = f"{t.least / 1e3:,.0f} to {t.greatest / 1e3:,.0f}"
    line = f"{t.name:<30}{t.median / 1e3:>12,.0f}{spread:>24}{t.median / read.median:>9.2f}"
    if peer:
        line += f"{peer.median / 1e3:>14,.0f}{peer.median / t.median:>11,.0f}"
    return line


def main() -> None:
    print(report("a histogram of the default grid", HistogramAUC(), large := workload(LARGE)))
    for work in (workload(SMALL), large):
        print("\n" + report("an exact bag of float32", ExactAUC(score_type="float32"), work))


if __name__ == "__main__":
    main()
