"""The HTTP interface as OpenAPI 3.1: each path, its parameters, and the schema of its answer.

The schemas are derived from the classes of `answers`. Requests are checked by the same tables.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Final, cast

from msgspec.json import schema_components

from streammetrics_consumers.query import answers
from streammetrics_consumers.query.answers import Json, dumps
from streammetrics_consumers.query.catalogue import Store
from streammetrics_consumers.query.history import History
from streammetrics_consumers.query.status import Status

Schema = dict[str, Json]

QUERY: Final = ("window", "by", "where", "metric", "generation")  # flags of `results`
PARAMETERS: Final = {
    "window": "total (default), all, latest, or START/END in ISO UTC: whole windows, merged",
    "by": "one grouping of the store, such as variant,phase; empty is that of all rows",
    "where": "NAME=VALUE, only slices that say so; given again: and",
    "metric": "the name of a metric",
    "generation": "results of older settings; without it the newest",
    "views": "all (default), or headline: only what a metric is known by",
    "texts": "none (default), or tables: each number also as tables show it",
    "view": "a view of the metric; without it what it is known by",
    "kind": "what to draw, as /api/store lists; without it the first",
    "theme": "light (default) or dark",
}
OF_JSON: Final[dict[str, tuple[str, object, tuple[str, ...]]]] = {  # summary, answer, parameters
    "/api/results": (
        "what `results --json` prints, to the byte", answers.Results,
        (*QUERY, "views", "texts"),
    ),
    "/api/status": (
        "what `status --json` prints, to the byte", Status, ("generation",),
    ),
    "/api/store": ("what may be asked", Store, ("generation",)),
    "/api/history": (
        "a view of a metric by window, and its effect look by look", History,
        ("metric", "view", "by", "where", "generation"),
    ),
    "/api/experiment": (
        "what to do now, and what may be concluded", answers.Experiment,
        ("generation", "texts"),
    ),
    "/api/figure": ("a figure with its data", answers.Figure, (*QUERY, "kind", "view", "theme")),
    "/api/health": ("how far and how well the log is read", answers.Health, ()),
}  # fmt: skip
OTHERS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {  # path: summary, type, parameters
    "/": ("the page; its own script reads the address", "text/html", ()),
    "/assets/{name}": ("a file of the page", "application/octet-stream", ()),
    "/api/events": ("`moved`, `health` and `away`, as they happen", "text/event-stream", ()),
    "/openapi.json": ("this", "application/json", ()),
    "/results.txt": ("what `results` prints", "text/plain", QUERY),
    "/healthz": ("200 while the workers live, else 503", "text/plain", ()),
    "/readyz": ("200 once they read and the store answers, else 503", "text/plain", ()),
    "/metrics": ("counts and times, as Prometheus reads them", "text/plain", ()),
}
OPEN: Final = ("/healthz", "/readyz")
REQUIRED: Final = {"/api/history": ("metric",), "/api/figure": ("metric",)}
CHOICES: Final = {  # of a parameter, the default first
    "views": ("all", "headline"),
    "texts": ("none", "tables"),
    "theme": ("light", "dark"),
}


def parameters_of(path: str) -> tuple[str, ...]:
    """The parameters that an address may have."""
    _, _, known = OF_JSON.get(path) or OTHERS[path]
    return known


@cache
def openapi_json() -> bytes:
    """The bytes of `GET /openapi.json`."""
    paths: dict[str, Json] = {}
    schemas, components = _schemas()
    for (path, (what, _, parameters)), schema in zip(OF_JSON.items(), schemas, strict=True):
        paths[path] = _get(path, what, "application/json", schema, parameters)
    for path, (what, kind, parameters) in OTHERS.items():
        paths[path] = _get(path, what, kind, {"type": "string"}, parameters)
    return dumps(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "streammetrics",
                "version": version("streammetrics"),
                "description": "Read-only: GET and HEAD. Times are milliseconds since 1970, UTC.",
            },
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {
                    "token": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "where the server has one; in a browser open /?token=TOKEN",
                    }
                },
            },
        }
    )


def _schemas() -> tuple[list[Schema], Schema]:
    """The schema of each answer in the order of OF_JSON, and the schemas they refer to by name."""
    types = [answer for _, answer, _ in OF_JSON.values()]
    found, components = schema_components([*types, answers.Error], ref_template=f"{_REF}{{name}}")
    del components["Tables"], components["Results"]["properties"]["tables"]  # not in the JSON
    return cast("list[Schema]", list(found[:-1])), cast("Schema", components)


def _get(path: str, what: str, kind: str, schema: Schema, parameters: tuple[str, ...]) -> Json:
    taken = [_parameter(path, name) for name in parameters]
    if "{name}" in path:
        taken.append({"name": "name", "in": "path", "required": True, "schema": _TEXT})
    answers: dict[str, Json] = {"200": _answer(what, kind, schema)}
    for status, why in _ERRORS.items():
        answers[status] = _answer(why, "application/json", _ERROR)
    security: list[Json] = [{}] if path in OPEN else [{}, {"token": []}]
    return {
        "get": {
            "summary": what,
            "parameters": taken,
            "responses": answers,
            "security": security,
        }
    }


def _parameter(path: str, name: str) -> Json:
    return {
        "name": name,
        "in": "query",
        "description": PARAMETERS[name],
        "required": name in REQUIRED.get(path, ()),
        "schema": _PRECISE.get(name, _TEXT),
    }


def _answer(what: str, kind: str, schema: Schema) -> Json:
    return {"description": what, "content": {kind: {"schema": schema}}}


_TEXT: Final[Schema] = {"type": "string"}
_REF: Final = "#/components/schemas/"
_ERROR: Final[Schema] = {"$ref": f"{_REF}Error"}
_PRECISE: Final[dict[str, Schema]] = {  # parameters that are not plain strings
    "where": {"type": "array", "items": _TEXT},
    "generation": {"type": "integer", "minimum": 1},
    **{name: {"enum": words} for name, words in CHOICES.items()},
}
_ERRORS: Final = {
    "400": "a question that has no answer",
    "401": "the token is missing",
    "503": "the store does not answer",
}
