"""Lists of items through the whole pipeline: from events to results, state files and quarantine."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import CatalogMetrics, IntraListSimilarity, load
from tests.obd_lists import FEATURES, ITEMS, first_items, ils_cases

Capture = pytest.CaptureFixture[str]

TOML = f"""\
[source]
kind = "file"
path = "lists.jsonl"
[event]
time = "ts"
variant = "variant"
list = "shown"
[store]
url = "lists.db"
[metrics]
catalog = {{ type = "CatalogMetrics", n_items = 34, k = 5 }}
[metrics.ils]
type = "IntraListSimilarity"
similarity = "share_equal"
vectors = {{ path = "{ITEMS}", columns = {json.dumps(FEATURES)} }}
"""
BAD = ([0, 34], [3, 3], [-1], [1.5], "7", None)


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    """A config, its items, and an event for the list of each user, with some bad ones between."""
    shutil.copy(data / ITEMS, tmp_path)
    (tmp_path / "lists.toml").write_text(TOML)
    shown: list[tuple[str, Any]] = [
        (variant, items)
        for variant in ("random", "bts")
        for items in first_items(data, variant).values()
    ]
    for i, bad in enumerate(BAD):
        shown.insert(7 * i, ("bts", bad))
    shown.append(("random", [4]))
    events = (
        {"ts": f"2019-11-24T00:{i // 60:02}:{i % 60:02}Z", "variant": variant, "shown": items}
        for i, (variant, items) in enumerate(shown)
    )
    (tmp_path / "lists.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert main(["run", str(tmp_path / "lists.toml"), "--until-end", "--no-serve"]) == 0
    return tmp_path


@pytest.mark.slow
def test_real_lists_have_the_values_that_others_computed(
    folder: Path, data: Path, capsys: Capture
) -> None:
    capsys.readouterr()
    assert main(["results", str(folder / "lists.db"), "--json", "--by", "variant"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["quarantined"] == len(BAD)
    rows = {
        (row["slice"]["variant"], row["view"]): row
        for row in document["results"]
        if row["window"]["state"] == "total"
    }
    for variant, case in ils_cases(data).items():
        exact = Fraction(case["exact"])
        row = rows[variant, "ils"]
        assert row["value"] == exact.numerator / exact.denominator
        assert row["counts"]["lists_kept"] == case["users"]
        assert row["counts"]["lists_short"] == (variant == "random")
        catalog = CatalogMetrics(34, 5)
        catalog.update(list(first_items(data, variant).values()))
        if variant == "random":
            catalog.update([[4]])
        for view in ("coverage", "novelty", "personalization", "popularity"):
            assert rows[variant, view]["value"] == getattr(catalog.compute(), view)
            assert rows[variant, view]["digest"] == catalog.digest()


@pytest.mark.slow
def test_bad_lists_are_in_quarantine_with_their_reasons(folder: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["quarantine", str(folder / "lists.db"), "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert [entry["offset"] for entry in entries] == [7 * i for i in range(len(BAD))]
    assert [entry["reason"] for entry in entries] == [
        *("metric", "metric", "metric", "wrong_type", "wrong_type", "missing_field")
    ]
    assert "lists[0][1]: expected item numbers from 0 to 33, got 34" in entries[0]["detail"]
    assert "each item once in a list" in entries[1]["detail"]


@pytest.mark.slow
def test_a_state_file_is_shown_and_added_up_without_the_vectors(
    folder: Path, capsys: Capture
) -> None:
    store = str(folder / "lists.db")
    parts = []
    for variant in ("bts", "random"):
        words = ["--metric", "ils", "--where", f"variant={variant}"]
        parts.append(str(folder / f"{variant}.state"))
        assert main(["export", store, "-o", parts[-1], *words]) == 0
    whole, merged = str(folder / "all.state"), str(folder / "merged.state")
    assert main(["export", store, "-o", whole, "--metric", "ils"]) == 0
    assert main(["merge", *parts, "-o", merged]) == 0
    assert load(merged) == load(whole)
    assert isinstance(load(merged), IntraListSimilarity)
    capsys.readouterr()
    assert main(["show", merged]) == 0
    text = capsys.readouterr().out
    assert "share_equal" in text and "lists short" in text and "sha256:" in text
    assert main(["export", store, "-o", whole]) == 0
    capsys.readouterr()
    assert main(["show", whole, "--json"]) == 0
    views = {
        name: view
        for result in json.loads(capsys.readouterr().out)["results"]
        for name, view in result["views"].items()
    }
    assert set(views) == {"ils", "coverage", "novelty", "personalization", "popularity"}


@pytest.mark.slow
def test_other_vectors_do_not_go_on_with_the_same_store(folder: Path, capsys: Capture) -> None:
    items = (folder / ITEMS).read_text().splitlines()
    (folder / ITEMS).write_text("\n".join([items[0], *reversed(items[1:])]))
    assert main(["run", str(folder / "lists.toml"), "--until-end", "--no-serve"]) == 3
    assert "ils" in capsys.readouterr().err
