"""Content: a setting known by its hash, and what a state can do with and without the numbers."""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from streammetrics import IntraListSimilarity, Panel, PerKey, StateError, load
from streammetrics.core.declared import CLASSES
from streammetrics.core.settings import Content, contents, decode_head

VECTORS = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
TABLE = Content.of(VECTORS)


def counted() -> IntraListSimilarity:
    metric = IntraListSimilarity(VECTORS)
    metric.update([[0, 1], [1, 2]])
    return metric


def test_its_hash_is_that_of_the_readme() -> None:
    said = b"streammetrics float64 [3, 2]\n" + VECTORS.astype("<f8").tobytes()
    assert TABLE.digest == "sha256:" + hashlib.sha256(said).hexdigest()
    assert Content.of(-0.0 * np.ones((1, 1))).digest == Content.of(np.zeros((1, 1))).digest


def test_it_is_its_numbers_in_their_shape_and_nobody_changes_them() -> None:
    values = TABLE.values("M.table")
    assert values.tolist() == VECTORS.tolist()
    assert values.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        values[0, 0] = 2
    same = Content(TABLE.shape, TABLE.digest)
    assert same == TABLE and hash(same) == hash(TABLE) and repr(same) == repr(TABLE)
    others = (VECTORS.T, VECTORS.reshape(2, 3), VECTORS + 1)
    assert all(Content.of(other) != TABLE for other in others)
    assert TABLE.digest != TABLE


def test_bytes_hold_the_hash_and_not_the_numbers() -> None:
    vectors = np.arange(1.0, 200_001).reshape(-1, 2)
    metric = IntraListSimilarity(vectors)
    metric.update([[5, 99_999]])
    data = metric.to_bytes()
    assert len(data) < 400
    back = IntraListSimilarity.from_bytes(data)
    assert back == metric and back.to_bytes() == data and back.digest() == metric.digest()
    assert back.compute() == metric.compute()
    assert (back + metric).compute().lists_kept == (metric + back).compute().lists_kept == 2


def test_a_state_from_bytes_counts_no_rows_and_says_what_to_do() -> None:
    back = IntraListSimilarity.from_bytes(counted().to_bytes())
    before = back.to_bytes()
    for refuse in (back.update, back.check):
        with pytest.raises(StateError) as caught:
            refuse([[0, 2]])
        error = caught.value
        assert error.where == "IntraListSimilarity.vectors"
        assert TABLE.digest in error.got
        assert "merge this state into an empty one" in error.hint
    assert back.to_bytes() == before
    with pytest.raises(StateError):
        PerKey.from_bytes(PerKey(counted().empty()).to_bytes()).update(["a"], lists=[[0, 1]])


@pytest.mark.slow
def test_a_pickle_carries_the_numbers_once_and_another_process_counts_with_them() -> None:
    vectors = np.arange(1.0, 20_001).reshape(-1, 2)
    keyed = PerKey(Panel({"a": IntraListSimilarity(vectors), "b": IntraListSimilarity(vectors)}))
    keyed.update(["x", "y"], lists=[[0, 1], [5, 6]])
    keyed.provenance.add("log/0", 0, 2)
    data = pickle.dumps([keyed, keyed.copy()])
    assert 160_000 < len(data) < 165_000
    script = (
        "import pickle, sys\n"
        "keyed, _ = pickle.loads(sys.stdin.buffer.read())\n"
        "keyed.update(['x'], lists=[[2, 3]])\n"
        "assert list(keyed.provenance) == [('log/0', '', 0, 2)]\n"
        "print(keyed.digest())"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], input=data, capture_output=True, check=True
    )
    keyed.update(["x"], lists=[[2, 3]])
    assert run.stdout.decode().strip() == keyed.digest()


def test_a_pickled_state_without_the_numbers_stays_without() -> None:
    back = pickle.loads(pickle.dumps(IntraListSimilarity.from_bytes(counted().to_bytes())))
    assert back == counted()
    with pytest.raises(StateError):
        back.update([[0, 1]])


def test_what_was_unpickled_leaves_later_states_from_bytes_as_they_are() -> None:
    data = counted().to_bytes()
    pickle.loads(pickle.dumps(counted())).update([[0, 1]])
    with pytest.raises(StateError):
        load(data).update([[0, 1]])


def test_a_pickle_whose_numbers_were_changed_is_refused() -> None:
    make, (data, known) = counted().__reduce__()  # type: ignore[misc]
    [(digest, numbers)] = known.items()
    assert make(data, known) == counted()
    for other in (numbers[:-1], numbers + b"\0", b"\1" + numbers[1:], b""):
        with pytest.raises(StateError, match="does not match its hash"):
            make(data, {digest: other})


def test_every_content_is_found_however_deep() -> None:
    metric = counted().empty()
    nested = PerKey(Panel({"a": metric, "b": PerKey(metric)}))
    assert [content.digest for content in contents(nested.settings())] == 2 * [TABLE.digest]
    settings = {"x": (1, (TABLE,)), "y": {"z": TABLE}, "n": None}
    assert list(contents(settings)) == [TABLE, TABLE]


HEAD = '["intra-list-similarity/1",{"k":null,"similarity":"cosine","vectors":%s}]'
GOOD = {"$content": [TABLE.digest, [3, 2]]}


def test_the_head_has_hash_and_shape() -> None:
    metric = decode_head((HEAD % json.dumps(GOOD, separators=(",", ":"))).encode(), CLASSES)
    assert metric == counted().empty()


@pytest.mark.parametrize(
    "value",
    [
        {"$content": []},
        {"$content": [TABLE.digest]},
        {"$content": [TABLE.digest, 3]},
        {"$content": [TABLE.digest, [3, 2]], "more": 1},
        {"$content": [TABLE.digest, [3.0, 2]]},
        {"$content": [TABLE.digest, [-3, 2]]},
        {"$content": [TABLE.digest, [1 << 48, 2]]},
        {"$content": [TABLE.digest, [3]]},
        {"$content": [TABLE.digest, [0, 2]]},
        {"$content": [TABLE.digest.upper(), [3, 2]]},
        {"$content": [TABLE.digest + "\n", [3, 2]]},
        None,
    ],
)
def test_a_head_with_another_content_is_refused(value: object) -> None:
    head = HEAD % json.dumps(value, separators=(",", ":"))
    with pytest.raises(StateError):
        decode_head(head.encode(), CLASSES)


def test_a_state_with_a_similarity_that_is_not_registered_here_is_read() -> None:
    head = HEAD % json.dumps(GOOD, separators=(",", ":"))
    made = decode_head(head.replace("cosine", "unheard-of").encode(), CLASSES)
    assert made.settings()["similarity"] == "unheard-of"
