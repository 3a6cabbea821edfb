"""`--experiment NAME`: every command that shows or plans an experiment takes its name."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from streammetrics_consumers.cli.exit_codes import USAGE
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.query.state_files import read_state

from streammetrics import UserGroups
from tests.consumers import experiments_run
from tests.consumers.stores import filled_once


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"

    def fill() -> None:
        experiments_run.make(tmp_path)

    filled_once(path, ("experiments",), fill)
    return path


def printed(*words: object, code: int = 0) -> str:
    """What a command prints, on either stream."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(out), redirect_stderr(out):
        assert main([*map(str, words)]) == code
        out.flush()
    return out.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]


def test_results_begin_with_the_index_or_are_of_one(store: Path) -> None:
    whole = printed("results", store)
    assert whole.index("ranker") < whole.index("since the start, by variant")
    for line in ("experiment  state", "more of one: --experiment NAME", "1 kept", "planned 14"):
        assert line in whole
    text = printed("results", store, "--experiment", "pricing")
    assert text.startswith("store.db, generation 1, experiment pricing\n")
    assert "cheap - full" in text and "ranker" not in text
    assert "66 events name an arm that is not declared" in text
    answer = json.loads(printed("results", store, "--experiment", "pricing", "--json"))
    assert {row["slice"]["variant"] for row in answer["results"]} == {"cheap", "full"}
    assert "experiments" not in answer
    assert set(json.loads(printed("results", store, "--json"))["experiments"]) == {
        "experiments", "format", "generation", "incomplete", "interactions", "layers", "offsets",
            "overlaps",
    }  # fmt: skip


def test_an_unknown_name_is_a_wrong_command(store: Path) -> None:
    for command in (["results"], ["export", "-o", "a.state"], ["report", "-o", "-"]):
        name, *rest = command
        text = printed(name, store, *rest, "--experiment", "prices", code=USAGE)
        assert "ranker, pricing" in text and "'prices'" in text


def test_a_report_is_of_one_or_has_the_index(store: Path) -> None:
    whole = printed("report", store, "-o", "-", "--metric", "ctr")
    assert "<h2>Experiments</h2>" in whole and ">pricing<" in whole
    report = printed("report", store, "-o", "-", "--metric", "ctr", "--experiment", "pricing")
    assert "<title>store.db, experiment pricing, generation 1 - streammetrics</title>" in report
    assert "<h2>Experiments</h2>" not in report and "cheap - full" in report


def test_the_state_of_an_arm_is_exported_with_where_it_was_counted(
    store: Path, tmp_path: Path
) -> None:
    path = tmp_path / "arm.state"
    flags = ["--experiment", "pricing", "--metric", "ctr", "--where", "variant=cheap"]
    printed("export", store, *flags, "-o", path)
    state = read_state(path)
    assert isinstance(state, UserGroups)
    result = json.loads(printed("results", store, *flags, "--json", "--views", "all"))
    assert {row["digest"] for row in result["results"]} == {state.digest()}
    pieces = {piece for _, piece, _, _ in state.provenance}
    assert pieces == {'total/{"variant": "cheap"}/experiment/pricing/ctr'}
    error = printed("export", store, *flags[:4], "-o", path, code=USAGE)
    assert "of this store (variant)" in error


def test_a_test_is_planned_from_the_states_of_one(store: Path) -> None:
    ranker = printed("plan", "--store", store, "--experiment", "ranker")
    pricing = printed("plan", "--store", store, "--experiment", "pricing")
    assert ranker.startswith("ctr 0.381743, effect +0.05")
    assert pricing.startswith("ctr 0.375094, effect +0.05")
    config = store.with_name("clicks.toml")
    if config.exists():
        assert printed("plan", "--config", config, "--experiment", "pricing") == pricing
        text = printed("plan", "--config", config, "--experiment", "prices", code=USAGE)
        assert "ranker, pricing" in text
