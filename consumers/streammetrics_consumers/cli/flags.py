"""What a flag and a command are, and the flags that several commands have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag. `kind` converts its text; bool is for a switch without a value."""

    name: str
    about: str
    kind: type[str] | type[int] | type[float] | type[bool] = str
    short: str = ""
    again: bool = False
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    default: str | int | float | None = None

    @property
    def dest(self) -> str:
        """Its name as an attribute."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable that replaces it."""
        return "STREAMMETRICS_" + self.dest.upper()


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its purpose, its positional words, and its flags."""

    name: str
    about: str
    metavar: str
    words_about: str
    flags: tuple[Flag, ...]
    nargs: str | int | None = None
    choices: tuple[str, ...] = ()


JSON: Final = Flag("json", "print JSON", bool)
LABEL: Final = Flag("label", "only the scores of rows with this label, 0 or 1", int, metavar="N")
BINS: Final = Flag("bins", "bins of PSI (default: 10)", int, metavar="N", default=10)
OUTPUT: Final = Flag("output", "the file to write", short="o", metavar="FILE")
WINDOW: Final = Flag(
    "window", "total (default), all, latest, or START/END in ISO UTC", metavar="WINDOW",
    default="total",
)  # fmt: skip
WHERE: Final = Flag(
    "where", "only slices with this value, such as variant=bts; repeat it to require several",
    again=True, metavar="NAME=VALUE",
)  # fmt: skip
METRIC: Final = Flag("metric", "only this metric; tables show all its views", metavar="NAME")
BY: Final = Flag(
    "by", "the grouping, such as variant,phase; '' is all rows", metavar="NAMES"
)  # fmt: skip
GENERATION: Final = Flag(
    "generation", "the results of this generation (default: the newest)", int, metavar="N"
)
EXPERIMENT: Final = Flag(
    "experiment", "only this experiment: its arms, and how they compare", metavar="NAME"
)  # fmt: skip
EVERY: Final = Flag(
    "every", "seconds between two updates; of export 60 by default, and 0 appends once", float,
    metavar="SECONDS", default=1.0,
)  # fmt: skip
RESULTS: Final = Flag(
    "results", "write the results as rows: a file .parquet, .csv or .jsonl", metavar="FILE"
)
FOLLOW: Final = Flag(
    "follow", "append to the file of --results what has changed since the last time, each change "
    "once, and go on", bool,
)  # fmt: skip
CONFIG: Final = Flag("config", "for retry: the config to read the events with", metavar="FILE")
VIEWS: Final = Flag(
    "views", "for JSON and rows: headline (default), the main views of a metric, or all",
    choices=("headline", "all"), default="headline",
)  # fmt: skip
TOKEN: Final = Flag(
    "token", "the token that requests must carry; STREAMMETRICS_TOKEN hides it from process lists",
    metavar="TOKEN",
)  # fmt: skip
PORT: Final = Flag("port", "the port to serve on; 0 selects a free one", int, metavar="N")
STORE_WORD: Final = "the store: the path of a SQLite file, or postgresql://USER@HOST/DATABASE"
STORE: Final = Flag("store", STORE_WORD, metavar="STORE")
PARTITIONS: Final = Flag(
    "partitions",
    "only these partitions, such as 0,1 or clicks/0, without a consumer group",
    metavar="PARTITIONS",
)
OFFSETS: Final = Flag(
    "offsets", "only these offsets of a partition, such as 0:1000-2000, or 0:1000- up to its head; "
    "repeat it for another partition", again=True, metavar="PARTITION:FROM-TO",
)  # fmt: skip

REPLAY: Final = Flag(
    "replay", "refuse (default) or skip a file whose rows are all counted already",
    choices=("refuse", "skip"), default="refuse",
)  # fmt: skip

DROP: Final = Flag(
    "drop-metric", "end a metric that is no longer in the config; repeat it for another",
    again=True, metavar="NAME",
)  # fmt: skip
RESUME: Final = Flag(
    "resume-metric", "resume a metric that has ended; results state the offsets that it missed; "
    "repeat it for another", again=True, metavar="NAME",
)  # fmt: skip

RESTART: Final = Flag(
    "restart-metric", "count a metric anew from the offsets reached so far, and drop its stored "
    "states: for states that this version cannot read, or changed settings; repeat it for another",
    again=True, metavar="NAME",
)  # fmt: skip
DROP_WINDOWS: Final = Flag(
    "drop-windows", "drop the windows that a shorter retention_s no longer keeps", bool
)
