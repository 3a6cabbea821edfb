"""Every value that others computed is read by a test, or stands here with the reason why not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.noted_cases import NOTES
from tests.requirements import ROOT

# Patterns of ids.
LEFT = {
    "*/mean_ap_at_k_hits/*": "AP over the hits among the first k, which no setting gives",
    "*/mean_f1_at_k/*": "no measure is the harmonic mean of P@k and R@k",
    "digits/mc_f1_of_macro": "the F of means, listed to show that it is not the macro F",
    "yeast/ml_lrap": "a mean over rows of how labels are ranked, which the definitions lack",
    "yeast/ml_coverage": "the same: the places down to the last true label",
    "yeast/ml_rankloss": "the same: of a row without ties it is 1 - AUC, as GroupedAUC has it",
    "ab/*/ab_z_pooled": "a test of equal rates; ours is that of the difference, unpooled",
    "ab/*/ab_p_z_pooled": "the same",
    "ab/*/ab_chi2": "the same, squared",
    "ab/*/ab_p_fisher": "the same, given both margins",
    "ab/*/ab_se_cluster": "by segments that are in both arms; UserGroups are of assigned units",
}
TESTS = ("tests/classification", "tests/experiments/test_real_clicks.py", "tests/ranking")
FILES = 8


def ids(data: Path) -> list[str]:
    """Of all cases of all files, and of the worked examples."""
    files = sorted(data.glob("*.expected.json"))
    assert len(files) == FILES
    cases = [case for file in files for case in json.loads(file.read_text())["cases"]]
    cases += json.loads((data / "worked_examples.json").read_text())["examples"]
    return [case["id"] for case in cases]


def is_left(case_id: str) -> bool:
    return any(fnmatch(case_id, pattern) for pattern in LEFT)


def test_no_two_cases_have_one_id_and_every_reason_is_of_a_case(data: Path) -> None:
    found = ids(data)
    assert len(set(found)) == len(found) > 1_200
    for pattern in LEFT:
        assert any(fnmatch(case_id, pattern) for case_id in found), pattern
    assert sum(map(is_left, found)) == 60


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_case_is_read_by_a_test_or_left_with_a_reason(data: Path, tmp_path: Path) -> None:
    notes = tmp_path / "read"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.noted_cases", *TESTS]
    environment = {**os.environ, NOTES: str(notes)}
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    read = set(notes.read_text(encoding="utf-8").splitlines())
    assert [case_id for case_id in ids(data) if (case_id in read) == is_left(case_id)] == []
