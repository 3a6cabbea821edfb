"""Parameters of an address, read strictly: unknown ones and repeated ones are refused."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import QueryParams

from consumers.results.query import Query, QueryError, parse_generation, parse_query

PARAMETERS: Final = ("window", "by", "where", "metric", "generation")  # flags of `results`
REPEATED: Final = ("where",)


def query_of(parameters: QueryParams, *more: str) -> Query:
    """The query that an address asks; `more`: other parameters that it may have."""
    refuse_others(parameters, (*PARAMETERS, *more))
    return parse_query(
        parameters.get("window", "total"),
        parameters.get("by"),
        parameters.getlist("where"),
        parameters.get("metric"),
        parameters.get("generation"),
    )


def generation_of(parameters: QueryParams) -> int | None:
    """The generation, where an address may name nothing else."""
    refuse_others(parameters, ("generation",))
    return parse_generation(parameters.get("generation"))


def metric_of(query: Query) -> str:
    """The metric, where an answer is about one."""
    if query.metric is None:
        raise QueryError(
            expected="a metric", came="none", where="metric", todo="name one, as /api/store does"
        )
    return query.metric


def choice(parameters: QueryParams, name: str, known: tuple[str, ...]) -> str:
    """One of these words; the first where there is none."""
    found = parameters.get(name, known[0])
    if found not in known:
        raise QueryError(
            expected=" or ".join(known), came=repr(found[:80]), where=name, todo="choose one"
        )
    return found


def refuse_others(parameters: QueryParams, known: tuple[str, ...]) -> None:
    """Refuse parameters that an address may not have, and those that are there twice."""
    for name in parameters:
        if name not in known:
            raise QueryError(
                expected=" or ".join(known) or "no parameter",
                came=repr(name[:80]),
                where="the address",
                todo="correct the name or leave it out",
            )
        count = len(parameters.getlist(name))
        if count > 1 and name not in REPEATED:
            raise QueryError(
                expected="one value",
                came=f"{count}",
                where=name,
                todo="leave out the others; only `where` may be given again",
            )
