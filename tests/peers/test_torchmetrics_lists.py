"""Measures of lists beside torchmetrics, where no scores are tied and all are above 0.

In each of these their definition is another one, and the fault is shown in test_faults_of_torch.py:
scores at or below 0, tied scores, and AP with a cut.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics.ranking import AP, HR, MRR, NDCG, Measure, P, R, RankingMetrics, RPrec
from tests.peers.torch_process import COMPUTE, Peers, Tensor, update
from tests.peers.torch_samples import close, equal

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

List = tuple[NDArray[np.int64], NDArray[np.float32]]
LINEAR = "linear"


def lists() -> list[List]:
    """Grades and scores of lists of 1 to 40 items: sorted either way, all relevant, none."""
    rng = np.random.default_rng(26)
    found = []
    for i in range(60):
        n = int(rng.integers(1, 41))
        grades = np.where(rng.random(n) < rng.choice([0, 0.05, 0.3, 1]), rng.integers(1, 5, n), 0)
        scores = (rng.permutation(n) + 1).astype(np.float32) / 64
        scores = np.sort(scores)[:: 1 - 2 * (i % 2)] if i % 5 == 0 else scores
        found.append((grades.astype(np.int64), scores))
    return found


LISTS = lists()


def ours(measure: Measure, empty: str, *, grades: bool) -> float:
    metric = RankingMetrics([measure], empty=empty)
    labels = np.concatenate([one for one, _ in LISTS])
    metric.update(
        labels if grades else np.minimum(labels, 1),
        np.concatenate([scores for _, scores in LISTS]),
        offsets=np.cumsum([0, *(len(scores) for _, scores in LISTS)]),
    )
    return float(metric.compute()[measure])


def theirs(peers: Peers, name: str, empty: str, cut: int | None, *, grades: bool) -> float:
    """Three updates, each of whole lists, as their `indexes` say."""
    steps = []
    for part in np.array_split(np.arange(len(LISTS)), 3):
        labels = np.concatenate([LISTS[i][0] for i in part])
        steps.append(
            update(
                Tensor(np.concatenate([LISTS[i][1] for i in part])),
                Tensor(labels if grades else np.minimum(labels, 1), "int64"),
                indexes=Tensor(np.repeat(part, [len(LISTS[i][0]) for i in part]), "int64"),
            )
        )
    settings: dict[str, object] = {"empty_target_action": {"zero": "neg"}.get(empty, empty)}
    settings |= {} if cut is None else {"top_k": cut}
    found = peers.ask(f"torchmetrics.retrieval.{name}", settings, *steps, COMPUTE)[-1]
    return float(found)


MEASURES: dict[str, Measure] = {
    "RetrievalMRR": MRR,
    "RetrievalHitRate": HR,
    "RetrievalPrecision": P,
    "RetrievalRecall": R,
}


@pytest.mark.parametrize("empty", ["zero", "skip"])
@pytest.mark.parametrize("cut", [1, 3, 10])
@pytest.mark.parametrize("name", MEASURES)
def test_measures_of_relevant_items(torch_peers: Peers, name: str, cut: int, empty: str) -> None:
    found = theirs(torch_peers, name, empty, cut, grades=False)
    assert close(ours(MEASURES[name] @ cut, empty, grades=False), found)


@pytest.mark.parametrize("empty", ["zero", "skip"])
def test_measures_without_a_cut(torch_peers: Peers, empty: str) -> None:
    whole = {"RetrievalMRR": MRR, "RetrievalMAP": AP, "RetrievalRPrecision": RPrec}
    for name, measure in whole.items():
        found = theirs(torch_peers, name, empty, None, grades=False)
        assert close(ours(measure, empty, grades=False), found), name


@pytest.mark.parametrize("empty", ["zero", "skip"])
@pytest.mark.parametrize("cut", [None, 1, 3, 10])
def test_ndcg_of_grades_with_linear_gain(torch_peers: Peers, cut: int | None, empty: str) -> None:
    found = theirs(torch_peers, "RetrievalNormalizedDCG", empty, cut, grades=True)
    measure = NDCG(gain=LINEAR) if cut is None else NDCG(gain=LINEAR) @ cut
    assert close(ours(measure, empty, grades=True), found)


def test_ndcg_shares_the_places_of_tied_items_there_and_here(torch_peers: Peers) -> None:
    # The one measure of theirs in which tied scores are no matter of the order of rows.
    grades, scores = [0, 3, 1, 0, 2, 0], [0.5, 0.5, 0.25, 0.5, 0.25, 0.125]
    asked = update(
        Tensor(scores), Tensor(grades, "int64"), indexes=Tensor([0] * len(grades), "int64")
    )
    for cut in (1, 2, 4, 6):
        found = torch_peers.ask(
            "torchmetrics.retrieval.RetrievalNormalizedDCG", {"top_k": cut}, asked, COMPUTE
        )[-1]
        metric = RankingMetrics([NDCG(gain=LINEAR) @ cut])
        metric.update([grades], [scores])
        assert close(metric.compute()[NDCG(gain=LINEAR) @ cut], found)


def test_one_class_in_each_row_is_a_list_with_one_relevant_item(torch_peers: Peers) -> None:
    rng = np.random.default_rng(27)
    scores = rng.permuted(np.arange(12) / 16, axis=0).astype(np.float32)
    scores = np.stack([rng.permutation(scores) for _ in range(40)])
    truth = rng.integers(0, 12, 40)
    flags = (truth[:, None] == np.arange(12)).astype(np.int64)
    for name, measure in (("HitRate", HR @ 3), ("ReciprocalRank", MRR @ 3)):
        found = torch_peers.ask(
            f"torcheval.metrics.{name}",
            {"k": 3},
            update(Tensor(scores[:11]), Tensor(truth[:11], "int64")),
            update(Tensor(scores[11:]), Tensor(truth[11:], "int64")),
            COMPUTE,
        )[-1]
        metric = RankingMetrics([measure])
        metric.update(flags, scores)
        assert close(metric.compute()[measure], float(np.mean(found)))
    found = torch_peers.ask(
        "torcheval.metrics.RetrievalPrecision",
        {"k": 3},
        update(Tensor(scores[0]), Tensor(flags[0])),
        COMPUTE,
    )[-1]
    metric = RankingMetrics([P @ 3])
    metric.update(flags[:1], scores[:1])
    assert equal(metric.compute()[P @ 3], np.ravel(found)[0])
