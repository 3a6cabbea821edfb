"""The demonstration, as a person runs it."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from functools import partial
from io import StringIO
from itertools import count
from pathlib import Path

import httpx
import pytest
from streammetrics_consumers.cli.demo import COMMITS, LOOKS, truths_of
from streammetrics_consumers.cli.demo_configs import EXPERIMENTS_CONFIG
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.process import service

from tests.patience import LIMIT_S, until
from tests.requirements import ROOT


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demonstration leaves its files where one is."""
    monkeypatch.chdir(tmp_path)


def demo(*words: str) -> int:
    return main(["demo", *words])


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a demonstration of 2,000 events, and what it printed. Only to be copied."""
    folder, out = tmp_path_factory.mktemp("small"), StringIO()
    with chdir(folder), redirect_stdout(out):
        assert demo("--once", "--events", "2000") == 0
    return folder, out.getvalue()


def test_it_prints_three_experiments_the_true_differences_and_what_they_recommend(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert demo("--once") == 0
    out, err = capsys.readouterr()
    parts = re.split(r"^demo\.db, generation 1(?:, experiment (\w+))?$", out, flags=re.M)
    assert parts[1::2] == [None, "ranker", "autoplay", "placebo"]
    index = [re.split(r"  +", line.strip()) for line in parts[2].splitlines()]
    advice = {row[0]: row[2] for row in index if row[1:2] == ["running"]}
    assert advice == {"ranker": "✓ ship", "autoplay": "✕ do not ship", "placebo": "… wait"}
    for text, (name, truth) in zip(parts[4::2], truths_of().items(), strict=True):
        assert re.search(r"\nlooks( +1)+\n", text)
        (line,) = re.findall(r"true, as simulated(.*)", text)
        shown = {f"{float(number):+.4f}" for number in re.findall(r"[+-][0-9.]+", line)}
        effects = [truth.by_figure["ctr", "ratio"]]
        if "guardrail" in text:
            effects.append(truth.by_figure["bounce_rate", "ratio"])
        assert shown == {f"{effect:+.4f}" for effect in effects}, name
    recommended = out.partition("\nThe experiments recommend:\n")[2]
    assert re.findall(r"^(\w+: .*?)[:.] ?", recommended, re.M) == [
        *("ranker: Ship", "autoplay: Do not ship", "placebo: Wait")
    ]
    assert all(len(line) <= 100 for line in out.splitlines())
    assert "$ streammetrics run .demo/demo.toml --until-end --no-serve" in err
    assert "200,000 events simulated and counted" in err
    assert err.endswith("streammetrics serve .demo/demo.db\n")


def test_it_prints_the_same_on_any_machine_and_can_be_run_again(
    small: tuple[Path, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, out = small
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    # A slow machine: two seconds pass between any two readings of its clock.
    slow = partial(service.run, monotonic=count(0, 2.0).__next__)
    monkeypatch.setattr(service, "run", slow)
    notes = Path(".demo/notes.txt")
    notes.write_text("mine", encoding="utf-8")
    assert demo("--once", "--events", "2000") == 0
    assert capsys.readouterr().out == out
    assert notes.read_text(encoding="utf-8") == "mine"
    assert len(re.findall(r"\nlooks( +1)+\n", out)) == 3
    assert EXPERIMENTS_CONFIG.count(LOOKS) == 3 and COMMITS in EXPERIMENTS_CONFIG
    assert Path(".demo/demo.toml").read_text(encoding="utf-8") == EXPERIMENTS_CONFIG


def test_it_shows_every_metric_of_its_config(small: tuple[Path, str]) -> None:
    table = small[1].partition("experiment ranker")[0]
    rows = [re.split(r"  +", line.strip()) for line in table.splitlines()]
    start = rows.index(["metric", "value", "exact within", "95 % CI"])
    shown = {row[0]: row for row in rows[start + 1 : rows.index(["counts", "all rows"]) - 1]}
    assert list(shown) == [
        *("ctr", "auc", "auc_within_users (gauc)"),
        *("ranking NDCG@10", "ranking MRR", "ranking HR@3"),
        *(f"confusion_at_0.2 {view}" for view in ("accuracy", "precision", "recall")),
        "bounce_rate",
    ]
    assert all(re.fullmatch(r"0\.\d+ to 0\.\d+", row[-1]) for row in shown.values())
    assert [name for name, row in shown.items() if row[-2].startswith("[")] == ["auc"]
    counts = {row[0]: int(row[1].replace(",", "")) for row in rows
              if len(row) == 2 and re.fullmatch(r"[\d,]+", row[1])}  # fmt: skip
    cells = [counts[f"confusion_at_0.2: {cell}"] for cell in ("tp", "fp", "fn", "tn")]
    assert sum(cells) == counts["rows"] and min(cells) > 0
    assert abs(counts["bounce_rate: rows"] - counts["rows"] / 10) < 20  # once a list


def test_it_joins_clicks_that_are_events_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo("--once", "--join", "--events", "20000") == 0
    out, err = capsys.readouterr()
    assert "$ streammetrics simulate --join" in err
    true = truths_of(join=True)[""].by_figure["click_rate", "ratio"]
    ((shown, _),) = re.findall(r"true, as simulated +(\S+) +(\S+)", out)
    assert shown == f"{true:+.{len(shown.partition('.')[2])}f}"
    assert re.search(r"\nThe experiment recommends:\n(Wait|Ship): ", out)
    assert re.search(r"^revenue mean +control +[0-9]+\.[0-9]+", out, re.M)
    assert "joined, label window 1,800 s" in out
    assert re.search(r"^  pending +[1-9]", out, re.M)
    assert all(len(line) <= 100 for line in out.splitlines())


def test_it_shows_five_experiments_of_users_who_were_exposed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert demo("--once", "--exposures") == 0
    out, err = capsys.readouterr()
    assert "$ streammetrics simulate --exposures --n-users 12500" in err
    parts = re.split(r"^demo\.db, generation 1(?:, experiment (\w+))?$", out, flags=re.M)
    names = ["checkout", "feed", "placebo", "pricing", "delivery"]
    assert parts[1::2] == [None, *names]
    recommended = out.partition("\nThe experiments recommend:\n")[2]
    assert re.findall(r"^(\w+: .*?)[:.] ?", recommended, re.M) == [
        *("checkout: Ship", "feed: Do not ship", "placebo: Wait", "pricing: Wait"),
        "delivery: Wait",
    ]
    assert "guardrail crashed is broken" in recommended
    assert "exposures, window 7 days" in out
    assert all(len(line) <= 100 for line in out.splitlines())


def test_its_config_can_be_printed_copied_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    lists = "--items", "10"
    for name, flags, form, metric in (
        ("plain", [], ["--experiments", *lists], "ranking"),
        ("joined", ["--join"], ["--join", *lists], "ranking"),
        ("exposed", ["--exposures"], ["--exposures", "--n-users", "12500"], "revenue"),
    ):
        assert demo("--print-config", *flags) == 0
        config = capsys.readouterr().out
        assert not Path(".demo").exists()
        Path("mine.toml").write_text(config.replace("demo.db", f"{name}.db"))
        (command,) = re.findall(r"#     streammetrics (simulate .*)", config)
        words = command.replace("200000", "20000").split()
        assert words[:-2] == ["simulate", *form, "--events", "20000"]
        assert main(words) == 0
        assert main(["run", "mine.toml", "--until-end", "--no-serve"]) == 0
        assert main(["results", f"{name}.db", "--metric", metric]) == 0
        expected = "ranking NDCG@10" if metric == "ranking" else "revenue mean"
        assert expected in capsys.readouterr().out


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
        assert "The experiments recommend:" in process.stdout.read()
