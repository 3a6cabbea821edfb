"""`run --check`, and what is refused before a store is made. Nothing of this changes anything."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.failures import NotAStore
from streammetrics_consumers.ledger.ledger import Ledger, LogChanged, NewSource
from streammetrics_consumers.ledger.settings import SettingsChanged
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.model.generation import Requested
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service
from streammetrics_consumers.process.preflight import check, require_options
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.sources.memory_source import Log, MemorySource
from streammetrics_consumers.sources.source import Disconnected, GapError, Unsuitable

from tests.consumers.small_config import config, event

ONE = Partition("test", "events", "id", 0)
UNTIL_END = Options(until_end=True)


class Place:
    """A config with a store in a folder, and logs that may be counted or checked."""

    def __init__(self, folder: Path, **parts: str) -> None:
        made = config(**parts)
        self.folder = folder
        self.config = replace(made, store=replace(made.store, url=str(folder / "run.db")))
        self.logs = {ONE: Log([event()] * 5)}

    def opener(self, config: Config, options: Options) -> MemorySource:
        return MemorySource(self.logs)

    def count(self) -> None:
        service.run(self.config, UNTIL_END, stop=Stop(), opener=self.opener)

    def check(self, options: Options = UNTIL_END, *, new_generation: bool = False) -> list[str]:
        return check(self.config, options, new_generation=new_generation, opener=self.opener)

    def tables(self) -> list[str]:
        """Every row of the store, as text."""
        with closing(Ledger.open(self.config.store.url)) as ledger:
            return [
                repr(ledger.generations()),
                repr(ledger.snapshot(lambda seen: [size.pane for size in seen.panes])),
            ]


def test_a_check_without_a_store_makes_none(tmp_path: Path) -> None:
    place = Place(tmp_path)
    lines = place.check()
    assert lines[0] == "events/0: offsets 0 to 5"
    assert lines[1].endswith("run.db: not there yet; a run makes it")
    assert list(tmp_path.iterdir()) == []


def test_a_check_of_a_store_leaves_every_byte_as_it_was(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.count()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    lines = place.check()
    assert lines[1].endswith("run.db: generation 1")
    assert lines[2] == "events/0: counted up to offset 5"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_check_starts_no_metric_ends_none_and_begins_no_generation(tmp_path: Path) -> None:
    Place(tmp_path).count()
    other = Place(tmp_path, metrics='other = { type = "Ratio" }')
    before = other.tables()
    with pytest.raises(SettingsChanged, match="or end it with --drop-metric auc"):
        other.check()
    lines = other.check(replace(UNTIL_END, requested=Requested(drop=("auc", "ctr"))))
    assert "metric other: new; it would start at the offsets reached so far" in lines
    assert "metric ctr: dropped; it would end at the offsets reached so far" in lines
    assert other.check(new_generation=True)[-1].endswith("a run starts generation 2")
    assert other.tables() == before


def test_a_check_names_settings_that_differ(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.count()
    windows = replace(place.config.windows, size_s=60, slide_s=60)
    place.config = replace(place.config, windows=windows)
    with pytest.raises(SettingsChanged, match=r"windows\.size_s was 3600, is 60"):
        place.check()


def test_a_check_finds_another_log_and_a_gap(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.count()
    place.logs = {ONE: Log([event()] * 5, beginning=8)}
    with pytest.raises(GapError, match="stands at offset 5, but the log holds 8 to 13"):
        place.check()
    place.logs = {ONE: Log([event()] * 3)}
    with pytest.raises(GapError, match="stands at offset 5, but the log holds 0 to 3"):
        place.check()
    place.logs = {replace(ONE, topic_id="new"): Log([event()] * 9)}
    with pytest.raises(LogChanged):
        place.check()
    assert place.check(Options(on_gap="skip"))


def test_a_check_does_not_touch_a_database_of_someone_else(tmp_path: Path) -> None:
    import sqlite3

    place = Place(tmp_path)
    with closing(sqlite3.connect(tmp_path / "run.db")) as theirs:
        theirs.execute("CREATE TABLE mine (x)")
        theirs.commit()
    before = (tmp_path / "run.db").read_bytes()
    with pytest.raises(NotAStore, match="no ledger in this database"):
        place.check()
    assert (tmp_path / "run.db").read_bytes() == before


def test_partitions_of_a_topic_are_asked_for_before_a_store_is_made(tmp_path: Path) -> None:
    place = Place(tmp_path)
    kafka = replace(place.config, source=replace(place.config.source, kind="kafka"))
    with pytest.raises(Unsuitable, match="expected some of 0, which are there, got 3, 7"):
        require_options(kafka, Options(partitions=(7, 0, 3)), opener=place.opener)
    require_options(kafka, Options(partitions=(0,)), opener=place.opener)


def test_a_broker_that_is_away_is_not_asked_twice(tmp_path: Path) -> None:
    def away(config: Config, options: Options) -> MemorySource:
        raise Disconnected("no broker")

    place = Place(tmp_path)
    kafka = replace(place.config, source=replace(place.config.source, kind="kafka"))
    require_options(kafka, Options(partitions=(7,)), opener=away)


def test_a_missing_client_is_named_with_its_extra_before_a_store_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(
        sys.modules, "streammetrics_consumers.sources.kafka.kafka_source", raising=False
    )
    monkeypatch.delattr("streammetrics_consumers.sources.kafka.kafka_source", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "kafka"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kafka", None)
    place = Place(tmp_path)
    kafka = replace(place.config, source=replace(place.config.source, kind="kafka"))
    with pytest.raises(SourceError, match=r"package kafka.*pip install 'streammetrics\[kafka\]'"):
        require_options(kafka, Options())


def test_a_check_names_a_topic_that_is_new_to_the_store(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.count()
    before = place.tables()
    place.logs = {replace(ONE, topic="views"): Log([event()] * 9)}
    with pytest.raises(NewSource, match=r"got views of cluster test.*--new-source"):
        place.check(Options(on_gap="skip"))
    lines = place.check(Options(new_source=True))
    assert "source views of cluster test: new to the store; a run adds its events to what is "\
        "counted" in lines  # fmt: skip
    assert place.tables() == before
    place.logs = {replace(ONE, cluster="other"): Log([event()] * 9)}
    with pytest.raises(NewSource, match="got events of cluster other"):
        place.check()
    assert place.check(Options(new_source=True))
