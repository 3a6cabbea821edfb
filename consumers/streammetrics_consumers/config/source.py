"""[source]: where events come from."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, get_args

from streammetrics_consumers.config.keys import Required, ValueKind, key, keys_of, read_keys
from streammetrics_consumers.config.kinds import Choice, FilePath, Several, Text, Whole
from streammetrics_consumers.config.section import ALL_KEYS, Problem, RefusedSetting, Section, Value

MAX_TOPICS: Final = 32

SourceKind = Literal["file", "stdin", "kafka", "spark"]
KafkaLibrary = Literal["kafka-python", "confluent-kafka"]
SourceFormat = Literal["jsonl", "csv", "parquet", "json", "ndjson", "array", "arrow", "columns"]

LIBRARIES: Final[tuple[KafkaLibrary, ...]] = get_args(KafkaLibrary)
FORMATS: Final[Mapping[SourceKind, tuple[SourceFormat, ...]]] = {
    "file": ("jsonl", "csv", "parquet"),
    "stdin": ("jsonl", "csv"),
    "kafka": ("json", "ndjson", "array", "arrow"),  # the last three: many events per message
    "spark": ("columns",),  # a streaming query writes to the store; `run` does not read it
}
SUFFIXES: Final[Mapping[str, SourceFormat]] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}

# Exactly-once counting depends on these settings; the Kafka source sets them.
OWNED_CLIENT_KEYS: Final = frozenset(
    [
        *("bootstrap_servers", "group_id", "enable_auto_commit", "auto_offset_reset"),
        *("isolation_level", "key_deserializer", "value_deserializer"),
    ]
)

_UNORDERED: Final = "remove it: the rows of a batch have no order, by which events are late; "
# What to do without a table that Spark cannot have.
UNORDERED: Final[Mapping[str, str]] = {
    "[join]": f"{_UNORDERED}let `streammetrics run` read the log itself, or join outcomes in the "
    "query, and give each impression its label",
    "[exposures]": f"{_UNORDERED}let `streammetrics run` read the log itself, or join exposures in "
    "the query, and name the column of the arm with `variant`",
    "[dedup]": "remove it: the rows of a batch have no order, by which one is the repeat; drop "
    "repeats in the query",
}


def _is_server(value: object) -> bool:
    if not isinstance(value, str):
        return False
    host, _, port = value.strip().rpartition(":")
    return bool(host) and port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= 65_535


def _is_topic(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= 249 and "\x00" not in value


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """[source]."""

    kind: SourceKind = key(
        Choice(get_args(SourceKind)),
        Required(
            '"file", "stdin", "kafka" or "spark"', "say where the events come from", instead="file"
        ),
        "where events come from",
    )
    format: SourceFormat = key(
        ValueKind("a format of the kind"),
        "jsonl",
        "see below; of a file by its suffix",
        shown="by kind",
    )
    path: Path | None = key(FilePath(), None, "the file", of=("file",), needed=True)
    bootstrap_servers: tuple[str, ...] = key(
        Several(
            '`"host:9092,other:9092"`, or a list',
            _is_server,
            'a text such as "host:9092,other:9092"',
            "correct it",
            is_split=True,
            may_repeat=True,
        ),
        (),
        "Kafka's servers",
        of=("kafka",),
        needed=True,
    )
    topics: tuple[str, ...] = key(
        Several(
            '`"clicks"`, `"impressions,clicks"`, or a list',
            _is_topic,
            f'a topic such as "clicks", or a list of up to {MAX_TOPICS} different ones',
            "correct it",
            most=MAX_TOPICS,
            is_split=True,
        ),
        (),
        "up to 32 topics, which are read as one source",
        name="topic",
        of=("kafka",),
        needed=True,
    )
    group: str | None = key(Text(255), None, "the consumer group", of=("kafka",), needed=True)
    query: str | None = key(
        Text(200),
        None,
        "the name in the store of the streaming query that writes to it, see "
        "[engines.md](engines.md); `run` does not read this source, and `verify` cannot replay it",
        of=("spark",),
        needed=True,
    )
    library: KafkaLibrary = key(
        Choice(LIBRARIES), "kafka-python", "the Kafka client library", of=("kafka",)
    )
    client: Mapping[str, Value] = key(
        ValueKind("table"), {}, "settings of the Kafka client", of=("kafka",), secret=True
    )
    max_event_bytes: int = key(
        Whole(64, 16 << 20, " of bytes"), 262_144, "larger events go to quarantine"
    )
    max_batch_bytes: int = key(
        Whole(1 << 20, 1 << 30, " of bytes"),
        64 << 20,
        "a batch that is larger than this after decompression ends the run with an error that "
        "names its position, see *Messages of Kafka*",
        of=("kafka",),
    )


def read_source(section: Section, directory: Path) -> SourceConfig:
    """Read [source]. directory: the base of a relative path."""
    source = read_keys(section, SourceConfig)
    path = None if source.path is None else directory / source.path
    client = _client(section, source.kind)
    source = replace(source, path=path, format=_format(section, source.kind, path), client=client)
    section.done()
    for name, declared in keys_of(SourceConfig).items():
        is_given, is_of_kind = section.raw(name) is not None, source.kind in declared.of
        if declared.needed and is_of_kind and not is_given:
            section.bad(name, f'a value, since kind is "{source.kind}"', "add it")
        elif declared.of and not is_of_kind and is_given:
            hint = "remove it, or change the kind"
            section.bad(name, f'nothing, since kind is "{source.kind}"', hint)
    return source


def require_order(section: Section, source: SourceConfig) -> None:
    """Refuse a table, [join], [exposures] or [dedup], with a source whose events have no order."""
    if source.kind == "spark":
        hint = UNORDERED[section.title]
        expected = 'nothing, since kind is "spark"'
        section.problems.append(Problem(section.title, expected, "a table", hint))


def _format(section: Section, kind: SourceKind, path: Path | None) -> SourceFormat:
    suffix = path.suffix.lower() if path is not None and kind == "file" else ""
    default, raw = SUFFIXES.get(suffix, FORMATS[kind][0]), section.raw("format")
    if raw is not None:
        with suppress(RefusedSetting):
            return Choice(FORMATS[kind]).read(section, "format", raw)
    return default


def _client(section: Section, kind: str) -> Mapping[str, Value]:
    """[source.client], overridden by the flags `-X key=value`, which arrive as `client.key`."""
    client = section.raw("client") or {}
    if not isinstance(client, dict):
        section.bad("client", "a table [source.client]", "correct it")
        return {}
    if kind == "kafka":
        flags = [flag for flag in section.overrides if flag.startswith("client.")]
        client = client | {flag.removeprefix("client."): section.raw(flag) for flag in flags}
    settings = section.inner("[source.client]", client, between=" ", secrets=(ALL_KEYS,))
    for setting, value in client.items():
        if setting in OWNED_CLIENT_KEYS:
            settings.bad(setting, "a setting that is not reserved", "remove it; the source sets it")
        elif not isinstance(value, Value):
            settings.bad(setting, "a text, number or true/false", "correct it")
    return client
