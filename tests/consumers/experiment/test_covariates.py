"""A covariate of the config, from events to what is said of the effect."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import to_json

from tests.consumers.experiment_run import run, write

pytestmark = pytest.mark.slow
COVARIATE = 'covariates = { ctr = { metric = "before", theta = 0.9 } }'


def counted(folder: Path, experiment: str) -> Path:
    """A store of the small experiment, in which users clicked before nearly as they do now."""
    folder.mkdir()
    config = write(folder, f"mde = 0.05\n{experiment}")
    text = config.read_text(encoding="utf-8")
    before = 'before = { type = "Ratio", inputs = { numerators = "before" } }'
    config.write_text(text.replace("[metrics]", f"[metrics]\n{before}"), encoding="utf-8")
    stream = folder / "clicks.jsonl"
    events = [json.loads(line) for line in stream.read_text(encoding="utf-8").splitlines()]
    for i, event in enumerate(events):
        event["before"] = event["label"] if i // 2 % 10 else 1 - event["label"]
    stream.write_text("\n".join(map(json.dumps, events)) + "\n", encoding="utf-8")
    return run(config)


def comparison(store: Path, window: str = "total", metric: str | None = None) -> dict[str, object]:
    with closing(Ledger.open(str(store))) as ledger:
        query = parse_query(window, metric=metric)
        found = json.loads(to_json(read_results(ledger, query)))["comparisons"]
    one = found[-1]
    assert isinstance(one, dict)
    return one


def test_the_covariate_is_taken_out_of_every_window_and_of_looks(tmp_path: Path) -> None:
    plain, found = counted(tmp_path / "plain", ""), counted(tmp_path / "found", COVARIATE)
    for window in ("total", "all"):
        of_plain, of_found = comparison(plain, window), comparison(found, window)
        assert of_found["std_error"] < 0.7 * of_plain["std_error"]  # type: ignore[operator]
        assert (of_plain["method"], of_found["method"]) == ("newcombe", "cuped")
        assert comparison(found, window, metric="ctr") == of_found  # which reads what it needs
    assert comparison(found)["looks"] == 1
    with closing(Ledger.open(str(found))) as ledger:
        results = read_results(ledger, parse_query())
    assert "ctr is adjusted for before, known before the exposure" in " ".join(results.notes)
    assert {row.metric for row in results.rows} == {"before", "ctr"}
    assert [row.metric for row in results.comparisons] == ["ctr"]


def test_another_slope_is_another_plan(tmp_path: Path) -> None:
    store = counted(tmp_path / "one", COVARIATE)
    config = store.with_name("clicks.toml")
    config.write_text(config.read_text(encoding="utf-8").replace("0.9", "0.8"), encoding="utf-8")
    assert main(["run", str(config), "--until-end", "--no-serve"]) != 0
