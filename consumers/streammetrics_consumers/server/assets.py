"""The page: our own files beside this module, and the charting library from its package.

Nothing is loaded from another host, and no code of others is copied: a package from the registry
holds the library and bundles it into one module, which takes seconds. So it is made once in a
process, and the page shows its tables before the library is ready.
"""

from __future__ import annotations

import hashlib
import logging
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from threading import Event, Lock, Thread
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from streammetrics_consumers.server.bodies import ENCODED, VARIES, accepts_gzip, compressed

log = logging.getLogger(__name__)

CHARTS: Final = "charts.js"
TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_PROGRAM: Final = """\
import sys
from streammetrics.present import charts_javascript
sys.stdout.buffer.write(charts_javascript().encode())
"""
_MAKING: Final = Lock()
_CHARTS_ASKED: Final = Event()
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*\.(html|js|css|svg)")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page, plain and compressed, with the ETag of its plain bytes."""

    data: bytes
    compressed: bytes
    tag: str
    type: str

    @staticmethod
    def of(data: bytes, type_: str) -> Asset:
        """The asset of these bytes."""
        tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        return Asset(data, compressed(data, 6), tag, type_)


def asset(name: str) -> Asset | None:
    """The asset of this name; None if there is none."""
    if name == CHARTS:
        return charts()
    if not _NAME.fullmatch(name):
        return None
    return _file(name)


def charts() -> Asset | None:
    """The charting library; None if its package is not installed."""
    with _MAKING:
        return _charts()


@cache
def _charts() -> Asset | None:
    # In a separate process: here it would block every thread, and keep 100 MB.
    process = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, check=False)
    if process.returncode or not process.stdout:
        error_lines = process.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        log.warning(
            "the page has no charts: %s", error_lines[0] if error_lines else "no reason was given"
        )
        return None
    return Asset.of(process.stdout, TYPES["js"])


def prepare() -> None:
    """Make the charting library, which takes seconds, in the background on the first call."""
    if not _CHARTS_ASKED.is_set():
        _CHARTS_ASKED.set()
        Thread(target=charts, name="charts", daemon=True).start()


def answer(request: Request, found: Asset) -> Response:
    """The asset, or status 304 if the client's copy is the same."""
    is_compressed = accepts_gzip(request)
    tag = f'{found.tag[:-1]}-gzip"' if is_compressed else found.tag
    headers = {"etag": tag, "cache-control": "no-cache", **VARIES}
    client_tags = request.headers.get("if-none-match", "").split(",")
    if tag in (client_tag.strip().removeprefix("W/") for client_tag in client_tags):
        return Response(status_code=304, headers=headers)
    if is_compressed:
        headers |= ENCODED
    data = found.compressed if is_compressed else found.data
    return Response(data, headers=headers, media_type=found.type)


@cache
def _file(name: str) -> Asset | None:
    path = files("streammetrics_consumers.server") / "page" / name
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return Asset.of(data, TYPES[name.rpartition(".")[2]])
