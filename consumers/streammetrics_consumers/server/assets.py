"""The page: our own files beside this module, and the charting library from its package.

Nothing is loaded from another host, and no code of others is copied: a package from the registry
holds the library and bundles it into one module, which takes seconds. So it is made once in a
process, and the page shows its tables before the library is ready.
"""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from functools import cache
from importlib.resources import files
from threading import Event, Lock, Thread
from typing import Final

from streammetrics_consumers.server.bodies import Asset

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
    return Asset.from_data(process.stdout, TYPES["js"])


def prepare() -> None:
    """Make the charting library, which takes seconds, in the background on the first call."""
    if not _CHARTS_ASKED.is_set():
        _CHARTS_ASKED.set()
        Thread(target=charts, name="charts", daemon=True).start()


@cache
def _file(name: str) -> Asset | None:
    path = files("streammetrics_consumers.server") / "page" / name
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return Asset.from_data(data, TYPES[name.rpartition(".")[2]])
