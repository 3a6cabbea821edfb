"""Ask every library for every definition: `python -m docs.atlas`, or `make atlas`.

It runs the calls of each adapter in the environment of its library (.cache/NAME), writes values,
versions and the date to docs/atlas/values.json, and the page docs/coming_from/atlas.md from that.
With `--check` it writes nothing, and exits with 1 where a value is another one than that of the
page: for a nightly run. With `--page` it only writes the page. Names of libraries
ask only these.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from docs.atlas import page
from docs.atlas.adapter import ADAPTERS, Adapter
from docs.atlas.definitions import DEFINITIONS, our_value, rows_digest

ROOT: Final = Path(__file__).resolve().parent.parent.parent
WORKER: Final = Path(__file__).with_name("worker.py")


def record_of(adapter: Adapter) -> dict[str, object] | None:
    """The version and the values of one library; None where its environment is not there."""
    python = ROOT / ".cache" / adapter.environment / "bin" / "python"
    if not python.exists():
        sys.stderr.write(f"{adapter.name}: no .cache/{adapter.environment}; run `make atlas`\n")
        return None
    rows = json.dumps({definition.key: definition.rows for definition in DEFINITIONS})
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "values.json")
        command = [python, WORKER, adapter.path, output]
        process = subprocess.run(
            command, input=rows, text=True, cwd=folder, timeout=600,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        if process.returncode != 0:
            raise SystemExit(f"{adapter.name}: {process.stderr[-2000:]}")
        answer: dict[str, object] = json.loads(output.read_text(encoding="utf-8"))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {
        "version": answer["version"],
        "date": today,
        "rows": rows_digest(),
        "calls": adapter.calls,
        "values": answer["values"],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, and write or compare."""
    parser = argparse.ArgumentParser(prog="python -m docs.atlas", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("library", nargs="*", help="only these; the others stay as they are")
    options = parser.parse_args(arguments)
    record = page.stored_values()
    if not options.page:
        libraries = dict(record.get("libraries", {}))
        chosen = [
            entry for entry in ADAPTERS if not options.library or entry.name in options.library
        ]
        for adapter in chosen:
            if (answer := record_of(adapter)) is not None:
                libraries[adapter.name] = answer
        new_record = {
            "ours": {
                definition.key: page.plain(our_value(definition)) for definition in DEFINITIONS
            },
            "libraries": libraries,
        }
        if options.check:
            changes = [*page.changes(record, new_record)]
            sys.stdout.write("".join(f"{line}\n" for line in changes))
            return int(bool(changes))
        text = json.dumps(new_record, indent=1, ensure_ascii=False) + "\n"
        page.VALUES.write_text(text, encoding="utf-8")
        record = new_record
    page.PAGE.write_text(page.written(record), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
