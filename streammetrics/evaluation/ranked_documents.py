"""The documents of runs as ranked lists, by the rules of an evaluation."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from streammetrics.core import checks
from streammetrics.core.errors import InputError, shown
from streammetrics.core.parts.score_bits import Scores
from streammetrics.evaluation.judged_runs import Judgments, Run, pooled_documents
from streammetrics.evaluation.rules import TREC_EVAL, Rules
from streammetrics.kernels.ranking.graded_lists import Lists
from streammetrics.ranking.id_lists import id_lists


def lists_of_queries(
    truth: Judgments, run: Run, queries: Sequence[Hashable], rules: Rules, name: str
) -> Lists:
    """The list of each query of a run, with the grades of its documents."""
    ranked: list[Iterable[Hashable]] = [run.get(query, ()) for query in queries]
    if rules.judged_only:
        ranked = [
            _judged(documents, truth[query])
            for query, documents in zip(queries, ranked, strict=True)
        ]
    if rules.ties == TREC_EVAL:
        ranked = [
            _trec_eval_order(documents, f"{name}[{shown(query)}]")
            for query, documents in zip(queries, ranked, strict=True)
        ]
    try:
        lists = id_lists(ranked, [truth[query] for query in queries])
    except InputError as error:
        raise query_error(error, queries, name) from None
    pools = [pooled_documents(truth[query]) for query in queries]
    if not any(pools):
        return lists
    flags = [
        document in pool
        for documents, pool in zip(ranked, pools, strict=True)
        for document in documents
    ]
    return replace(lists, pooled=np.array(flags, np.bool_))


def has_equal_scores(run: Run, queries: Sequence[Hashable]) -> bool:
    """Whether two documents of one of these queries have equal scores as float32."""
    for query in queries:
        documents = run.get(query, ())
        if isinstance(documents, Mapping):
            scores = np.sort(_single(checks.scores(list(documents.values()))))
            if bool((scores[1:] == scores[:-1]).any()):
                return True
    return False


def _judged(documents: Iterable[Hashable], truth: Iterable[Hashable]) -> Iterable[Hashable]:
    """The documents of a run that are judged, with their scores."""
    judged = truth if isinstance(truth, Mapping) else set(truth)
    if isinstance(documents, Mapping):
        return {document: documents[document] for document in documents if document in judged}
    return [document for document in documents if document in judged]


def _trec_eval_order(documents: Iterable[Hashable], where: str) -> Iterable[Hashable]:
    """Documents by descending float32 scores, and by descending ids where these are equal."""
    if not isinstance(documents, Mapping):
        return documents
    try:
        scores = _single(checks.scores(list(documents.values()), where))
    except InputError as error:
        document = list(documents)[int(error.rows[0])] if len(error.rows) else None
        raise error.but(where=f"{where}[{shown(document)}]") from None
    order = np.argsort(-scores, kind="stable")
    ids = list(documents)
    ranked = [ids[i] for i in order.tolist()]
    scores = scores[order]
    falls = np.flatnonzero(scores[1:] != scores[:-1]) + 1
    edges = np.concatenate([[0], falls, [len(ranked)]])
    for tie in np.flatnonzero(np.diff(edges) > 1).tolist():
        first, last = edges[tie : tie + 2].tolist()
        ranked[first:last] = sorted(ranked[first:last], key=str, reverse=True)
    return ranked


def _single(scores: Scores) -> NDArray[np.float32]:
    """The scores as float32, infinite where they are beyond it."""
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def query_error(error: InputError, queries: Sequence[Hashable], name: str) -> InputError:
    """The same error, with the query in place of the position of its list."""
    if not len(error.rows):
        return error
    owner = name if error.where.startswith("lists") else "qrels"
    suffix = error.where.partition("]")[2] if error.where.startswith(("lists", "truths")) else ""
    where = f"{owner}[{shown(queries[int(error.rows[0])])}]{suffix}"
    return error.of_rows(where, error.rows)
