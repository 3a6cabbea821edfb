"""The independent tables of a config: repeats, windows, slices, the store, quarantine and the
server."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streammetrics_consumers.config.event import EventConfig
from streammetrics_consumers.config.keys import (
    Required,
    ValueKind,
    completed,
    is_complete,
    key,
    read,
    state_key,
)
from streammetrics_consumers.config.kinds import (
    DAY_S,
    YEAR_S,
    FieldPath,
    Real,
    Seconds,
    Single,
    Switch,
    Text,
    Whole,
)
from streammetrics_consumers.config.section import ConfigError, Problem, RefusedSetting, Section
from streammetrics_consumers.config.source import SourceConfig, require_order

if TYPE_CHECKING:
    from streammetrics_consumers.model.partition import Partition

MAX_AHEAD_S: Final = 3600  # the default; with [join] at most lateness_s
MAX_PANES: Final = 100_000  # within the retention: a pane is a row of the store for each metric
MAX_OVERLAP: Final = 3_600  # windows that contain one row, as in the library's Windows
MAX_GROUPINGS: Final = 32
MAX_GROUPING_FIELDS: Final = 8
REPEAT_PANES: Final = 24  # per retention of [dedup]: ids are stored by these panes of event time

_VISIBLE: Final = frozenset(map(chr, range(ord("!"), ord("~") + 1)))
_MANY: Final = ("ndjson", "array", "arrow")  # formats with many events per record


@dataclass(frozen=True, slots=True)
class WindowsConfig:
    """[windows], all in seconds of event time."""

    size_s: int = state_key(
        Seconds(1, YEAR_S), DAY_S, "length of windows [start, end), aligned to the Unix epoch"
    )
    slide_s: int = state_key(
        Seconds(1, YEAR_S),
        DAY_S,
        "the time between window starts, by default `size_s`; at least 1/3600 of `size_s`",
    )
    lateness_s: int = state_key(
        Seconds(0, YEAR_S),
        600,
        "an event that is older than the newest one by more than this is late, but counted; with "
        "`[join]` or `[exposures]` it is refused, since it cannot be joined, and this key is part "
        "of states",
    )
    max_ahead_s: int = state_key(
        Seconds(0, YEAR_S),
        MAX_AHEAD_S,
        "an event that is later than its record's timestamp by more than this goes to "
        "quarantine. With `[join]` or `[exposures]` at most `lateness_s`, which is then the "
        "default if it is less: an event ahead of time makes those after it late. Records of files "
        "have no timestamp, so their events are not checked",
    )
    idle_timeout_s: int = key(
        Seconds(1, YEAR_S),
        3600,
        "a partition whose newest event is this much older than the newest of all is idle and "
        "keeps no window open; for display only",
    )
    retention_s: int = key(
        Seconds(1, 3660 * DAY_S),
        30 * DAY_S,
        "how long windows are kept, in event time, not clock time; by default `size_s` if that "
        "is longer. A shorter one than the store was counted with needs `--drop-windows`",
    )

    @property
    def pane_ms(self) -> int:
        """The length of the panes that windows are sums of."""
        return gcd(self.size_s, self.slide_s) * 1000

    def floor_ms(self, greatest_event_ms: int) -> int:
        """The retention floor after this event time. It is the start of a pane, so that a window is
        above it completely or not at all."""
        return (greatest_event_ms - self.retention_s * 1000) // self.pane_ms * self.pane_ms


@dataclass(frozen=True, slots=True)
class SlicesConfig:
    """[slices]. Each of `by` is one grouping, a tuple of names; () is all rows.

    A name is a role of [event] that has a path, else a dotted path in the event.
    """

    by: tuple[tuple[str, ...], ...] = state_key(
        ValueKind("list of lists"),
        ((),),
        "the groupings, each of roles or dotted paths; `[]` is all rows. The default is `[[]]` "
        "without `event.variant`",
        shown='`[[], ["variant"]]`',
    )
    max_keys: int = state_key(
        Whole(1, 10_000_000),
        10_000,
        "the keys kept of each grouping: those with the smallest stable hash; the others are "
        "summed into `(other)`",
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The names in all groupings, each once."""
        return tuple(dict.fromkeys(name for grouping in self.by for name in grouping))


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """[store]. A commit is due after `commit_interval_s`, before that for a log with
    `commit_events` uncommitted events, and for all logs of a worker once their deltas hold
    `commit_bytes` of memory."""

    url: str = key(
        Text(),
        "streammetrics.db",
        "the path of a SQLite file, or `postgresql://USER@HOST/DATABASE`; libpq's settings may "
        "follow as a query (`?sslmode=verify-full`, `?options=-csearch_path%3DSCHEMA`). "
        "PGPASSWORD or `~/.pgpass` keeps the password out of it. PgBouncer works in transaction "
        "mode; choose a schema there with `ALTER ROLE ... SET search_path`",
        secret=True,
    )
    commit_interval_s: float = key(
        Real(0.01, 3600, " of seconds"), 5.0, "the time between two commits"
    )
    commit_events: int = key(Whole(1, 10**8), 200_000, "new events of one log, committed earlier")
    commit_bytes: int = key(Whole(1, 8 << 30), 64 << 20, "bytes of new counts, committed earlier")
    max_bad_share: float = key(
        Real(0, 1),
        1.0,
        "the run ends with exit code 5, and without a commit, when more than this share of at "
        "least 1000 events is refused; a restarted run includes the last 1000 records of each "
        "log. Commits within the limit still pass",
    )


