"""Stores and state files that were written by the code of each schema version (former/write.py):
they are read as they are, continued, or refused before anything is written."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.ledger.failures import SchemaMismatch, SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import VERSION
from streammetrics_consumers.ledger.store import open_store
from streammetrics_consumers.model.generation import Pane

from streammetrics import Accumulator, load
from streammetrics.engines import agree
from tests.consumers.ledger.former.write import FIRST, HERE, KINDS, config, lines
from tests.consumers.stores import stored

FILES = [
    (version, kind)
    for version in range(1, VERSION)
    for kind, since in KINDS.items()
    if version >= since
]

if TYPE_CHECKING:
    pass

# Metrics whose states of that version cannot be read, in words that name the state.
UNREADABLE = {
    (1, "plain"): {"by_user": "grouped-auc/4", "ctr": "ratio/1"},
    (2, "plain"): {"by_user": "grouped-auc/4", "ctr": "ratio/1"},
    (3, "plain"): {"ctr": "ratio/1"},
    # Groups of users held scores on a fixed grid.
    **{
        (version, kind): {"experiment/auc": "user-groups/1"}
        for version in (4, 5, 6, 7)
        for kind in ("experiment", "join")
        if version >= KINDS[kind]
    },
}
DROPPED_LATE = [(5, "join")]  # it dropped late events of a join, and counts them nowhere
CONTINUED = [file for file in FILES if file not in [*UNREADABLE, *DROPPED_LATE]]


def former(folder: Path, version: int, kind: str, log: list[str] | None = None) -> Path:
    """The config of a former store in a folder, with that store, and the whole log."""
    shutil.copy(HERE / f"version_{version}_{kind}.sqlite", folder / "store.db")
    return fresh(folder, kind, log)


def fresh(folder: Path, kind: str, log: list[str] | None = None) -> Path:
    """The same config without a store."""
    folder.mkdir(exist_ok=True)
    (folder / "clicks.jsonl").write_text("".join(log or lines(kind)), encoding="utf-8")
    path = folder / "clicks.toml"
    path.write_text(config(kind), encoding="utf-8")
    return path


def run(path: Path, *flags: str) -> int:
    """Count to the end."""
    return main(["run", str(path), "--until-end", "--no-serve", *flags])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The store of this version that has counted a whole log, by the kind of its config. It is only
    read."""

    @cache
    def counted(kind: str) -> Path:
        folder = tmp_path_factory.mktemp(kind)
        assert run(fresh(folder, kind)) == 0
        return folder / "store.db"

    return counted


def digests(store: Path) -> Mapping[Pane, str]:
    """The digest of each pane."""
    return {pane: state.digest() for pane, state in states(store).items()}


def states(store: Path) -> Mapping[Pane, Accumulator]:
    """The state of each pane."""
    with closing(Ledger.open(str(store))) as ledger:
        return stored(ledger).sums(lambda row: row.pane)


