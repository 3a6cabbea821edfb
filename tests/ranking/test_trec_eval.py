"""What trec_eval itself printed for its own test collection, to four decimals."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from streammetrics.ranking import (
    AP,
    HR,
    MRR,
    NDCG,
    RBP,
    Bpref,
    Measure,
    P,
    R,
    RankingMetrics,
    RPrec,
)
from tests.real_lists import trec_lists

WHOLE: dict[str, Measure] = {
    "map": AP,
    "recip_rank": MRR,
    "Rprec": RPrec,
    "Rprec_mult_1.00": RPrec,
    "bpref": Bpref,
    "ndcg": NDCG(gain="linear"),
    "set_recall": R,
    "rbp": RBP(p=0.9),
}
AT_K: dict[str, Measure] = {
    "map_cut": AP,
    "P": P,
    "recall": R,
    "success": HR,
    "ndcg_cut": NDCG(gain="linear"),
}
# Names that trec_eval prints and no measure has, as regular expressions.
NOT_OURS = {
    r"num_.*": "counts",
    r"unj_\d+": "shares of items that nobody judged",
    r"set_(P|F|map|relative_P)|utility.*": "of the set of retrieved items, without ranks",
    r"gm_.*": "geometric means, which are no sums over lists",
    r"iprec_at_recall_.*|11pt_avg.*": "precision interpolated at levels of recall",
    r"Rprec_mult_(?!1\.00).*|relative_P_\d+": "precision at other ranks that depend on R",
    r"infAP|binG|G|Rndcg|ndcg_rel": "measures of other papers",
    r"ndcg_1=.*": "gains of one's own",
    r"rbp_resid": "what the items that nobody judged could add",
}


def measure_of(name: str) -> Measure | None:
    family, _, cut = name.rpartition("_")
    if family in AT_K and cut.isdigit():
        return AT_K[family] @ int(cut)
    return WHOLE.get(name)


def official(data: Path) -> list[tuple[str, Mapping[str, Mapping[str, float]]]]:
    found = json.loads((data / "trec3.expected.json").read_text())["trec_eval_official"]
    return [(one["source_file"], one["values"]) for one in found]


@pytest.mark.parametrize("at", range(3))
def test_every_value_that_trec_eval_printed_is_ours_to_its_four_decimals(
    data: Path, at: int
) -> None:
    _, values = official(data)[at]
    measures = {name: m for one in values.values() for name in one if (m := measure_of(name))}
    alone = {}
    for query, add in trec_lists(data, "trec3").items():
        alone[query] = RankingMetrics(set(measures.values()), empty="zero")
        add(alone[query])
    results = {query: metric.compute() for query, metric in alone.items()}
    results["all"] = sum(alone.values()).compute()
    for query, of_query in values.items():
        for name, value in of_query.items():
            if name in measures:
                assert round(results[query][measures[name]], 4) == value, (query, name)


def test_every_name_that_trec_eval_printed_is_a_measure_or_has_a_reason(data: Path) -> None:
    names = {name for _, values in official(data) for one in values.values() for name in one}
    for name in names:
        excused = any(re.fullmatch(pattern, name) for pattern in NOT_OURS)
        assert excused != (measure_of(name) is not None), name
    for pattern in NOT_OURS:
        assert any(re.fullmatch(pattern, name) for name in names), pattern
    assert set(WHOLE) <= names
