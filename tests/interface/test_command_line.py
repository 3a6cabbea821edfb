"""Commands, flags, variables and exit codes: as the page has them, and no others."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping

import pytest
from streammetrics_consumers.cli import exit_codes
from streammetrics_consumers.cli.arguments import COMMANDS, Flag, _parser, parse
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.query.query import Span, parse_query

from tests.interface.page import PAGE, spans, table

Capture = pytest.CaptureFixture[str]


def parsers() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command."""
    [commands] = [a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction)]
    choices: Mapping[str, argparse.ArgumentParser] = commands.choices
    return choices


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    """The names of its flags, long and short."""
    return {name for action in parser._actions for name in action.option_strings} - {"-h", "--help"}


def names_of(cell: str) -> set[str]:
    """The flags that a cell of the page names."""
    return {name for span in spans(cell) for name in span.split()}


def documented(command: str) -> set[str]:
    """The flags that the page gives a command."""
    if command == "run":
        return {name for row in table("flag of `run`") for name in names_of(row[0])}
    [row] = [row for row in table("command") if spans(row[0])[0].split()[0] == command]
    return names_of(row[2])


def test_the_page_has_every_command_with_its_words() -> None:
    on_the_page = [spans(row[0])[0].split() for row in table("command")]
    assert [words[0] for words in on_the_page] == list(parsers())
    for command, *words in on_the_page:
        taken = [action for action in parsers()[command]._actions if not action.option_strings]
        numbers = [action.nargs if isinstance(action.nargs, int) else 1 for action in taken]
        assert len(words) == sum(numbers), command


def test_the_page_has_every_flag_of_a_command() -> None:
    for command, parser in parsers().items():
        assert documented(command) == flags_of(parser), command


def test_the_page_explains_every_flag_once() -> None:
    explained = [spans(row[0]) for row in (*table("flag of `run`"), *table("other flag"))]
    words = [name for row in explained for span in row for name in span.split()]
    assert len(words) == len(set(words))
    assert set(words) == {name for parser in parsers().values() for name in flags_of(parser)}


def test_the_page_has_the_default_of_every_flag() -> None:
    # Where commands differ (`--output`) the first one decides.
    flags = {f"--{f.name}": f for command in reversed(COMMANDS) for f in command.flags}
    for row in (*table("flag of `run`"), *table("other flag")):
        for span in spans(row[0]):
            flag = flags[span.split()[0]]
            default = "off" if flag.kind is bool else str(flag.default or "")
            assert row[1] == default, span
            assert all(choice in spans(row[2]) for choice in flag.choices), span


def test_every_window_that_the_page_names_can_be_asked_for() -> None:
    [row] = [row for row in table("other flag") if "--window" in row[0]]
    *words, span = spans(row[2])
    assert [parse_query(word).window for word in words] == ["total", "all", "latest"]
    assert span == "START/END"
    assert isinstance(parse_query("1970-01-01/1970-01-02T00:00:00Z").window, Span)


def words_of(flag: Flag) -> tuple[str, list[str]]:
    """A value as the environment has it, and the same as words of a command line."""
    if flag.kind is bool:
        return "1", [f"--{flag.name}"]
    if flag.again:
        return "a=1\nb=2", [f"--{flag.name}=a=1", f"--{flag.name}=b=2"]
    value = flag.choices[-1] if flag.choices else "7"
    return value, [f"--{flag.name}={value}"]


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_flag_has_the_variable_that_the_page_says(command: str) -> None:
    assert "STREAMMETRICS_UNTIL_END=1" in spans(PAGE)
    [definition] = [entry for entry in COMMANDS if entry.name == command]
    arity = definition.nargs if isinstance(definition.nargs, int) else int(bool(definition.metavar))
    words = [command, *["x"] * arity]
    for flag in definition.flags:
        value, flag_words = words_of(flag)
        variable = "STREAMMETRICS_" + flag.name.upper().replace("-", "_")
        by_variable, by_flag = parse(words, {variable: value}), parse([*words, *flag_words], {})
        assert by_variable._values == by_flag._values
        assert by_variable.given == {flag.name: variable}
        assert parse([*words, *flag_words], {variable: "0"})._values == by_flag._values


def test_the_page_has_every_exit_code(capsys: Capture) -> None:
    errors = [LedgerError, *LedgerError.__subclasses__()]
    codes = {value for value in vars(exit_codes).values() if type(value) is int}
    codes |= {error.exit_code for error in errors}
    assert {int(row[0]) for row in table("exit code")} == codes
    with pytest.raises(SystemExit):
        main(["--help"])
    meanings = dict(re.findall(r"(\d+) ([a-z ]+)", " ".join(capsys.readouterr().out.split())))
    for code, meaning in ((row[0], row[1]) for row in table("exit code") if row[0] in meanings):
        assert meanings[code].split()[0] == re.split(r"\W", meaning)[0]