@dataclass(frozen=True, slots=True)
class QuarantineConfig:
    """[quarantine]."""

    topic: str | None = key(
        Text(249),
        None,
        "of `kafka`: a topic on the same servers, to which refused events are forwarded after "
        "their commit",
    )


def _token(section: Section, name: str, value: object) -> str:
    if isinstance(value, str) and 16 <= len(value) <= 200 and set(value) <= _VISIBLE:
        return value
    expected = "16 to 200 visible ASCII characters, without spaces"
    hint = "generate one, such as with openssl rand -hex 16"
    # The message omits the value: it may be most of a secret.
    section.problem(section.where(name), expected, "another", hint)
    raise RefusedSetting


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """[server]."""

    host: str = key(Text(253), "127.0.0.1", "the address to listen on")
    port: int = key(Whole(0, 65_535), 8765, "the port to listen on; 0 is any free one")
    token: str = key(
        ValueKind("16 to 200 visible ASCII characters", _token),
        "",
        "the token that clients must send; empty for none",
        secret=True,
    )
    connections_per_peer: int = key(
        Whole(8, 10_000),
        64,
        "the most connections open at once from one address; behind a reverse proxy all browsers "
        "share one",
    )
    cache_bytes: int | None = key(
        Single(
            "whole number, 0 or more",
            lambda value: value if type(value) is int and 0 <= value < 1 << 50 else None,
            "a whole number of bytes, 0 or more",
            "correct it",
        ),
        None,
        "the most bytes of states and answers that are kept for the next request; without it a "
        "quarter of the limit of its control group, or of the machine's memory",
    )
    max_slices: int = key(
        Whole(1000, 100_000_000),
        10_000,
        "the most slices of one answer, each counted for every metric and window",
    )


