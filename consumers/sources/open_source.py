"""The source that a config names."""

from __future__ import annotations

from consumers.config.config import Config
from consumers.sources.file_source import FileSource
from consumers.sources.source import Source, SourceError
from consumers.sources.stdin_source import StdinSource
from consumers.worker.run_options import Options


def open_source(config: Config, options: Options) -> Source:
    """Open the source of `config` to be read as `options` say.

    Raises SourceError (Disconnected where it may be there later), or ConfigError.
    """
    if config.source.kind == "kafka":
        require_package(config)
        from consumers.sources.kafka_source import KafkaSource

        return KafkaSource(config.source, options.partitions)
    if config.source.kind == "file":
        return FileSource(config.source, follow=not options.until_end)
    return StdinSource(config.source)


def require_package(config: Config) -> None:
    """Raise SourceError where a package is missing that reading this source needs."""
    if config.source.kind != "kafka":
        return
    try:
        import consumers.sources.kafka_source  # noqa: F401
    except ImportError as error:
        raise SourceError(
            f"reading from Kafka needs the package {error.name}; "
            "install it with: pip install 'streammetrics[kafka]'"
        ) from error
