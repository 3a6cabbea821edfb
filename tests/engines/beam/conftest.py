"""Without Beam, nothing here is imported but the test that skips and says how to enable it."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("apache_beam") is None:
    collect_ignore_glob = ["dying.py", "pipelines.py", "test_[!e]*.py"]
