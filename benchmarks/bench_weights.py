"""The cost of weights: rows without them, and with integers or tenths, by metric and batch size.

Each repeat starts from an empty state, takes all batches, which are cut beforehand, and ends with
a figure; all batch sizes and all types of weights must give the same one. The peer is
scikit-learn with sample_weight, on all rows at once, and must agree. For GAUC it computes the area
of each user in a loop, and numpy sums the weights. For binary counts it computes only the table.
`python -m benchmarks.bench_weights`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss, roc_auc_score

from benchmarks.harness import Timing, measure, read_limit, versions
from benchmarks.workloads import click_scores, generator, labels, users
from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Bounded,
    Calibration,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
)

ROWS = 1_000_000
SIZES = (1_000_000, 10_000, 1_000, 100)
USERS = 50_000
LOOPED = 2_000  # users for the peer of GAUC, a slow loop
THRESHOLD = 0.01

Array = NDArray[np.generic]
Weights = NDArray[np.int64] | NDArray[np.floating] | None


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of equal length; units: the weights, in units of 1 or of 1/10."""

    truth: NDArray[np.uint8]
    scores: NDArray[np.float32]
    ids: NDArray[np.int64]
    units: NDArray[np.int64]

    def kinds(self) -> dict[str, Weights]:
        """The weights of each kind: none, the units themselves, and the units as tenths."""
        tenths = self.units / 10
        return {
            "without weights": None,
            "integers": self.units,
            "tenths, float64": tenths,
            "tenths, float32": tenths.astype(np.float32),
        }

    def select(self, users: NDArray[np.int64]) -> Rows:
        """The rows of these users."""
        indices = np.flatnonzero(np.isin(self.ids, users))
        return Rows(
            self.truth[indices], self.scores[indices], self.ids[indices], self.units[indices]
        )


@dataclass(frozen=True, slots=True)
class Job:
    """A metric by its weight unit, the figure to read, and its peer."""

    empty: Callable[[str], Accumulator]
    figure: Callable[[Any], float | Bounded]
    peer: Callable[[Rows, Weights], float]
    grouped: bool = False

    def feed(self, unit: str, batches: list[tuple[Array, Array, dict[str, Array]]]) -> Any:
        """The figure after all batches."""
        state = self.empty(unit)
        for truth, scores, columns in batches:
            state.update(truth, scores, **columns)
        return self.figure(state.compute())

    def cut(
        self, rows: Rows, weights: Weights, size: int
    ) -> list[tuple[Array, Array, dict[str, Array]]]:
        """The rows in batches."""
        columns: dict[str, Array] = {"groups": rows.ids} if self.grouped else {}
        if weights is not None:
            columns["weights"] = weights
        cuts = [slice(i, i + size) for i in range(0, len(rows.truth), size)]
        return [
            (rows.truth[span], rows.scores[span], {name: c[span] for name, c in columns.items()})
            for span in cuts
        ]


def _recall(rows: Rows, weights: Weights) -> float:
    above = rows.scores >= np.float64(THRESHOLD)  # float64, because float32 would round it
    table = confusion_matrix(rows.truth, above, sample_weight=weights)
    return float(table[1, 1] / table[1].sum())


def _area(rows: Rows, weights: Weights) -> float:
    return float(roc_auc_score(rows.truth, rows.scores, sample_weight=weights))


def _losses(rows: Rows, weights: Weights) -> float:
    """Log loss and Brier score, two of the nine figures of Calibration."""
    wide = rows.scores.astype(np.float64)  # with float32 it would clip by float32's precision
    brier_score_loss(rows.truth, wide, sample_weight=weights)
    return float(log_loss(rows.truth, wide, sample_weight=weights))


