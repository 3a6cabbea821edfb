"""The commands that read: results, status, quarantine, export, merge, show, report."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from streammetrics_consumers.cli import logs, progress
from streammetrics_consumers.cli.arguments import Arguments, UsageError
from streammetrics_consumers.counting.options import Progress
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.quarantine import count_entries
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query import quarantine
from streammetrics_consumers.query.answers import dumps
from streammetrics_consumers.query.query import Query, parse_generation, parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import to_json
from streammetrics_consumers.query.state_files import (
    description,
    export,
    merge_files,
    read_state,
    write_state,
)
from streammetrics_consumers.query.status import status_json
from streammetrics_consumers.render.store_text import state_text, status_text
from streammetrics_consumers.render.text import Style, results_text

log = logging.getLogger(__name__)

Clock = Callable[[], float]

ACTIONS = ("list", "export", "retry")


def read(arguments: Arguments, monotonic: Clock) -> int:
    """Do one of these commands."""
    commands: dict[str, Callable[[Arguments], None]] = {
        "results": lambda given: _results(given, monotonic),
        "status": _status,
        "quarantine": lambda given: _quarantine(given, monotonic),
        "export": lambda given: _export(given, monotonic),
        "merge": lambda given: _merge(given, monotonic),
        "show": _show,
        "report": lambda given: _report(given, monotonic),
    }
    commands[arguments.command](arguments)
    return 0


def _results(arguments: Arguments, monotonic: Clock) -> None:
    store, query = arguments.words[0], query_of(arguments)
    known = arguments.text("views") == "headline" if arguments.on("json") else query.metric is None
    query = replace(query, headlines=known)
    logs.to_stderr("text")
    with (
        closing(Ledger.open(store)) as ledger,
        progress.of_bytes("reading", monotonic) as tell,
    ):
        results = read_results(ledger, query, tell)
    if arguments.on("json"):
        _write(to_json(results))
    else:
        _print([results_text(results, query, Style.of(sys.stdout), store=store)])


def _status(arguments: Arguments) -> None:
    store, wanted = arguments.words[0], parse_generation(arguments.number("generation"))
    with closing(Ledger.open(store)) as ledger:
        if arguments.on("json"):
            _write(status_json(ledger, wanted))
            return
        title = ledger.store.name
        _print([status_text(ledger, Style.of(sys.stdout), title=title, wanted=wanted)])


def _quarantine(arguments: Arguments, monotonic: Clock) -> None:
    words = arguments.words
    action, store = ("list", words[0]) if len(words) == 1 else words[:2]
    if action not in ACTIONS or len(words) > 2:
        raise UsageError(
            f"quarantine: expected [{'|'.join(ACTIONS)}] STORE, got {' '.join(words)!r}"
        )
    with closing(Ledger.open(store)) as ledger:
        if action == "export":
            _export_quarantine(ledger, arguments.text("output"), monotonic)
        elif arguments.on("json"):
            _write(quarantine.as_json(ledger))
        else:
            _print(f"{line}\n" for line in quarantine.listing(ledger))


def _export(arguments: Arguments, monotonic: Clock) -> None:
    output, query = _output(arguments), query_of(arguments)
    logs.to_stderr("text")
    with (
        closing(Ledger.open(arguments.words[0])) as ledger,
        progress.of_bytes("reading", monotonic) as tell,
    ):
        state = export(ledger, query, tell)
    write_state(state, output)


def _merge(arguments: Arguments, monotonic: Clock) -> None:
    output, paths = _output(arguments), [Path(word) for word in arguments.words]
    logs.to_stderr("text")
    skipped: list[Path] | None = [] if arguments.text("replay") == "skip" else None
    with progress.counted("merging", "files", len(paths), monotonic) as report:
        state = merge_files(paths, report, skipped=skipped)
    write_state(state, output)
    for path in skipped or ():
        log.warning("%s is left out: all of its rows are counted already", path)


def _show(arguments: Arguments) -> None:
    path = Path(arguments.words[0])
    state = read_state(path)
    if arguments.on("json"):
        _write(dumps(description(state)))
    else:
        _print([state_text(state, Style.of(sys.stdout), title=path.name)])


def _report(arguments: Arguments, monotonic: Clock) -> None:
    """Write the file; it is there whole or not at all."""
    from streammetrics_consumers.render.html import report_html
    from streammetrics_consumers.render.material import gather

    output, query = arguments.text("output"), query_of(arguments)
    if not output:
        raise UsageError("report: expected -o FILE, got nothing; name the file, or - for stdout")
    logs.to_stderr("text")
    began_s = monotonic()
    with (
        closing(Ledger.open(arguments.words[0])) as ledger,
        progress.shown("drawing", monotonic, "figures") as tell,
    ):
        material = gather(ledger, query, lambda done, total: tell(
            Progress(done, monotonic() - began_s, total - done)))  # fmt: skip
    data = report_html(material)
    if output == "-":
        _write(data)
        return
    whole = Path(output)
    part = whole.with_name(whole.name + ".part")
    try:
        part.write_bytes(data)
        part.replace(whole)
    finally:
        part.unlink(missing_ok=True)
    logs.say(f"{output}: {formatting.count(len(data) // 1000)} kB")


def query_of(arguments: Arguments) -> Query:
    """The query of these flags."""
    return parse_query(
        arguments.text("window") or "total",
        arguments.text("by"),
        arguments.several("where"),
        arguments.text("metric"),
        arguments.number("generation"),
    )


def _output(arguments: Arguments) -> Path:
    output = arguments.text("output")
    if not output:
        raise UsageError(f"{arguments.command}: expected -o FILE, got nothing; name the file")
    return Path(output)


def _export_quarantine(ledger: Ledger, output: str | None, monotonic: Clock) -> None:
    lines = quarantine.exported(ledger)
    if output in (None, "-"):
        for line in lines:
            _write(line)
        return
    logs.to_stderr("text")
    found = count_entries(ledger.store, ledger.generation().id)
    total = found.open + found.done
    with (
        Path(str(output)).open("wb") as file,
        progress.counted("writing", "events", total, monotonic) as report,
    ):
        for done, line in enumerate(lines, 1):
            file.write(line)
            report(done)


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _print(texts: Iterable[str]) -> None:
    for text in texts:
        sys.stdout.write(text)
