"""The bodies of answers, compressed for clients that accept gzip.

The JSON of tables repeats its names: it becomes 20 to 50 times smaller. Streams of events are not
answered here, since they must not wait for more text.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

LEAST: Final = 1_000  # bytes that are worth it: these fit into one packet
QUICK: Final = 4  # the level for answers, which are compressed once or a few times
_GZIP: Final = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)
ENCODED: Final[Mapping[str, str]] = {"content-encoding": "gzip"}
VARIES: Final[Mapping[str, str]] = {"vary": "accept-encoding"}


def accepts_gzip(request: Request) -> bool:
    """Whether the client can read gzip."""
    return _GZIP.search(request.headers.get("accept-encoding", "")) is not None


def compressed(data: bytes, level: int = QUICK) -> bytes:
    """The bytes as gzip: equal ones for equal data."""
    return gzip.compress(data, level, mtime=0)


def response(request: Request, data: bytes, media_type: str) -> Response:
    """An answer with this body, compressed if it is large and the client accepts that."""
    if len(data) >= LEAST and accepts_gzip(request):
        return compressed_response(compressed(data), media_type)
    return Response(data, headers=VARIES, media_type=media_type)


def compressed_response(data: bytes, media_type: str) -> Response:
    """An answer with this body, which is compressed."""
    return Response(data, headers={**VARIES, **ENCODED}, media_type=media_type)
