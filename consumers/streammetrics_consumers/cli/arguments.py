"""The command line: commands and flags as a table, from which the parser, the help and the
environment variables are derived; and the exit codes.

Flag > `STREAMMETRICS_<FLAG>` > config file. The variable of a repeatable flag has one value per
line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NoReturn

from streammetrics_consumers.cli.exit_codes import EXIT_CODES
from streammetrics_consumers.cli.flags import (
    BINS,
    BY,
    CONFIG,
    DROP,
    DROP_WINDOWS,
    EVERY,
    EXPERIMENT,
    FOLLOW,
    GENERATION,
    JSON,
    LABEL,
    METRIC,
    OFFSETS,
    OUTPUT,
    PARTITIONS,
    PORT,
    REPLAY,
    RESTART,
    RESULTS,
    RESUME,
    STORE,
    STORE_WORD,
    TOKEN,
    VIEWS,
    WHERE,
    WINDOW,
    Command,
    Flag,
)

ENVIRONMENT: Final = "Flags may also be set as STREAMMETRICS_<FLAG>; a flag has precedence"


OF_RESULTS: Final = (EXPERIMENT, WINDOW, BY, WHERE, METRIC, GENERATION, VIEWS)
RUN: Final = (
    Flag("until-end", "stop at the present end of the log", bool),
    Flag(
        "close",
        "at that end, count all pending events, whatever they wait for: no more will arrive",
        bool,
    ),
    STORE,
    Flag("no-serve", "do not serve the results", bool),
    PORT,
    TOKEN,
    Flag("workers", "processes that share the partitions (Kafka)", int, metavar="N", default=1),
    Flag("bootstrap-servers", "the Kafka servers", short="b", metavar="HOST:PORT,..."),
    Flag("topic", "the Kafka topic, or several", short="t", metavar="TOPIC,..."),
    Flag("group", "the consumer group", short="g", metavar="GROUP"),
    Flag(
        "from",
        "beginning (default), latest, or a TIME in ISO UTC: where partitions without a head start",
        metavar="START",
        default="beginning",
    ),
    Flag(
        "on-gap",
        "stop (default) or skip, if the log has lost the next records",
        choices=("stop", "skip"),
        default="stop",
    ),
    Flag("new-source", "count from a topic or a cluster that is new to the store", bool),
    Flag(
        "skip",
        "skip the batch at this offset if it cannot be read, as one entry of the quarantine; "
        "repeat it for another batch (Kafka)",
        again=True,
        metavar="TOPIC/PARTITION:OFFSET",
    ),
    PARTITIONS,
    Flag("check", "compare config, source and store, and change nothing", bool),
    Flag("dry-run", "read to the end and print the results; write no store", bool),
    Flag("new-generation", "start over, and keep the old results", bool),
    DROP,
    RESUME,
    RESTART,
    DROP_WINDOWS,
    Flag(
        "client",
        "a setting of the Kafka client; repeat it for another",
        short="X",
        again=True,
        metavar="KEY=VALUE",
    ),
    Flag(
        "log",
        "text (default), json, or debug, text with details, on stderr",
        choices=("text", "json", "debug"),
        default="text",
    ),
)

SIMULATE: Final = (
    Flag("events", "the number of events", int, metavar="N", default=100_000),
    Flag("seed", "the seed: another one gives another stream", int, metavar="N", default=1),
    Flag("rate", "events per second (default: as fast as possible)", float, metavar="N"),
    Flag("format", "jsonl (default) or csv; many events per message: ndjson, array, arrow",
         choices=("jsonl", "csv", "ndjson", "array", "arrow"), default="jsonl"),
    Flag("batch", "events per message, in formats with many", int, metavar="N", default=1000),
    Flag("items", "items shown at a time, as a ranked list with an id (default: 1, no lists)", int,
         metavar="N", default=1),
    Flag("join", "impressions, and later clicks and purchases, some of them twice", bool),
    Flag("experiments", "the arms of three experiments in each event", bool),
    Flag("exposures", "five experiments of a company: exposures with the arms of users, and what "
         "these do later", bool),
    Flag("n-users", "with --exposures: the number of users", int, metavar="N", default=25_000),
    Flag("output", "FILE, - (stdout), or kafka://HOST/TOPIC; with --join also two topics, "
         "IMPRESSIONS,OUTCOMES, with --exposures four, EXPOSURES,CLICKS,PURCHASES,CRASHES",
         short="o", metavar="WHERE", default="-"),
)  # fmt: skip

DEMO: Final = (
    Flag("once", "print the table and end", bool),
    Flag(
        "join",
        "one test, whose clicks and purchases are events of their own, some sent twice",
        bool,
    ),
    Flag(
        "exposures",
        "five tests of a company: users are exposed, and what they do later names no arm",
        bool,
    ),
    Flag("events", "the number of events", int, metavar="N", default=200_000),
    PORT,
    Flag("print-config", "print the config, to copy it, and do nothing else", bool),
)
# The columns that metrics of `eval` read: what each holds, by the argument of the metric.
COLUMNS: Final[Mapping[str, str]] = {
    "labels": "labels: 0 and 1, grades, or classes from 0",
    "scores": "scores",
    "predictions": "predicted classes, from 0, for macro_f1 and g_mean",
    "values": "numbers, for mean, std, p99 and the like",
    "lists": "lists: which query, session or user a row is of",
    "shown": "arrays of item numbers, from 0: the list that a row shows, for exposure_gini",
    "subtopics": "arrays of the ids of the subtopics that an item answers, for alpha_ndcg@10",
    "teams": "teams of interleaved items: 0 and 1",
    "treated": "treatment: 0 and 1, whether a row was treated",
    "logged": "probabilities with which the policy of the log took the actions of the rows",
    "target": "probabilities of the same actions under the target policy",
    "rewards": "rewards of the actions, such as clicks or amounts",
    "predicted_logged": "predicted rewards of the actions, for dr and sndr",
    "predicted_target": "predicted mean rewards of the target policy, for dr and sndr",
}
# The settings that metrics of `eval` need, by their names.
EVAL_SETTINGS: Final[Mapping[str, str]] = {
    "n_classes": "the number of classes of labels and predictions",
    "n_items": "the number of items in the catalog, shown or not",
    "k": "the number of first items of a list that count for exposure_gini",
}
EVAL: Final = (
    *(Flag(name.replace("_", "-"), f"the column of {what}", metavar="COLUMN")
      for name, what in COLUMNS.items()),
    *(Flag(name.replace("_", "-"), what, int, metavar="N") for name, what in EVAL_SETTINGS.items()),
    Flag(
        "qrels",
        "a file of judgments, of TREC, LETOR or LightGBM; each FILE is then a run, or the scores "
        "of its rows, and the metrics are measures of lists",
        metavar="FILE",
    ),
    Flag(
        "where",
        "only rows that meet this condition, such as \"surface == 'search' and dwell_s >= 30\"",
        metavar="CONDITION",
    ),
    Flag(
        "columns",
        'a column that is computed of others, such as "gain=reward * weight"; repeat it for '
        "another",
        again=True,
        metavar="NAME=EXPRESSION",
    ),
    Flag(
        "by",
        "a line for each value of these columns, such as variant,country; for runs a file of "
        "queries and their slices; for logs a field of the samples",
        metavar="NAMES",
    ),
    Flag(
        "users",
        "intervals over users: the column whose rows are correlated; for runs a file of queries "
        "and their users; for logs a field of the samples",
        metavar="NAME",
    ),
    Flag(
        "like",
        "the rules of another program, for runs: ties, queries without an answer, gains",
        choices=("trec_eval", "ir_measures"),
    ),
    Flag("per-query", "the value of each query of a run, or of each sample of a log", bool),
    Flag(
        "threshold",
        "of f1, precision, recall and the like: the least score that is a prediction "
        "of 1 (default: 0.5)",
        float,
        metavar="X",
        default=0.5,
    ),
    Flag(
        "metrics",
        "the metrics, such as auc,logloss,ctr,ndcg@10,precision_at_recall(0.8),p99,snips",
        metavar="NAMES",
    ),
    Flag(
        "format",
        "text (default), md, latex, csv or json",
        choices=("text", "md", "latex", "csv", "json"),
        default="text",
    ),
    JSON,
)  # fmt: skip
# The numbers of `plan`, which are arguments of `plan_test`.
PLANNED: Final[Mapping[str, str]] = {
    "rate": "a rate: its value in an earlier period",
    "mean": "a mean of units, with --std",
    "ratio": "a ratio of sums, with --std, that of a unit's numerator - ratio · denominator",
    "auc": "an area under the ROC curve, with --positives",
    "std": "the standard deviation of a unit",
    "denominator": "of --ratio: the mean denominator of a unit (default: 1)",
    "positives": "of --auc: the share of positive rows",
    "skewness": "of --mean and --ratio: the skewness of a unit, for the gate",
    "deff": "the design effect, of rows of the same users",
    "power": "the probability with which the effect is found (default: 0.8)",
    "level": "the level of the decision (default: 0.95, or that of the experiment)",
    "units-per-day": "the units, or rows, that arrive on a day",
    "days": "of --state: the days that it holds",
}
PLAN: Final = (
    *(Flag(name, what, float, metavar="X") for name, what in PLANNED.items()),
    Flag("effect", "the difference: 0.001, or relative, 2%; a fall: --effect=-2%", metavar="X"),
    Flag("share", "the share of the treatment in all units (default: 0.5), or of both arms, "
         "such as 0.05,0.05", metavar="SHARES"),
    Flag("state", "the state file of an earlier period, in place of numbers", metavar="FILE"),
    Flag("config", "the config whose store has an earlier period; with [experiment] each decision "
         "metric is planned, by its mde and shares", metavar="CONFIG"),
    STORE,
    Flag("experiment", "of a config or store: the experiment of this name", metavar="NAME"),
    Flag("metric", "only this metric of a state, store or experiment, or its view: auc.ap",
         metavar="NAME"),
    JSON,
)  # fmt: skip
SHELLS: Final = ("bash", "zsh")
PATHS: Final = ("FILE", "CONFIG", "STORE")  # metavars that a shell completes with files

COMMANDS: Final[tuple[Command, ...]] = (
    Command("run", "Read events into a store, and serve its results.", "CONFIG",
            "the config file (TOML)", RUN),
    Command("results", "Print the results of a store.", "STORE", STORE_WORD,
            (JSON, *OF_RESULTS)),
    Command("export", "Write the results of a store as rows, or one slice as a state file.",
            "STORE", STORE_WORD, (RESULTS, FOLLOW, EVERY, OUTPUT, *OF_RESULTS)),
    Command("merge", "Merge state files.", "FILE", "state files", (OUTPUT, REPLAY), nargs="+"),
    Command("show", "Print the contents of a state file.", "FILE", "a state file", (JSON,)),
    Command("drift", "Print how far one state file has drifted from another.", "FILE",
            "the state file of the reference, and that to compare with it",
            (JSON, LABEL, BINS), nargs=2),
    Command("quarantine", "Print, export or retry refused events.", "[list|export|retry] STORE",
            f"list (default), export or retry; {STORE_WORD}", (JSON, OUTPUT, CONFIG), nargs="+"),
    Command("hooks", "Print what hooks have sent or would send; release or drop what is held.",
            "[list|release|drop] STORE", f"list (default), release or drop; {STORE_WORD}",
            (JSON,
             Flag("config", "with --dry-run: the config whose hooks are asked", metavar="CONFIG"),
             Flag("dry-run", "list what a look now would send, and send nothing", bool)),
            nargs="+"),
    Command("simulate", "Write a simulated stream of events.", "", "", SIMULATE),
    Command("demo", "Simulate A/B tests, count them, print the results, and serve the live page.",
            "", "", DEMO),
    Command("plan", "Print how many units and days a test needs, and when it can be judged.",
            "", "", PLAN),
    Command("status", "Print how far a store has counted each log.", "STORE", STORE_WORD,
            (JSON, GENERATION,
             Flag("history", "which version, with which schema and config, counted which offsets",
                  bool))),
    Command("verify", "Read the log again and compare it with the store, bit for bit.", "CONFIG",
            "the config file (TOML)", (STORE, PARTITIONS, OFFSETS)),
    Command("watch", "Show the results of a store while it counts.", "STORE", STORE_WORD,
            (EXPERIMENT, WINDOW, BY, WHERE, METRIC, GENERATION, EVERY)),
    Command("report", "Write the results of a store as one HTML file.", "STORE", STORE_WORD,
            (OUTPUT, EXPERIMENT, WINDOW, BY, WHERE, METRIC, GENERATION)),
    Command("serve", "Serve the results of a store without counting.", "STORE", STORE_WORD,
            (Flag("host", "the address to serve on (default: 127.0.0.1)", metavar="HOST"),
             PORT, TOKEN,
             Flag("connections-per-peer", "the limit of open connections from one address, such as "
                  "a proxy's", int, metavar="N", default=64),
             Flag("cache-bytes", "the memory for answers that are kept", int, metavar="N"),
             Flag("max-slices", "slices of one answer", int, metavar="N", default=10_000))),
    Command("eval", "Print metrics of the rows of files, of runs, or of logs, without a config.",
            "FILE",
            ".parquet, .csv or .jsonl files of the same columns; with --qrels runs, the first of "
            "which the others are compared with; or logs of inspect_ai or lm-eval; - is standard "
            "input", EVAL, nargs="+"),
    Command("compact", "Merge the delta rows of a store; no result changes.", "STORE", STORE_WORD,
            ()),
    Command("completion", "Print a script by which a shell completes these commands.", "SHELL",
            "bash or zsh; in their start-up file: eval \"$(streammetrics completion SHELL)\"", (),
            choices=SHELLS),
)  # fmt: skip


class UsageError(Exception):
    """The arguments are not a valid command."""


class Arguments:
    """A parsed command line: a command, its positional words, and its flags by name."""

    def __init__(
        self, command: str, words: Sequence[str], values: Mapping[str, object],
        origins: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.command, self.words = command, tuple(words)
        self.given = dict(origins)  # flag to where it was given: `--port` or `STREAMMETRICS_PORT`
        self._values = dict(values)

    def text(self, flag: str) -> str | None:
        """The value of a text flag, None without one."""
        value = self._values.get(flag)
        return value if isinstance(value, str) else None

    def number(self, flag: str) -> int | None:
        """The value of a whole-number flag, None without one."""
        value = self._values.get(flag)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def real(self, flag: str) -> float | None:
        """The value of a number flag, None without one."""
        value = self._values.get(flag)
        return float(value) if isinstance(value, int | float) else None

    def is_on(self, flag: str) -> bool:
        """Whether a switch is on."""
        return self._values.get(flag) is True

    def several(self, flag: str) -> tuple[str, ...]:
        """All values of a repeatable flag."""
        value = self._values.get(flag)
        return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}")


class _Version(argparse.Action):
    """Looks up the version only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from streammetrics_consumers.model.version import program_version

        sys.stdout.write(f"streammetrics {program_version()}\n")
        parser.exit()


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> Arguments:
    """Parse the arguments and the environment. Raises UsageError.

    `--help` and `--version` print and raise SystemExit, as argparse does.
    """
    meant = next((word for word in argv if not word.startswith("-")), "")
    parsed, unknown = _parser(meant, first=argv[0] if argv else "").parse_known_args(argv)
    namespace = vars(parsed)
    command = next(c for c in COMMANDS if c.name == namespace["command"])
    if unknown:
        raise UsageError(_unknown(command, unknown))
    words = namespace.get("words", [])
    words = words if isinstance(words, list) else [words]
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for flag in command.flags:
        if flag.dest in namespace:
            values[flag.name], origins[flag.name] = namespace[flag.dest], f"--{flag.name}"
        elif environ.get(flag.variable):
            values[flag.name] = _from_environment(flag, environ[flag.variable])
            origins[flag.name] = flag.variable
        elif flag.default is not None:
            values[flag.name] = flag.default
    return Arguments(command.name, words, values, origins)


