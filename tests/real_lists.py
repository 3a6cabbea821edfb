"""Ranked lists of real data, and the values that others computed for them."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from streammetrics.ranking import RankingMetrics
from tests.expected import cases_of

Truth = Mapping[str, int]
Add = Callable[[RankingMetrics], None]  # adds one list to a metric

FILES = ("ltr_test", "trec3", "rag24a")


class Case(TypedDict, total=False):
    id: str
    metric: str
    params: dict[str, Any] | None
    value: float
    exact: str
    same_as: str
    per_query: dict[str, float] | None
    value_over_lists_with_a_relevant_item: float
    relevant_total: int
    retrieved_total: int
    lists_without_relevant: int


def expected_cases(data: Path, file: str) -> dict[str, Case]:
    """All cases of a file by their id."""
    cases: list[Case] = cases_of(data, file)
    return {case["id"]: case for case in cases}


def trec(data: Path, name: str) -> tuple[dict[str, list[str]], dict[str, Truth]]:
    """By query: the documents of a run by rank, and the grades of the judged ones."""
    truths: dict[str, dict[str, int]] = defaultdict(dict)
    with (data / f"{name}_qrels.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            truths[row["qid"]][row["docid"]] = max(int(row["rel"]), 0)
    runs: dict[str, dict[int, str]] = defaultdict(dict)
    with (data / f"{name}_run.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            runs[row["qid"]][int(row["rank"])] = row["docid"]
    return {q: [run[rank] for rank in sorted(run)] for q, run in runs.items()}, dict(truths)


def trec_lists(data: Path, name: str) -> dict[str, Add]:
    """A run of TREC against its judgments."""
    runs, truths = trec(data, name)

    def add(query: str) -> Add:
        return lambda metric: metric.update_ranked([runs[query]], [truths[query]])

    return {query: add(query) for query in runs}


def learning_to_rank(data: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of each list of ltr_test."""
    lists: dict[str, list[dict[str, str]]] = defaultdict(list)
    with (data / "ltr_test.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            lists[row["qid"]].append(row)
    return dict(lists)


def scored_lists(data: Path, column: str) -> dict[str, Add]:
    """The lists of ltr_test with the scores of a column."""

    def add(rows: list[dict[str, str]]) -> Add:
        labels = [int(row["rel"]) for row in rows]
        scores = [float(row[column]) for row in rows]
        return lambda metric: metric.update([labels], [scores])

    return {query: add(rows) for query, rows in learning_to_rank(data).items()}


def ordered_lists(data: Path, column: str, order: str) -> dict[str, Add]:
    """The lists of ltr_test ranked by a column, its ties broken by a rule of another tool."""

    def add(rows: list[dict[str, str]]) -> Add:
        if order == "docid_desc":
            rows = sorted(rows, key=lambda row: row["docid"], reverse=True)
        rows = sorted(rows, key=lambda row: -float(row[column]))
        labels = [int(row["rel"]) for row in rows]
        return lambda metric: metric.update([labels])

    return {query: add(rows) for query, rows in learning_to_rank(data).items()}
