"""Write the tables of config keys in `docs/config.md`; `make docs` runs it.

They are made of the keys that the tables in `consumers/streammetrics_consumers/config` declare, and
of the settings that the Kafka clients declare, between two marks. With `--check` nothing is
written, and the exit code says whether the page is stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from streammetrics_consumers.config.config import ENTRIES, TABLES
from streammetrics_consumers.config.keys import Key
from streammetrics_consumers.sources.kafka.client_settings import KEYS

from docs.marked_part import MarkedPart

START = "<!-- `make docs` writes the keys from their declarations, down to the next mark -->\n"


def shown_default(key: Key) -> str:
    """What holds without it."""
    if key.shown:
        return key.shown
    if key.is_required:
        return f"of {_code_list(key.of)}: required" if key.of else "required"
    return "none" if key.default is None else f"`{json.dumps(key.default)}`"


def rows(tables: Mapping[str, Mapping[str, Key]], *, states: bool) -> Iterator[str]:
    """A row for each key. states: with a cell that says whether it is part of states."""
    for table, keys in tables.items():
        for name, key in keys.items():
            prefix = f"of {_code_list(key.of)}: " if key.of and not key.is_required else ""
            part = ["yes" if key.in_states else ""] if states else []
            cells = [
                f"`{table}.{name}`",
                key.kind.text,
                shown_default(key),
                *part,
                prefix + key.doc,
            ]
            yield "|" + "".join(f" {cell} |" if cell else " |" for cell in cells) + "\n"


def _code_list(kinds: tuple[str, ...]) -> str:
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
