"""The words of the command line: commands, flags, and the environment that stands in for flags.

Flag > `STREAMMETRICS_<FLAG>` > config file. A flag that may be given again has one value on each
line of its variable.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final, NoReturn

from consumers.cli.flags import COMMANDS, Command, Flag

EXIT_CODES: Final = (
    "exit codes: 0 done, 1 fatal, 2 usage or config, 3 settings or schema, 4 gap, "
    "5 too many bad events, 75 try again, 77 not let in"
)
ENVIRONMENT: Final = "every flag may also be set as STREAMMETRICS_<FLAG>; the flag goes before it"


class UsageError(Exception):
    """Words that are no command."""


class Arguments:
    """What was asked: a command, its positional words, and its flags by name."""

    def __init__(
        self, command: str, words: Sequence[str], values: Mapping[str, object],
        given: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.command, self.words = command, tuple(words)
        self.given = dict(given)  # flag to where it was given: `--port` or `STREAMMETRICS_PORT`
        self._values = dict(values)

    def text(self, flag: str) -> str | None:
        """The value of a flag, None without one."""
        value = self._values.get(flag)
        return value if isinstance(value, str) else None

    def number(self, flag: str) -> int | None:
        """The value of a whole number."""
        value = self._values.get(flag)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def real(self, flag: str) -> float | None:
        """The value of a number."""
        value = self._values.get(flag)
        return float(value) if isinstance(value, int | float) else None

    def on(self, flag: str) -> bool:
        """Whether a switch is on."""
        return self._values.get(flag) is True

    def several(self, flag: str) -> tuple[str, ...]:
        """Every value of a flag that may be given again."""
        value = self._values.get(flag)
        return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}")


class _Version(argparse.Action):
    """Looks the version up only when someone asks."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.exit(message=f"streammetrics {version('streammetrics')}\n")


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> Arguments:
    """What these words and this environment ask for, or a UsageError.

    `--help` and `--version` print and raise SystemExit, as argparse does.
    """
    known = vars(_parser().parse_args(argv))
    command = next(c for c in COMMANDS if c.name == known["command"])
    words = known.get("words", [])
    words = words if isinstance(words, list) else [words]
    values: dict[str, object] = {}
    given: dict[str, str] = {}
    for flag in command.flags:
        if flag.dest in known:
            values[flag.name], given[flag.name] = known[flag.dest], f"--{flag.name}"
        elif environ.get(flag.variable):
            values[flag.name] = _from_environment(flag, environ[flag.variable])
            given[flag.name] = flag.variable
        elif flag.default is not None:
            values[flag.name] = flag.default
    return Arguments(command.name, words, values, given)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="streammetrics",
        description="Metrics of live A/B tests: counted exactly once, with certain bounds.",
        epilog=f"{EXIT_CODES}. {ENVIRONMENT}.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0,
                        help="print the version")  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        one = commands.add_parser(
            command.name,
            help=command.about,
            description=command.about,
            epilog=f"{ENVIRONMENT}.",
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
        )
        _add_words(one, command)
    return parser


def _add_words(parser: argparse.ArgumentParser, command: Command) -> None:
    if command.metavar:
        parser.add_argument(
            "words", nargs=command.nargs, metavar=command.metavar, help=command.words_about
        )
    for flag in command.flags:
        names = [*([f"-{flag.short}"] if flag.short else []), f"--{flag.name}"]
        if flag.kind is bool:
            parser.add_argument(*names, dest=flag.dest, action="store_true", help=flag.about)
        else:
            parser.add_argument(
                *names,
                dest=flag.dest,
                type=flag.kind,
                action="append" if flag.again else "store",
                choices=flag.choices or None,
                metavar=flag.metavar,
                required=False,
                help=flag.about,
            )


def _from_environment(flag: Flag, text: str) -> object:
    if flag.kind is bool:
        if text.lower() in ("1", "true", "yes", "on"):
            return True
        if text.lower() in ("0", "false", "no", "off"):
            return False
        raise UsageError(f"{flag.variable}: expected 1 or 0, came {text!r}; correct it or unset it")
    if flag.again:
        return [line for line in text.splitlines() if line]
    try:
        value = flag.kind(text)
    except ValueError:
        raise UsageError(
            f"{flag.variable}: expected {'a whole number' if flag.kind is int else 'a number'}, "
            f"came {text!r}; correct it or unset it"
        ) from None
    if flag.choices and value not in flag.choices:
        raise UsageError(
            f"{flag.variable}: expected {' or '.join(flag.choices)}, came {text!r}; correct it"
        )
    return value
