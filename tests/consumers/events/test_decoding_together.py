"""Events that are decoded together, by columns, against each event alone in plain Python.

The fast path is `json_events.py` and `columns.py`: all events, a column at a time, with what
is bad taken out. See tests/fast_paths/README.md.
"""

import json
import random
from collections.abc import Mapping

import numpy as np
import pytest
from streammetrics_consumers.events.columns import Column
from streammetrics_consumers.events.decoder import Decoded, Decoder

from streammetrics import DictionaryColumn, hash_ids
from tests.consumers.events.decoded_plainly import SAID, Fault, plainly
from tests.consumers.small_config import EVENT, POISON, chunk, config

SLICES = 'by = [["variant"], ["phase"], ["geo.country"], ["geo.city.name"], ["n"]]'
METRICS = (
    'auc = { type = "HistogramAUC" }\ng = { type = "GroupedAUC" }\n'
    'ctr = { type = "Ratio", inputs = { numerators = "label", denominators = "shown.n" } }'
)
DEDUP = '[dedup]\nevent_id = "id"'
JOIN = """
[join]
id = "id"
impression = { field = "kind", equals = "shown" }
label_window_s = 60
others = "refuse"
[join.outcomes]
click = { field = "kind", equals = "click" }
paid = { field = "kind", equals = "paid", counts = "sum", value = "shown.n" }
"""
EXPOSURES = """
[exposures]
field = "kind"
equals = "exposure"
experiment = "phase"
arm = "n"
where = { "geo.country" = "present" }
[experiments.p1]
control = "1"
variants = ["1", "2"]
decision = ["ctr"]
"""
CONFIG = config(slices=SLICES, metrics=METRICS, rest=DEDUP)
FIELDS = {  # in the order in which a config reads them: the first fault is told
    "ts": "time", "id": "id", "variant": "variant", "phase": "slice", "geo.country": "slice",
    "geo.city.name": "slice", "n": "slice", "label": "label", "score": "real", "shown.n": "real",
    "user": "id",
}  # fmt: skip
NUMBERS = ["0", "-0", "1", "1.0", "0.5", "255", "256", "-1", "1e308", "1e999", "NaN", "-Infinity"]
NUMBERS += [str(n) for n in (2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**70, 10**400)]
NUMBERS += [str(2**1024 - 2**970 - 1), str(2**1024 - 2**970), str(-(2**1024))]
TEXTS = ["a", "b", "1", "", "z", "é", "\U0001f600", "x\ny", "\0", "x" * 1024, "x" * 1025, "é" * 90]
TIMES = """\
2024-01-01T00:00:00Z 2024-02-29t23:59:59.123456789z 2023-02-29T00:00:00Z 2024-01-01T00:00:00+09:00
2024-01-01T00:00:00-0930 2024-01-01T24:00:00Z 2024-01-01T00:60:00Z 2024-01-01T00:00:60Z
2024-01-01T00:00:00 2024-01-01T00:00:00.Z 2024-13-01T00:00:00Z 2024-00-01T00:00:00Z
2024-01-00T00:00:00Z 0000-01-01T00:00:00Z 0001-01-01T00:00:00+00:01 9999-12-31T23:59:59.9Z
2024-01-01T00:00:0é 2024-W01-1T00:00:00Z 1900-02-29T00:00:00Z 2000-02-29T00:00:00.5Z
"""
OTHERS = ["null", "true", "false", "[]", "[1]", "{}", '{"n":1}', '{"n":null}', '{"country":"de"}']
OTHERS += ['{"country":7,"city":null}', '{"city":[]}', '{"city":{"name":{}}}', '"\\ud800"']
OTHERS += ['{"country":null,"city":{"name":"x"}}', '"\\u0061"', "1" + "0" * 5000]
VALUES = [*NUMBERS, *map(json.dumps, [*TEXTS, *TIMES.split(), "2024-01-01T00:00:0\nZ"]), *OTHERS]
BROKEN = [poison for poison, reason in POISON.values() if reason not in ("too_large", "metric")]


def event_of(i: int, changes: Mapping[str, str | None], last: str = "") -> bytes:
    fields: dict[str, str | None] = {
        "ts": f'"2024-01-0{1 + i % 3}T00:{i % 60:02d}:00.{i % 1000:03d}Z"',
        "id": f'"i{i}"', "kind": f'"{("shown", "click", "paid", "exposure")[i % 4]}"',
        "variant": f'"{"ab"[i % 2]}"', "user": f'"u{i % 50}"', "label": str(i % 2),
        "score": repr(i / 4096), "phase": f'"p{i % 3}"', "n": str(i % 300),
        "geo": f'{{"country":"c{i % 4}","city":{{"name":"x"}}}}', "shown": f'{{"n":{i % 5 + 1}}}',
    }  # fmt: skip
    fields |= changes
    inside = ",".join(f'"{name}":{value}' for name, value in fields.items() if value is not None)
    return f"{{{inside}{last}}}".encode("utf-8", "surrogatepass")


