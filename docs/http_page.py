"""Write the routes and the answers of `docs/http.md`; `make docs` runs it.

They are made of what the server answers at `/openapi.json`, between marks. With `--check` nothing
is written, and the exit code says whether the page is stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from streammetrics_consumers.server.openapi import openapi_json

from docs.marked_part import MarkedPart

Schema = Mapping[str, Any]  # of JSON Schema
API: Final[Schema] = json.loads(openapi_json())
SCHEMAS: Final[Mapping[str, Schema]] = API["components"]["schemas"]
ANY_NUMBER: Final = "any number"  # also null, "inf" and "-inf": the page says it once
PLAIN: Final = {"string": "text", "integer": "whole number", "boolean": "true or false"}


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines).replace("|  |", "| |")


def schema_link(name: str) -> str:
    """A link to the section of a schema."""
    return f"[{name}](#{name.lower()})"


def kind(schema: Schema) -> str:
    """What may stand in a place, in words."""
    match schema:
        case {"$ref": str(ref)}:
            return schema_link(ref.rpartition("/")[2])
        case {"enum": words}:
            return " ".join(f"`{word}`" for word in words)
        case {"anyOf": choices}:
            if {"enum": ["-inf", "inf"]} in choices:
                return ANY_NUMBER
            return " or ".join(kind(choice) for choice in choices)
        case {"prefixItems": items}:
            return f"[{', '.join(map(kind, items))}]"
        case {"type": "array", "items": item}:
            return f"list of {kind(item)}"
        case {"type": "object", "additionalProperties": value}:
            return f"object: {kind(value)} by name"
        case {"type": str(name)}:
            return PLAIN.get(name, name)
    raise TypeError(f"a schema of another form: {schema}")


def cell(schema: Schema) -> str:
    """What may stand in a place, and what it says."""
    text = schema.get("description", "")
    words = kind(schema)
    return f"{words}: {text}" if text and words != ANY_NUMBER else words


def routes() -> str:
    """The table of routes, and that of their parameters."""
    rows, parameters = [], {}
    for path, methods in API["paths"].items():
        queries = [
            parameter for parameter in methods["get"]["parameters"] if parameter["in"] == "query"
        ]
        parameters.update({parameter["name"]: parameter for parameter in queries})
        content = methods["get"]["responses"]["200"]["content"]
        ((form, answer),) = content.items()
        ref = answer["schema"].get("$ref", "")
        names = " ".join(
            f"`{parameter['name']}`" + " (required)" * parameter["required"]
            for parameter in queries
        )
        gives = schema_link(ref.rpartition("/")[2]) if ref else f"`{form}`"
        rows.append((f"`{path}`", methods["get"]["summary"], gives, names))
    text = table(("route", "answer", "format", "parameters"), rows)
    parameter_rows = [(f"`{name}`", parameters[name]["description"]) for name in sorted(parameters)]
    return f"{text}\n{table(('parameter', 'value'), parameter_rows)}"


def answers() -> str:
    """A section for each object of an answer, with its keys."""
    pieces = []
    for name, schema in SCHEMAS.items():
        text = " ".join(schema.get("description", "").split())
        rows = [(f"`{key}`", cell(member)) for key, member in schema["properties"].items()]
        pieces.append(f"### {name}\n\n{text}\n\n{table(('key of an answer', 'value'), rows)}")
    return "\n".join(pieces)


PAGE: Final = Path(__file__).with_name("http.md")
MARK: Final = "<!-- `make docs` writes {} from /openapi.json, down to the next mark -->\n"
PARTS: Final = (
    MarkedPart(PAGE, MARK.format("the routes"), routes),
    MarkedPart(PAGE, MARK.format("the answers"), answers),
)

if __name__ == "__main__":
    sys.exit(max(part.main() for part in PARTS))
