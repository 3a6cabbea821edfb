"""The independent tables of a config: the source of events, repeats, windows, slices, the store,
quarantine and the server."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast

from streammetrics_consumers.config.declarations import (
    DAY_S,
    FORMATS,
    MAX_AHEAD_S,
    MAX_BATCH_BYTES,
    MAX_EVENT_BYTES,
    SOURCE,
)
from streammetrics_consumers.config.event import EventConfig
from streammetrics_consumers.config.section import ConfigError, Problem, Section, Value

if TYPE_CHECKING:
    from streammetrics_consumers.model.partition import Partition

MAX_PANES: Final = 100_000  # within the retention: a pane is a row of the store for each metric
MAX_OVERLAP: Final = 3_600  # windows that contain one row, as in the library's Windows
MAX_GROUPINGS: Final = 32
MAX_TOPICS: Final = 32
MAX_GROUPING_FIELDS: Final = 8
REPEAT_PANES: Final = 24  # per retention of [dedup]: ids are stored by these panes of event time

SourceKind = Literal["file", "stdin", "kafka", "spark"]
KafkaLibrary = Literal["kafka-python", "confluent-kafka"]
SourceFormat = Literal["jsonl", "csv", "parquet", "json", "ndjson", "array", "arrow", "columns"]

SUFFIXES: Final = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_VISIBLE: Final = frozenset(map(chr, range(ord("!"), ord("~") + 1)))
_MANY: Final = ("ndjson", "array", "arrow")  # formats with many events per record

# Exactly-once counting depends on these settings; the Kafka source sets them.
OWNED_CLIENT_KEYS: Final = frozenset(
    [
        *("bootstrap_servers", "group_id", "enable_auto_commit", "auto_offset_reset"),
        *("isolation_level", "key_deserializer", "value_deserializer"),
    ]
)


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """[source]. `path` is for files, `query` (the ledger name) for Spark, most others for Kafka."""

    kind: SourceKind
    format: SourceFormat
    path: Path | None = None
    bootstrap_servers: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    group: str | None = None
    client: Mapping[str, Value] = field(default_factory=dict)
    max_event_bytes: int = MAX_EVENT_BYTES
    max_batch_bytes: int = MAX_BATCH_BYTES
    library: KafkaLibrary = "kafka-python"
    query: str | None = None


@dataclass(frozen=True, slots=True)
class WindowsConfig:
    """[windows], all in seconds of event time."""

    size_s: int
    slide_s: int
    lateness_s: int
    max_ahead_s: int
    idle_timeout_s: int
    retention_s: int

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

    by: tuple[tuple[str, ...], ...]
    max_keys: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names in all groupings, each once."""
        return tuple(dict.fromkeys(name for grouping in self.by for name in grouping))


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """[store]. `url` is the path of a SQLite file, or a URL (`postgresql://...`). A commit is due
    after `commit_interval_s`, before that for a log with `commit_events` uncommitted events, and
    for all logs of a worker once their deltas hold `commit_bytes` of memory."""

    url: str
    commit_interval_s: float
    commit_events: int
    commit_bytes: int
    max_bad_share: float


@dataclass(frozen=True, slots=True)
class QuarantineConfig:
    """[quarantine]. `topic` receives refused events, on the servers of the source."""

    topic: str | None = None


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """[server]. Port 0 is any free one. token: required from every client, unless it is "".
    connections_per_peer: the limit of simultaneous connections from one address. cache_bytes: of
    states and answers; None: by the memory of the process. max_slices: of one answer."""

    host: str
    port: int
    token: str = field(repr=False)
    connections_per_peer: int
    cache_bytes: int | None
    max_slices: int


@dataclass(frozen=True, slots=True)
class DedupConfig:
    """[dedup]. An event is a repeat if an earlier one in its partition has the same id, at most
    `retention_s` of event time ago. keyed: whether repeats go to the same partition."""

    event_id: str
    retention_s: int = DAY_S
    keyed: bool = False

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


def read_source(section: Section, directory: Path) -> SourceConfig:
    """Read [source]."""
    kind = section.choice("kind") or "file"
    path_text = section.text("path")
    path = directory / Path(path_text).expanduser() if path_text else None
    found = SourceConfig(
        kind=cast(SourceKind, kind),
        format=cast(SourceFormat, _read_format(section, kind, path)),
        path=path,
        bootstrap_servers=_read_servers(section),
        topics=_read_topics(section),
        group=section.text("group") or None,
        query=section.text("query") or None,
        client=_read_client(section, kind),
        library=cast(KafkaLibrary, section.choice("library")),
        max_event_bytes=section.whole("max_event_bytes"),
        max_batch_bytes=section.whole("max_batch_bytes"),
    )
    section.done()
    for name, key in SOURCE.items():
        given = section.raw(name) is not None
        if key.required and kind in key.of and not given:
            section.bad(name, f'a value, since kind is "{kind}"', "add it")
        elif key.of and kind not in key.of and given:
            hint = "remove it, or change the kind"
            section.bad(name, f'nothing, since kind is "{kind}"', hint)
    return found