def file_hash(path: Path) -> str:
    """The hash of all files of a store."""
    files = sorted(path.parent.glob(f"{path.name}*"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@pytest.mark.parametrize(("version", "kind"), CONTINUED)
def test_a_former_store_goes_on_as_if_this_version_had_counted_all_of_it(
    tmp_path: Path, version: int, kind: str, whole: Callable[[str], Path]
) -> None:
    path = former(tmp_path, version, kind)
    assert run(path) == 0
    if (version, kind) == (7, "means"):
        continued, counted = states(tmp_path / "store.db"), states(whole(kind))
        assert continued.keys() == counted.keys()
        assert all(agree(state, counted[pane]) for pane, state in continued.items())
        unknown = {pane.metric for pane, state in continued.items() if state != counted[pane]}
        assert unknown == {"error", "fit", "experiment/error"}, "only their cubes are unknown"
    else:
        assert digests(tmp_path / "store.db") == digests(whole(kind))
    assert main(["verify", str(path)]) == 0
    assert run(path) == 0  # a second start finds nothing to change


@pytest.mark.parametrize(("version", "kind"), FILES)
def test_readers_leave_a_former_store_as_it_is(
    tmp_path: Path, version: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = former(tmp_path, version, kind)
    store = tmp_path / "store.db"
    before = file_hash(store)
    for command in ("results", "status"):
        code = main([command, str(store)])
        unreadable = UNREADABLE.get((version, kind), {})
        if command == "results" and "experiment/auc" in unreadable:
            assert code == 0
            output = capsys.readouterr()
            assert "experiment is not shown: state bytes" in output.out and not output.err
            assert main([command, str(store), "--metric", "auc"]) == 0
        elif command == "results" and unreadable:
            assert code == 1
            assert "), got '" in capsys.readouterr().err
            assert main([command, str(store), "--metric", "auc"]) == 0
        else:
            assert code == 0
        assert "auc" in capsys.readouterr().out
    assert main(["quarantine", str(store)]) == 0
    assert "{" in capsys.readouterr().out
    if (version, kind) in CONTINUED:
        assert main(["verify", str(path)]) == 0
        assert "agrees with the log" in capsys.readouterr().out
    for command in (["compact", str(store)], ["quarantine", "retry", str(store)]):
        flags = ["--config", str(path)] if "retry" in command else []
        assert main([*command, *flags]) == 3
    assert file_hash(store) == before


def test_a_reader_goes_on_while_a_writer_migrates(tmp_path: Path) -> None:
    path = former(tmp_path, 5, "rates")
    with closing(Ledger.open(str(tmp_path / "store.db"))) as reader:
        before = reader.snapshot()
        assert reader.store.version == 5
        assert run(path) == 0
        after = reader.snapshot()
    assert before.counters.rows < after.counters.rows
    with closing(Ledger.open(str(tmp_path / "store.db"))) as now:
        assert now.snapshot() == after


@pytest.mark.parametrize(("version", "kind"), [*UNREADABLE, *DROPPED_LATE])
def test_a_store_that_cannot_go_on_is_refused_before_anything_is_written(
    tmp_path: Path, version: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = former(tmp_path, version, kind)
    before = file_hash(tmp_path / "store.db")
    for flags in (["--check"], []):
        assert run(path, *flags) == 3
        stderr = capsys.readouterr().err
        for name, state in UNREADABLE.get((version, kind), {}).items():
            assert f"metric {name}: the store holds states of {state}" in stderr
            experiment = name.startswith("experiment/")
            flag = "--drop-metric experiment" if experiment else f"--restart-metric {name}"
            assert flag in stderr
        assert "--new-generation" in stderr
        if not flags:
            assert f"its schema still has version {version}" in stderr
        assert file_hash(tmp_path / "store.db") == before


@pytest.mark.parametrize(("version", "kind"), [file for file in UNREADABLE if file[1] == "plain"])
def test_a_metric_whose_states_cannot_be_read_is_counted_anew_on_request(
    tmp_path: Path, version: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = former(tmp_path, version, kind)
    names = UNREADABLE[version, kind]
    flags = [f"--restart-metric={name}" for name in names]
    assert run(path, *flags, "--check") == 0
    stderr = capsys.readouterr().err
    for name in names:
        assert f"metric {name}: counted anew; a run drops its stored states" in stderr
    assert run(path, *flags) == 0
    assert run(path, *flags) == 0  # a restart with the same flags changes nothing
    assert run(fresh(tmp_path / "whole", kind)) == 0
    assert run(fresh(tmp_path / "rest", kind, lines(kind)[FIRST:])) == 0
    expected = {
        pane: digest
        for folder, is_new in (("whole", False), ("rest", True))
        for pane, digest in digests(tmp_path / folder / "store.db").items()
        if (pane.metric in names) == is_new
    }
    assert digests(tmp_path / "store.db") == expected
    assert main(["verify", str(path)]) == 0


def test_states_that_no_one_reads_any_more_stay_as_they_are(tmp_path: Path) -> None:
    path = former(tmp_path, 1, "plain")
    config_lines = [
        line for line in config("plain").splitlines() if not line.startswith(("ctr", "by_"))
    ]
    path.write_text("\n".join(config_lines), encoding="utf-8")
    assert run(path, "--drop-metric=ctr", "--drop-metric=by_user") == 0
    store = str(tmp_path / "store.db")
    with closing(sqlite3.connect(store)) as database, database:
        # As if it had been counted in two commits.
        copied = ", ".join(
            row[1] for row in database.execute("PRAGMA table_info(delta)") if row[1] != "id"
        )
        shifted = copied.replace("start_offset", "end_offset").replace(
            "end_offset, end_offset", "end_offset, end_offset + 1"
        )
        query = f"INSERT INTO delta ({copied}) SELECT {shifted} FROM delta WHERE metric = 'ctr'"
        database.execute(query)
        count = "SELECT count(*), sum(nbytes) FROM delta WHERE metric = 'ctr'"
        before = database.execute(count).fetchone()
    assert before[0] > 1
    assert main(["compact", store]) == 0
    assert main(["results", store]) == 0
    assert main(["verify", str(path)]) == 0
    with closing(sqlite3.connect(store)) as database:
        assert database.execute(count).fetchone() == before


NAMED = """\
[experiments.ranker]
control = "old"
variants = ["old", "new"]
decision = ["ctr"]
mdes = { ctr = 0.05 }
"""


def test_a_former_experiment_goes_on_beside_one_with_a_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = former(tmp_path, 7, "rates")
    path.write_text(config("rates") + NAMED, encoding="utf-8")
    assert run(path, "--check") == 0
    stderr = capsys.readouterr().err
    assert "experiment ranker: added; it would count events from these offsets on" in stderr
    assert run(path) == 0
    assert run(fresh(tmp_path / "whole", "rates")) == 0
    rest = fresh(tmp_path / "rest", "rates", lines("rates")[FIRST:])
    rest.write_text(config("rates") + NAMED, encoding="utf-8")
    assert run(rest) == 0
    expected = digests(tmp_path / "whole" / "store.db")
    assert any(pane.metric.startswith("experiment/") for pane in expected)
    added = {
        pane: digest
        for pane, digest in digests(tmp_path / "rest" / "store.db").items()
        if pane.metric.startswith("experiment/ranker/")
    }
    assert added
    assert digests(tmp_path / "store.db") == {**expected, **added}
    assert main(["verify", str(path)]) == 0
    for flags in ([], ["--experiment", "ranker"]):
        assert main(["results", str(tmp_path / "store.db"), *flags]) == 0


def test_a_metric_of_a_former_layout_that_counted_nothing_goes_on(tmp_path: Path) -> None:
    path = former(tmp_path, 7, "means")
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("DELETE FROM delta")
    assert run(path, "--check") == 0
    path.write_text(
        config("means").replace('"Calibration"', '"Calibration", bins = 3'), encoding="utf-8"
    )
    assert run(path, "--check") == 3


def test_verify_finds_a_changed_state_beside_what_is_unknown(tmp_path: Path) -> None:
    path = former(tmp_path, 7, "means")
    assert run(path) == 0
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        rows = "SELECT max(id) FROM delta WHERE metric = 'error' AND window_start_ms IS NULL"
        assert database.execute(f"DELETE FROM delta WHERE id = ({rows})").rowcount == 1
    assert main(["verify", str(path)]) == 6


def test_a_check_says_that_a_run_migrates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = former(tmp_path, 5, "rates")
    before = file_hash(tmp_path / "store.db")
    assert run(path, "--check") == 0
    stderr = capsys.readouterr().err
    assert f"its schema has version 5; a run migrates it to version {VERSION}" in stderr
    assert "counted up to offset" in stderr
    assert file_hash(tmp_path / "store.db") == before
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    for flags in (["--check"], []):
        assert run(path, *flags) == 3
        assert "its schema has version 99" in capsys.readouterr().err


def test_settings_that_were_changed_are_refused_by_their_present_names(tmp_path: Path) -> None:
    path = former(tmp_path, 5, "experiment")
    before = file_hash(tmp_path / "store.db")
    text = config("experiment").replace("by = [[],", "max_keys = 7\nby = [[],")
    path.write_text(text.replace('cluster = "groups"', ""), encoding="utf-8")
    settings = load_config(path)
    with pytest.raises(SettingsChanged) as caught:
        Ledger.open_to_count(
            settings.store.url, settings.fingerprints(), settings.descriptions
        ).close()
    assert "metric auc: max_keys was 10000, is 7" in caught.value.differences
    assert not any("buckets" in difference for difference in caught.value.differences)
    assert file_hash(tmp_path / "store.db") == before


@pytest.mark.parametrize(("version", "kind"), [file for file in FILES if file[1] == "plain"])
def test_a_former_state_file_merges_with_one_of_today(
    tmp_path: Path, version: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    state = HERE / f"version_{version}_{kind}.state"
    if (version, kind) in UNREADABLE:
        assert main(["show", str(state)]) == 3
        stderr = capsys.readouterr().err
        assert any(
            f"got '{state_name}'" in stderr for state_name in UNREADABLE[version, kind].values()
        )
        assert "use the release that wrote it" in stderr
        return
    for folder, log in (("rest", lines(kind)[FIRST:]), ("whole", lines(kind))):
        assert run(fresh(tmp_path / folder, kind, log)) == 0
        store, output = tmp_path / folder / "store.db", tmp_path / f"{folder}.state"
        assert main(["export", str(store), "-o", str(output)]) == 0
    merged_path = str(tmp_path / "both.state")
    assert main(["merge", str(state), str(tmp_path / "rest.state"), "-o", merged_path]) == 0
    assert load(merged_path).digest() == load(str(tmp_path / "whole.state")).digest()


@pytest.mark.parametrize(("version", "kind"), [file for file in FILES if file[0] > 3])
def test_a_former_state_file_is_shown(version: int, kind: str) -> None:
    assert main(["show", str(HERE / f"version_{version}_{kind}.state")]) == 0


def test_a_writer_without_leave_to_migrate_is_refused(tmp_path: Path) -> None:
    former(tmp_path, 4, "plain")
    store = open_store(str(tmp_path / "store.db"), create=False)
    with closing(store), pytest.raises(SchemaMismatch, match="start `streammetrics run` on it"):
        store.write(lambda connection, is_retry: None)
