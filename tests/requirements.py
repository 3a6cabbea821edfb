"""What a test may need that a machine may lack: it skips with a reason, or must be there.

`STREAMMETRICS_REQUIRE=kafka,data` names the parts whose absence is a failure. CI names all that
exist; on a developer's machine the tests of an absent part skip and say how to enable them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The parts, and how a developer enables each.
PARTS = {
    "kafka": "install Java 17 and Maven, or set KAFKA_BOOTSTRAP=host:port to use a running broker",
    "postgres": "install PostgreSQL, or set STREAMMETRICS_POSTGRES to the URL of a running one",
    "pgbouncer": "install PgBouncer (Debian: pgbouncer), besides what postgres needs",
    "java": "install a Java 17 runtime, so that `java` is on the PATH",
    "browser": "install Chromium, so that `chromium` is on the PATH",
    "prometheus": "install Prometheus (Debian: prometheus): it and promtool must be on the PATH",
    "linters": "run `make linters` (400 MB on disk)",
    "helm": "install Go and run `make linters`, or put `helm` on the PATH",
    "actionlint": "install Go and run `make linters`, or put `actionlint` on the PATH",
    "zsh": "install zsh (Debian: zsh)",
    "spin": "install Spin and a C compiler (Debian: spin, gcc, libc6-dev)",
    "torch": "run `make peers` (3 GB to download)",
    "ranx": "run `make peers`, or `make .cache/ranx/.made` (700 MB on disk)",
    "obp": "run `make peers`, or `make .cache/obp/.made` (500 MB on disk)",
    "ddsketch": "run `make peers`, or `make .cache/ddsketch/.made` (10 MB on disk)",
    "list-peers": "run `make peers`, or `make .cache/list-peers/.made` (300 MB on disk)",
    "uplift-peers": "run `make peers`, or `make .cache/uplift-peers/.made` (1.6 GB on disk)",
    "evidently": "run `make peers`, or `make .cache/evidently/.made` (1 GB on disk)",
    "site": "run `make site` (it downloads 400 MB): it has an environment of its own",
    "spark": "run `make test-engines` (845 MB to download): it has an environment of its own",
    "beam": "run `make test-engines` (484 MB to download): it has an environment of its own",
    "recipes": "run `make test-engines` (700 MB to download): DuckDB, Dask and Ray",
    "data": "put the shared data at ../shared/data, or set STREAMMETRICS_DATA to its folder",
}


class UnknownPart(ValueError):
    """STREAMMETRICS_REQUIRE names something that is not in PARTS."""


def required_parts(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """The parts that must be there."""
    names = environment.get("STREAMMETRICS_REQUIRE", "").split(",")
    parts = frozenset(part.strip() for part in names) - {""}
    unknown = ", ".join(sorted(parts - PARTS.keys()))
    if unknown:
        # A slip here would turn a requirement off without a word.
        raise UnknownPart(f"STREAMMETRICS_REQUIRE names {unknown}; it knows {', '.join(PARTS)}")
    return parts


def absent(part: str, why: str) -> NoReturn:
    """Skip the test, or fail it where the part is required; the reason says how to enable it."""
    end = pytest.fail if part in required_parts() else pytest.skip
    end(f"no {part}: {why}. To enable: {PARTS[part]}")


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the shared data is, or would be."""
    folder = environment.get("STREAMMETRICS_DATA")
    return Path(folder) if folder else ROOT.parent / "shared" / "data"


class Later:
    """A module that is imported when a test first uses it. Each worker imports all files of tests,
    and what it would not use takes seconds."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):  # pytest looks for its marks in every name of a file
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
