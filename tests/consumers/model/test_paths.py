"""Dotted paths: each field has one, and none that cannot be read is a path."""

from __future__ import annotations

import json

import pytest
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.model.paths import MAX_PATH, is_path, names_in

from tests.consumers import small_config
from tests.consumers.small_config import chunk, config


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("user", ("user",)),
        ("user.id", ("user", "id")),
        ("properties.$feature_flag", ("properties", "$feature_flag")),
        ("a b.c/d.é", ("a b", "c/d", "é")),
        ('"a.b"', ("a.b",)),
        ('"a.b".c', ("a.b", "c")),
        ('x."a.b"."c."', ("x", "a.b", "c.")),
        ('x."."', ("x", ".")),
    ],
)
def test_a_path_has_its_names(path: str, names: tuple[str, ...]) -> None:
    assert is_path(path)
    assert names_in(path) == names


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "a.", ".a", "a..b", '"', '""', '"a"', 'a."b"', 'a"b', '"a.b', 'a.b"', '"a.b"c'),
        *('a"b.c"', "a\\b", "a\nb", "a\0b", '"a.\\b"', "x" * (MAX_PATH + 1)),
    ],
)
def test_a_text_that_names_no_field_in_one_way_is_no_path(text: str) -> None:
    assert not is_path(text)


def test_different_paths_have_different_names() -> None:
    parts = ["a", "b", ".", '"', "a.b"]
    texts = {"".join((x, y, z, w)) for x in parts for y in parts for z in parts for w in parts}
    paths = sorted(filter(is_path, texts))
    assert len(paths) > 10
    assert len({names_in(path) for path in paths}) == len(paths)


def test_fields_with_dots_in_their_names_are_read_and_tested_like_others() -> None:
    settings = config(
        event="""
            time = "ts"
            user = 'who."user.id"'
            label = '"click.count"'
            score = "score"
            where = { 'who."app.kind"' = "web" }
        """,
        slices="""by = [['who."app.kind"']]""",
        metrics='auc = { type = "GroupedAUC" }',
    )
    event = {
        "ts": "2024-01-01T00:00:00Z",
        "who": {"user.id": "u1", "user": {"id": "no"}, "app.kind": "web"},
        "click.count": 1,
        "score": 0.5,
    }
    variations = [
        {**event, "who": {"user.id": "u2", "app.kind": "app"}},
        {**event, "who": {"app": {"kind": "web"}}},
        {**event, "who": {"app.kind": "web"}},
        {**event, "click.count": 10**400},  # which is parsed slowly
    ]
    decoded = Decoder(settings).decode(
        chunk([json.dumps(record).encode() for record in [event, *variations]])
    )
    assert (len(decoded), decoded.skipped) == (1, 2)
    assert [(entry.offset, entry.field) for entry in decoded.refused] == [
        (3, 'who."user.id"'),
        (4, '"click.count"'),
    ]


def test_a_field_is_not_read_as_a_value_and_as_an_object() -> None:
    def refused(where: str, rest: str) -> None:
        small_config.refused(where, "a field of an object", rest=rest, windows=windows)

    windows = "size_s = 3600\nlateness_s = 60"
    refused("[dedup] event_id", '[dedup]\nevent_id = "ts.id"')
    entry = '\n[experiments.x]\ncontrol = "a"\ndecision = ["ctr"]\n'
    mark = '[exposures]\nfield = "kind"\nequals = "e"\n'
    refused("[exposures] unit", f'{mark}arm = "arm"\nunit = "arm.id"{entry}')
    refused("[exposures] arm", f'{mark}arm = "user.arm"{entry}')
    refused("[dedup] event_id", f'{mark}arm = "arm"{entry}[dedup]\nevent_id = "arm.id"')
    where = f'{mark}arm = "arm"\nwhere = {{ x = 1, "x.y" = 2 }}{entry}'
    refused("[exposures] where.x.y", where)
    # Of another kind of events a field may be an object.
    assert config(rest=f'{mark}arm = "score.arm"{entry}', windows=windows).exposures is not None
