"""From the values to the page docs/coming_from/atlas.md."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from docs.atlas.definition import Definition
from docs.atlas.definitions import DEFINITIONS, FAMILIES

VALUES: Final = Path(__file__).with_name("values.json")
PAGE: Final = Path(__file__).resolve().parent.parent / "coming_from" / "atlas.md"
DIGITS: Final = 1e-6  # relative: several libraries compute in float32


def stored_values() -> dict[str, Any]:
    """The values that were written last."""
    if not VALUES.exists():
        return {}
    record: dict[str, Any] = json.loads(VALUES.read_text(encoding="utf-8"))
    return record


def plain(value: float) -> float | str:
    """A value in JSON, which knows no nan and no infinity."""
    return value if math.isfinite(value) else str(value)


def agrees(value: float | str, peer_value: float | str) -> bool:
    """Whether two values are equal to six digits; an error agrees with nothing."""
    if isinstance(value, str) or isinstance(peer_value, str):
        return value == peer_value
    return math.isclose(value, peer_value, rel_tol=DIGITS, abs_tol=DIGITS)


def shown(value: float | str) -> str:
    """A value for people: six digits."""
    return value if isinstance(value, str) else f"{value + 0.0:.6g}"  # and no -0


def differences(
    record: Mapping[str, Any],
) -> dict[tuple[str, str], tuple[float | str, float | str]]:
    """Our value and that of the library, by library and key, where they differ."""
    values = record["ours"]
    return {
        (name, key): (values[key], value)
        for name, library in record["libraries"].items()
        for key, value in library["values"].items()
        if not agrees(values[key], value)
    }


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """A line for each value and version that is not as the page has it."""
    for name, library in now["libraries"].items():
        kept_library = before["libraries"].get(name, {"version": "none", "values": {}})
        for key, value in library["values"].items():
            old_value = kept_library["values"].get(key, "none")
            if not agrees(old_value, value):
                versions = f"{kept_library['version']} to {library['version']}"
                yield f"{name} {versions}: {key} was {shown(old_value)}, is {shown(value)}"
    for key, value in now["ours"].items():
        if before["ours"].get(key) != value:
            yield f"ours: {key} was {before['ours'].get(key)}, is {value}"


def rows_of(definition: Definition) -> Iterator[str]:
    """The rows of a definition, a name a line; lists for arrays repeat the run."""
    for name, rows in definition.rows.items():
        if name not in ("grades", "scores") or "run" not in definition.rows:
            yield f"- {name} `{json.dumps(rows)}`"


def lines_of(definition: Definition, record: Mapping[str, Any]) -> Iterator[str]:
    """A definition with the answers of all libraries that have it."""
    reference = record["ours"][definition.key]
    yield f"### {definition.title}\n\n{definition.text}\n\n" + "\n".join(rows_of(definition)) + "\n"
    yield "| library | call | value | why it differs |\n|---|---|--:|---|"
    yield f"| **streammetrics** | `{definition.ours}` | {shown(reference)} | |"
    for name, library in sorted(record["libraries"].items(), key=lambda item: item[0].lower()):
        if definition.key in library["values"]:
            call, value = (library[field][definition.key] for field in ("calls", "values"))
            same = agrees(reference, value)
            reason = "" if same else definition.reasons.get(name, "")
            cell = f"`{value}`" if isinstance(value, str) and ":" in value else shown(value)
            cell, ending = (cell, "|") if same else (f"**{cell}**", f"| {reason} |")
            yield f"| {name} | `{call}` | {cell} {ending}" + " |" * same
    yield ""


def overview(record: Mapping[str, Any]) -> Iterator[str]:
    """A line for each library."""
    differ = differences(record)
    yield "| library | version | asked on | definitions | as here | otherwise |"
    yield "|---|---|---|--:|--:|--:|"
    for name, library in sorted(record["libraries"].items(), key=lambda item: item[0].lower()):
        total = len(library["values"])
        deviations = sum(key == name for key, _ in differ)
        stamp = f"{library['version']} | {library['date']}"
        yield f"| {name} | {stamp} | {total} | {total - deviations} | {deviations} |"


HEAD: Final = """\
# Atlas of definitions

<!-- written by `make atlas` from docs/atlas; do not edit -->

One name, several numbers: {definitions} definitions, asked of {libraries} libraries with the same
few rows. A program ran each of them, in the version and on the day of this table. A value that
differs is bold, and its reason stands beside it. Equal means to six digits, since some compute in
float32. A library that a table lacks was not asked, mostly because it has no such function.

{overview}

`make atlas` runs all of them again. `docs/atlas/adapters` has a file a library, with its calls and
with what surrounds them, such as a mean over lists. Names in a call are the rows above its table;
`grades` and `scores` of ranked lists are those of the run, in its order.

"""


def written(record: Mapping[str, Any]) -> str:
    """The page."""
    lines = []
    for title, family in FAMILIES.items():
        lines.append(f"## {title}\n")
        lines.extend(line for definition in family for line in lines_of(definition, record))
    head = HEAD.format(
        definitions=len(DEFINITIONS), libraries=len(record["libraries"]),
        overview="\n".join(overview(record)),
    )  # fmt: skip
    return head + "\n".join(lines).rstrip("\n") + "\n"
