"""The single declaration of each key of the config: kind, range, default and meaning.

`Section` reads a table of the file by these declarations, and `docs/config_table.py` writes them
into docs/interface.md.
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
    "format": Key(
        Other("a format of the kind", "of the kind"), "see below; of a file by its suffix"
    ),
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
        "the name under which the store knows the streaming query that writes to it, see "
        "[engines.md](engines.md); `run` reads no such source, and `verify` cannot read it again",
        required=True,
        of=("spark",),
    ),
    "library": Key(Choice(LIBRARIES, LIBRARIES[0]), "what reads Kafka", of=("kafka",)),
    "client": Key(Other("table", "`{}`"), "settings of the Kafka client", of=("kafka",)),
    "max_event_bytes": Key(
        Whole(64, 16 << 20, MAX_EVENT_BYTES, " of bytes"),
        "larger events go to quarantine",
    ),
    "max_batch_bytes": Key(
        Whole(1 << 20, 1 << 30, MAX_BATCH_BYTES, " of bytes"),
        "a batch that becomes larger when it is decompressed ends the run with its place, see "
        "*Messages of Kafka*",
        of=("kafka",),
    ),
}

EVENT: Final = {
    "time": _state(
        FieldPath(),
        "the event time: ISO with a zone, or an integer with `time_unit`; with `ms` a number that "
        "is a time in seconds of 1995 to 2052 is refused",
        required=("a dotted path", 'name the field of the event time, such as "ts"'),
    ),
    "time_unit": _state(Choice(("s", "ms")), "the unit of integers in `time`"),
    "variant": _state(FieldPath(), "the role of the variant that an event belongs to"),
    "variants": _state(
        Other("list of 1 to 1,000 texts"),
        "other variants go to quarantine; without it any variant is counted, under `max_keys`; "
        "tables have their columns in this order, control first. More may be declared later",
    ),
    **{
        role: _state(FieldPath(), f"the role `{role}`, see below")
        for role in ("user", "label", "score", "list", "item", "weight")
    },
    "epoch": _state(
        FieldPath(),
        "of an experiment: the allocation that an event was assigned by, a text; an event needs it",
    ),
    "where": _state(
        Other("table", "`{}`"),
        "the conditions that an event must meet, by role or dotted path, see *Which events "
        "are counted*; other events are skipped",
    ),
}

WINDOWS: Final = {
    "size_s": _state(
        Whole(1, _YEAR_S, DAY_S, _SECONDS), "windows [start, end), aligned to the Unix epoch"
    ),
    "slide_s": _state(
        Whole(1, _YEAR_S, DAY_S, _SECONDS), "`size_s` without it; at least 1/3600 of `size_s`"
    ),
    "lateness_s": _state(
        Whole(0, _YEAR_S, 600, _SECONDS),
        "an event that is older than the newest one less this is late, and counted all the same; "
        "with `[join]` it is refused, since it is not joined, and this is part of states",
    ),
    "max_ahead_s": _state(
        Whole(0, _YEAR_S, MAX_AHEAD_S, _SECONDS),
        "an event that is further ahead than this of its record's timestamp goes to quarantine. "
        "With `[join]` it is at most `lateness_s`, which is then the default if that is less: an "
        "event that is ahead makes those after it late. Records of files have no timestamp, so "
        "nothing in them is ahead",
    ),
    "idle_timeout_s": Key(
        Whole(1, _YEAR_S, 3600, _SECONDS),
        "a partition whose newest event is this much older than that of all is idle, and holds no "
        "window open; for display",
    ),
    "retention_s": Key(
        Whole(1, 3660 * DAY_S, 30 * DAY_S, _SECONDS),
        "how long windows are kept, in event time, never by the clock; `size_s` if that is more",
    ),
}

SLICES: Final = {
    "by": _state(
        Other("list of lists", '`[[], ["variant"]]`'),
        "each is one grouping, of roles or dotted paths; `[]` is all rows. `[[]]` by default where "
        "there is no `event.variant`",
    ),
    "max_keys": _state(
        Whole(1, 10_000_000, 10_000),
        "of a grouping: those with the smallest stable hash; the rest is summed into `(other)`",
    ),
}

STORE: Final = {
    "url": Key(
        Text("streammetrics.db"),
        "a path of a SQLite file, or `postgresql://USER@HOST/DATABASE`; libpq's settings may "
        "follow as a query (`?sslmode=verify-full`, `?options=-csearch_path%3DSCHEMA`), and "
        "PGPASSWORD or `~/.pgpass` keeps the password out of it. PgBouncer may stand before it in "
        "transaction mode, where a schema is chosen with `ALTER ROLE ... SET search_path`",
    ),
    "commit_interval_s": Key(Real(0.01, 3600, 5.0, _SECONDS), "the time between two commits"),
    "max_bad_share": Key(
        Real(0, 1, 1.0),
        "more refused events than this, of 1000 or more, end the run with exit code 5, "
        "uncommitted; a run that starts again goes on from the last 1000 records of each log. "
        "Commits that are not over it themselves pass",
    ),
}

QUARANTINE: Final = {
    "topic": Key(
        Text(limit=249),
        "of `kafka`: a topic at the same servers that refused events are forwarded to, after "
        "their commit",
    ),
}

EXPERIMENT: Final = {
    "control": _state(
        Text(limit=200),
        "the variant, one of `event.variants`, that each other one is compared with",
        required=("the variant that others are compared with", "name one of variants"),
    ),
    "decision": _state(
        Other("list of 1 to 100 metrics"),
        'what the decision rests on: metrics of the config, `"auc"` for its headline, or '
        '`"auc.gini"` for another view',
        required=True,
    ),
    "guardrails": _state(Other("list of tables", "`[]`"), "metrics that must not get worse"),
    "lower_is_better": Key(
        Other("list of metrics", "`[]`"),
        "metrics of `decision` or `guardrails` of which less is better, such as "
        '`["bounce"]`; the same as `better = "lower"` beside each of them',
    ),
    "unit": _state(
        FieldPath(), "the field of what was assigned to variants; without it the role `user`"
    ),
    "cluster": _state(
        Choice(("groups", "none"), "groups"),
        "`groups`: rows of one unit are correlated, and are hashed into 64 groups by it; `none`: "
        "rows are independent",
    ),
    "on_several_variants": _state(
        Choice(("keep", "drop", "error"), "keep"),
        "units seen in several variants: they stay; or `error`, the experiment is not believed; "
        "or `drop`, their rows leave all variants when results are read. `drop` needs metrics "
        "whose states have the rows of each unit apart: GroupedAUC and GroupedScores, in groups "
        "or not, of which the groups or lists are the unit, with `ids` not `integer`, no weights, "
        "and `unit_share` 1",
    ),
    "horizon": _state(
        Whole(2, 10**15, unit=" of units"),
        "units of all variants at the planned end; always-valid intervals are narrowest at half "
        "of it",
    ),
    "baseline": _state(
        Real(0.0, 1.0, is_open=True), "the rate of an earlier period; goes with `horizon`"
    ),
    "mde": _state(
        Real(0.0, math.inf, is_open=True),
        "instead of `horizon` and `baseline`: the least absolute effect that matters",
    ),
    "mdes": _state(
        Other("table of numbers", "`{}`"),
        "the same for metrics of another scale, such as an AUC beside a rate: `{ auc = 0.005, "
        '"rank.NDCG@10" = 0.01 }`, as they are named in `decision` or `guardrails`; takes the '
        "place of `horizon` or `mde` there",
    ),
    "covariates": _state(
        Other("table of tables", "`{}`"),
        "what was known of the units before the experiment, taken out of a metric (CUPED): "
        '`{ revenue = { metric = "revenue_before", theta = 0.4 } }`. Only with '
        '`cluster = "groups"`',
    ),
    "level": _state(Real(0.5, 1.0, 0.95, is_open=True), "of all decisions together"),
    "epochs": _state(
        Other("list of times", "`[]`"),
        "ISO times, rising, at which another allocation began; the epoch before the first is "
        "called `start`. Starts that lie after all that was counted may be appended while it goes "
        "on (with a `horizon`, only with the shares of the last epoch). Not with `event.epoch`",
    ),
    "shares": _state(
        Other("table, or a list of tables", "`[]`"),
        "planned weights, `{ control = 9, new = 1 }`, equal without it; with `epochs` also a list "
        "of such tables, the first for `start`",
    ),
    "unit_share": _state(
        Real(2.0**-32, 1.0, 1.0),
        "keep the ids (hashed) of this share of all units, the same ones everywhere",
    ),
    "max_units": _state(
        Whole(1, 1_000_000_000, 1_000_000),
        "more kept units than this in a window or total of a variant: their number is undefined",
    ),
    "assignment_salt": Key(
        Text(),
        "the salt by which units were assigned, so that it can be refused where it makes the "
        "groups too",
    ),
    "look_every_s": Key(Real(1.0, 86_400.0, 60.0, _SECONDS), "the time between two looks"),
}

JOIN: Final = {
    "id": _state(
        FieldPath(),
        "what an impression and its outcomes share: a text or a whole number",
        required=(
            "a dotted path",
            'name the field that an impression and its outcomes share, such as "request_id"',
        ),
    ),
    "impression": _state(
        Other("table"),
        'what marks an impression: `{ field = "kind", equals = "impression" }`, '
        '`{ topic = "impressions" }`, or both',
        required=True,
    ),
    "outcomes": _state(
        Other("table of 1 to 16 tables"),
        "by name, what marks an outcome, and how it counts",
        required=True,
    ),
    "label_window_s": _state(
        Whole(1, _YEAR_S, unit=_SECONDS),
        "outcomes of an impression at t are those in [t, t + this)",
        required=(
            "a whole number of seconds",
            "say how long after an impression its outcomes count",
        ),
    ),
    "reopen_s": _state(
        Whole(0, _YEAR_S, 0, _SECONDS),
        "events this much later than `lateness_s` are still joined; impressions are counted that "
        "much later",
    ),
    "attribution": _state(
        Choice(("one", "last", "every"), "one"),
        "`one`: an id is one impression, and more of other content are conflicts; `last`: an "
        "outcome belongs to the last impression of its id before it; `every`: to each of them",
    ),
    "idle_s": Key(
        Whole(1, _YEAR_S, unit=_SECONDS),
        "a partition without events, or whose newest is this much older than the newest of all, "
        "keeps no label window open; without it each does",
    ),
    "others": Key(
        Choice(("refuse", "skip"), "refuse"),
        "events that are neither: `refuse` sends them to quarantine, `skip` counts them as "
        "`skipped` and does nothing else with them",
    ),
    "warn_cut": Key(
        Real(0, 1, 0.01),
        "a warning where more than this share of an outcome comes after the label window, or in "
        "its last tenth",
    ),
}

DEDUP: Final = {
    "event_id": _state(
        FieldPath(),
        "what an event and its repeats share: a text or a whole number; an event needs it",
        required=("a dotted path", "name the field that an event and its repeats share"),
    ),
    "retention_s": _state(
        Whole(1, _YEAR_S, DAY_S, _SECONDS), "of event time: ids are remembered for this long"
    ),
    "keyed": Key(
        Switch(False, "say whether repeats come to the same partition"),
        "say `true` where repeats come to the same partition; a topic of several partitions needs "
        "it",
    ),
}

SERVER: Final = {
    "host": Key(Text("127.0.0.1", 253), "the address to serve at"),
    "port": Key(Whole(0, 65_535, 8765), "0: any free one"),
    "token": Key(
        Other("16 to 200 letters, digits and marks of ASCII", '`""`'),
        "what whoever asks must have; empty: nothing",
    ),
    "connections_per_peer": Key(
        Whole(8, 10_000, 64),
        "connections open at once from one address; behind a reverse proxy all browsers share one",
    ),
}

TABLES: Final[Mapping[str, Mapping[str, Key]]] = {
    "source": SOURCE,
    "event": EVENT,
    "windows": WINDOWS,
    "slices": SLICES,
    "metrics": {},  # the user chooses the names, see ENTRIES
    "store": STORE,
    "quarantine": QUARANTINE,
    "experiment": EXPERIMENT,
    "join": JOIN,
    "dedup": DEDUP,
    "server": SERVER,
}

_MARK: Final = {
    "field": Key(FieldPath(), "the field that marks such an event; goes with `equals`"),
    "equals": Key(Other("text, whole number, true or false"), "what the field says"),
    "topic": Key(Other("one of `source.topic`"), "the topic of such an event's record"),
}
# The keys of tables with names chosen by the user, and of tables in lists.
ENTRIES: Final[Mapping[str, Mapping[str, Key]]] = {
    "metrics.NAME": {
        "type": Key(Other("name of a metric"), "the metric; its settings stand beside", True),
        "inputs": Key(Other("table", "`{}`"), "paths of arguments that have no role, or another"),
        "better": Key(
            Other('`"higher"`, `"lower"`, `"none"` or a number'),
            "the direction in which it is better, or a target; without it as its view declares",
        ),
    },
    "experiment.guardrails[]": {
        "metric": Key(Other("metric, or metric.view"), "the metric", True),
        "margin": Key(
            Real(0.0, 1e300),
            "how much worse it may become",
            required=("a number of 0 or more", "say how much worse it may become"),
        ),
        "higher_is_better": Key(
            Switch(),
            "without it as the metric says, and `true` where it says nothing",
        ),
    },
    "experiment.covariates.NAME": {
        "metric": Key(
            Other("metric, or metric.view"),
            "another metric of the config, of the same events, that variants cannot have changed",
            True,
        ),
        "theta": Key(
            Other("number"),
            "its slope, frozen before the data (`user_slope` of an earlier period)",
            True,
        ),
    },
    "join.impression": _MARK,
    "join.outcomes.NAME": {
        **_MARK,
        "counts": Key(
            Choice(("once", "count", "sum"), "once"),
            "whether an impression had it (0 or 1), how often, or the sum of `value`",
        ),
        "value": Key(FieldPath(), "the field to add up; goes with `sum`"),
    },
}