def _areas_of_users(rows: Rows, weights: Weights) -> float:
    order = np.argsort(rows.ids, kind="stable")
    cuts = np.flatnonzero(np.diff(rows.ids[order])) + 1
    total_count = np.ones(len(order)) if weights is None else weights.astype(np.float64)
    columns = [np.split(column[order], cuts) for column in (rows.truth, rows.scores, total_count)]
    total = area = 0.0
    for truth, scores, user_weights in zip(*columns, strict=True):
        if 0 < truth.sum() < len(truth):
            total += user_weights.sum()
            area += user_weights.sum() * float(
                roc_auc_score(truth, scores, sample_weight=user_weights)
            )
    return area / total


JOBS = {
    "BinaryConfusion": Job(
        lambda unit: BinaryConfusion(THRESHOLD, weight_unit=unit), lambda r: r.recall, _recall
    ),
    "HistogramAUC": Job(lambda unit: HistogramAUC(weight_unit=unit), lambda r: r.auc, _area),
    "ExactAUC": Job(
        lambda unit: ExactAUC(score_type="float32", weight_unit=unit), lambda r: r.auc, _area
    ),
    "GroupedAUC": Job(
        lambda unit: GroupedAUC(weight_unit=unit), lambda r: r.gauc, _areas_of_users, grouped=True
    ),
    "Calibration": Job(lambda unit: Calibration(weight_unit=unit), lambda r: r.log_loss, _losses),
}


def lines(name: str, rows: Rows, few_rows: Rows) -> list[str]:
    """A line for each kind of weights. few_rows: those of a peer that is too slow for all."""
    job, texts, before = JOBS[name], [name], dict[int, Timing]()
    figures: dict[str, set[object]] = {}
    peer_rows = few_rows if job.grouped else rows
    for kind, weights in rows.kinds().items():
        unit = "1/10" if kind.startswith("tenths") else "1"
        line = f"  {kind:<18}"
        for size in SIZES:
            work = job.cut(rows, weights, size)
            figures.setdefault("weights" if kind != "without weights" else kind, set()).add(
                job.feed(unit, work)
            )
            time = measure(kind, len(rows.truth), lambda w=work, u=unit: job.feed(u, w))  # type: ignore[misc]
            before.setdefault(size, time)
            line += f"{time.median:>9.1f}{time.median / before[size].median:>6.1f}"
        weights = peer_rows.kinds()[kind]
        _agree(
            name, job.feed(unit, job.cut(peer_rows, weights, ROWS)), job.peer(peer_rows, weights)
        )
        peer = measure("peer", len(peer_rows.truth), lambda w=weights: job.peer(peer_rows, w))  # type: ignore[misc]
        texts.append(line + f"{peer.median:>11,.0f}")
    # With a unit of a tenth every figure equals that of the same integers.
    assert all(len(same) == 1 for same in figures.values()), (name, figures)
    return texts


def _agree(name: str, value: float | Bounded, peer_value: float) -> None:
    if isinstance(value, Bounded):
        assert value.low - 1e-6 <= peer_value <= value.high + 1e-6, (name, value, peer_value)
    else:
        # scikit-learn sums float32 weights in float32.
        assert math.isclose(value, peer_value, rel_tol=1e-5), (name, value, peer_value)


def main() -> None:
    units = generator(40).integers(1, 100, ROWS)
    rows = Rows(labels(ROWS), click_scores(ROWS), users(ROWS, USERS), units)
    user_ids = np.unique(rows.ids)
    few_rows = rows.select(generator(41).choice(user_ids, LOOPED, replace=False))
    print(f"rows with weights, ns a row, and x: relative to no weights; {versions()}\n")
    print(f"{'batches of':<20}" + "".join(f"{n:>9,}{'x':>6}" for n in SIZES) + f"{'peer':>11}")
    tenths = rows.kinds()["tenths, float64"]
    assert tenths is not None
    for name, arrays in (
        ("read limit", (rows.truth, rows.scores)),
        ("with weights", (rows.truth, rows.scores, tenths)),
    ):
        print(f"{name:<20}{read_limit(ROWS, arrays).median:>9.2f}")
    for name in JOBS:
        print("\n".join(lines(name, rows, few_rows)))


if __name__ == "__main__":
    main()
