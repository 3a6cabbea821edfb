"""Write the tables of config keys in `docs/config.md`; `make docs` runs it.

They are made of `declarations.py` and `entries.py` in `consumers/streammetrics_consumers/config`,
and of the settings that the Kafka clients declare, between two marks. With `--check` nothing is
written, and the exit code says whether the page is stale.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from streammetrics_consumers.config.declarations import (
    TABLES,
    Choice,
    FieldPath,
    Key,
    Other,
    Real,
    Switch,
    Text,
    Whole,
    default_of,
)
from streammetrics_consumers.config.entries import ENTRIES
from streammetrics_consumers.sources.kafka.client_settings import KEYS

from docs.marked_part import MarkedPart

START = "<!-- `make docs` writes the keys from their declarations, down to the next mark -->\n"


def value_of(key: Key) -> str:
    """What may stand there."""
    match key.kind:
        case Text():
            return "text"
        case Choice(words):
            return " ".join(f"`{word}`" for word in words)
        case Whole(low, high, _, unit):
            return f"whole number{unit}, {low:,} to {high:,}"
        case Real(low, high, _, unit, is_open):
            least = f"2^{math.frexp(low)[1] - 1}" if 0 < low < 1e-6 else f"{low:g}"
            if is_open:
                least = f"above {least}" if high == math.inf else f"between {least} and {high:g}"
                return f"number{unit} {least}"
            most = "" if high >= 1e300 else f" to {high:,g}"
            return f"number{unit}, {least}{most or ' or more'}"
        case FieldPath():
            return "path"
        case Switch():
            return "`true` `false`"
        case Other(text):
            return text


def shown_default(key: Key) -> str:
    """What holds without it."""
    if key.required:
        return f"of {_named(key.of)}: required" if key.of else "required"
    if isinstance(key.kind, Other):
        return key.kind.default
    default = default_of(key)
    return "none" if default is None else f"`{json.dumps(default)}`"


def rows(tables: Mapping[str, Mapping[str, Key]], *, states: bool) -> Iterator[str]:
    """A row for each key. states: with a cell that says whether it is part of states."""
    for table, keys in tables.items():
        for name, key in keys.items():
            of = f"of {_named(key.of)}: " if key.of and not key.required else ""
            part = ["yes" if key.in_states else ""] if states else []
            cells = [f"`{table}.{name}`", value_of(key), shown_default(key), *part, of + key.doc]
            yield "|" + "".join(f" {cell} |" if cell else " |" for cell in cells) + "\n"


def _named(kinds: tuple[str, ...]) -> str:
    return " ".join(f"`{kind}`" for kind in kinds)


def written() -> str:
    """The part of the page that the declarations say."""
    text = "Where a key that is part of states changes, the next run needs `--new-generation`, "
    text += "except for additions that the table allows.\n"
    for name, keys in TABLES.items():
        if keys:
            text += f"\n### `[{name}]`\n\n"
            text += "| key | value | default | part of states | meaning |\n|---|---|---|---|---|\n"
            text += "".join(rows({name: keys}, states=True))
    text += "\n### Entries of tables\n\n"
    text += "| key of an entry | value | default | meaning |\n|---|---|---|---|\n"
    text += "".join(rows(ENTRIES, states=False))
    text += "\n### `[source.client]`\n"
    for library, keys in KEYS.items():
        text += f"\n| setting of {library} | default here | meaning |\n|---|---|---|\n"
        for name, key in keys.items():
            text += f"| `source.client.{name}` | {shown_default(key)} | {key.doc} |\n"
    return text


PART = MarkedPart(Path(__file__).with_name("config.md"), START, written)

if __name__ == "__main__":
    sys.exit(PART.main())
