"""The parser of the command line."""

from __future__ import annotations

from itertools import product
from unittest.mock import patch

import pytest
from streammetrics_consumers.cli import arguments
from streammetrics_consumers.cli.arguments import UsageError, parse

TAILS = ("", "s", "s t", "--help", "s --nope", "s --json", "--version s", "status s", "-- s --json",
         "s -o x", "--by", "--generation x s", "-x", "s --by= --by a")  # fmt: skip


def test_a_command_that_comes_first_is_parsed_as_among_all_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    among_all = arguments._parser

    def outcome(words: list[str]) -> tuple[object, str]:
        try:
            parsed: object = vars(parse(words, {}))
        except (UsageError, SystemExit) as error:
            parsed = repr(error)
        return parsed, capsys.readouterr().out

    for name, tail in product(("results", "completion", "resul", "--help", "--json"), TAILS):
        words = [name, *tail.split()]
        expected = outcome(words)
        with patch.object(arguments, "_parser", lambda meant, first: among_all(meant)):
            assert outcome(words) == expected, words
