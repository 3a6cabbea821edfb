"""Objects that repeat and are decoded once, against events whose every field is read as any value.

The fast path is `repeated_objects.py`. See tests/fast_paths/README.md.
"""

import json
import random
from collections.abc import Sequence

import pytest
from streammetrics_consumers.events import Unfit, repeated_objects
from streammetrics_consumers.events.json_events import JsonReader

from streammetrics import DictionaryColumn

ARMS = ("control", "treatment", "é")
EXPECTED = (*ARMS[:2], *map(str, range(1000, 1200)), ARMS[2])  # more than a byte counts
PATHS = ("exps.e0", "exps.e1", "exps.é", "a.b.e0", "a.b.e1")
BESIDE = ("both.e0", "both.e1")  # an object of which "n" is read too
OPTIONAL = dict.fromkeys([*PATHS, *BESIDE, "both.n"], frozenset[str]())
FIELDS = {"ts": frozenset({"time_iso"}), "n": frozenset({"slice"}), **OPTIONAL}
WORDS = [*map(json.dumps, ARMS), '"\\u0063ontrol"', "null"]
OTHERS = ["1", "true", "1.5", '"other"', '""', "[]", '{"e0":"control"}', "1e999", "1" * 30]
OTHERS += ['"\\ud800"', '"\\x"', '"control', "NaN", "01", '"\x01"', '"\n"', "tru", '"a"}', ""]
NO_OBJECTS = ["null", "5", '"control"', "[]", '["control"]', "[{}]", "true", "1e999", "2" * 20]
NO_OBJECTS += ["{", "}", "", '{"e0"}', '{"e0":"control",}', '{"\\ud800":1}', "{1:2}", "[" * 300]
SPACES = ["", "", "", " ", "\n", "\t\r\n "]


def text_of(draw: random.Random, hostile: float) -> str:
    """An object, mostly one of few, with the fields in any order, absent or repeated."""
    if draw.random() < hostile / 4:
        return draw.choice(NO_OBJECTS)
    names = draw.choice(
        [("e0", "e1", "é"), ("é", "e0"), ("e1",), (), ("e0", "e1", "e0"), ("x", "e1")]
    )
    parts = []
    for name in names:
        value = draw.choice(OTHERS if draw.random() < hostile else WORDS)
        shown = draw.choice([json.dumps(name), f'"{name}"'])
        parts.append(f"{shown}:{draw.choice(SPACES)}{value}")
    space = draw.choice(SPACES)
    if draw.random() < 0.5:
        parts.append(f'"other":"{"x" * draw.choice([*range(60), 300])}"')
    return f"{{{space}{f',{space}'.join(parts)}}}"


def event(draw: random.Random, objects: Sequence[str], hostile: float) -> bytes:
    """An event with an object in each place, or without, or with two of the same name."""
    parts = ['"ts":"2024-01-01T00:00:00Z"' if draw.random() > hostile / 4 else '"ts":null']
    if draw.random() > 0.1:
        parts.append(f'"exps":{draw.choice(objects)}')
    if draw.random() < hostile:
        parts.append(f'"n":{draw.choice(["1", str(2**70), "1e999"])}')
    if draw.random() > 0.9:
        parts.append(f'"both":{draw.choice(objects)}')
    if draw.random() > 0.1:
        inner = f'{{"b":{draw.choice(objects)}}}'
        parts.append(f'"a":{inner if draw.random() > hostile / 4 else draw.choice(NO_OBJECTS)}')
    if draw.random() < hostile / 4:
        parts.append(draw.choice([f'"exps":{draw.choice(objects)}', '"y":"\\ud800"', '"y":1e999']))
    value = f"{{{','.join(parts)}}}".encode()
    return value if draw.random() > hostile / 8 else value.replace(b"n", b"\xff")


def decoded(
    reader: JsonReader, values: Sequence[bytes]
) -> tuple[dict[str, list[object]], dict[int, Unfit]]:
    columns, bad = reader.read(values)
    texts = {
        path: [column.values[code] for code in column.codes.tolist()]
        if isinstance(column, DictionaryColumn)
        else column
        for path, column in columns.items()
    }
    return {path: texts[path] for path in FIELDS}, dict(sorted(bad.items()))


@pytest.mark.parametrize("hostile", [0, 0.02, 0.05, 0.2, 0.6])
def test_objects_that_repeat_are_what_they_are_alone(
    hostile: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_objects, "MOST_OBJECTS", 200)
    monkeypatch.setattr(repeated_objects, "LONGEST", 200)
    draw = random.Random(hostile)
    fast, simple = (
        JsonReader(FIELDS, dict.fromkeys([*PATHS, *BESIDE], EXPECTED)),
        JsonReader(FIELDS, {}),
    )
    for n in [300, 1, 0, 100, 3, 700, 300, 300]:
        objects = [text_of(draw, hostile) for _ in range(max(1, n // 4))]
        values = [event(draw, objects, hostile) for _ in range(n)]
        expected, reasons = decoded(simple, values)
        columns, found_reasons = decoded(fast, values)
        assert found_reasons == reasons
        assert repr(columns) == repr(expected)  # True is no 1
