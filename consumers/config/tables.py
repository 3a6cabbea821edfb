"""The tables of a config that say where events come from and where states go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from consumers.config.schema import Section, Value, is_path

if TYPE_CHECKING:
    from consumers.config.event import EventConfig

DAY_S = 86_400
MAX_AHEAD_S = 3600  # by default, and where events are joined lateness_s if that is less
MAX_PANES = 100_000  # panes within the retention: each is a row of the store for each metric
MAX_OVERLAP = 3_600  # windows that hold one row, as in the library's Windows
MAX_GROUPINGS = 32
MAX_TOPICS = 32
MAX_GROUPING_FIELDS = 8

SourceKind = Literal["file", "stdin", "kafka", "spark"]
KafkaLibrary = Literal["kafka-python", "confluent-kafka"]
SourceFormat = Literal["jsonl", "csv", "parquet", "json", "ndjson", "array", "arrow", "columns"]

LIBRARIES = ("kafka-python", "confluent-kafka")
FORMATS = {
    "file": ("jsonl", "csv", "parquet"),
    "stdin": ("jsonl", "csv"),
    "kafka": ("json", "ndjson", "array", "arrow"),  # the last three: many events a message
    "spark": ("columns",),  # a streaming query writes; `run` reads nothing
}
SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}

# The ledger's rules need these as they are; the kafka source sets them.
OWNED_CLIENT_KEYS = (
    "bootstrap_servers", "group_id", "enable_auto_commit", "auto_offset_reset", "isolation_level",
    "key_deserializer", "value_deserializer",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """[source]. `path` is of files, `query` (its name in the ledger) of Spark, most of Kafka."""

    kind: SourceKind
    format: SourceFormat
    path: Path | None = None
    bootstrap_servers: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    group: str | None = None
    client: Mapping[str, Value] = field(default_factory=dict)
    max_event_bytes: int = 262_144
    max_batch_bytes: int = 64 << 20
    library: KafkaLibrary = "kafka-python"
    query: str | None = None


@dataclass(frozen=True, slots=True)
class WindowsConfig:
    """[windows], all in seconds of event time."""

    size_s: int = DAY_S
    slide_s: int = DAY_S
    lateness_s: int = 600
    max_ahead_s: int = MAX_AHEAD_S
    idle_timeout_s: int = 3600
    retention_s: int = 30 * DAY_S

    @property
    def pane_ms(self) -> int:
        """Windows are sums of panes of this length."""
        return gcd(self.size_s, self.slide_s) * 1000


@dataclass(frozen=True, slots=True)
class SlicesConfig:
    """[slices]. Each of `by` is one grouping, a tuple of names; () is all rows.

    A name is a role of [event] that has a path, else a dotted path in the event.
    """

    by: tuple[tuple[str, ...], ...]
    max_keys: int = 10_000

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that some grouping uses, once."""
        return tuple(dict.fromkeys(name for grouping in self.by for name in grouping))


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """[store]. `url` is a path of a SQLite file, or a URL (`postgresql://...`)."""

    url: str
    commit_interval_s: float = 5.0
    max_bad_share: float = 1.0


@dataclass(frozen=True, slots=True)
class QuarantineConfig:
    """[quarantine]. `topic` is where refused events go, at the servers of the source."""

    topic: str | None = None


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """[server]. Port 0 is any free one. token: what whoever asks must have; "" asks for none.
    connections_per_peer: open at once from one address."""

    host: str = "127.0.0.1"
    port: int = 8765
    token: str = field(default="", repr=False)
    connections_per_peer: int = 64


def read_source(section: Section, directory: Path) -> SourceConfig:
    """[source]."""
    if section.raw("kind") is None:
        section.bad("kind", '"file", "stdin", "kafka" or "spark"', "say where the events come from")
    kind = section.choice("kind", "file", tuple(FORMATS))
    path_text = section.text("path", None)
    path = directory / Path(path_text).expanduser() if path_text else None
    format_ = _read_format(section, kind, path)
    servers = _read_servers(section)
    topics = _read_topics(section)
    group = section.text("group", None, limit=255)
    query = section.text("query", None, limit=200)
    client = _read_client(section, kind)
    library = section.choice("library", LIBRARIES[0], LIBRARIES)
    limit = section.integer("max_event_bytes", 262_144, 64, 16 << 20, " of bytes")
    batch = section.integer("max_batch_bytes", 64 << 20, 1 << 20, 1 << 30, " of bytes")
    section.done()
    optional = ("client", "library", "max_batch_bytes")
    needed = {
        "file": ("path",),
        "kafka": ("bootstrap_servers", "topic", "group"),
        "stdin": (),
        "spark": ("query",),
    }
    for key in ("path", "bootstrap_servers", "topic", "group", "query", *optional):
        if key in needed[kind]:
            if section.raw(key) is None:
                section.bad(key, f'a value, since kind is "{kind}"', "add it")
        elif section.raw(key) is not None and not (key in optional and kind == "kafka"):
            section.bad(key, f'nothing, since kind is "{kind}"', "remove it, or change the kind")
    return SourceConfig(
        cast(SourceKind, kind), cast(SourceFormat, format_), path, servers, topics, group, client,
        limit, batch, cast(KafkaLibrary, library), query,
    )  # fmt: skip


