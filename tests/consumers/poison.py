"""Events that must be refused, each for a reason of its own, beside the good ones of
`small_config`. None of them may cost a neighbour anything."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from streammetrics_consumers.events.refusals import Reason

from tests.consumers.small_config import event

GOOD: Final = event()
POISON: Final[Mapping[str, tuple[bytes, Reason]]] = MappingProxyType(
    {
        "cut off": (GOOD[:-1], "not_json"),
        "a text without an end": (b'{"broken', "not_json"),
        "a bracket without an end": (b"[", "not_json"),
        "a letter too few": (GOOD.replace(b'"fit"', b"fit"), "not_json"),
        "a zero byte": (b"\0", "not_json"),
        "empty": (b"", "empty"),
        "null": (b"null", "not_an_object"),
        "a number": (b"17", "not_an_object"),
        "an array": (b"[1]", "not_an_object"),
        "a null for a number": (event(score="null"), "missing_field"),
        "a field too few": (GOOD.replace(b'"label":0,', b""), "missing_field"),
        "a text for a number": (event(label='"0"'), "wrong_type"),
        "an object for a number": (event(score='{"x":1}'), "wrong_type"),
        "NaN": (event(score="NaN"), "not_a_number"),
        "Infinity": (event(score="Infinity"), "not_a_number"),
        "-Infinity": (event(score="-Infinity"), "not_a_number"),
        "a huge exponent": (event(score="1e999"), "out_of_range"),
        "an integer of 5000 digits": (event(label="1" + "0" * 5000), "out_of_range"),
        "a label that is not 0 or 1": (event(label=2), "metric"),
        "a time that is none": (event(ts="yesterday"), "bad_time"),
        "an unknown variant": (event(variant="z"), "unknown_variant"),
        "invalid UTF-8": (event(phase="\xff").decode().encode("latin-1"), "invalid_utf8"),
        "half of a character": (event(phase="\\ud800"), "not_json"),
        "a newline inside": (GOOD[:20] + b"\n" + GOOD[20:], "not_json"),
        "two documents": (GOOD + GOOD, "two_documents"),
        "deep arrays": (GOOD[:-1] + b',"x":' + b"[" * 300 + b"]" * 300 + b"}", "too_deep"),
        "deep objects": (b'{"a":' * 300 + b"1" + b"}" * 300, "too_deep"),
        "100,000 brackets": (b"[" * 100_000, "too_deep"),
        "1 MB": (event(phase="x" * 1_000_000), "too_large"),
    }
)
# These take what follows them in a text with them: in an array they spoil the whole message.
OPEN: Final = ("cut off", "a text without an end", "a bracket without an end", "100,000 brackets")
