"""Measures of whole lists, of judged items, and interpolated precision, with their other names."""

from __future__ import annotations

import pytest

from streammetrics import GroupedScores, InputError, RankingMetrics, SettingsError, evaluate
from streammetrics.ranking import (
    InfAP,
    IPrec,
    Judged,
    Measure,
    NumRel,
    NumRelRet,
    NumRet,
    R,
    SetAP,
    SetF,
    SetP,
    parse_measure,
)
from streammetrics.ranking.id_lists import id_lists
from streammetrics.ranking.list_values import measured
from tests.oracles.measure_table import Truth, differences, ordered_truths
from tests.oracles.ranking import UNJUDGED, AllOrders, small_lists, ties_of
from tests.ranking.test_every_small_list import as_lists, values_of

TRUTHS = ordered_truths()


def test_measures_have_the_names_of_trec_eval_and_of_ir_measures() -> None:
    names: dict[str, Measure] = {
        "set_P": SetP,
        "set_recall": R,
        "SetR": R,
        "set_F": SetF,
        "SetF(beta=0.5)": SetF(beta=0.5),
        "SetF(rel=2,beta=2)": SetF(beta=2.0, rel=2),
        "set_map": SetAP,
        "SetAP(rel=3)": SetAP(rel=3),
        "num_ret": NumRet,
        "num_rel": NumRel,
        "num_rel_ret": NumRelRet,
        "NumRet(rel=2)": NumRelRet(rel=2),
        "Judged@10": Judged @ 10,
        "iprec_at_recall_0.10": IPrec(recall=0.1),
        "iprec_at_recall_1.00": IPrec(recall=1.0),
        "IPrec@.25": IPrec(recall=0.25),
        "IPrec(rel=2)@0": IPrec(rel=2),
        "infAP": InfAP,
        "infAP(rel=2)": InfAP(rel=2),
    }
    for name, measure in names.items():
        assert parse_measure(name) == measure == parse_measure(str(measure))
    result = evaluate({"q": {"a": 1}}, {"q": ["a"]}, list(names)[-5:-2])
    assert result["IPrec@.25"] == result["IPrec(recall=0.25)"] == 1.0


@pytest.mark.parametrize("ties", ["worst", "best"])
@pytest.mark.parametrize("grades", [(0, 1, 2), (UNJUDGED, 0, 1)])
def test_a_measure_of_one_order_is_that_of_the_worst_or_best_order_of_every_small_list(
    ties: str, grades: tuple[int, ...]
) -> None:
    lists = AllOrders(small_lists(3, grades, 5), ())
    values_by_measure = values_of(as_lists(lists), TRUTHS, ties)
    assert differences(values_by_measure, lists, TRUTHS, ties) == []


def is_settled(items: list[tuple[int, int]], truth: Truth) -> bool:
    """Whether no relevant item has the score of another one."""
    rel = getattr(truth.measure, "rel")  # noqa: B009
    return all(len({grade >= rel for grade in tie}) == 1 for tie in ties_of(items))


def test_a_measure_of_one_order_needs_no_rule_where_ties_do_not_matter() -> None:
    lists = [items for items in small_lists(3, (UNJUDGED, 0, 1, 2), 4) if items]
    for truth in TRUTHS:
        settled = AllOrders([items for items in lists if is_settled(items, truth)], ())
        values_by_measure = values_of(as_lists(settled), [truth], "expected")
        assert differences(values_by_measure, settled, [truth], "expected") == []
        open_list = next(items for items in lists if not is_settled(items, truth))
        with pytest.raises(InputError, match="no mean over their orders"):
            values_of(as_lists(AllOrders([open_list], ())), [truth], "expected")


def test_equal_scores_are_refused_with_their_query() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 1.0, "b": 1.0}}
    with pytest.raises(InputError) as raised:
        evaluate(qrels, run, ["map", "IPrec@0.5"])
    assert raised.value.where == "run['q2']" and "ties=" in raised.value.hint
    assert evaluate(qrels, run, "IPrec@0.5", ties="worst")["IPrec@0.5"] == 0.75
    assert evaluate(qrels, run, "IPrec@0.5", like="trec_eval")["IPrec@0.5"] == 0.75
    with pytest.raises(SettingsError, match="no mean over the orders"):
        RankingMetrics(["IPrec@0.5"])
    with pytest.raises(SettingsError, match="no mean over the orders"):
        GroupedScores(["IPrec@0.5"])
    metric = RankingMetrics(["IPrec@0.5"], ties="worst")
    metric.update([[1, 0], [1, 0]], [[2.0, 1.0], [1.0, 1.0]])
    assert metric.compute()["IPrec@0.5"] == 0.75


def test_items_that_a_list_lacks_count_in_recall_alone() -> None:
    lists = id_lists([["a", "b", "x"]], [{"a": 1, "b": 0, "c": 2, "d": 1}])
    measures = [
        SetP,
        R,
        SetAP,
        SetF,
        NumRet,
        NumRelRet,
        NumRel,
        Judged @ 2,
        Judged,
        IPrec(recall=0.5),
    ]
    [(_, _, values)] = measured(lists, measures, "expected")
    numbers = [column.values.item() for column in values]
    assert numbers == [1 / 3, 1 / 3, 1 / 9, 1 / 3, 3.0, 1.0, 3.0, 1.0, 2 / 3, 0.0]


def test_numbers_of_documents_are_means_and_the_result_says_so() -> None:
    qrels = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}}
    run = {"q1": ["a", "x", "y"], "q2": ["c"]}
    result = evaluate(qrels, run, ["num_ret", "num_rel", "num_rel_ret", "ap"])
    assert list(result.values()) == [2.0, 1.5, 1.0, 0.75]
    note = "NumRet, NumRel, NumRelRet: means over queries, of which trec_eval has the sums"
    assert note in repr(result).replace("\n  ", " ")
    assert "sums" not in repr(evaluate(qrels, run, "ap"))


def test_a_list_with_nothing_relevant_has_numbers_only_if_it_counts() -> None:
    labels, scores = [1, 0, 0, 0, 0, 0], [3.0, 2.0, 1.0, 3.0, 2.0, 1.0]
    for empty in ("skip", "zero"):
        metric = RankingMetrics([NumRet, Judged @ 2, SetP], empty=empty)
        metric.update(labels, scores, group_sizes=[3, 3])
        by_row = GroupedScores([NumRet, Judged @ 2, SetP], empty=empty)
        by_row.update(labels, scores, groups=[1, 1, 1, 2, 2, 2])
        of_lists, of_rows = metric.compute(), by_row.compute()
        assert dict(of_lists) == dict(of_rows)
        assert (of_lists["NumRet"], of_lists["Judged@2"]) == (3.0, 1.0)
        assert of_lists["SetP"] == (1 / 3 if empty == "skip" else 1 / 6)
