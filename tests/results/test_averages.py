from math import nan

import pytest

from streammetrics.ranking.measures import MRR, NDCG
from streammetrics.results.list_results import Averages

RESULT = Averages({"NDCG@10": 0.25, "MRR": nan}, lists_kept=2, lists_empty=1, rows=3)


def test_a_measure_and_its_text_find_the_same_mean() -> None:
    assert RESULT[NDCG @ 10] == RESULT["NDCG@10"] == RESULT[" NDCG @ 10"] == 0.25


def test_a_mapping_of_texts_to_means() -> None:
    assert list(RESULT) == ["NDCG@10", "MRR"]
    assert len(RESULT) == 2
    assert NDCG @ 10 in RESULT
    assert MRR in RESULT
    assert NDCG not in RESULT


def test_a_measure_that_was_not_asked_for_is_named_with_those_that_were() -> None:
    with pytest.raises(KeyError, match=r"MRR@5 is not one of NDCG@10, MRR"):
        RESULT[MRR @ 5]
