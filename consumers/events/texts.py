"""Columns of texts: variants, the values of slices, ids; and what the texts of a CSV file say."""

from __future__ import annotations

import json
from typing import Final, cast

import msgspec
import numpy as np

from consumers.config.event import MAX_TEXT, plain_text
from consumers.events.columns import Bad, Converted, Converter, wrong
from consumers.events.refusals import Unfit, shown
from streammetrics import Coded, hash_ids

MAX_NAME: Final = 480  # bytes of a slice's value as JSON: eight and a bit fit into a key of 4,096
_INT64: Final = 1 << 63
_EXACT_DIGITS: Final = 15  # a double holds every whole number of as many


def coded_texts(
    values: list[object], path: str, *, name: bool = True, nullable: bool = False
) -> Converted:
    """Texts, each distinct one named once. Numbers and true/false count as what they look like,
    so that JSON and CSV agree; a field that is missing or null is None where it may be.

    name: whether it is a name that slices are shown under, rather than an id."""
    bad: Bad = {}
    try:
        known: dict[object, int | None] = dict.fromkeys(values)
        # Only a text equals a text, so if all distinct values are texts then all values are.
        plain = set(map(type, known)) <= {str}
    except TypeError:
        plain = False
    if not plain:
        texts = [_text(value, path, nullable=nullable) for value in values]
        bad = {i: text for i, text in enumerate(texts) if isinstance(text, Unfit)}
        values = [None if isinstance(text, Unfit) else text for text in texts]
        known = dict.fromkeys(values)
    for code, value in enumerate(known):
        known[value] = code
        if isinstance(value, str) and len(value) > 40 and _too_long(value, name=name):
            unfit = Unfit("too_long", path, f"a text of {len(value)} characters")
            bad.update((i, unfit) for i, v in enumerate(values) if v == value)
    codes = np.fromiter(map(known.__getitem__, values), np.intp, len(values))
    return Coded(codes, tuple(cast("dict[str | None, int]", known))), bad


def hashed_texts(values: list[object], path: str) -> Converted:
    """Texts of ids that only their hashes are kept of; as `coded_texts` takes and refuses them."""
    if set(map(type, values)) <= {str}:
        texts = cast("list[str]", values)
        if max(map(len, texts), default=0) <= MAX_TEXT:
            return hash_ids(texts), {}
    column, bad = coded_texts(values, path, name=False)
    assert isinstance(column, Coded)
    known = [name if isinstance(name, str) else "" for name in column.values]
    return hash_ids(known)[column.codes], bad


def _text(value: object, path: str, *, nullable: bool) -> str | Unfit | None:
    text = plain_text(value)
    if text is not None or (value is None and nullable):
        return text
    if isinstance(value, int):
        return Unfit("out_of_range", path, f"{shown(value)} does not fit 64 bits")
    return wrong(path, "a text or a whole number", value)


def _too_long(text: str, *, name: bool) -> bool:
    return len(json.dumps(text)) > MAX_NAME if name else len(text) > MAX_TEXT


def variants(known: tuple[str, ...] | None) -> Converter:
    """Texts of a declared set; the column's values are that set, in its order."""
    places = {name: i for i, name in enumerate(known or ())}

    def convert(values: list[object], path: str) -> Converted:
        column, bad = coded_texts(values, path)
        assert isinstance(column, Coded)
        if known is None:
            return column, bad
        to = np.array([places.get(str(v), -1) for v in column.values], np.intp)
        codes = to[column.codes] if len(to) else column.codes
        if len(to) and to.min() < 0:
            for i in np.flatnonzero(codes < 0).tolist():
                came = shown(column.values[column.codes[i]])
                detail = f"expected one of {len(places)} variants, came {came}"
                bad.setdefault(i, Unfit("unknown_variant", path, detail))
            codes = np.maximum(codes, 0)
        return Coded(codes, known), bad

    return convert


def from_text(kind: str, text: str) -> object:
    """What a CSV text says for a column of this kind; the text itself where it says nothing."""
    if kind in ("variant", "slice", "text_id", "hashed_id", "time_iso"):
        return text or None
    stripped = text.strip(" \t")
    if not stripped:
        return None
    logical = kind == "flag" or kind.startswith("label")
    if logical and stripped in ("true", "false", "True", "False"):
        return stripped in ("true", "True")
    if kind.endswith(("_list", "_row")) and ("_or_" not in kind or stripped[0] == "["):
        try:
            return msgspec.json.decode(stripped)
        except msgspec.DecodeError:
            return text
    return _number(stripped, whole=kind in ("int_id", "count", "time_s", "time_ms"))


def _number(text: str, *, whole: bool) -> object:
    # float() and int() also take underscores and other alphabets' digits.
    if not text.isascii() or "_" in text or len(text) > 400:
        return text
    try:
        # A whole number is read as such where it may be none of the doubles.
        return (
            int(text) if whole or (len(text) > _EXACT_DIGITS and _is_whole(text)) else float(text)
        )
    except ValueError:
        return text


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").removeprefix("+").isdigit()
