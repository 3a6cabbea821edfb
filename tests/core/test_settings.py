"""Settings: their one form in bytes, the first difference, heads that nobody wrote, and arrays that
a state knows by their hash.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import IntraListSimilarity, Panel, PerKey, Ratio, Windows, load
from streammetrics.core import settings as module
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.errors import SettingsError, StateError
from streammetrics.core.settings import (
    MAX_NESTING,
    Content,
    Setting,
    decode_head,
    difference,
    encode_head,
    nested_settings,
)
from tests.toys import Reach, Tally


class Settled(Accumulator, schema="toy-settled/1"):
    """Nothing but a setting of any kind."""

    value: Setting = None

    def _accumulate(self, batch: Batch, slots: object) -> None:
        pass

    def compute(self) -> None:
        return None


settings = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.fractions()
    | st.sampled_from([Tally(3), Panel({"a": Reach(), "b": Tally()})]),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


def head_of(value: Setting) -> bytes:
    return encode_head("toy-settled/1", {"value": value})


@given(settings)
def test_settings_lead_to_bytes_and_back(value: Any) -> None:
    head = head_of(value)
    metric = decode_head(head).empty
    assert metric.settings()["value"] == value
    assert head.isascii()
    assert json.loads(head)[0] == "toy-settled/1"


def test_each_kind_of_setting_has_the_one_form_of_the_readme() -> None:
    forms: list[tuple[Setting, str]] = [
        *((None, "null"), (True, "true"), (1, "1"), (1.0, "1.0"), (0.1, "0.1")),
        *((np.float64(0.1), "0.1"), (("a", (1,)), '["a",[1]]'), ("ü\ud800", '"\\u00fc\\ud800"')),
        (float("inf"), '{"$float":"inf"}'),
        (np.float64("-inf"), '{"$float":"-inf"}'),
        (Fraction(1, 10), '{"$fraction":"1/10"}'),
        ({"b": 1, "a": ()}, '{"$map":{"a":[],"b":1}}'),
        (Tally(3), '{"$metric":["toy-tally/1",{"note":"","size":3}]}'),
    ]
    for value, text in forms:
        assert head_of(value) == f'["toy-settled/1",{{"value":{text}}}]'.encode()


def test_a_setting_that_bytes_cannot_hold_is_refused_when_it_is_given() -> None:
    wrong: list[Any] = [
        *(float("nan"), 1j, b"a", [1], {1, 2}, {1: 2}, object(), np.longdouble(1), np.ones(1)),
        *(Tally, (1, [2]), {"a": {1: 2}}, (float("nan"),)),
    ]
    for value in wrong:
        with pytest.raises(SettingsError) as caught:
            Settled(value)
        assert caught.value.where == "toy-settled/1: value"


def test_metrics_nest_as_deep_as_bytes_can_hold_and_no_deeper() -> None:
    metric: Accumulator = Tally()
    for _ in range(MAX_NESTING):
        metric = PerKey(metric)
    assert type(metric).from_bytes(metric.to_bytes()) == metric
    with pytest.raises(SettingsError):
        PerKey(metric)


def test_a_mapping_that_was_given_cannot_be_changed_afterwards() -> None:
    inner = {"x": 1}
    mapping = {"a": inner, "b": (inner,)}
    metric = Settled(mapping)
    before = metric.to_bytes()
    mapping["c"] = inner["y"] = 2  # type: ignore[assignment]
    setting = metric.settings()["value"]
    assert isinstance(setting, Mapping)
    assert setting == {"a": {"x": 1}, "b": ({"x": 1},)}
    with pytest.raises(TypeError):
        setting["d"] = 1  # type: ignore[index]
    assert repr(metric) == "Settled(value={'a': {'x': 1}, 'b': ({'x': 1},)})"
    assert Settled.from_bytes(before) == metric


def test_the_first_difference_is_named_as_deep_as_it_lies() -> None:
    deep = [Windows(Panel({"a": Tally(size)}), 60) for size in (3, 5)]
    pairs: list[tuple[Accumulator, Accumulator, tuple[str, str, str]]] = [
        (Tally(3), Tally(4), ("size", "3", "4")),
        (Tally(3, "x"), Tally(4, "y"), ("size", "3", "4")),
        (Tally(3), Tally(3), ("settings", "equal", "equal")),
        (Tally(3), Reach(), ("type", "Tally", "Reach")),
        (PerKey(Tally(3)), PerKey(Tally(4)), ("metric.size", "3", "4")),
        (PerKey(Tally()), PerKey(Reach()), ("metric", "Tally()", "Reach()")),
        (Panel({"a": Reach()}), Panel({"b": Reach()}), ("metrics['a']", "Reach()", "'absent'")),
        (deep[0], deep[1], ("metric.metrics['a'].size", "3", "5")),
        (Settled((1, 2)), Settled((1, 3)), ("value", "(1, 2)", "(1, 3)")),
        (Settled(1), Settled(1.0), ("value", "1", "1.0")),
    ]
    for first, second, where in pairs:
        assert difference(first, second) == where


PER_KEY = '["per-key/1",{"max_keys":5,"metric":{"$metric":'
GOOD = '["toy-tally/1",{"note":"","size":3}]'


def test_a_head_that_no_metric_writes_is_refused() -> None:
    for head in (
        *("", "null", "3", "[]", '["toy-tally/1"]', '["toy-tally/1",[]]', "{}", "[[],{}]"),
        *('["toy-tally/1",{}]', '["toy-tally/1",{"size":3}]', '[1,{"note":"","size":3}]'),
        '["toy-tally/1",{"note":"","size":3,"more":1}]',
        '["toy-tally/1",{"note":"","size":0}]',
        '["toy-tally/1",{"note":"","size":"3"}]',
        '["toy-tally/1",{"note":"","size":3.0}]',
        '["toy-tally/1",{"note":"","size":null}]',
        '["toy-tally/1",{"note":"","size":NaN}]',
        '["toy-tally/1",{"note":"","size":1e999}]',
        '["toy-tally/1",{"note":"","size":2,"size":3}]',
        '["toy-tally/1",{"size":3,"note":""}]',
        GOOD.replace(",", ", "),
        GOOD + " ",
        GOOD.replace("note", "\\u006eote"),
        GOOD.replace('""', '"\xfc"'),
        '["toy-settled/1",{"value":{}}]',
        '["toy-settled/1",{"value":{"a":1}}]',
        '["toy-settled/1",{"value":{"$float":"nan"}}]',
        '["toy-settled/1",{"value":{"$float":"inf","a":1}}]',
        '["toy-settled/1",{"value":{"$fraction":"1/2","more":1}}]',
        '["toy-settled/1",{"value":{"$map":{},"more":1}}]',
        '["toy-settled/1",{"value":{"$fraction":"1/0"}}]',
        '["toy-settled/1",{"value":{"$fraction":"2/4"}}]',
        '["toy-settled/1",{"value":{"$fraction":"1e1000000000"}}]',
        f'["toy-settled/1",{{"value":{{"$fraction":"{200 * "9"}"}}}}]',
        '["toy-settled/1",{"value":{"$map":[]}}]',
        '["toy-settled/1",{"value":{"$metric":3}}]',
        '["toy-settled/1",{"value":{"$metric":["os/1",{}]}}]',
        f'["toy-settled/1",{{"value":{5000 * "9"}}}]',
        f'["toy-settled/1",{{"value":{900 * "["}1{900 * "]"}}}]',
        f'["toy-settled/1",{{"value":{100_000 * "["}1{100_000 * "]"}}}]',
        "[" * 100_000,
    ):
        with pytest.raises(StateError):
            decode_head(head.encode())


def nested(deep: int) -> bytes:
    return f"{deep * PER_KEY}{GOOD}{deep * '}}]'}".encode()


def test_metrics_nested_too_deep_are_refused() -> None:
    assert decode_head(nested(MAX_NESTING)).empty
    for deep in (MAX_NESTING + 1, 100, 2_000, 15_000):
        with pytest.raises(StateError):
            decode_head(nested(deep))


def test_an_unknown_schema_says_to_import_its_module() -> None:
    with pytest.raises(StateError) as caught:
        decode_head(b'["toy-tall/1",{}]')
    assert caught.value.got == "'toy-tall/1'"
    assert "import" in caught.value.hint
    assert "toy-tally/1" in caught.value.expected
    with pytest.raises(StateError) as unlike:
        decode_head(b'["' + b"x" * 5_000 + b'/1",{}]')
    assert len(str(unlike.value)) < 500


# -- a setting that is known by its hash -----------------------------------------------------------
VECTORS = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
TABLE = Content.of(VECTORS)


def counted() -> IntraListSimilarity:
    metric = IntraListSimilarity(VECTORS)
    metric.update([[0, 1], [1, 2]])
    return metric


def test_its_hash_is_that_of_the_readme() -> None:
    preimage = b"streammetrics float64 [3, 2]\n" + VECTORS.astype("<f8").tobytes()
    assert TABLE.digest == "sha256:" + hashlib.sha256(preimage).hexdigest()
    assert Content.of(-0.0 * np.ones((1, 1))).digest == Content.of(np.zeros((1, 1))).digest


def test_it_is_its_numbers_in_their_shape_and_nobody_changes_them() -> None:
    values = TABLE.values("M.table")
    assert values.tolist() == VECTORS.tolist()
    assert values.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        values[0, 0] = 2
    same = Content(TABLE.shape, TABLE.digest)
    assert same == TABLE and hash(same) == hash(TABLE) and repr(same) == repr(TABLE)
    tables = (VECTORS.T, VECTORS.reshape(2, 3), VECTORS + 1)
    assert all(Content.of(table) != TABLE for table in tables)
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


def test_a_state_without_the_numbers_stays_without() -> None:
    data = counted().to_bytes()
    pickled = pickle.loads(pickle.dumps(IntraListSimilarity.from_bytes(data)))
    assert pickled == counted()
    pickle.loads(pickle.dumps(counted())).update([[0, 1]])
    for back in (pickled, load(data)):
        with pytest.raises(StateError):
            back.update([[0, 1]])


def test_a_pickle_whose_numbers_were_changed_is_refused() -> None:
    make, (shape, digest, numbers) = TABLE.__reduce__()  # type: ignore[misc]
    assert make(shape, digest, numbers) == TABLE
    for payload in (numbers[:-1], numbers + b"\0", b"\1" + numbers[1:], b""):
        with pytest.raises(StateError, match="does not match its hash"):
            make(shape, digest, payload)


def test_every_setting_is_found_however_deep() -> None:
    metric = counted().empty()
    nested = PerKey(Panel({"a": metric, "b": PerKey(metric)}))
    tables = [setting for setting in nested_settings(nested) if isinstance(setting, Content)]
    assert [table.digest for table in tables] == 2 * [TABLE.digest]
    assert list(nested_settings({"x": (1, (TABLE,)), "n": None}))[2:] == [1, (TABLE,), TABLE, None]


OF_SIMILARITY = '["intra-list-similarity/2",{"k":null,"similarity":"cosine","vectors":%s}]'
OF_TABLE = {"$content": [TABLE.digest, [3, 2]]}


def test_the_head_has_hash_and_shape() -> None:
    metric = decode_head(
        (OF_SIMILARITY % json.dumps(OF_TABLE, separators=(",", ":"))).encode()
    ).empty
    assert metric == counted().empty()


def test_a_head_with_another_content_is_refused() -> None:
    for value in (
        {"$content": []},
        {"$content": [TABLE.digest]},
        {"$content": [TABLE.digest, 3]},
        {"$content": [TABLE.digest, [3, 2]], "more": 1},
        *({"$content": [TABLE.digest, [n, 2]]} for n in (3.0, -3, 1 << 48, 0)),
        {"$content": [TABLE.digest, [3]]},
        {"$content": [TABLE.digest.upper(), [3, 2]]},
        {"$content": [TABLE.digest + "\n", [3, 2]]},
        None,
    ):
        head = OF_SIMILARITY % json.dumps(value, separators=(",", ":"))
        with pytest.raises(StateError):
            decode_head(head.encode())


def test_a_state_with_a_similarity_that_is_not_registered_here_is_read() -> None:
    head = OF_SIMILARITY % json.dumps(OF_TABLE, separators=(",", ":"))
    metric = decode_head(head.replace("cosine", "unheard-of").encode()).empty
    assert metric.settings()["similarity"] == "unheard-of"


def test_heads_of_the_metrics_of_many_experiments_are_read_once_each() -> None:
    heads = [PerKey(Ratio(), 1 + i)._head() for i in range(200)]
    first = [decode_head(head).empty for head in heads]
    assert all(decode_head(head).empty is empty for head, empty in zip(heads, first, strict=True))


def test_long_heads_are_forgotten_rather_than_held_without_end() -> None:
    for i in range(40):
        head = Panel({f"{i} {'x' * 200_000}": Ratio()})._head()
        assert decode_head(head).empty is decode_head(head).empty
    assert sum(map(len, module._HEADS)) <= 1 << 21
