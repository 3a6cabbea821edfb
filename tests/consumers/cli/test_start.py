"""What a command imports: only what it uses, so that it starts fast."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SERVER = ("starlette", "uvicorn", "prometheus_client")
SCRIPT = """
import sys
from streammetrics_consumers.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as error:
    code = error.code
print(code, *sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "left_out"),
    [
        ("--help", ("numpy", "sqlalchemy", "rich", "msgspec", "asyncio")),
        ("status --help", ("numpy", "sqlalchemy", "rich", "msgspec", "asyncio")),
        ("--version", ("numpy", "sqlalchemy", "asyncio")),
        ("completion bash", ("numpy", "sqlalchemy", "asyncio")),
        ("status STORE --json", ("numpy", "streammetrics_consumers.config", "rich")),
        pytest.param(
            *("status STORE", ("numpy", "streammetrics_consumers.config")), marks=pytest.mark.slow
        ),
        pytest.param("quarantine STORE", ("numpy", "rich"), marks=pytest.mark.slow),
        pytest.param(
            "results STORE",
            ("rich.progress", "streammetrics.evaluation", "streammetrics.engines"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_command_imports_only_what_it_uses(
    store: Path, words: str, left_out: tuple[str, ...]
) -> None:
    command = [sys.executable, "-c", SCRIPT, *words.replace("STORE", str(store)).split()]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    code, *imported = said.splitlines()[-1].split()
    assert code == "0"
    assert not {*left_out, *SERVER} & {*imported}


ALONE = """
import sys
import sqlalchemy.dialects.postgresql, sqlalchemy.dialects.sqlite, sqlalchemy.pool
for name in [name for name in sys.modules if name.partition(".")[0] == "asyncio"]:
    del sys.modules[name]
"""


@pytest.mark.parametrize("words", ["status", "results"])
def test_no_command_that_reads_imports_asyncio_except_through_sqlalchemy(
    store: Path, words: str
) -> None:
    """`sqlalchemy/util/compat.py` imports asyncio, whatever is imported of that package."""
    command = [sys.executable, "-c", ALONE + SCRIPT, words, str(store)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    code, *imported = said.splitlines()[-1].split()
    assert code == "0"
    assert "asyncio" not in imported