def hostile(i: int, draw: random.Random) -> bytes:
    names = ["ts", "id", "kind", "variant", "user", "label", "score", "phase", "n", "geo", "shown"]
    changes = {
        draw.choice(names): draw.choice([*VALUES, None]) for _ in range(draw.choice([1, 1, 2]))
    }
    duplicate = f',"{draw.choice(names)}":{draw.choice(VALUES)}' if draw.random() < 0.1 else ""
    value = event_of(i, changes, duplicate)
    if draw.random() < 0.2:
        value = draw.choice(
            [*BROKEN, value[:-9], value + value, value + b"\n" + value, value + b",",
             b"[%s]" % value, value + b" ", value.replace(b"u", b"\xff"),
             value.replace(b"p", "é".encode()), *(
                 value[:-1] + b',"x":' + b"[" * depth + b"]" * depth + b"}" for depth in (255, 256)
             )]
        )  # fmt: skip
    return value


def stream(n: int, share: float, seed: int) -> list[bytes]:
    """Events of which a share is hostile, in any place."""
    draw = random.Random(seed)
    return [hostile(i, draw) if draw.random() < share else event_of(i, {}) for i in range(n)]


def rows(column: Column) -> list[object]:
    if isinstance(column, DictionaryColumn):
        return [column.values[code] for code in column.codes.tolist()]
    assert isinstance(column, np.ndarray)
    return list(column.tolist())


def columns(piece: Decoded) -> dict[str, list[object]]:
    every: dict[str, Column] = {**piece.keys, **piece.columns}
    return {name: rows(column) for name, column in every.items()}


@pytest.mark.parametrize("share", [0.01, 0.5, 0, 0.001, 1])
def test_events_together_are_what_each_is_alone_in_plain_python(share: float) -> None:
    values = stream(2500 if share < 0.5 else 1100, share, seed=round(share * 1000))
    piece = Decoder(CONFIG).decode(chunk(values))
    expected = [plainly(value, FIELDS, ["a", "b"]) for value in values]
    good = [i for i, outcome in enumerate(expected) if not isinstance(outcome, Fault)]
    assert piece.at.tolist() == good
    bad = {i: outcome for i, outcome in enumerate(expected) if isinstance(outcome, Fault)}
    assert [entry.offset for entry in piece.refused] == list(bad)
    for entry, fault in zip(piece.refused, bad.values(), strict=True):
        detail = SAID if fault.detail is SAID else entry.detail
        assert (entry.reason, entry.field, detail) == fault, values[entry.offset][:200]
    table = dict(zip(FIELDS, zip(*(expected[i] for i in good), strict=True), strict=True))  # type: ignore[arg-type]
    users = table.pop("user")
    assert piece.times_ms.tolist() == list(table.pop("ts"))
    assert rows(piece.columns["user:hashed_id"]) == hash_ids(users).tolist()
    names = {
        "variant": "variant", "label": "label:label", "score": "score:real",
        "shown.n": "shown.n:real", "phase": "slice phase", "n": "slice n",
        "geo.country": "slice geo.country", "geo.city.name": "slice geo.city.name",
    }  # fmt: skip
    del table["id"]
    assert columns(piece) == {
        **{names[path]: list(column) for path, column in table.items()},
        "user:hashed_id": rows(piece.columns["user:hashed_id"]),
    }


@pytest.mark.parametrize(
    "parts",
    [
        {"rest": JOIN + DEDUP, "slices": 'by = [[], ["variant"], ["n"]]',
         "event": EVENT.replace('label = "label"\n', "")},
        {"event": EVENT + 'where = { "geo.country" = ["c1", "7"], phase = "present" }'},
        {"rest": DEDUP},
        {"rest": EXPOSURES + DEDUP},
        {"rest": EXPOSURES + JOIN, "event": EVENT.replace('label = "label"\n', "")},
        {"rest": '[dedup]\nevent_id = "user"'},
        {"event": EVENT.replace('variants = ["a", "b"]', ""),
         "metrics": 'g = { type = "GroupedAUC", ids = "exact" }'}],
    ids=["joined outcomes", "filtered", "ids of refused events", "exposures",
         "exposures beside joined outcomes", "one id in two roles", "any variant, exact ids"],
)  # fmt: skip
def test_a_chunk_of_events_is_the_sum_of_its_events(parts: Mapping[str, str]) -> None:
    decoder = Decoder(config(**parts))
    values = stream(600, 0.3, seed=len(str(parts)))
    whole = decoder.decode(chunk(values))
    pieces = [decoder.decode(chunk([value], i)) for i, value in enumerate(values)]
    assert list(whole.refused) == [entry for piece in pieces for entry in piece.refused]
    offsets = np.asarray(whole.chunk.offsets)[whole.at]
    assert offsets.tolist() == [i for i, piece in enumerate(pieces) if len(piece)]
    assert whole.skipped == sum(piece.skipped for piece in pieces)
    full = [piece for piece in pieces if len(piece)]
    assert whole.times_ms.tolist() == [piece.times_ms[0] for piece in full]
    if whole.kinds is not None:
        assert whole.kinds.tolist() == [piece.kinds[0] for piece in full]  # type: ignore[index]
    if whole.event_ids is not None:
        read = [piece.event_ids for piece in pieces if piece.event_ids is not None]
        assert whole.event_ids.ids.tolist() == [
            i for event_ids in read for i in event_ids.ids.tolist()
        ]
    for name, column in columns(whole).items():
        single = [columns(piece)[name][0] for piece in full if name in columns(piece)]
        if len(single) == len(column):
            assert column == single
        else:  # only events of some kinds have it
            presence = [name in columns(piece) for piece in full]
            assert [
                value for value, is_there in zip(column, presence, strict=True) if is_there
            ] == single
