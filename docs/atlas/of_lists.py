"""Definitions of the atlas for ranked lists."""

from __future__ import annotations

from typing import Final

from docs.atlas.definition import Definition

# Numbers as ids of queries, since gdeval takes no others.
QRELS: Final = {"1": {"a": 3, "b": 0, "c": 2, "d": 1}, "2": {"f": 1, "g": 2, "h": 0}}
RUN: Final = {
    "1": {"a": 0.75, "b": 0.625, "c": 0.5, "d": 0.25},
    "2": {"h": 0.875, "f": 0.5, "g": 0.25},
}


def rows(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> dict[str, object]:
    """Judgments and run, and for libraries of arrays the grades and scores of each list."""
    grades = [[qrels[q].get(d, 0) for d in run[q]] for q in run if q in qrels]
    scores = [[*run[q].values()] for q in run if q in qrels]
    return {"qrels": qrels, "run": run, "grades": grades, "scores": scores}


TWO: Final = rows(QRELS, RUN)
# Of three relevant documents the run has two.
MISSED: Final = rows(
    {"1": {"a": 1, "b": 0, "c": 1, "d": 2}}, {"1": {"a": 0.75, "b": 0.5, "c": 0.25}}
)
# The relevant document ties with another one.
TIED: Final = rows({"1": {"a": 1, "b": 0, "c": 0}}, {"1": {"a": 0.5, "b": 0.5, "c": 0.25}})
# Nothing is relevant to the second query.
NOTHING: Final = rows(
    {"1": {"a": 1, "b": 0}, "2": {"c": 0, "d": 0}},
    {"1": {"b": 0.75, "a": 0.5}, "2": {"c": 0.75, "d": 0.5}},
)
# The run lacks the second query.
LACKING: Final = rows({"1": {"a": 1, "b": 0}, "2": {"c": 1}}, {"1": {"b": 0.75, "a": 0.5}})

LINEAR: Final = "the gain is the grade"
SHOWN: Final = "takes no documents beside the list; give them the lowest scores"
IDS: Final = "the greater document id first"
ORDER: Final = "the order of the rows"
ONE: Final = "counts 1"
NONE: Final = "counts 0"
RETRIEVED: Final = "over the relevant documents of the list, as it takes no others"

DEFINITIONS: Final = (
    Definition(
        "ndcg",
        "NDCG@3 by default",
        "The gain is 2^grade − 1 unless another one is asked for.",
        TWO,
        "mean(NDCG @ 3, qrels, run)",
        {
            "catboost": LINEAR,
            "ir-measures": LINEAR,
            "pytrec_eval-terrier": LINEAR,
            "ranx": LINEAR,
            "scikit-learn": LINEAR,
            "torchmetrics": LINEAR,
            "recommenders": 'relevant or not (`score_type="binary"`)',
            "rectools": (
                "relevant or not, and the ideal list has three relevant items, though a query may "
                "have fewer"
            ),
        },
    ),
    Definition(
        "ndcg_linear",
        "NDCG@3 of linear gain",
        "The gain is the grade.",
        TWO,
        'mean(NDCG(gain="linear") @ 3, qrels, run)',
    ),
    Definition(
        "ndcg_exponential",
        "NDCG@3 of exponential gain",
        "The gain is 2^grade − 1.",
        TWO,
        "mean(NDCG @ 3, qrels, run)",
        {
            "ir-measures": "gdeval, which it calls, prints five decimals",
        },
    ),
    Definition(
        "ndcg_missed",
        "NDCG@3 of linear gain if a relevant document is not retrieved",
        "The ideal list has all judged documents.",
        MISSED,
        'mean(NDCG(gain="linear") @ 3, qrels, run)',
        {
            "scikit-learn": SHOWN,
            "torchmetrics": SHOWN,
        },
    ),
    Definition(
        "ndcg_tied",
        "NDCG@1 of tied scores",
        "The mean over all orders of the tied documents.",
        TIED,
        "mean(NDCG @ 1, qrels, run)",
        {
            "catboost": "the worst order",
            "ir-measures": IDS,
            "pytrec_eval-terrier": IDS,
            "lightgbm": ORDER,
            "xgboost-cpu": ORDER,
            "rectools": "takes ranks, here in the order of the rows",
        },
    ),
    Definition(
        "ndcg_nothing",
        "NDCG@2 if nothing is relevant to a query",
        "The second list has no NDCG, and is left out.",
        NOTHING,
        "mean(NDCG @ 2, qrels, run)",
        {
            "catboost": ONE,
            "lightgbm": ONE,
            "xgboost-cpu": ONE,
            "ir-measures": NONE,
            "pytrec_eval-terrier": NONE,
            "ranx": NONE,
            "scikit-learn": NONE,
            "torchmetrics": NONE,
            "rectools": (
                "left out too, but the ideal list of the first has two relevant items, though it "
                "has one"
            ),
        },
    ),
    Definition(
        "ndcg_lacking",
        "NDCG@2 if the run lacks a query",
        "A query without results counts 0.",
        LACKING,
        "mean(NDCG @ 2, qrels, run)",
        {
            "pytrec_eval-terrier": "left out: the mean is over the queries of the run",
            "ranx": "an error, unless `make_comparable=True`",
            "rectools": (
                "counts 0 too, but the ideal list of the first has two relevant items, though it "
                "has one"
            ),
        },
    ),
    Definition(
        "dcg",
        "DCG@3 of linear gain",
        "Not divided by that of the ideal list.",
        TWO,
        'mean(DCG(gain="linear") @ 3, qrels, run)',
    ),
    Definition(
        "mrr",
        "MRR",
        "1 / (rank of the first relevant document).",
        TWO,
        "mean(MRR, qrels, run)",
        {
            "torcheval": "knows one relevant item a list: here the one of the highest grade",
        },
    ),
    Definition(
        "map",
        "MAP",
        "AP over all relevant documents, of which the run lacks one.",
        MISSED,
        "mean(AP, qrels, run)",
        {
            "catboost": RETRIEVED,
            "lightgbm": RETRIEVED,
            "torchmetrics": RETRIEVED,
            "xgboost-cpu": RETRIEVED,
        },
    ),
    Definition(
        "map_2",
        "MAP@2",
        "The first two documents, over all relevant ones.",
        MISSED,
        "mean(AP @ 2, qrels, run)",
        {
            "catboost": "over at most 2, of relevant documents in the list",
            "lightgbm": "over at most 2, of relevant documents in the list",
            "xgboost-cpu": "over at most 2, of relevant documents in the list",
            "recommenders": "over at most 2",
            "torchmetrics": "over the hits among the first two",
        },
    ),
    Definition(
        "precision_5",
        "P@5 of lists of three and four documents",
        "Hits over 5.",
        TWO,
        "mean(P @ 5, qrels, run)",
        {
            "catboost": "over the length of a shorter list",
            "xgboost-cpu": "over the length of a shorter list",
        },
    ),
    Definition(
        "recall_2",
        "R@2",
        "Hits over all relevant documents.",
        TWO,
        "mean(R @ 2, qrels, run)",
    ),
    Definition(
        "hit_1",
        "HR@1",
        "The share of lists whose first document is relevant.",
        TWO,
        "mean(HR @ 1, qrels, run)",
    ),
    Definition(
        "r_precision",
        "R-precision",
        "Hits among the first R, over R.",
        TWO,
        "mean(RPrec, qrels, run)",
    ),
    Definition(
        "err",
        "ERR@3, grades up to 4",
        "The probability of a stop is (2^grade − 1) / 2^4.",
        TWO,
        "mean(ERR(max_grade=4) @ 3, qrels, run)",
    ),
    Definition(
        "rbp",
        "RBP, p = 0.8",
        "Documents are relevant or not.",
        TWO,
        "mean(RBP(p=0.8), qrels, run)",
        {
            "ranx": "multiplies by the grade",
        },
    ),
    Definition(
        "bpref",
        "bpref",
        "Over judged documents only.",
        TWO,
        "mean(Bpref, qrels, run)",
    ),
)
