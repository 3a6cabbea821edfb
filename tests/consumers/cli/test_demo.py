"""The demonstration, as a person runs it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest
from streammetrics_consumers.cli.demo import COMMITS, CONFIG, LOOKS, truth_of
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.process import service

from tests.patience import LIMIT_S, until
from tests.requirements import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demonstration leaves its files where one is."""
    monkeypatch.chdir(tmp_path)


def demo(*words: str) -> int:
    return main(["demo", *words])


def test_it_prints_the_whole_card_the_true_difference_and_the_recommendation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert demo("--once", "--events", "20000") == 0
    out, err = capsys.readouterr()
    # A slow machine: two seconds pass between any two readings of its clock.
    slow = partial(service.run, monotonic=count(0, 2.0).__next__)
    monkeypatch.setattr(service, "run", slow)
    kept = Path(".demo/notes.txt")
    kept.write_text("mine", encoding="utf-8")
    assert demo("--once", "--events", "20000") == 0  # it can be run again
    assert capsys.readouterr().out == out
    assert kept.read_text(encoding="utf-8") == "mine"
    assert re.search(r"\nlooks +1 +1\n", out)  # on any machine
    assert LOOKS in CONFIG and COMMITS in CONFIG
    assert Path(".demo/demo.toml").read_text(encoding="utf-8") == CONFIG
    table, mark, compared = out.partition("experiment, since the start")
    rows = [re.split(r"  +", line.strip()) for line in table.splitlines()]
    at = rows.index(["metric", "variant", "value", "exact within", "95 % CI"])
    shown = {
        row[0]: row for row in rows[at + 1 :] if row[1:2] == ["control"] and row[0] != "counts"
    }
    assert list(shown) == [
        *("click_rate", "auc", "auc_within_users (gauc)"),
        *("ranking NDCG@10", "ranking MRR", "ranking HR@3"),
        *(f"confusion_at_0.05 {view}" for view in ("accuracy", "precision", "recall")),
    ]
    assert all(re.fullmatch(r"0\.\d+ to 0\.\d+", row[-1]) for row in shown.values())
    bounded = [name for name, row in shown.items() if row[-2].startswith("[")]
    assert bounded == ["auc"]
    counts = {row[0]: row[1:] for row in rows if len(row) == 3}
    cells = [int(counts[f"confusion_at_0.05: {cell}"][0].replace(",", "")) for cell in
             ("tp", "fp", "fn", "tn")]  # fmt: skip
    assert sum(cells) == int(counts["rows"][0].replace(",", "")) and min(cells) > 0
    true = truth_of(20_000).by_figure["click_rate", "ratio"]
    ((said, _),) = re.findall(r"true, as simulated +(\S+) +(\S+)", compared)
    assert mark and said == f"{true:+.{len(said.partition('.')[2])}f}"
    assert re.search(r"\nThe experiment recommends:\n(Wait|Ship): ", compared)
    assert all(len(line) <= 100 for line in out.splitlines())
    assert "$ streammetrics run .demo/demo.toml --until-end --no-serve" in err
    assert "20,000 events simulated and counted" in err
    assert err.endswith("streammetrics serve .demo/demo.db\n")


def test_it_joins_clicks_that_are_events_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo("--once", "--join", "--events", "20000") == 0
    out, err = capsys.readouterr()
    assert "$ streammetrics simulate --join" in err
    true = truth_of(20_000, join=True).by_figure["click_rate", "ratio"]
    assert 0.99 < true / truth_of(20_000).by_figure["click_rate", "ratio"] < 1
    assert re.search(r"^revenue mean +control +[0-9]+\.[0-9]+", out, re.M)
    assert "joined, label window 1,800 s" in out
    assert re.search(r"^  pending +[1-9]", out, re.M)
    assert all(len(line) <= 100 for line in out.splitlines())


def test_its_config_can_be_printed_copied_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    for more, join in (([], []), (["--join"], ["--join"])):
        assert demo("--print-config", *more) == 0
        config = capsys.readouterr().out
        assert not Path(".demo").exists()
        Path("mine.toml").write_text(config.replace("demo.db", f"{len(more)}.db"))
        (said,) = re.findall(r"#     streammetrics (simulate .*)", config)
        words = said.replace("200000", "20000").split()
        assert words[:-2] == ["simulate", *join, "--items", "10", "--events", "20000"]
        assert main(words) == 0
        assert main(["run", "mine.toml", "--until-end", "--no-serve"]) == 0
        assert main(["results", f"{len(more)}.db", "--metric", "ranking"]) == 0
        assert "ranking NDCG@10" in capsys.readouterr().out


def test_the_page_is_live_until_ctrl_c(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "streammetrics", "demo", "--events", "2000", "--port", "0"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None and process.stdout is not None
        line = next(line for line in process.stderr if line.startswith("serving "))
        assert re.fullmatch(r"serving http://127\.0\.0\.1:\d+/\n", line)
        health = line.split()[1] + "api/health"
        # The stream goes on.
        until(lambda: httpx.get(health, timeout=LIMIT_S).json()["rows_read"] > 2000)
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
        assert process.wait(timeout=LIMIT_S) == 0
        assert "Traceback" not in err
        assert "since the start, by variant" in process.stdout.read()