@dataclass(frozen=True, slots=True)
class DedupConfig:
    """[dedup]. An event is a repeat if an earlier one in its partition has the same id, at most
    `retention_s` of event time ago."""

    event_id: str = state_key(
        FieldPath(),
        Required("a dotted path", "name the field that an event and its repeats share"),
        "the id that an event and its repeats share: a text or a whole number; required in each "
        "event",
    )
    retention_s: int = state_key(
        Seconds(1, YEAR_S), DAY_S, "how long ids are remembered, in event time"
    )
    keyed: bool = key(
        Switch("state whether repeats go to the same partition"),
        False,
        "`true` if repeats go to the same partition; required for a topic of several partitions",
    )

    @property
    def retention_ms(self) -> int:
        """The minimum time that ids are remembered."""
        return self.retention_s * 1000

    @property
    def pane_ms(self) -> int:
        """The length of the panes of event time by which ids are stored and dropped."""
        return max(self.retention_ms // REPEAT_PANES, 1000)

    @property
    def plan(self) -> dict[str, object]:
        """The settings that determine which events are repeats, in plain values."""
        return {"event_id": self.event_id, "retention_s": self.retention_s}


def read_windows(section: Section, *, waiting: str = "") -> WindowsConfig:
    """Read [windows]. waiting: the table that makes events wait, and excludes late ones, such as
    "[join]"; "" if there is none."""
    windows = read(section, WindowsConfig)
    size, lateness = windows.size_s, windows.lateness_s
    windows = completed(
        section,
        windows,
        slide_s=size,
        retention_s=max(30 * DAY_S, size),
        max_ahead_s=min(MAX_AHEAD_S, lateness) if waiting else MAX_AHEAD_S,
    )
    slide = windows.slide_s
    if slide > size:
        section.bad("slide_s", f"at most size_s = {size}", "no row may fall between windows")
    if size > MAX_OVERLAP * slide:
        section.bad(
            "slide_s",
            f"at least {-(-size // MAX_OVERLAP)}, as size_s = {size} and a row is in at most "
            f"{MAX_OVERLAP:,} windows",
            "slide by more, or take shorter windows",
        )
    if windows.retention_s < size:
        section.bad("retention_s", f"at least size_s = {size}", "keep at least one window")
    if waiting and windows.max_ahead_s > lateness:
        section.bad(
            "max_ahead_s",
            f"at most lateness_s = {lateness}, since there is {waiting}",
            "an event that is further ahead makes those after it late, and late events are not "
            "counted; leave max_ahead_s out, or raise lateness_s",
        )
    if windows.retention_s * 1000 // windows.pane_ms > MAX_PANES:
        section.bad(
            "retention_s",
            f"at most {MAX_PANES} panes of {windows.pane_ms // 1000} s (the greatest common "
            "divisor of size_s and slide_s)",
            "keep less, or take larger windows",
        )
    return windows


def read_slices(section: Section, event: EventConfig) -> SlicesConfig:
    """Read [slices]; by default all rows, and each variant if that role has a path."""
    slices = read(section, SlicesConfig)
    if section.raw("by") is not None:
        return replace(slices, by=_read_groupings(section, event))
    return replace(slices, by=((), ("variant",))) if event.variant else slices


def _read_groupings(section: Section, event: EventConfig) -> tuple[tuple[str, ...], ...]:
    expected, hint = f"a list of 1 to {MAX_GROUPINGS} groupings", 'write [[], ["variant"]]'
    lists = section.elements("by", expected, hint, least=1, most=MAX_GROUPINGS)
    groupings: dict[frozenset[str], tuple[str, ...]] = {}
    for place, names in lists.table.items():
        where, expected = lists.where(place), "a list of fields"
        if not isinstance(names, list):
            lists.bad(place, expected, 'write for example ["variant"]')
        elif not all(lists.takes_path(where, name, expected) for name in names):
            continue
        elif len(names) > MAX_GROUPING_FIELDS or len(set(names)) < len(names):
            lists.bad(place, f"at most {MAX_GROUPING_FIELDS} different fields", "leave some out")
        elif "variant" in names and not event.variant:
            lists.bad(place, "fields that exist", "name [event] variant first")
        elif frozenset(names) in groupings:
            lists.bad(place, "another grouping", "remove the repetition")
        else:
            groupings[frozenset(names)] = tuple(names)
    return tuple(groupings.values())


def read_store(section: Section, directory: Path) -> StoreConfig:
    """Read [store]. A path in the file is relative to the file, a flag to the current folder."""
    store = read(section, StoreConfig)
    return (
        store if section.is_flag("url") else replace(store, url=_url_beside(directory, store.url))
    )


def _url_beside(directory: Path, url: str) -> str:
    """A store URL whose SQLite path, plain or in the URL, is made relative to `directory`."""
    if "://" not in url:
        return str(directory / Path(url).expanduser())
    scheme, slashes, path = url.partition(":///")
    if scheme.partition("+")[0] == "sqlite" and path and path != ":memory:":
        return f"{scheme}{slashes}{directory / path}"
    return url


def read_quarantine(section: Section, source: SourceConfig) -> QuarantineConfig:
    """Read [quarantine]."""
    quarantine = read(section, QuarantineConfig)
    if quarantine.topic is not None and source.kind != "kafka":
        section.bad("topic", 'nothing, since the source is not "kafka"', "remove it")
    elif quarantine.topic is not None and quarantine.topic in source.topics:
        section.bad("topic", "a topic that is not read", "name another one")
    return quarantine


def read_dedup(section: Section, source: SourceConfig) -> DedupConfig | None:
    """Read [dedup]; None if it is unusable, after recording a problem."""
    dedup = read(section, DedupConfig)
    if not is_complete(section, DedupConfig):
        return None
    require_order(section, source)
    is_of_record = dedup.event_id == "key" or dedup.event_id.startswith(("key.", "header."))
    if source.kind == "kafka" and is_of_record and source.format in _MANY:
        section.bad(
            "event_id",
            "a path in the event",
            "all events of a record share its key and headers, so they would be repeats of each "
            "other",
        )
    return dedup


def require_keyed(dedup: DedupConfig | None, partitions: Collection[Partition]) -> None:
    """Raise ConfigError if a repeat may go to another partition than its original: each partition
    remembers its own ids, since no worker sees them all."""
    if dedup is None or dedup.keyed:
        return
    names = sorted(str(partition) for partition in partitions if partition.number > 0)
    if names:
        problem = Problem(
            "[dedup] keyed",
            "true, since a topic has several partitions, and each remembers only its own ids",
            f"false, with {names[0]}",
            "give events a key that repeats share, such as the event id, and write keyed = true",
        )
        raise ConfigError("the config", [problem])
