"""What a command imports: only what it uses, so that it starts fast."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SERVER = ("starlette", "uvicorn", "prometheus_client", "vl_convert")
OF_OTHERS = ("sqlalchemy.dialects.postgresql", "streammetrics_consumers.config", "asyncio")
OF_EXPERIMENTS = (
    *("streammetrics.evaluation", "streammetrics.combine.user_groups"),
    "streammetrics.experiments.plan",
)
# `sqlalchemy/util/compat.py` imports asyncio, whatever is imported of that package.
SCRIPT = """
import sys
if "STORE" in sys.argv.pop(1):
    import sqlalchemy.dialects.sqlite, sqlalchemy.pool
    for name in [name for name in sys.modules if name.partition(".")[0] == "asyncio"]:
        del sys.modules[name]
from streammetrics_consumers.cli import main, progress
progress.QUICK_S = 0  # as where a command is slow: what shows its progress is no burden either
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
        ("status STORE --json", ("numpy", "rich", *OF_OTHERS)),
        ("status STORE", ("numpy", *OF_OTHERS)),
        ("quarantine STORE", ("numpy", "rich")),
        ("results STORE", ("rich.progress", "streammetrics.engines", *OF_EXPERIMENTS, *OF_OTHERS)),
    ],
)
def test_a_command_imports_only_what_it_uses(
    store: Path, words: str, left_out: tuple[str, ...]
) -> None:
    command = [sys.executable, "-c", SCRIPT, words, *words.replace("STORE", str(store)).split()]
    stderr = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    code, *imported = stderr.splitlines()[-1].split()
    assert code == "0"
    assert not {*left_out, *SERVER} & {*imported}


def test_eval_of_a_file_imports_no_library_of_frames(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]' in a clone")
    table = pa.table({"label": [True, False], "score": [0.5, 0.2], "variant": ["a", None]})
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table, tmp_path / "rows.parquet")
    words = "--labels label --scores score --metrics auc,log_loss --by variant"
    command = [sys.executable, "-c", SCRIPT, "eval", "eval", str(tmp_path / "rows.parquet")]
    process = subprocess.run([*command, *words.split()], capture_output=True, text=True, check=True)
    code, *imported = process.stderr.splitlines()[-1].split()
    assert code == "0"
    modules = (
        "streammetrics.ranking.measure",
        "streammetrics.policies.off_policy",
        *OF_EXPERIMENTS,
    )
    assert not {"pandas", "polars", "sqlalchemy", "rich", *modules} & {*imported}