def _unknown(command: Command, words: Sequence[str]) -> str:
    """The error for words that a command does not take, with the flags that may be meant."""
    flags = [f"--{flag.name}" for flag in command.flags]
    near = [get_close_matches(word.partition("=")[0], flags, n=1) for word in words]
    meant = " ".join(dict.fromkeys(flag for matches in near for flag in matches))
    hint = f"did you mean {meant}?" if meant else f"see streammetrics {command.name} --help"
    return f"{command.name}: unrecognized arguments: {' '.join(words)}; {hint}"


def _parser(
    meant: str | None = None, files: Mapping[str, object] | None = None, first: str = ""
) -> argparse.ArgumentParser:
    """The parser; only the command `meant` has its flags, which take time to add, or all have.
    `files` is what shtab completes arguments with that are paths. first: the first word; if it is a
    command, all others belong to it, and the parser knows no other command."""
    parser = _Parser(
        prog="streammetrics",
        description="Metrics of live A/B tests: counted exactly once, with certain bounds.",
        epilog=f"{EXIT_CODES}. {ENVIRONMENT}.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0,
                        help="print the version")  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in [command for command in COMMANDS if command.name == first] or COMMANDS:
        subparser = commands.add_parser(
            command.name,
            help=command.about,
            description=command.about,
            epilog=f"{ENVIRONMENT}.",
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
        )
        for action in _add_words(subparser, command) if meant in (None, command.name) else ():
            if files and str(action.metavar).split()[-1] in PATHS:
                action.complete = files  # type: ignore[attr-defined]
    return parser


