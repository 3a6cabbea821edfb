"""The HTTP interface as OpenAPI 3.1: each path, its parameters, and the schema of its answer.

The schemas are derived from the classes of answers, and from the table of their records. Requests
are checked by the same tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, cast, get_args

from msgspec import UnsetType
from msgspec.json import schema_components

from streammetrics import __version__, experiments
from streammetrics_consumers.query import answers
from streammetrics_consumers.query.catalogue import StoreAnswer
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.history import History
from streammetrics_consumers.query.hook_answers import HooksAnswer
from streammetrics_consumers.query.hook_content import HookContent
from streammetrics_consumers.query.json_kinds import SCHEMAS, Figure, Json
from streammetrics_consumers.query.records import RECORDS, RecordJson
from streammetrics_consumers.query.status import Status
from streammetrics_consumers.render.quarantine import RefusedEvents
from streammetrics_consumers.server.health import Health

Schema = dict[str, Json]

QUERY: Final = ("window", "by", "where", "metric", "generation", "experiment")  # flags of `results`
LINES: Final = ("sort", "order", "variant", "find", "view")  # that need `most`
PARAMETERS: Final = {
    "window": "total (default), all, latest, or START/END in ISO UTC: whole windows, merged",
    "by": "one grouping of the store, such as variant,phase; empty for all rows",
    "where": "NAME=VALUE: only slices with this value; if repeated, all must match",
    "metric": "the name of a metric",
    "generation": "the number of an older generation; by default the newest",
    "experiment": "the name of an experiment: its arms instead of the slices; by default none",
    "views": "headline (default): the headline views of a metric, or all",
    "texts": "none (default), or tables: also the text of each number in tables",
    "view": "a view of the metric; by default its first headline view",
    "most": "the greatest number of slices of each metric, of one view; by default all, of `views`",
    "sort": "what slices are sorted by before `most` cuts them: slice (default), the name; rows; or"
    " value",
    "order": "ascending (default) or descending; undefined values are last in both",
    "variant": "the variant by whose value slices are sorted; by default none",
    "find": "only slices whose names contain this text",
    "kind": "a figure of the metric, as /api/store lists them; by default the first",
    "theme": "light (default) or dark",
}
OF_JSON: Final[dict[str, tuple[str, object, tuple[str, ...]]]] = {  # summary, answer, parameters
    "/api/results": (
        "the bytes of `results --json`", answers.ResultsAnswer,
        (*QUERY, "views", "texts", "most", *LINES),
    ),
    "/api/status": (
        "the bytes of `status --json`", Status, ("generation",),
    ),
    "/api/store": (
        "what can be queried: the metrics in the order of the config, with their views, figures and"
        " ranges; the groupings, windows and variants", StoreAnswer, ("generation", "experiment"),
    ),
    "/api/history": (
        "one view of one metric by window, and its effect look by look", History,
        ("metric", "view", "by", "where", "generation", "experiment"),
    ),
    "/api/experiment": (
        "the recommended action, the state of the experiment in one sentence, what it rests on,"
        " and the units of several variants", answers.ExperimentAnswer,
        ("generation", "experiment", "texts"),
    ),
    "/api/experiments": (
        "all experiments: of each its state, the recommended action, and what that rests on",
        answers.ExperimentsAnswer, ("generation", "texts"),
    ),
    "/api/figure": (
        "a Vega-Lite specification with its data", Figure,
        (*QUERY, "kind", "view", "theme"),
    ),
    "/api/hooks": (
        "the events of hooks, of one experiment or all: the newest 200, and how each was sent",
        HooksAnswer, ("generation", "experiment"),
    ),
    "/api/quarantine": (
        "the refused events that are open: how many, by reason, and the position, reason and field"
        " of the newest 50, never their contents", RefusedEvents, ("generation",),
    ),
    "/api/health": ("how far and how well the log is read", Health, ()),
}  # fmt: skip
OTHERS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {  # path: summary, type, parameters
    "/": (
        "the live page; its address has the parameters of `/api/results`, and may be shared",
        "text/html",
        (),
    ),
    "/assets/{name}": ("the files of the page", "application/octet-stream", ()),
    "/api/events": ("server-sent events: `moved`, `health` and `away`", "text/event-stream", ()),
    "/openapi.json": ("this interface as OpenAPI 3.1", "application/json", ()),
    "/results.txt": ("the text of `results`", "text/plain", QUERY),
    "/healthz": (
        "whether the workers are alive: 200, or 503 and the reason",
        "text/plain",
        (),
    ),
    "/readyz": (
        "whether the workers have their partitions, and the store answers, is the one that they"
        " count into, and has not gone back: 200, or 503 and the reason",
        "text/plain",
        (),
    ),
    "/metrics": ("counts and times in the text format of Prometheus", "text/plain", ()),
}
OPEN: Final = ("/healthz", "/readyz")
REQUIRED: Final = {"/api/history": ("metric",), "/api/figure": ("metric",)}
HEADERS: Final = {  # of a hook
    "Streammetrics-Event": "the event",
    "Idempotency-Key": "the key of the event; repetitions have the same",
    "Streammetrics-Timestamp": "when it was sent, in seconds since 1970",
    "Streammetrics-Signature": "sha256= and the HMAC-SHA256 (hex) of the timestamp, a dot and the"
    " body",
}
CHOICES: Final = {  # of a parameter, the default first
    "views": ("headline", "all"),
    "texts": ("none", "tables"),
    "sort": ("slice", "rows", "value"),
    "order": ("ascending", "descending"),
    "theme": ("light", "dark"),
}


def parameters_of(path: str) -> tuple[str, ...]:
    """The parameters that an address may have."""
    _, _, parameters = OF_JSON.get(path) or OTHERS[path]
    return parameters


@cache
def openapi_json() -> bytes:
    """The bytes of `GET /openapi.json`."""
    paths: dict[str, Json] = {}
    schemas, components = _schemas()
    for (path, (summary, _, parameters)), schema in zip(OF_JSON.items(), schemas, strict=True):
        paths[path] = _get(path, summary, "application/json", schema, parameters)
    for path, (summary, kind, parameters) in OTHERS.items():
        paths[path] = _get(path, summary, kind, {"type": "string"}, parameters)
    return dumps(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "streammetrics",
                "version": __version__,
                "description": "Read-only: GET and HEAD. Times are milliseconds since 1970, UTC.",
            },
            "paths": paths,
            "webhooks": {"hook": _webhook()},
            "components": {
                "schemas": components,
                "securitySchemes": {
                    "token": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "if the server has one; in a browser open /?token=TOKEN",
                    }
                },
            },
        }
    )


def _schemas() -> tuple[list[Schema], Schema]:
    """The schema of each answer in the order of OF_JSON, and the schemas they refer to by name:
    those of the classes of answers, without `Answer` at the end, and of the records in them."""
    types = [*(answer for _, answer, _ in OF_JSON.values()), HookContent]
    kinds = [kind for record in RECORDS.values() for kind in map(_kind, record.fields.values())]
    schemas, components = schema_components(
        [*types, answers.Error, *kinds], schema_hook=lambda _: {}, ref_template=f"{SCHEMAS}{{name}}"
    )
    for name in answers.ResultsAnswer.internal:
        del components["ResultsAnswer"]["properties"][name]
    del components["TableLayout"]
    of_kinds = iter(schemas[len(types) + 1 :])
    for record in RECORDS.values():
        components[record.name] = _record_schema(record, of_kinds)
    named_schemas = {name.removesuffix(_ANSWER): schema for name, schema in components.items()}
    whole = _without_suffix([schemas[: len(OF_JSON)], named_schemas])
    return cast("tuple[list[Schema], Schema]", whole)


def _kind(kind: object) -> object:
    """The type of a field of a record, which may be named."""
    return getattr(experiments, kind) if isinstance(kind, str) else kind


def _record_schema(record: RecordJson, of_kinds: Iterator[Schema]) -> Schema:
    """The schema of a record, with those of its fields."""
    names = record.fields
    return {
        "title": record.name,
        "description": record.description.replace("\n", "\n    ").replace("\n    \n", "\n\n"),
        "type": "object",
        "properties": dict(zip(names, of_kinds, strict=False)),
        "required": [name for name, kind in names.items() if UnsetType not in get_args(kind)],
        "additionalProperties": False,
    }


def _without_suffix(schema: object) -> Json:
    """A schema in which classes of answers are named as in the interface."""
    if isinstance(schema, dict):
        return {
            name: str(node).removesuffix(_ANSWER)
            if name in ("title", "$ref") and isinstance(node, str)
            else _without_suffix(node)
            for name, node in schema.items()
        }
    if isinstance(schema, list | tuple):
        return [_without_suffix(node) for node in schema]
    return cast("Json", schema)


def _get(path: str, summary: str, kind: str, schema: Schema, parameters: tuple[str, ...]) -> Json:
    parameter_objects = [_parameter(path, name) for name in parameters]
    if "{name}" in path:
        parameter_objects.append({"name": "name", "in": "path", "required": True, "schema": _TEXT})
    answers: dict[str, Json] = {"200": _answer(summary, kind, schema)}
    for status, why in _ERRORS.items():
        answers[status] = _answer(why, "application/json", _ERROR)
    security: list[Json] = [{}] if path in OPEN else [{}, {"token": []}]
    return {
        "get": {
            "summary": summary,
            "parameters": parameter_objects,
            "responses": answers,
            "security": security,
        }
    }


def _webhook() -> Json:
    """The request of a hook; docs/circuit_breaker.md describes it."""
    headers: list[Json] = [
        {"name": name, "in": "header", "required": True, "schema": _TEXT, "description": meaning}
        for name, meaning in HEADERS.items()
    ]
    body: dict[str, Json] = {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": f"{SCHEMAS}HookContent"}}},
    }
    answers: dict[str, Json] = {
        "2XX": {"description": "the receiver has the event"},
        "default": {"description": "the event is sent again, later, as the same bytes"},
    }
    summary = "an event of an experiment or of the store, sent to the receivers of [hooks]"
    return {
        "post": {
            "summary": summary,
            "parameters": headers,
            "requestBody": body,
            "responses": answers,
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


def _answer(description: str, kind: str, schema: Schema) -> Json:
    return {"description": description, "content": {kind: {"schema": schema}}}


_TEXT: Final[Schema] = {"type": "string"}
_ANSWER: Final = "Answer"  # the end of the name of a class whose name is that of another, too
_ERROR: Final[Schema] = {"$ref": f"{SCHEMAS}Error"}
_PRECISE: Final[dict[str, Schema]] = {  # parameters that are not plain strings
    "where": {"type": "array", "items": _TEXT},
    "generation": {"type": "integer", "minimum": 1},
    "most": {"type": "integer", "minimum": 1},
    **{name: {"enum": words} for name, words in CHOICES.items()},
}
_ERRORS: Final = {
    "400": "an invalid query",
    "401": "the token is missing or wrong",
    "503": "the store, or a state in it, cannot be read",
}
