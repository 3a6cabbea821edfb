"""`make bench-against` fails where a version is slower, and only there; a counter is its clock."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.against import ROOT, Comparison, Job, compared, jobs, last_version
from tests.update_jobs import batches_of, cases

VERSION = """
elapsed = 0

def ticks():
    return elapsed

class Mean:
    def empty(self):
        return Mean()

    def update(self, values):
        global elapsed
        elapsed += {update}

    def merge(self, other):
        global elapsed
        elapsed += 100
"""


def version(folder: Path, update: int) -> Path:
    """A library whose update takes so many ticks of its own clock."""
    package = folder / "streammetrics"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(VERSION.format(update=update), encoding="utf-8")
    return folder


def against(tmp_path: Path, old: int, new: int, column: str = "values") -> Comparison:
    """The comparison of two versions, with this limit of 1.05."""
    file = tmp_path / "batches.json"
    batches = [{"mapping": [[column, [1.0]]]}]
    file.write_text(
        json.dumps({"metric": {"metric": "Mean", "settings": {"mapping": []}}, "batches": batches})
    )
    checkouts = [version(tmp_path / name, n) for name, n in (("old", old), ("new", new))]
    job = Job("Mean", file, 1, "lists")
    return compared(*checkouts, [job], clock="streammetrics.ticks")


@pytest.mark.parametrize(
    ("old", "new", "slower"),
    [(1000, 1000, 0), (1000, 1040, 0), (1000, 1060, 1)],
)
def test_a_version_fails_if_its_updates_take_longer_than_the_limit(
    tmp_path: Path, old: int, new: int, slower: int
) -> None:
    report = against(tmp_path, old, new)
    assert len(report.slower) == slower
    [line] = report.lines.values()
    assert line.ratio == pytest.approx(new / old, rel=1e-3)
    assert ("\u2717" in report.text()) is bool(slower)
    assert f"{slower} of 1 ratios are above 1.05" in report.text()


def test_a_night_compares_with_the_last_tag_and_without_one_with_a_commit_of_another_day(
    tmp_path: Path,
) -> None:
    def git(*words: str, date: str = "@1700000000 +0000") -> str:
        names = ("-c", "user.name=a", "-c", "user.email=a@b")
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        command = ["git", "-C", str(tmp_path), *names, *words]
        return subprocess.check_output(command, env={**os.environ, **dates}, text=True).strip()

    now = f"@{int(time.time())} +0000"
    git("init", "--quiet")
    aged = ""
    for date in ("@1700000000 +0000", "@1700000001 +0000", now):
        git("commit", "--quiet", "--allow-empty", "--message=x", date=date)
        aged = git("rev-parse", "HEAD") if date != now else aged
    assert last_version(tmp_path) == aged
    git("tag", "v1", "HEAD~2")
    assert last_version(tmp_path) == "v1"
    workflow = (ROOT / ".github/workflows/speed.yml").read_text(encoding="utf-8")
    assert (
        "fetch-depth: 0" in workflow
        and 'bench-against PYTHON=python ARGS="--limit 1.15"' in workflow
    )


def test_what_a_version_refuses_is_skipped_with_its_reason(tmp_path: Path) -> None:
    report = against(tmp_path, 1000, 1000, column="amounts")
    assert not report.lines
    assert "skipped Mean: TypeError: Mean.update() got an unexpected keyword" in report.text()


@pytest.mark.parametrize("name", cases())
def test_every_metric_class_has_batches_that_it_counts(name: str) -> None:
    case = cases()[name][0]
    for batch in batches_of(case, 10)[:2]:
        case.empty.empty().update(**batch)


def test_the_jobs_of_a_class_are_of_the_first_case_that_is_accepted(tmp_path: Path) -> None:
    for chosen in (0, 1):
        queue = jobs(["Ratio"], [1, 2], tmp_path, lambda job, n=chosen: f" {n} " in job.file.name)
        assert [job.file.name for job in queue[::2]] == [f"Ratio {chosen} {n}.json" for n in (1, 2)]
    queue = jobs(["Ratio"], [1], tmp_path, lambda job: False)
    assert [(job.file.name, job.form) for job in queue] == [
        ("Ratio 0 1.json", "arrays"),
        ("Ratio 0 1.json", "lists"),
    ]
