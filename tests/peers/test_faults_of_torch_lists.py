"""Mistakes of torchmetrics with lists, by name: each is observed, and none is made here."""

from __future__ import annotations

import pytest

from streammetrics.ranking import AP, HR, MRR, NDCG, Measure, P, R, RankingMetrics
from tests.peers.torch_process import COMPUTE, Peers, Tensor, update
from tests.peers.torch_samples import close

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]


def theirs(
    peers: Peers, name: str, labels: list[int], scores: list[float], cut: int | None = None
) -> float:
    one = update(
        Tensor(scores), Tensor(labels, "int64"), indexes=Tensor([0] * len(labels), "int64")
    )
    settings = {} if cut is None else {"top_k": cut}
    return float(peers.ask(f"torchmetrics.retrieval.Retrieval{name}", settings, one, COMPUTE)[-1])


def ours(measure: Measure, labels: list[int], scores: list[float]) -> float:
    metric = RankingMetrics([measure])
    metric.update([labels], [scores])
    return float(metric.compute()[measure])


@pytest.mark.parametrize(
    ("name", "measure", "cut", "wrong", "right"),
    [
        ("MAP", AP, None, 1.0, (1 + 2 / 3 + 3 / 5) / 3),
        ("Recall", R @ 5, 5, 1 / 3, 1.0),
        ("Precision", P @ 5, 5, 1 / 5, 3 / 5),
    ],
)
def test_relevant_items_with_scores_at_or_below_0_count(
    torch_peers: Peers, name: str, measure: Measure, cut: int | None, wrong: float, right: float
) -> None:
    labels, scores = [1, 0, 1, 0, 1], [0.5, 0.25, 0.0, -0.25, -0.5]
    assert close(theirs(torch_peers, name, labels, scores, cut), wrong)
    assert close(ours(measure, labels, scores), right)
    # A constant that is added to all scores changes it there.
    moved = [score + 2 for score in scores]
    assert close(theirs(torch_peers, name, labels, moved, cut), right)
    assert ours(measure, labels, moved) == ours(measure, labels, scores)


def test_measures_of_one_list_agree_on_what_was_found(torch_peers: Peers) -> None:
    # The relevant item is first, with a score of 0: found, says one, and not found, say two.
    labels, scores = [1, 0], [0.0, -1.0]
    found = [theirs(torch_peers, name, labels, scores, 1) for name in ("HitRate", "Precision")]
    assert [*found, theirs(torch_peers, "MRR", labels, scores)] == [1.0, 0.0, 0.0]
    assert [ours(m, labels, scores) for m in (HR @ 1, P @ 1, MRR)] == [1.0, 1.0, 1.0]


def test_the_order_of_tied_rows_does_not_show(torch_peers: Peers) -> None:
    # Of a constant scorer: first, or last, as the rows came. NDCG alone shares the places.
    for name, measure, cut in (("MRR", MRR, None), ("MAP", AP, None), ("HitRate", HR @ 10, 10)):
        found = [
            theirs(torch_peers, name, labels, [0.5] * 20, cut)
            for labels in ([1, *[0] * 19], [*[0] * 19, 1])
        ]
        assert found[0] != found[1], name
        mine = {ours(measure, ls, [0.5] * 20) for ls in ([1, *[0] * 19], [*[0] * 19, 1])}
        assert len(mine) == 1
    assert ours(HR @ 10, [1, *[0] * 19], [0.5] * 20) == 1 / 2
    found = theirs(torch_peers, "NormalizedDCG", [1, *[0] * 19], [0.5] * 20, 10)
    assert close(found, ours(NDCG @ 10, [1, *[0] * 19], [0.5] * 20))


def test_finding_one_more_relevant_item_never_lowers_ap_with_a_cut(torch_peers: Peers) -> None:
    # torchmetrics divides by the hits among the first k.
    scores = [1 - i / 16 for i in range(11)]
    missed, found = [1, *[0] * 9, 1], [1, *[0] * 8, 1, 0]
    values = [theirs(torch_peers, "MAP", labels, scores, 10) for labels in (missed, found)]
    assert values[0] == 1.0 and close(values[1], 0.6)
    assert [ours(AP @ 10, labels, scores) for labels in (missed, found)] == [0.5, 0.6]
