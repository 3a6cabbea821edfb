"""The commit that a source archive or a wheel is built from, as a file beside model/version.py.

An archive that was built from a clone holds the file, so a wheel that is built from it has it too.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "streammetrics_consumers/model/commit.txt"


class CommitHook(BuildHookInterface[Any]):
    """Adds the file, unless there is no clone; an editable installation reads its clone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a build."""
        if version == "editable" or not (Path(self.root) / ".git").exists():
            return
        command = ["git", "rev-parse", "HEAD"]
        process = subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, check=False
        )
        if process.returncode:
            return
        file = Path(tempfile.mkdtemp(prefix="streammetrics-")) / "commit.txt"
        file.write_text(process.stdout, encoding="utf-8")
        inside = FOLDER if self.target_name == "wheel" else f"consumers/{FOLDER}"
        build_data["force_include"][str(file)] = inside
