"""[dedup]: events that were sent twice, by an id that each has."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from consumers.config.schema import ConfigError, Problem, Section
from consumers.config.tables import DAY_S

if TYPE_CHECKING:
    from consumers.config.tables import SourceConfig
    from consumers.model.partition import Partition

PANES: Final = 24  # of event time in the retention: ids are stored, and forgotten, by these
_MANY: Final = ("ndjson", "array", "arrow")  # formats of many events a record


@dataclass(frozen=True, slots=True)
class DedupConfig:
    """[dedup]. An event is a repeat where one with the same id came before it in its partition, at
    most `retention_s` of event time ago. keyed: whether repeats come to the same partition."""

    event_id: str
    retention_s: int = DAY_S
    keyed: bool = False

    @property
    def retention_ms(self) -> int:
        """How long ids are remembered at least."""
        return self.retention_s * 1000

    @property
    def pane_ms(self) -> int:
        """Ids are stored, and forgotten, by panes of event time of this length."""
        return max(self.retention_ms // PANES, 1000)

    @property
    def plan(self) -> dict[str, object]:
        """What decides which events are repeats, in plain values."""
        return {"event_id": self.event_id, "retention_s": self.retention_s}


def read_dedup(section: Section, source: SourceConfig) -> DedupConfig | None:
    """[dedup]; None where it is too bad to go on with, and a problem says so."""
    path = section.path("event_id")
    if section.raw("event_id") is None:
        section.bad("event_id", "a dotted path",
                    "name the field that an event and its repeats share")  # fmt: skip
    retention = section.integer("retention_s", DAY_S, 1, 366 * DAY_S, " of seconds")
    keyed = section.raw("keyed")
    if keyed is not None and not isinstance(keyed, bool):
        section.bad("keyed", "true or false", "say whether repeats come to the same partition")
    section.done()
    if path is None:
        return None
    beside = path == "key" or path.startswith(("key.", "header."))
    if source.kind == "kafka" and beside and source.format in _MANY:
        section.bad("event_id", "a path in the event", "all events of a record have its key and "
                    "its headers, so they would be repeats of each other")  # fmt: skip
    return DedupConfig(path, retention, keyed is True)


def require_keyed(dedup: DedupConfig | None, partitions: Collection[Partition]) -> None:
    """Raise ConfigError where a repeat may come to another partition than what it repeats: each
    partition remembers its own ids, since no worker sees them all."""
    if dedup is None or dedup.keyed:
        return
    more = sorted(str(partition) for partition in partitions if partition.number > 0)
    if more:
        problem = Problem(
            "[dedup] keyed",
            "true, since a topic has several partitions, and ids are remembered in each alone",
            f"false, and {more[0]}",
            "give events a key that repeats share, such as the event id, and write keyed = true",
        )
        raise ConfigError("the config", [problem])
