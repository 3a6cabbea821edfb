"""The HTTP interface as OpenAPI 3.1: each path, what it takes, and the schema of its answer."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Final

from consumers.results.json_text import Json, dumps
from consumers.server.schemas import SCHEMAS, Schema, ref

PARAMETERS: Final = {
    "window": "total (default), all, latest, or START/END in ISO UTC: whole windows, merged",
    "by": "one grouping of the store, such as variant,phase; empty is that of all rows",
    "where": "NAME=VALUE, only slices that say so; given again: and",
    "metric": "the name of a metric",
    "generation": "results of older settings; without it the newest",
    "views": "all (default), or headline: only what a metric is known by",
    "view": "a view of the metric; without it what it is known by",
    "kind": "what to draw, as /api/store lists; without it the first",
    "theme": "light (default) or dark",
}
QUERY: Final = ("window", "by", "where", "metric", "generation")
OF_JSON: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {  # path: what, schema, parameters
    "/api/results": ("what `results --json` prints, to the byte", "Results", (*QUERY, "views")),
    "/api/status": ("what `status --json` prints, to the byte", "Status", ("generation",)),
    "/api/store": ("what may be asked", "Store", ("generation",)),
    "/api/history": (
        "a view of a metric by window, and its effect look by look", "History",
        ("metric", "view", "by", "where", "generation"),
    ),
    "/api/experiment": ("what to do now, and what may be concluded", "Experiment", ("generation",)),
    "/api/figure": ("a figure with its data", "Figure", (*QUERY, "kind", "view", "theme")),
    "/api/health": ("how far and how well the log is read", "Health", ()),
}  # fmt: skip
OTHERS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {  # path: what, type, parameters
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


@cache
def openapi_json() -> bytes:
    """The bytes of `GET /openapi.json`."""
    paths: dict[str, Json] = {}
    for path, (what, schema, parameters) in OF_JSON.items():
        paths[path] = _get(path, what, "application/json", ref(schema), parameters)
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
                "schemas": SCHEMAS,
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


def _get(path: str, what: str, kind: str, schema: Schema, parameters: tuple[str, ...]) -> Json:
    places = [_parameter(path, name) for name in parameters]
    if "{name}" in path:
        places.append({"name": "name", "in": "path", "required": True, "schema": _TEXT})
    answers: dict[str, Json] = {"200": _answer(what, kind, schema)}
    for status, why in _ERRORS.items():
        answers[status] = _answer(why, "application/json", ref("Error"))
    security: list[Json] = [{}] if path in OPEN else [{}, {"token": []}]
    return {
        "get": {
            "summary": what,
            "parameters": places,
            "responses": answers,
            "security": security,
        }
    }


def _parameter(path: str, name: str) -> Json:
    again = name == "where"
    return {
        "name": name,
        "in": "query",
        "description": PARAMETERS[name],
        "required": name in REQUIRED.get(path, ()),
        "schema": {"type": "array", "items": _TEXT} if again else _TEXT,
    }


def _answer(what: str, kind: str, schema: Schema) -> Json:
    return {"description": what, "content": {kind: {"schema": schema}}}


_TEXT: Final[Schema] = {"type": "string"}
_ERRORS: Final = {
    "400": "a question that has no answer",
    "401": "the token is missing",
    "503": "the store does not answer",
}
