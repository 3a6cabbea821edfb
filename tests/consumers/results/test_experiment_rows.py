"""Of an experiment the windows that got rows are read again for an answer, and no others."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

import consumers.results.experiment_rows as experiment_rows
from consumers.ledger.ledger import Ledger
from consumers.ledger.outline import Outline
from consumers.results.answers import Answers
from consumers.results.query import Query
from consumers.results.reader import read_results
from consumers.results.results import to_json
from tests.consumers.experiment_run import run, write


def test_windows_without_new_rows_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write(tmp_path)
    store = run(config)
    made: list[int | None] = []
    real = experiment_rows._experiment

    def counted(now: object, of: object, rows: list[Outline]) -> object:
        made.append(rows[0].pane.start_ms)
        return real(now, of, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(experiment_rows, "_experiment", counted)
    with closing(Ledger.open(str(store))) as ledger:
        answers, query = Answers(ledger), Query("all")
        first = answers.results(query)
        assert sorted(made, key=str) == [0, 3_600_000, None]
        assert len(first.comparisons) == 3
        answers.results(query)
        assert len(made) == 3
        lines = (tmp_path / "clicks.jsonl").read_text(encoding="utf-8").splitlines()
        late = {**json.loads(lines[-1]), "ts": "1970-01-01T01:29:59.000Z"}
        with (tmp_path / "clicks.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(late) + "\n")
        run(config)
        made.clear()
        again = answers.results(query)
        assert sorted(made, key=str) == [3_600_000, None]
        assert to_json(again) == to_json(read_results(ledger, query)) != to_json(first)
        assert len(answers.results(Query("all", metric="ctr")).comparisons) == 3
        other = Query("all", metric="other")
        assert not experiment_rows.ExperimentRows(ledger, other).beside(lambda: first).comparisons


def test_a_view_without_a_formula_has_no_interval_and_others_have_one(tmp_path: Path) -> None:
    with closing(Ledger.open(str(run(write(tmp_path))))) as ledger:
        rows = read_results(ledger, Query()).rows
    assert {row.view: row.interval is not None for row in rows} == {
        "ratio": True, "numerator": False, "denominator": False,
    }  # fmt: skip