def _read_format(section: Section, kind: str, path: Path | None) -> str:
    default = FORMATS[kind][0]
    if kind == "file" and path is not None:
        default = SUFFIXES.get(path.suffix.lower(), default)
    return section.one_of("format", FORMATS[kind], default)


def _read_topics(section: Section) -> tuple[str, ...]:
    value = section.raw("topic")
    if value is None:
        return ()
    topics = value.split(",") if isinstance(value, str) else value
    if isinstance(topics, list) and 0 < len(topics) <= MAX_TOPICS and all(map(_is_topic, topics)):
        names = tuple(topic.strip() for topic in topics)
        if len(set(names)) == len(names):
            return names
    expected = f'a topic such as "clicks", or a list of up to {MAX_TOPICS} different ones'
    hint = "correct it"
    section.bad("topic", expected, hint)
    return ()


def _is_topic(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= 249 and "\x00" not in value


def _read_servers(section: Section) -> tuple[str, ...]:
    value = section.raw("bootstrap_servers")
    if value is None:
        return ()
    servers = value.split(",") if isinstance(value, str) else value
    if isinstance(servers, list) and servers and all(map(_is_server, servers)):
        return tuple(server.strip() for server in servers)
    section.bad("bootstrap_servers", 'a text such as "host:9092,other:9092"', "correct it")
    return ()


def _is_server(value: object) -> bool:
    if not isinstance(value, str):
        return False
    host, _, port = value.strip().rpartition(":")
    return bool(host) and port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= 65_535


def _read_client(section: Section, kind: str) -> Mapping[str, Value]:
    """[source.client], overridden by the flags `-X key=value`, which arrive as `client.key`."""
    client = section.raw("client") or {}
    if not isinstance(client, dict):
        section.bad("client", "a table [source.client]", "correct it")
        return {}
    if kind == "kafka":
        flags = [key for key in section.overrides if key.startswith("client.")]
        client = client | {key.removeprefix("client."): section.raw(key) for key in flags}
    for key, value in client.items():
        where = f"[source.client] {key}"
        if key in OWNED_CLIENT_KEYS:
            section.problem(
                where, "a setting that is not reserved", value, "remove it; the source sets it"
            )
        elif not isinstance(value, Value):
            section.problem(where, "a text, number or true/false", value, "correct it")
    return client


def read_windows(section: Section, *, joined: bool = False) -> WindowsConfig:
    """Read [windows]. joined: whether there is a [join], which excludes late events."""
    size = section.whole("size_s")
    slide = section.whole("slide_s", size)
    retention = section.whole("retention_s", max(30 * DAY_S, size))
    lateness = section.whole("lateness_s")
    ahead = section.whole("max_ahead_s", min(MAX_AHEAD_S, lateness) if joined else None)
    idle = section.whole("idle_timeout_s")
    section.done()
    if slide > size:
        section.bad("slide_s", f"at most size_s = {size}", "no row may fall between windows")
    if size > MAX_OVERLAP * slide:
        section.bad(
            "slide_s",
            f"at least {-(-size // MAX_OVERLAP)}, as size_s = {size} and a row is in at most "
            f"{MAX_OVERLAP:,} windows",
            "slide by more, or take shorter windows",
        )
    if retention < size:
        section.bad("retention_s", f"at least size_s = {size}", "keep at least one window")
    if joined and ahead > lateness:
        section.bad(
            "max_ahead_s",
            f"at most lateness_s = {lateness}, since there is a [join]",
            "an event that is further ahead makes those after it late, and late events are not "
            "joined; leave max_ahead_s out, or raise lateness_s",
        )
    windows = WindowsConfig(size, slide, lateness, ahead, idle, retention)
    panes = retention * 1000 // windows.pane_ms
    if panes > MAX_PANES:
        section.bad(
            "retention_s",
            f"at most {MAX_PANES} panes of {windows.pane_ms // 1000} s (the greatest common "
            "divisor of size_s and slide_s)",
            "keep less, or take larger windows",
        )
    return windows


def read_slices(section: Section, event: EventConfig) -> SlicesConfig:
    """Read [slices]; by default all rows, and each variant if that role has a path."""
    default = ((), ("variant",)) if event.variant else ((),)
    max_keys = section.whole("max_keys")
    value = section.raw("by")
    section.done()
    if value is None:
        return SlicesConfig(default, max_keys)
    if not isinstance(value, list) or not 0 < len(value) <= MAX_GROUPINGS:
        section.bad("by", f"a list of 1 to {MAX_GROUPINGS} groupings", 'write [[], ["variant"]]')
        return SlicesConfig(default, max_keys)
    by: list[tuple[str, ...]] = []
    for i, names in enumerate(value):
        where = f"[slices] by[{i}]"
        if not isinstance(names, list):
            section.problem(where, "a list of fields", names, 'write for example ["variant"]')
        elif not all(section.takes_path(where, name, "a list of fields") for name in names):
            continue
        elif len(names) > MAX_GROUPING_FIELDS or len(set(names)) < len(names):
            section.problem(
                where, f"at most {MAX_GROUPING_FIELDS} different fields", names, "leave some out"
            )
        elif "variant" in names and not event.variant:
            section.problem(where, "fields that exist", names, "name [event] variant first")
        elif frozenset(names) in map(frozenset, by):
            section.problem(where, "another grouping", names, "remove the repetition")
        else:
            by.append(tuple(names))
    return SlicesConfig(tuple(by), max_keys)


def read_store(section: Section, directory: Path) -> StoreConfig:
    """Read [store]. A path in the file is relative to the file, a flag to the current folder."""
    url = section.text("url")
    if "url" not in section.overrides:
        url = _beside(directory, url)
    found = StoreConfig(
        url,
        section.number("commit_interval_s"),
        section.whole("commit_events"),
        section.whole("commit_bytes"),
        section.number("max_bad_share"),
    )
    section.done()
    return found


def _beside(directory: Path, url: str) -> str:
    """A store URL whose SQLite path, plain or in the URL, is made relative to `directory`."""
    if "://" not in url:
        return str(directory / Path(url).expanduser())
    scheme, slashes, path = url.partition(":///")
    if scheme.partition("+")[0] == "sqlite" and path and path != ":memory:":
        return f"{scheme}{slashes}{directory / path}"
    return url


def read_quarantine(section: Section, source: SourceConfig) -> QuarantineConfig:
    """Read [quarantine]."""
    topic = section.text("topic") or None
    section.done()
    if topic is not None and source.kind != "kafka":
        section.bad("topic", 'nothing, since the source is not "kafka"', "remove it")
    elif topic is not None and topic in source.topics:
        section.bad("topic", "a topic that is not read", "name another one")
    return QuarantineConfig(topic)


def read_server(section: Section) -> ServerConfig:
    """Read [server]."""
    found = ServerConfig(
        section.text("host"),
        section.whole("port"),
        _read_token(section),
        section.whole("connections_per_peer"),
        _read_cache_bytes(section),
        section.whole("max_slices"),
    )
    section.done()
    return found


def _read_cache_bytes(section: Section) -> int | None:
    value = section.raw("cache_bytes")
    if value is None or (type(value) is int and 0 <= value < 1 << 50):
        return value
    section.bad("cache_bytes", "a whole number of bytes, 0 or more", "correct it")
    return None


def _read_token(section: Section) -> str:
    token = section.raw("token")
    if token is None:
        return ""
    if isinstance(token, str) and 16 <= len(token) <= 200 and set(token) <= _VISIBLE:
        return token
    expected = "16 to 200 visible ASCII characters, without spaces"
    # The message omits the value: it may be most of a secret.
    section.problem(
        section.where("token"),
        expected,
        "another",
        "generate one, such as with openssl rand -hex 16",
    )
    return ""


def read_dedup(section: Section, source: SourceConfig) -> DedupConfig | None:
    """Read [dedup]; None if it is unusable, after recording a problem."""
    path = section.path("event_id")
    retention = section.whole("retention_s")
    keyed = section.switch("keyed")
    section.done()
    if path is None:
        return None
    beside = path == "key" or path.startswith(("key.", "header."))
    if source.kind == "kafka" and beside and source.format in _MANY:
        section.bad(
            "event_id",
            "a path in the event",
            "all events of a record share its key and headers, so they would be repeats of each "
            "other",
        )
    return DedupConfig(path, retention, keyed is True)


def require_keyed(dedup: DedupConfig | None, partitions: Collection[Partition]) -> None:
    """Raise ConfigError if a repeat may go to another partition than its original: each partition
    remembers its own ids, since no worker sees them all."""
    if dedup is None or dedup.keyed:
        return
    more = sorted(str(partition) for partition in partitions if partition.number > 0)
    if more:
        problem = Problem(
            "[dedup] keyed",
            "true, since a topic has several partitions, and each remembers only its own ids",
            f"false, with {more[0]}",
            "give events a key that repeats share, such as the event id, and write keyed = true",
        )
        raise ConfigError("the config", [problem])
