"""The files of docs/write_a_metric.md in a folder of their own, and commands that run there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.requirements import ROOT

PAGE = (ROOT / "docs" / "write_a_metric.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"```([a-z]+)\n(.*?)```", PAGE, re.DOTALL)
# A block whose first line is a path is that file.
FILES: dict[str, str] = {
    found[1]: text[found.end() :]
    for _, text in BLOCKS
    if (found := re.match(r"# ([\w/]+\.[a-z]+)\n", text))
}


def written(folder: Path) -> Path:
    """The folder with these files, and with what `pip install .` would say of the package."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    dist_info = folder / f"my_package-{project['version']}.dist-info"
    dist_info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (dist_info / "METADATA").write_text(head, encoding="utf-8")
    lines = [
        line
        for group, places in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {place}" for name, place in places.items()))
    ]
    (dist_info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def run(folder: Path, command: str) -> str:
    """What commands print where the package and this library are installed, and no more."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    process = subprocess.run(
        ["bash", "-ec", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout
