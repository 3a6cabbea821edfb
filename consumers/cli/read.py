"""The commands that read: results, status, quarantine, export, merge, show."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from consumers.cli.arguments import Arguments, UsageError
from consumers.ledger.ledger import Ledger
from consumers.results import quarantine
from consumers.results.answers import results_text
from consumers.results.query import Query, parse_generation, parse_query
from consumers.results.reader import read_results
from consumers.results.results import dumps, to_json
from consumers.results.state_files import description, export, merge_files, read_state, write_state
from consumers.results.state_text import state_text
from consumers.results.status import status_json, status_text
from consumers.results.terminal import Style

ACTIONS = ("list", "export", "retry")


def read(arguments: Arguments) -> int:
    """Do one of these commands."""
    commands: dict[str, Callable[[Arguments], None]] = {
        "results": _results,
        "status": _status,
        "quarantine": _quarantine,
        "export": _export,
        "merge": _merge,
        "show": _show,
    }
    commands[arguments.command](arguments)
    return 0


def _results(arguments: Arguments) -> None:
    store, query = arguments.words[0], _query(arguments)
    ledger = Ledger.open(store)
    try:
        results = read_results(ledger, query)
    finally:
        ledger.close()
    if arguments.on("json"):
        _write(to_json(results))
    else:
        _print([results_text(results, query, Style.of(sys.stdout), store=store)])


def _status(arguments: Arguments) -> None:
    store, wanted = arguments.words[0], parse_generation(arguments.number("generation"))
    ledger = Ledger.open(store)
    try:
        if arguments.on("json"):
            _write(status_json(ledger, wanted))
        else:
            _print(
                [status_text(ledger, Style.of(sys.stdout), title=ledger.store.name, wanted=wanted)]
            )
    finally:
        ledger.close()


def _quarantine(arguments: Arguments) -> None:
    words = arguments.words
    action, store = ("list", words[0]) if len(words) == 1 else words[:2]
    if action not in ACTIONS or len(words) > 2:
        raise UsageError(
            f"quarantine: expected [{'|'.join(ACTIONS)}] STORE, came {' '.join(words)!r}"
        )
    ledger = Ledger.open(store)
    try:
        if action == "export":
            _save(quarantine.exported(ledger), arguments.text("output"))
        elif arguments.on("json"):
            _write(quarantine.as_json(ledger))
        else:
            _print(f"{line}\n" for line in quarantine.listing(ledger))
    finally:
        ledger.close()


def _export(arguments: Arguments) -> None:
    output = _output(arguments)
    ledger = Ledger.open(arguments.words[0])
    try:
        state = export(ledger, _query(arguments))
    finally:
        ledger.close()
    write_state(state, output)


def _merge(arguments: Arguments) -> None:
    output = _output(arguments)
    write_state(merge_files([Path(word) for word in arguments.words]), output)


def _show(arguments: Arguments) -> None:
    path = Path(arguments.words[0])
    state = read_state(path)
    if arguments.on("json"):
        _write(dumps(description(state)))
    else:
        _print([state_text(state, Style.of(sys.stdout), title=path.name)])


def _query(arguments: Arguments) -> Query:
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
        raise UsageError(f"{arguments.command}: expected -o FILE, came nothing; name the file")
    return Path(output)


def _save(lines: Iterable[bytes], output: str | None) -> None:
    if output in (None, "-"):
        for line in lines:
            _write(line)
        return
    with Path(str(output)).open("wb") as file:
        file.writelines(lines)


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _print(texts: Iterable[str]) -> None:
    for text in texts:
        sys.stdout.write(text)
