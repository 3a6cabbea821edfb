"""The single declaration of each key of the config: kind, range, default and meaning.

`Section` reads a table of the file by them, and `docs/config_table.py` writes docs/config.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

DAY_S: Final = 86_400
MAX_AHEAD_S: Final = 3600  # the default; with [join] at most lateness_s
MAX_EVENT_BYTES: Final = 262_144
MAX_BATCH_BYTES: Final = 64 << 20
LIBRARIES: Final = ("kafka-python", "confluent-kafka")
FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "file": ("jsonl", "csv", "parquet"),
    "stdin": ("jsonl", "csv"),
    "kafka": ("json", "ndjson", "array", "arrow"),  # the last three: many events per message
    "spark": ("columns",),  # a streaming query writes to the store; `run` does not read it
}
_SECONDS: Final = " of seconds"
_YEAR_S: Final = 366 * DAY_S


@dataclass(frozen=True, slots=True)
class Text:
    """A non-empty text."""

    default: str | None = None
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several words."""

    words: tuple[str, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number in [low, high]."""

    low: int
    high: int
    default: int | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Real:
    """A finite number in [low, high], or in (low, high) if `is_open`."""

    low: float
    high: float
    default: float | None = None
    unit: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A dotted path in an event."""


@dataclass(frozen=True, slots=True)
class Switch:
    """true or false; the default None means that another setting decides. hint: advice for another
    value."""

    default: bool | None = None
    hint: str = "correct it"


@dataclass(frozen=True, slots=True)
class Other:
    """A value with its own reader. text, default: its description and default for the docs page."""

    text: str
    default: str = "none"


Kind: TypeAlias = Text | Choice | Whole | Real | FieldPath | Switch | Other


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table.

    doc: its meaning, for the docs page. of: the kinds of sources that have it, empty for all.
    required: True, or the "expected" and hint texts of the error for a missing key.
    in_states: whether a new value changes the states, and so needs a new generation.
    """

    kind: Kind
    doc: str
    required: bool | tuple[str, str] = False
    of: tuple[str, ...] = ()
    in_states: bool = False


def default_of(key: Key) -> str | int | float | bool | None:
    """The default of a key, None if it has no plain default."""
    kind = key.kind
    return None if isinstance(kind, FieldPath | Other) else kind.default


_state: Final = partial(Key, in_states=True)

SOURCE: Final = {
    "kind": Key(
        Choice(tuple(FORMATS)),
        "where events come from",
        required=('"file", "stdin", "kafka" or "spark"', "say where the events come from"),
    ),
    "format": Key(Other("a format of the kind", "by kind"), "see below; of a file by its suffix"),
    "path": Key(Text(), "the file", required=True, of=("file",)),
    "bootstrap_servers": Key(
        Other('`"host:9092,other:9092"`, or a list'),
        "Kafka's servers",
        required=True,
        of=("kafka",),
    ),
    "topic": Key(
        Other('`"clicks"`, `"impressions,clicks"`, or a list'),
        "up to 32 topics, which are read as one source",
        required=True,
        of=("kafka",),
    ),
    "group": Key(Text(limit=255), "the consumer group", required=True, of=("kafka",)),
    "query": Key(
        Text(limit=200),
        "the name in the store of the streaming query that writes to it, see "
        "[engines.md](engines.md); `run` does not read this source, and `verify` cannot replay it",
        required=True,
        of=("spark",),
    ),
    "library": Key(Choice(LIBRARIES, LIBRARIES[0]), "the Kafka client library", of=("kafka",)),
    "client": Key(Other("table", "`{}`"), "settings of the Kafka client", of=("kafka",)),
    "max_event_bytes": Key(
        Whole(64, 16 << 20, MAX_EVENT_BYTES, " of bytes"),
        "larger events go to quarantine",
    ),
    "max_batch_bytes": Key(
        Whole(1 << 20, 1 << 30, MAX_BATCH_BYTES, " of bytes"),
        "a batch that is larger than this after decompression ends the run with an error that "
        "names its position, see *Messages of Kafka*",
        of=("kafka",),
    ),
}

EVENT: Final = {
    "time": _state(
        FieldPath(),
        "the event time: ISO with a zone, or an integer with `time_unit`; with `ms`, a number "
        "that would be a time of 1995 to 2052 in seconds is refused",
        required=("a dotted path", 'name the field of the event time, such as "ts"'),
    ),
    "time_unit": _state(Choice(("s", "ms")), "the unit of integers in `time`"),
    "variant": _state(FieldPath(), "the role of the variant that an event belongs to"),
    "variants": _state(
        Other("list of 1 to 1,000 texts"),
        "events of other variants go to quarantine; without it every variant is counted, up to "
        "`max_keys`. Also the column order of tables, control first. More may be added later",
    ),
    **{
        role: _state(FieldPath(), f"the role `{role}`, see below")
        for role in ("user", "label", "score", "list", "item", "weight", "subtopics")
    },
    "epoch": _state(
        FieldPath(),
        "for an experiment: the allocation epoch of the event, a text; required in each event",
    ),
    "where": _state(
        Other("table", "`{}`"),
        "the conditions that an event must meet, by role or dotted path, see *Which events "
        "are counted*; other events are skipped",
    ),
}

WINDOWS: Final = {
    "size_s": _state(
        Whole(1, _YEAR_S, DAY_S, _SECONDS),
        "length of windows [start, end), aligned to the Unix epoch",
    ),
    "slide_s": _state(
        Whole(1, _YEAR_S, DAY_S, _SECONDS),
        "the time between window starts, by default `size_s`; at least 1/3600 of `size_s`",
    ),
    "lateness_s": _state(
        Whole(0, _YEAR_S, 600, _SECONDS),
        "an event that is older than the newest one by more than this is late, but counted; with "
        "`[join]` it is refused, since it cannot be joined, and this key is part of states",
    ),
    "max_ahead_s": _state(
        Whole(0, _YEAR_S, MAX_AHEAD_S, _SECONDS),
        "an event that is later than its record's timestamp by more than this goes to "
        "quarantine. With `[join]` at most `lateness_s`, which is then the default if it is "
        "less: an event ahead of time makes those after it late. Records of files have no "
        "timestamp, so their events are not checked",
    ),
    "idle_timeout_s": Key(
        Whole(1, _YEAR_S, 3600, _SECONDS),
        "a partition whose newest event is this much older than the newest of all is idle and "
        "keeps no window open; for display only",
    ),
    "retention_s": Key(
        Whole(1, 3660 * DAY_S, 30 * DAY_S, _SECONDS),
        "how long windows are kept, in event time, not clock time; by default `size_s` if that "
        "is longer. A shorter one than the store was counted with needs `--drop-windows`",
    ),
}

SLICES: Final = {
    "by": _state(
        Other("list of lists", '`[[], ["variant"]]`'),
        "the groupings, each of roles or dotted paths; `[]` is all rows. The default is `[[]]` "
        "without `event.variant`",
    ),
    "max_keys": _state(
        Whole(1, 10_000_000, 10_000),
        "the keys kept of each grouping: those with the smallest stable hash; the others are "
        "summed into `(other)`",
    ),
}

STORE: Final = {
    "url": Key(
        Text("streammetrics.db"),
        "the path of a SQLite file, or `postgresql://USER@HOST/DATABASE`; libpq's settings may "
        "follow as a query (`?sslmode=verify-full`, `?options=-csearch_path%3DSCHEMA`). "
        "PGPASSWORD or `~/.pgpass` keeps the password out of it. PgBouncer works in transaction "
        "mode; choose a schema there with `ALTER ROLE ... SET search_path`",
    ),
    "commit_interval_s": Key(Real(0.01, 3600, 5.0, _SECONDS), "the time between two commits"),
    "commit_events": Key(Whole(1, 10**8, 200_000), "new events of one log, committed earlier"),
    "commit_bytes": Key(Whole(1, 8 << 30, 64 << 20), "bytes of new counts, committed earlier"),
    "max_bad_share": Key(
        Real(0, 1, 1.0),
        "the run ends with exit code 5, and without a commit, when more than this share of at "
        "least 1000 events is refused; a restarted run includes the last 1000 records of each "
        "log. Commits within the limit still pass",
    ),
}

QUARANTINE: Final = {
    "topic": Key(
        Text(limit=249),
        "of `kafka`: a topic on the same servers, to which refused events are forwarded after "
        "their commit",
    ),
}

EXPERIMENT: Final = {
    "name": Key(Text("", limit=200), "the title of the page, in place of the name of the store"),
    "hypothesis": Key(Text(""), "what is expected, in a sentence; shown below the title"),
    "days": Key(
        Whole(1, 3660, unit=" of days"),
        "the planned duration; nothing is shipped before it has passed, see `min_days`",
    ),
    "min_days": Key(
        Whole(1, 3660, unit=" of days"),
        "nothing is shipped before this number of days of events; by default `days`",
    ),
    "sample_ratio_acknowledged": Key(
        Text(""),
        "why the experiment is believed although its sample ratio had an alarm; it stands in every "
        "report, and ends the alarm",
    ),
    "control": _state(
        Text(limit=200),
        "the variant of `event.variants` that all others are compared with",
        required=("the variant that others are compared with", "name one of [event] variants"),
    ),
    "decision": _state(
        Other("list of 1 to 100 metrics"),
        'the metrics that decide, as named in the config: `"auc"` for its headline, or '
        '`"auc.gini"` or `"auc.confusion(0.2).precision"` for another view',
        required=True,
    ),
    "guardrails": _state(Other("list of tables", "`[]`"), "metrics that must not get worse"),
    "watch_rates": _state(
        Switch(True),
        "beside each mean of a `UnitMean` or `Moments` of `decision` or `guardrails` with a better "
        "direction the rate of values above 0, of units or of rows, is a guardrail, which stops "
        "what is shown to be worse and counts in `level`; without harm nothing waits for it",
    ),
    "lower_is_better": Key(
        Other("list of metrics", "`[]`"),
        'metrics of `decision` or `guardrails` for which lower is better, such as `["bounce"]`; '
        'equivalent to `better = "lower"` for each of them',
    ),
    "unit": _state(FieldPath(), "the field of the assigned unit, by default the role `user`"),
    "cluster": _state(
        Choice(("groups", "none"), "groups"),
        "`groups`: rows of one unit are correlated, so rows are hashed by unit into 64 groups; "
        "`none`: rows are independent",
    ),
    "on_several_variants": _state(
        Choice(("keep", "drop", "error"), "keep"),
        "units seen in several variants: `keep` counts them; with `error` the experiment is not "
        "trusted; `drop` removes their rows from all variants when results are read. `drop` "
        "needs metrics whose states keep the rows of each unit apart: GroupedAUC and "
        "GroupedScores, with either `cluster`, whose groups or lists are the unit, with `ids` "
        "not `integer`, no weights, and `unit_share` 1",
    ),
    "horizon": _state(
        Whole(2, 10**15, unit=" of units"),
        "units of all variants at the planned end; always-valid intervals are narrowest at half "
        "of it",
    ),
    "baseline": _state(
        Real(0.0, 1.0, is_open=True), "the rate of an earlier period; used with `horizon`"
    ),
    "mde": _state(
        Real(0.0, math.inf, is_open=True),
        "instead of `horizon` and `baseline`: the smallest absolute effect that matters",
    ),
    "mdes": _state(
        Other("table of numbers", "`{}`"),
        "`mde` for metrics of another scale, such as an AUC beside a rate: `{ auc = 0.005, "
        '"rank.NDCG@10" = 0.01 }`, named as in `decision` or `guardrails`; replaces `horizon` or '
        "`mde` for them",
    ),
    "covariates": _state(
        Other("table of tables", "`{}`"),
        "covariates, known before the experiment, that adjust metrics (CUPED): `{ revenue = { "
        'metric = "revenue_before", theta = 0.4 } }`. Only with `cluster = "groups"`',
    ),
    "level": _state(Real(0.5, 1.0, 0.95, is_open=True), "the level of all decisions together"),
    "epochs": _state(
        Other("list of times", "`[]`"),
        "ascending ISO times at which another allocation began; the epoch before the first is "
        "called `start`. Times after all counted events may be appended while the experiment "
        "runs (with a `horizon`, only with the shares of the last epoch). Not with `event.epoch`",
    ),
    "shares": _state(
        Other("table, or a list of tables", "`[]`"),
        "planned weights, such as `{ control = 9, new = 1 }`, by default equal; with `epochs` "
        "also a list of tables, the first for `start`",
    ),
    "unit_share": _state(
        Real(2.0**-32, 1.0, 1.0),
        "the share of units whose ids (hashed) are kept, the same units everywhere",
    ),
    "max_units": _state(
        Whole(1, 1_000_000_000, 1_000_000),
        "with more kept units than this in a window or total of a variant, their number is "
        "undefined",
    ),
    "assignment_salt": Key(
        Text(),
        "the salt that assigned units to variants; refused if the 64 groups use the same one",
    ),
    "look_every_s": Key(Real(1.0, 86_400.0, 60.0, _SECONDS), "the time between two looks"),
}

JOIN: Final = {
    "id": _state(
        FieldPath(),
        "the id that an impression and its outcomes share: a text or a whole number",
        required=(
            "a dotted path",
            'name the field that an impression and its outcomes share, such as "request_id"',
        ),
    ),
    "impression": _state(
        Other("table"),
        'how impressions are recognized: `{ field = "kind", equals = "impression" }`, `{ topic = '
        '"impressions" }`, or both',
        required=True,
    ),
    "outcomes": _state(
        Other("table of 1 to 16 tables"),
        "by name, how outcomes are recognized and counted",
        required=True,
    ),
    "label_window_s": _state(
        Whole(1, _YEAR_S, unit=_SECONDS),
        "an impression at t has the outcomes in [t, t + this)",
        required=(
            "a whole number of seconds",
            "say how long after an impression its outcomes count",
        ),
    ),
    "reopen_s": _state(
        Whole(0, _YEAR_S, 0, _SECONDS),
        "events up to this much later than `lateness_s` are still joined; impressions are "
        "counted later by this time",
    ),
    "attribution": _state(
        Choice(("one", "last", "every"), "one"),
        "`one`: an id is one impression, and others with different content are conflicts; "
        "`last`: an outcome belongs to the last impression of its id before it; `every`: to each "
        "of them",
    ),
    "idle_s": Key(
        Whole(1, _YEAR_S, unit=_SECONDS),
        "a partition without events, or whose newest event is this much older than the newest of "
        "all, keeps no label window open; by default every partition does",
    ),
    "others": Key(
        Choice(("refuse", "skip"), "refuse"),
        "events that are neither impressions nor outcomes: `refuse` sends them to quarantine, "
        "`skip` only counts them as `skipped`",
    ),
    "warn_cut": Key(
        Real(0, 1, 0.01),
        "warn if more than this share of an outcome comes after the label window, or in its last "
        "tenth",
    ),
}

DEDUP: Final = {
    "event_id": _state(
        FieldPath(),
        "the id that an event and its repeats share: a text or a whole number; required in each "
        "event",
        required=("a dotted path", "name the field that an event and its repeats share"),
    ),
    "retention_s": _state(
        Whole(1, _YEAR_S, DAY_S, _SECONDS), "how long ids are remembered, in event time"
    ),
    "keyed": Key(
        Switch(False, "state whether repeats go to the same partition"),
        "`true` if repeats go to the same partition; required for a topic of several partitions",
    ),
}

SERVER: Final = {
    "host": Key(Text("127.0.0.1", 253), "the address to listen on"),
    "port": Key(Whole(0, 65_535, 8765), "the port to listen on; 0 is any free one"),
    "token": Key(
        Other("16 to 200 visible ASCII characters", '`""`'),
        "the token that clients must send; empty for none",
    ),
    "connections_per_peer": Key(
        Whole(8, 10_000, 64),
        "the most connections open at once from one address; behind a reverse proxy all browsers "
        "share one",
    ),
    "cache_bytes": Key(
        Other("whole number, 0 or more"),
        "the most bytes of states and answers that are kept for the next request; without it a "
        "quarter of the limit of its control group, or of the machine's memory",
    ),
    "max_slices": Key(
        Whole(1000, 100_000_000, 10_000),
        "the most slices of one answer, each counted for every metric and window",
    ),
}

TABLES: Final[Mapping[str, Mapping[str, Key]]] = {
    "source": SOURCE,
    "event": EVENT,
    "windows": WINDOWS,
    "slices": SLICES,
    "metrics": {},  # the user chooses the names, see entries.py
    "drift": {},
    "store": STORE,
    "quarantine": QUARANTINE,
    "experiment": EXPERIMENT,
    "join": JOIN,
    "dedup": DEDUP,
    "server": SERVER,
}
