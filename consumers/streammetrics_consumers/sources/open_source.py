"""Opening the source that a config names."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final, Protocol

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.model.partition import Name
from streammetrics_consumers.sources import Skips, Source, Unsuitable
from streammetrics_consumers.sources.files import FileSource, StdinSource

# The module for each library, and the extra that installs the library.
MODULES: Final = {
    "kafka-python": ("streammetrics_consumers.sources.kafka.kafka_source", "kafka"),
    "confluent-kafka": ("streammetrics_consumers.sources.kafka.confluent_source", "confluent"),
}


class ReadOptions(Protocol):
    """The options of a run that a source needs."""

    @property
    def until_end(self) -> bool: ...
    @property
    def partitions(self) -> tuple[Name, ...] | None: ...
    @property
    def skips(self) -> Skips: ...


def open_source(config: Config, options: ReadOptions) -> Source:
    """Open the source of `config` with these options.

    Raises ConfigError or SourceError (Disconnected if a later attempt may succeed; Unsuitable for
    a source that writes to the store by itself).
    """
    require_readable(config)
    if config.source.kind == "kafka":
        require_package(config)
        if config.source.library == "confluent-kafka":
            from streammetrics_consumers.sources.kafka.confluent_source import ConfluentSource

            return ConfluentSource(config.source, options.partitions, options.skips)
        from streammetrics_consumers.sources.kafka.kafka_source import KafkaSource

        return KafkaSource(config.source, options.partitions, options.skips)
    if config.source.kind == "file":
        return FileSource(config.source, follow=not options.until_end)
    return StdinSource(config.source)


def require_readable(config: Config) -> None:
    """Raise Unsuitable if this program does not read the events of a config."""
    if config.source.kind == "spark":
        raise Unsuitable(
            "[source] kind: expected a source that this program reads, got 'spark', whose query "
            "writes to the store itself; start the query (docs/engines.md), and read the store "
            "with results, serve or watch"
        )


def require_package(config: Config) -> None:
    """Raise SourceError if a package that this source needs is missing."""
    if config.source.kind != "kafka":
        return
    module, extra = MODULES[config.source.library]
    try:
        import_module(module)
    except ImportError as error:
        raise SourceError(
            f"reading from Kafka needs the package {error.name}; "
            f"install it with: pip install '.[{extra}]' in a clone of streammetrics"
        ) from error
    if config.source.format == "arrow" and find_spec("pyarrow") is None:
        raise SourceError(
            "reading Arrow messages needs the package pyarrow; "
            f"install it with: pip install '.[{extra},parquet]' in a clone of streammetrics"
        )
