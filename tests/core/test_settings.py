"""Settings: their one form in bytes, the first difference, and heads that nobody wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.combine import Panel, PerKey, Windows
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.declared import CLASSES
from streammetrics.core.errors import SettingsError, StateError
from streammetrics.core.settings import MAX_NESTING, Setting, decode_head, difference, encode_head
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
    made = decode_head(head, CLASSES)
    assert made.settings()["value"] == value
    assert head.isascii()
    assert json.loads(head)[0] == "toy-settled/1"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (np.float64(0.1), "0.1"),
        (float("inf"), '{"$float":"inf"}'),
        (np.float64("-inf"), '{"$float":"-inf"}'),
        (Fraction(1, 10), '{"$fraction":"1/10"}'),
        (("a", (1,)), '["a",[1]]'),
        ({"b": 1, "a": ()}, '{"$map":{"a":[],"b":1}}'),
        ("ü\ud800", '"\\u00fc\\ud800"'),
        (Tally(3), '{"$metric":["toy-tally/1",{"note":"","size":3}]}'),
    ],
)
def test_each_kind_of_setting_has_the_one_form_of_the_readme(value: Setting, text: str) -> None:
    assert head_of(value) == f'["toy-settled/1",{{"value":{text}}}]'.encode()


@pytest.mark.parametrize(
    "value",
    [
        *(
            float("nan"),
            1j,
            b"a",
            [1],
            {1, 2},
            {1: 2},
            object(),
            np.longdouble(1),
            np.ones(1),
            Tally,
        ),
        *((1, [2]), {"a": {1: 2}}, (float("nan"),)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_setting_that_bytes_cannot_hold_is_refused_when_it_is_given(value: Any) -> None:
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
    given = {"a": inner, "b": (inner,)}
    made = Settled(given)
    before = made.to_bytes()
    given["c"] = inner["y"] = 2  # type: ignore[assignment]
    kept = made.settings()["value"]
    assert isinstance(kept, Mapping)
    assert kept == {"a": {"x": 1}, "b": ({"x": 1},)}
    with pytest.raises(TypeError):
        kept["d"] = 1  # type: ignore[index]
    assert repr(made) == "Settled(value={'a': {'x': 1}, 'b': ({'x': 1},)})"
    assert Settled.from_bytes(before) == made


@pytest.mark.parametrize(
    ("a", "b", "where"),
    [
        (Tally(3), Tally(4), ("size", "3", "4")),
        (Tally(3, "x"), Tally(4, "y"), ("size", "3", "4")),
        (Tally(3), Tally(3), ("settings", "equal", "equal")),
        (Tally(3), Reach(), ("type", "Tally", "Reach")),
        (PerKey(Tally(3)), PerKey(Tally(4)), ("metric.size", "3", "4")),
        (PerKey(Tally()), PerKey(Reach()), ("metric", "Tally(size=4, note='')", "Reach()")),
        (Panel({"a": Reach()}), Panel({"b": Reach()}), ("metrics['a']", "Reach()", "'absent'")),
        (
            Windows(Panel({"a": Tally(3)}), 60),
            Windows(Panel({"a": Tally(5)}), 60),
            ("metric.metrics['a'].size", "3", "5"),
        ),
        (Settled((1, 2)), Settled((1, 3)), ("value", "(1, 2)", "(1, 3)")),
        (Settled(1), Settled(1.0), ("value", "1", "1.0")),
    ],
)
def test_the_first_difference_is_named_as_deep_as_it_lies(
    a: Accumulator, b: Accumulator, where: tuple[str, str, str]
) -> None:
    assert difference(a, b) == where


PER_KEY = '["per-key/1",{"max_keys":5,"metric":{"$metric":'
GOOD = '["toy-tally/1",{"note":"","size":3}]'


@pytest.mark.parametrize(
    "head",
    [
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
    ],
    ids=lambda head: head[:60] + str(len(head)),
)
def test_a_head_that_no_metric_writes_is_refused(head: str) -> None:
    with pytest.raises(StateError):
        decode_head(head.encode(), CLASSES)


def nested(deep: int) -> bytes:
    return f"{deep * PER_KEY}{GOOD}{deep * '}}]'}".encode()


def test_metrics_nested_too_deep_are_refused() -> None:
    assert decode_head(nested(MAX_NESTING), CLASSES)
    for deep in (MAX_NESTING + 1, 100, 2_000, 15_000):
        with pytest.raises(StateError):
            decode_head(nested(deep), CLASSES)


def test_an_unknown_schema_says_to_import_its_module() -> None:
    with pytest.raises(StateError) as caught:
        decode_head(b'["mine/1",{}]', CLASSES)
    assert caught.value.got == "'mine/1'"
    assert "import" in caught.value.hint
    assert "toy-tally/1" in caught.value.expected
