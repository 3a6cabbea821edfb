"""Metrics of item lists in a config: vectors in the file and beside it, and what is wrong there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.config.section import ConfigError

from streammetrics import CatalogMetrics, IntraListSimilarity
from streammetrics.registry import metric
from tests.consumers.small_config import toml

SHOWN = 'inputs = { lists = "shown" }'


def read(folder: Path, ils: str, more: str = "") -> Config:
    path = folder / "c.toml"
    metrics = f'i = {{ type = "IntraListSimilarity", {SHOWN}, {ils} }}\n{more}'
    path.write_text(toml(event='time = "ts"', slices="by = [[]]", metrics=metrics))
    return load_config(path)


def said(folder: Path, ils: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        read(folder, ils)
    return {problem.where: str(problem) for problem in caught.value.problems}


def test_vectors_may_stand_in_the_config(tmp_path: Path) -> None:
    found = read(tmp_path, "vectors = [[1, 0], [3, 4.0]], k = 5").metrics[0]
    assert found.empty == IntraListSimilarity([[1, 0], [3, 4]], k=5)
    assert found.inputs["lists"].kind == "int_list"
    assert found.of_lists
    found.empty.update([[0, 1]])


def test_texts_of_features_are_only_texts(tmp_path: Path) -> None:
    features = '[["1/2", "a"], ["2/4", "a"]]'
    found = read(tmp_path, f'similarity = "share_equal", vectors = {features}').metrics[0]
    found.empty.update([[0, 1]])
    assert found.empty.compute().ils == 0.5  # type: ignore[attr-defined]


def test_the_role_list_feeds_item_lists(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    metrics = 'c = { type = "CatalogMetrics", n_items = 9, k = 2 }'
    path.write_text(toml(event='time = "ts"\nlist = "a.b"', slices="by = [[]]", metrics=metrics))
    found = load_config(path).metrics[0]
    assert found.empty == CatalogMetrics(9, 2)
    assert found.columns == {"lists": "a.b:int_list", "offsets": "a.b:offsets"}


CSV = "item,colour,brand,x,y\n0,red,A,1,0\n1,blue,A,3,4\n2,red,7,0,2e0\n"


def test_vectors_may_stand_in_a_file_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(CSV)
    vectors = np.array([[1, 0], [3, 4], [0, 2]], np.float32)
    np.save(tmp_path / "items.npy", vectors)
    columns = 'columns = ["x", "y"]'
    for text in (f'{{ path = "items.csv", {columns} }}', '{ path = "items.npy" }'):
        found = read(tmp_path, f"vectors = {text}")
        assert found.metrics[0].empty == IntraListSimilarity(vectors)
    features = '{ path = "items.csv", columns = ["brand", "colour"] }'
    shop = read(tmp_path, f'similarity = "share_equal", vectors = {features}').metrics[0]
    expected = [["A", "red"], ["A", "blue"], ["7", "red"]]
    assert shop.empty == metric(
        "IntraListSimilarity",
        {"vectors": tuple(map(tuple, expected)), "similarity": "share_equal"},
    )


def test_other_vectors_are_another_fingerprint(tmp_path: Path) -> None:
    prints = []
    for last in ("2e0", "2.0", "3"):
        (tmp_path / "items.csv").write_text(CSV.replace("2e0", last))
        found = read(tmp_path, 'vectors = { path = "items.csv", columns = ["x", "y"] }')
        prints.append(found.fingerprints()["i"])
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("ils", "where", "hint"),
    [
        ("vectors = [[1, 0], [0, 0]]", "vectors", "a zero vector"),
        ("vectors = [[1], [0, 1]]", "vectors", "rows of one length"),
        ("vectors = [[[1]]]", "vectors", "shape [1, 1, 1]"),
        ('vectors = [["a"]]', "vectors", "share_equal"),
        ("vectors = []", "vectors", "shape [0]"),
        ("vectors = [[1]], k = 0", "k", "from 1"),
        ('vectors = [[1]], similarity = "euclid"', "similarity", "register"),
        ('vectors = { path = "none.csv" }', "vectors.path", "No such file"),
        ('vectors = { path = "items.txt" }', "vectors.path", ".csv or .npy"),
        ("vectors = { path = 3 }", "vectors.path", ".csv or .npy"),
        ('vectors = { path = "items.csv", colums = ["x"] }', "vectors.colums", "columns"),
        ('vectors = { path = "items.csv", columns = ["z"] }', "vectors.path", "0 columns 'z'"),
        ('vectors = { path = "items.csv", columns = [] }', "vectors.columns", "names"),
        ('vectors = { path = "items.csv" }', "vectors", "numbers"),
        ('vectors = { path = "short.csv" }', "vectors.path", "1 values in row 3, 2"),
        ('vectors = { path = "empty.csv" }', "vectors", "at least one item"),
        ('vectors = { path = "broken.npy" }', "vectors.path", "a table"),
        ('vectors = { path = "objects.npy" }', "vectors.path", "a table"),
        ('vectors = { path = "several.npy" }', "vectors.path", "several arrays"),
        ('vectors = { path = "void.npy" }', "vectors.path", "a table"),
        ('vectors = { path = "x.npy", columns = ["x"] }', "vectors.columns", "of a .csv"),
    ],
)
def test_what_is_wrong_with_vectors_is_said_with_its_place(
    tmp_path: Path, ils: str, where: str, hint: str
) -> None:
    (tmp_path / "items.csv").write_text(CSV)
    (tmp_path / "short.csv").write_text("x,y\n1,2\n3\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00")
    (tmp_path / "void.npy").write_bytes(b"")
    np.save(tmp_path / "objects.npy", np.array([["a", None]], object))
    with (tmp_path / "several.npy").open("wb") as file:
        np.savez(file, a=np.ones(1))
    found = said(tmp_path, ils)
    assert hint in found[f"[metrics] i.{where}"]
    assert len(found) == 1


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streammetrics_consumers.config.metrics.MAX_SETTING_BYTES", 20)
    (tmp_path / "items.csv").write_text(CSV)
    assert "more than 20 bytes" in str(said(tmp_path, 'vectors = { path = "items.csv" }'))


def test_a_list_of_items_needs_a_field_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    metrics = 'c = { type = "CatalogMetrics", n_items = 9, k = 2 }'
    path.write_text(toml(event='time = "ts"', slices="by = [[]]", metrics=metrics))
    with pytest.raises(ConfigError, match="a field for `lists`"):
        load_config(path)
    metrics = metrics.replace("k = 2", 'k = 2, inputs = { lists = "phase" }')
    path.write_text(toml(event='time = "ts"', slices='by = [["phase"]]', metrics=metrics))
    with pytest.raises(ConfigError, match="reads it as one value"):
        load_config(path)
