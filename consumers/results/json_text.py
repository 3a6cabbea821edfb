"""JSON as our answers have it: sorted keys, UTF-8, and numbers that it has no name for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]


def dumps(value: Json) -> bytes:
    """JSON with sorted keys, in UTF-8, with a last newline."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    # A lone surrogate has no UTF-8; its backslash form is what JSON writes for it.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def number(value: float) -> Json:
    """A float as JSON has it: nan is null, and infinities are texts."""
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