def _read_format(section: Section, kind: str, path: Path | None) -> str:
    default = FORMATS[kind][0]
    if kind == "file" and path is not None:
        default = SUFFIXES.get(path.suffix.lower(), default)
    return section.choice("format", default, FORMATS[kind])


def _read_topics(section: Section) -> tuple[str, ...]:
    value = section.raw("topic")
    if value is None:
        return ()
    topics = value.split(",") if isinstance(value, str) else value
    if isinstance(topics, list) and 0 < len(topics) <= MAX_TOPICS and all(map(_is_topic, topics)):
        names = tuple(topic.strip() for topic in topics)
        if len(set(names)) == len(names):
            return names
    section.bad(
        "topic", f'a topic such as "clicks", or a list of up to {MAX_TOPICS} different ones',
        "correct it",
    )  # fmt: skip
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
    """[source.client], and over it the flags `-X key=value`, which come as `client.key`."""
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
            section.problem(where, "a setting that is free", value, "remove it; it is set for you")
        elif not isinstance(value, Value):
            section.problem(where, "a text, number or true/false", value, "correct it")
    return client


def read_windows(section: Section, *, joined: bool = False) -> WindowsConfig:
    """[windows]. joined: whether there is a [join], which late events do not take part in."""
    seconds = " of seconds"
    size = section.integer("size_s", DAY_S, 1, 366 * DAY_S, seconds)
    slide = section.integer("slide_s", size, 1, 366 * DAY_S, seconds)
    retention = section.integer("retention_s", max(30 * DAY_S, size), 1, 3660 * DAY_S, seconds)
    lateness = section.integer("lateness_s", 600, 0, 366 * DAY_S, seconds)
    default = min(MAX_AHEAD_S, lateness) if joined else MAX_AHEAD_S
    ahead = section.integer("max_ahead_s", default, 0, 366 * DAY_S, seconds)
    idle = section.integer("idle_timeout_s", 3600, 1, 366 * DAY_S, seconds)
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
            "joined; leave it out, or raise lateness_s",
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
    """[slices]; by default all rows, and each variant where there is that role."""
    default = ((), ("variant",)) if event.variant else ((),)
    max_keys = section.integer("max_keys", 10_000, 1, 10_000_000)
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
        if not isinstance(names, list) or not all(map(is_path, names)):
            section.problem(where, "a list of fields", names, 'write for example ["variant"]')
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
    """[store]. A path in the file is relative to the file, one given as a flag to where you are."""
    url = section.text("url", "streammetrics.db")
    if "url" not in section.overrides:
        url = _beside(directory, url)
    interval = section.number("commit_interval_s", 5.0, 0.01, 3600, " of seconds")
    share = section.number("max_bad_share", 1.0, 0, 1)
    section.done()
    return StoreConfig(url, interval, share)


def _beside(directory: Path, url: str) -> str:
    """A store whose path, alone or in a URL of SQLite, is relative to a folder."""
    if "://" not in url:
        return str(directory / Path(url).expanduser())
    scheme, slashes, path = url.partition(":///")
    if scheme.partition("+")[0] == "sqlite" and path and path != ":memory:":
        return f"{scheme}{slashes}{directory / path}"
    return url


def read_quarantine(section: Section, source: SourceConfig) -> QuarantineConfig:
    """[quarantine]."""
    topic = section.text("topic", None, limit=249)
    section.done()
    if topic is not None and source.kind != "kafka":
        section.bad(
            "topic", 'nothing, since its servers are those of a source "kafka"', "remove it"
        )
    elif topic is not None and topic in source.topics:
        section.bad("topic", "another topic than those that are read", "name another one")
    return QuarantineConfig(topic)


def read_server(section: Section) -> ServerConfig:
    """[server]."""
    server = ServerConfig(
        section.text("host", "127.0.0.1", limit=253),
        section.integer("port", 8765, 0, 65_535),
        section.text("token", ""),
        section.integer("connections_per_peer", 64, 8, 10_000),
    )
    problem = token_problem(server.token)
    if problem is not None:
        # What came stays unsaid: it may be most of a secret.
        section.problem(
            section.where("token"), problem, "another", "make one, as with openssl rand -hex 16"
        )
    section.done()
    return server


def token_problem(token: str) -> str | None:
    """What a token should have been; None where it may be one, or is none.

    >>> token_problem("short"), token_problem("0123456789abcdef")
    ('16 to 200 letters, digits and marks of ASCII, without spaces', None)
    """
    if not token or (16 <= len(token) <= 200 and all("!" <= letter <= "~" for letter in token)):
        return None
    return "16 to 200 letters, digits and marks of ASCII, without spaces"
