"""Golden states: today's code reads yesterday's bytes, and writes the same from the same rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from streammetrics import Moments, Panel, Ratio, StateError, load
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.layouts import without_later_parts
from streammetrics.registry import setting_text
from tests.golden import write

KNOWN = write.golden_results()


def kept_bytes(name: str) -> bytes:
    data = write.state_bytes(name, KNOWN[name])
    assert data is not None, name
    return data


def read(name: str) -> Accumulator:
    return load(kept_bytes(name))


def test_golden_files_are_read_and_give_their_results() -> None:
    for name in write.GOLDEN:
        state, record = read(name), KNOWN[name]
        assert setting_text(state) == record["metric"], name
        assert state.schema == record["schema"], name
        assert state.digest() == record["digest"], name
        assert json.loads(json.dumps(write.readable(state.compute()))) == record["result"], name
        assert [list(row) for row in state.provenance] == record["provenance"], name


def test_the_same_rows_give_the_same_bytes_today() -> None:
    for name in write.GOLDEN:
        state = write.computed(name)
        assert state.to_file_bytes() == kept_bytes(name), name
        assert state == read(name), name


def test_many_rows_give_the_same_bytes_today() -> None:
    for name in write.GOLDEN:
        digest = write.computed(name, write.LARGE).digest()
        assert digest == KNOWN[name]["digest of 20000 rows"], name


def test_golden_states_go_on_counting() -> None:
    for name, (empty, make_columns) in write.GOLDEN.items():
        state, columns = (
            empty + read(name),
            make_columns(50),
        )  # with what bytes know by its hash alone
        state.update(**columns)
        fresh = write.computed(name)
        fresh.update(**columns)
        assert state == fresh, name


REFUSED = ["user-groups", "user-groups-exact", "paired-users"]
READ = sorted(
    path.stem
    for path in (write.FOLDER / "former").glob("*.state")
    if path.stem in write.GOLDEN and path.stem not in REFUSED
)


def test_golden_states_of_a_former_layout_give_the_same_results() -> None:
    assert len(READ) == 10
    for name in READ:
        state, today = load(write.FOLDER / "former" / f"{name}.state"), read(name)
        assert state.schema == today.schema, name
        assert without_later_parts(state) == (without_later_parts(today)[0], True), name
        assert json.loads(json.dumps(write.readable(state.compute()))) == KNOWN[name]["result"]
        assert type(state).from_file_bytes(state.to_file_bytes()) == state, name


@pytest.mark.parametrize("name", REFUSED)
def test_a_state_of_a_former_form_is_refused_and_says_what_to_do(name: str) -> None:
    """Groups of users held scores on a fixed grid, from which their keys cannot be made."""
    with pytest.raises(StateError) as error:
        load(write.FOLDER / "former" / f"{name}.state")
    assert error.value.got == "'user-groups/1'"
    assert error.value.expected == "the schema 'user-groups/2' for these settings"
    assert "count the rows again, or read the estimate with the version that" in error.value.hint
    assert read("user-groups-ratio").schema == "user-groups/1", "that of other metrics is the same"
    assert b"user-groups/2" in read(name).to_bytes()


def test_every_public_accumulator_has_a_golden_file() -> None:
    assert not write.without_golden_file(), "give their cases small=[...], or add them to write.py"


def test_a_metric_whose_case_has_no_small_rows_is_not_passed_over_in_silence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(write, "FOLDER", tmp_path)
    monkeypatch.setattr(write, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(write, "GOLDEN", {"ratio": write.GOLDEN["ratio"]})
    monkeypatch.setattr(write, "metric_types", lambda: {"Ratio": Ratio, "Moments": Moments})
    assert write.main() == 1
    assert "no golden file of Moments: its Case needs small=[...]" in capsys.readouterr().err
    assert (tmp_path / "ratio.state").exists()


def test_the_golden_state_of_a_case_stands_beside_its_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(write, "FOLDER", tmp_path)
    monkeypatch.setattr(write, "RESULTS", tmp_path / "results.json")
    short = {"ratio": write.GOLDEN["ratio"]}
    for name in ("GOLDEN", "SHORT"):
        monkeypatch.setattr(write, name, short)
    monkeypatch.setattr(write, "metric_types", lambda: {"Ratio": Ratio})
    assert write.main() == 0 and [path.name for path in tmp_path.iterdir()] == ["results.json"]
    record = write.golden_results()["ratio"]
    assert load(write.state_bytes("ratio", record) or b"") == write.computed("ratio")
    assert write.main() == 0 and write.golden_results()["ratio"] == record
    short["ratio"] = Ratio(), lambda n: {"numerators": np.arange(n) % 2}
    assert write.main() == 1 and write.golden_results()["ratio"] == record


def test_every_file_is_known_and_small() -> None:
    files = {path.stem: path.stat().st_size for path in write.FOLDER.glob("*.state")}
    short = {name for name, record in KNOWN.items() if "state" in record}
    assert {*files, *short} == set(KNOWN) >= set(write.GOLDEN) and not short & set(files)
    assert sum(files.values()) < 200_000


def test_the_script_writes_nothing_anew_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(write, "FOLDER", tmp_path)
    monkeypatch.setattr(write, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(write, "GOLDEN", {name: write.GOLDEN[name] for name in ("ratio", "panel")})
    monkeypatch.setattr(write, "metric_types", lambda: {"Ratio": Ratio, "Panel": Panel})
    assert write.main() == 0
    assert json.loads((tmp_path / "results.json").read_text()).keys() == {"ratio", "panel"}
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert write.main() == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == contents
    (tmp_path / "ratio.state").write_bytes(b"other")
    assert write.main() == 1
    assert "ratio (ratio/2)" in capsys.readouterr().err
    assert (tmp_path / "ratio.state").read_bytes() == b"other"


def test_another_processor_and_another_hash_seed_give_the_same_bytes() -> None:
    simd = np.show_config(mode="dicts")["SIMD Extensions"]  # type: ignore[call-overload, index]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.golden.write", "--digests"],
        cwd=Path(__file__).parents[2],
        # What this numpy can choose at run time and this machine has; it warns about the rest.
        env={**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(simd.get("found", []))}
        | {"PYTHONHASHSEED": "4242"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    output = json.loads(run.stdout)
    assert output["features"] == []
    assert output["results"] == {name: KNOWN[name]["result"] for name in write.GOLDEN}
    assert output["digests"] == {
        name: [KNOWN[name]["digest"], KNOWN[name]["digest of 20000 rows"]] for name in write.GOLDEN
    }
