"""States of former layouts, within other metrics too: what they hold, and how they were written.

    git archive COMMIT | tar x -C TREE
    PYTHONPATH=TREE python tests/golden/former_states.py

COMMIT is 2a497e72, the last with regression/2, calibration/3, ranking-metrics/2,
intra-list-similarity/1, sealed/1, moments/1, off-policy/1, and without cubes in `Mean`. The script
imports nothing of the present source, since it runs with that of the time; its files are beside it,
in `former`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from streammetrics import (
    MRR,
    NDCG,
    Accumulator,
    Calibration,
    GroupedScores,
    IntraListSimilarity,
    Moments,
    OffPolicy,
    Paired,
    Panel,
    PerKey,
    RankingMetrics,
    Regression,
    UserGroups,
    Windows,
)
from streammetrics.classification.mean import Mean
from streammetrics.combine.sealed import Sealing, seal
from streammetrics.core.inputs import Inputs, Real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streammetrics.core.batch import Batch

FOLDER: Final = Path(__file__).parent / "former"
ROWS: Final = 60
Made = Callable[[int], Accumulator]


class AbsoluteError(Mean, schema="golden-absolute-error/1"):
    """A metric of an author, whose base gained a part."""

    inputs = Inputs(labels=Real(), scores=Real())

    def value(self, batch: Batch) -> NDArray[np.generic]:
        """The absolute error."""
        return np.abs(batch.labels - batch.scores)


def _columns(n: int) -> Mapping[str, Any]:
    i = np.arange(n)
    return {
        "labels": (i * 5 % 7 < 3).astype(np.int64),
        "scores": (i * 7 % 16 + 1) / 32,
        "scores_a": (i * 7 % 16 + 1) / 32,
        "scores_b": (i * 11 % 16 + 1) / 32,
        "groups": i * 5 % 24,
        "keys": i % 3,
        "times_ms": i * 300_000,
        "values": i * 5 % 7 * 0.25,
        "weights": 1 + i % 4,
        "logged": (i % 4 + 1) / 8,
        "target": (i * 3 % 5 + 1) / 8,
        "rewards": i * 5 % 7 / 4,
        "predicted_logged": i * 3 % 8 / 8,
        "predicted_target": i * 5 % 8 / 8,
    }


def _maker(empty: Accumulator, *names: str) -> Made:
    def make(n: int) -> Accumulator:
        state, columns = empty.empty(), _columns(n)
        state.update(**{name: columns[name] for name in names})
        return state

    return make


def _of_lists(empty: Accumulator, *names: str) -> Made:
    def make(n: int) -> Accumulator:
        columns = _columns(8 * n)
        batch = {name: columns[name].reshape(n, 8) for name in names}
        if not names:
            batch = {"lists": np.arange(n)[:, None] * 3 % 7 + np.arange(3)}
        state = empty.empty()
        state.update(**batch)
        return state

    return make


def _sealed(empty: Accumulator, *names: str) -> Made:
    def make(n: int) -> Accumulator:
        return seal(_maker(empty, *names)(n), Sealing("user", 1, "hash", "today"))

    return make


_SCORED: Final = ("labels", "scores")
_PANEL: Final = Panel({"errors": Regression(), "fit": Calibration(bins=3)})
_LISTS: Final = [NDCG @ 5, MRR]
FORMER: Final[Mapping[str, Made]] = {
    "regression-alone": _maker(Regression(), *_SCORED),
    "calibration-alone": _maker(Calibration(), *_SCORED),
    "absolute-error": _maker(AbsoluteError(), *_SCORED),
    "absolute-error-per-key": _maker(PerKey(AbsoluteError()), *_SCORED, "keys"),
    "panel-per-key": _maker(PerKey(_PANEL, max_keys=2), *_SCORED, "keys"),
    "panel-in-windows": _maker(Windows(PerKey(_PANEL), size_s=3600), "times_ms", *_SCORED, "keys"),
    "panel-of-users": _maker(UserGroups(_PANEL, buckets=4), *_SCORED, "groups"),
    "paired-regression": _maker(Paired(Regression()), "labels", "scores_a", "scores_b"),
    "ranking-alone": _of_lists(RankingMetrics(_LISTS), *_SCORED),
    "similarity-alone": _of_lists(
        IntraListSimilarity([[i % 3, i % 2, 1] for i in range(9)], similarity="share_equal")
    ),
    "sealed-lists": _sealed(GroupedScores(_LISTS), *_SCORED, "groups"),
    "sealed-regression": _sealed(Regression(), *_SCORED),
}
_POLICY: Final = "logged", "target", "rewards", "predicted_logged", "predicted_target"
# Those whose results have views that former states do not know.
UNKNOWN_VIEWS: Final[Mapping[str, Made]] = {
    "moments-alone": _maker(Moments(), "values"),
    "moments-of-weights": _maker(Moments(), "values", "weights"),
    "moments-of-users": _maker(
        PerKey(UserGroups(Moments(), buckets=4)), "values", "groups", "keys"
    ),
    "off-policy-alone": _maker(OffPolicy(), *_POLICY),
    "off-policy-per-key": _maker(PerKey(OffPolicy()), *_POLICY, "keys"),
}


def main() -> None:
    """Write all of them."""
    for name, make in {**FORMER, **UNKNOWN_VIEWS}.items():
        (FOLDER / f"{name}.state").write_bytes(make(ROWS).to_file_bytes())


if __name__ == "__main__":
    main()
