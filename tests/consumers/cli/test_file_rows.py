"""The rows of a file on their way into metrics: which error is reported, and what is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import ExactAUC, GroupedAUC, Panel
from streammetrics.engines import partial
from streammetrics.registry import load

Capture = pytest.CaptureFixture[str]
pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]' in a clone")
pq = pytest.importorskip("pyarrow.parquet")

N = 200_000
AUC = ["--labels", "label", "--scores", "score", "--metrics", "auc"]


def columns(wrong: Mapping[tuple[str, int], object]) -> dict[str, Any]:
    """The columns of N rows, with wrong values in place of some."""
    rng = np.random.default_rng(5)
    plain = {
        "label": (rng.random(N) < 0.3).astype(np.int8).tolist(),
        "score": rng.random(N).round(3).tolist(),
        "user": rng.integers(0, 9_000, N).tolist(),
        "variant": [None, "a", "b\x1b[31m"] * (N // 3) + [None, "a"],
        "mobile": [True, False] * (N // 2),
    }
    for (column, row), value in wrong.items():
        plain[column][row] = value
    return plain


def refusal(path: Path, capsys: Capture, *words: str) -> str:
    """The message of a file that is refused."""
    capsys.readouterr()
    assert main(["eval", str(path), *AUC, *words]) == 1
    out, err = capsys.readouterr()
    assert not out
    return err


@pytest.mark.parametrize("options", [[], ["--by", "variant,mobile"]])
@pytest.mark.parametrize("row_groups", [N, 1_000])
def test_the_first_batch_that_has_a_wrong_row_is_reported(
    tmp_path: Path, capsys: Capture, options: list[str], row_groups: int
) -> None:
    path = tmp_path / "rows.parquet"
    # Labels are checked first: in all rows at once, that of row 150,000 would be reported.
    wrong = {("score", 70_000): None, ("score", 140_000): None, ("label", 150_000): 2}
    pq.write_table(pa.table(columns(wrong)), path, row_group_size=row_groups)
    message = refusal(path, capsys, *options)
    assert "row 70000 (the first is 0), score" in message
    assert "None" in message


def test_a_wrong_row_before_a_line_that_cannot_be_read_is_reported(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "rows.csv"
    lines = ["label,score", *["1,0.5"] * 300_000]
    lines[7] = "3,0.5"
    lines[-1] = "1,0.5,0.5"
    path.write_text("\n".join(lines))
    assert "row 6 (the first is 0), label" in refusal(path, capsys)
    lines[7] = "1,0.5"
    path.write_text("\n".join(lines))
    assert "expected a .csv file" in refusal(path, capsys)


def test_a_column_that_no_metric_reads_is_not_read(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.parquet"
    rows = {**columns({}), "note": ["a note on this row"] * N}
    how = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(pa.table(rows), path, write_page_checksum=True, **how)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"a note on this row", b"a bote on this row", 1))
    assert main(["eval", str(path), *AUC]) == 0
    assert "auc" in capsys.readouterr().out
    assert "could not verify page integrity" in refusal(path, capsys, "--by", "note")


def test_groups_and_values_are_those_of_the_states_that_partial_emits(
    tmp_path: Path, capsys: Capture
) -> None:
    table = pa.table(columns({}))
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, row_group_size=70_000)
    spec = Panel({"auc": ExactAUC(), "gauc": GroupedAUC()})
    reads = {"labels": "label", "scores": "score", "groups": "user"}
    expected = {}
    for batch in partial(table.to_batches(1_000), spec, ["variant", "mobile"], columns=reads):
        for row in batch.to_pylist():
            result: Any = load(row["state"]).compute()
            expected[row["variant"], row["mobile"], "auc"] = result["auc"].auc
            expected[row["variant"], row["mobile"], "gauc"] = result["gauc"].gauc
    words = [*AUC[:-1], "auc,gauc", "--lists", "user", "--by", "variant,mobile", "--json"]
    capsys.readouterr()
    assert main(["eval", str(path), *words]) == 0
    lines = json.loads(capsys.readouterr().out)
    values = {
        (line["slice"]["variant"], line["slice"]["mobile"], line["metric"]): line["value"]
        for line in lines
    }
    assert values == expected
    # Texts before None, and each text with False and then True.
    assert [*dict.fromkeys(group[:2] for group in values)] == [
        (variant, mobile) for variant in ("a", "b\x1b[31m", None) for mobile in (False, True)
    ]
