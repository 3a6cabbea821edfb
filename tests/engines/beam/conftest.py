"""Without Beam, nothing here is imported but the test that skips and says how to enable it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

if find_spec("apache_beam") is None:
    here = Path(__file__).parent
    collect_ignore = [path.name for path in here.glob("*.py") if path.name != "test_environment.py"]
