"""The bodies of answers, compressed for clients that accept gzip.

The JSON of tables repeats its names: it becomes 20 to 50 times smaller. Streams of events are not
answered here, since they must not wait for more text.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page, plain and compressed, with the ETag of its plain bytes."""

    data: bytes
    compressed: bytes
    tag: str
    type: str

    @staticmethod
    def from_data(data: bytes, type_: str) -> Asset:
        """The asset of these bytes."""
        tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        return Asset(data, compressed(data, 6), tag, type_)


def asset_response(request: Request, asset: Asset) -> Response:
    """The asset, or status 304 if the client's copy is the same."""
    is_compressed = accepts_gzip(request)
    tag = f'{asset.tag[:-1]}-gzip"' if is_compressed else asset.tag
    headers = {"etag": tag, "cache-control": "no-cache", **VARIES}
    client_tags = request.headers.get("if-none-match", "").split(",")
    if tag in (client_tag.strip().removeprefix("W/") for client_tag in client_tags):
        return Response(status_code=304, headers=headers)
    if is_compressed:
        headers |= ENCODED
    data = asset.compressed if is_compressed else asset.data
    return Response(data, headers=headers, media_type=asset.type)