def _add_words(parser: argparse.ArgumentParser, command: Command) -> Iterator[argparse.Action]:
    if command.metavar:
        yield parser.add_argument(
            "words",
            nargs=command.nargs,
            metavar=command.metavar,
            choices=command.choices or None,
            help=command.words_about,
        )
    for flag in command.flags:
        names = [*([f"-{flag.short}"] if flag.short else []), f"--{flag.name}"]
        about = flag.about.replace("%", "%%")
        if flag.kind is bool:
            yield parser.add_argument(*names, dest=flag.dest, action="store_true", help=about)
        else:
            yield parser.add_argument(
                *names,
                dest=flag.dest,
                type=flag.kind,
                action="append" if flag.again else "store",
                choices=flag.choices or None,
                metavar=flag.metavar,
                required=False,
                help=about,
            )


def completion(shell: str) -> str:
    """A script by which a shell, one of SHELLS, completes commands, flags, choices and files."""
    import shtab

    return str(shtab.complete(_parser(files=shtab.FILE), shell))


def _from_environment(flag: Flag, text: str) -> object:
    if flag.kind is bool:
        if text.lower() in ("1", "true", "yes", "on"):
            return True
        if text.lower() in ("0", "false", "no", "off"):
            return False
        raise UsageError(f"{flag.variable}: expected 1 or 0, got {text!r}; correct it or unset it")
    if flag.again:
        return [line for line in text.splitlines() if line]
    try:
        value = flag.kind(text)
    except ValueError:
        raise UsageError(
            f"{flag.variable}: expected {'a whole number' if flag.kind is int else 'a number'}, "
            f"got {text!r}; correct it or unset it"
        ) from None
    if flag.choices and value not in flag.choices:
        raise UsageError(
            f"{flag.variable}: expected {' or '.join(flag.choices)}, got {text!r}; correct it"
        )
    return value
