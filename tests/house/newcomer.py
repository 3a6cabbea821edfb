"""Files that a newcomer changes, counted by doing it: in a scratch copy, by CONTRIBUTING's
commands.

A section of CONTRIBUTING ends with a block of commands; NAME in them stands for what is added. The
additions are in `tests/newcomer/additions.py`. What git then lists as changed or new is what a
newcomer commits: by hand, what the addition writes or edits; the rest is written by the commands.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.house.figure import NOT_MEASURED, Figure
from tests.requirements import ROOT


@dataclass(frozen=True)
class Edit:
    """A place in a file that a newcomer changes: `before`, which is there once, becomes `after`."""

    path: str
    before: str
    after: str


@dataclass(frozen=True)
class Addition:
    """What a newcomer adds by hand.

    section: of CONTRIBUTING. name: of what is added, NAME in the commands. files: new ones, by
    path. most: the goal for the files that change, None without one.
    """

    section: str
    name: str
    files: dict[str, str] = field(default_factory=dict)
    edits: Sequence[Edit] = ()
    most: int | None = None

    @property
    def by_hand(self) -> set[str]:
        """The files that a newcomer writes or edits."""
        return {*self.files, *(edit.path for edit in self.edits)}


def commands_of(section: str, page: str | None = None) -> list[str]:
    """The commands in the blocks of a section of CONTRIBUTING, a line for each."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8") if page is None else page
    text = f"\n{page}".partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [" ".join(line.split()) for line in lines if line.strip()]


def is_gate(command: str) -> bool:
    """Whether a command only checks, and writes nothing."""
    return "pytest" in command or "ruff check" in command


class Refused(Exception):
    """A documented command failed, or an edit did not find its place."""


class Clone:
    """A copy of the tracked files in a repository of its own, with the environment of this
    process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = _run(["git", "ls-files", "--cached", "--others", "--exclude-standard",
                       "--deduplicate"], ROOT)  # fmt: skip
        for name in listed.splitlines():
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        environment = folder / ".venv"
        environment.mkdir()
        for part in Path(sys.prefix).iterdir():
            if part.name not in (".dev", ".serve"):
                (environment / part.name).symlink_to(part)
        _run(["git", "init", "-q"], folder)
        self.commit()
        for mark in (".serve", ".dev"):  # newer than what they depend on: make installs nothing
            (environment / mark).touch()

    def commit(self) -> None:
        """Keep what is there as the state from which changes count."""
        who = ["-c", "user.name=A newcomer", "-c", "user.email=newcomer@example.org"]
        _run(["git", "add", "-A"], self.folder)
        _run(["git", *who, "commit", "-q", "--no-verify", "-m", "Scratch"], self.folder)

    def reset(self) -> None:
        """Go back to what was kept last."""
        _run(["git", "reset", "-q", "--hard"], self.folder)
        _run(["git", "clean", "-fdq"], self.folder)

    def write(self, addition: Addition) -> None:
        """Do what the newcomer does by hand."""
        for name, text in addition.files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        for edit in addition.edits:
            path = self.folder / edit.path
            text = path.read_text(encoding="utf-8")
            if text.count(edit.before) != 1:
                n = text.count(edit.before)
                raise Refused(f"{edit.path} has {edit.before!r} {n} times, not once")
            path.write_text(text.replace(edit.before, edit.after), encoding="utf-8")

    def run(self, command: str) -> str:
        """Run a documented command; what it prints. Refused if it fails."""
        paths = os.pathsep.join([str(self.folder), str(self.folder / "consumers")])
        quiet = {
            "PYTHONPATH": paths,
            "PYTHONDONTWRITEBYTECODE": "",  # the next command reads what this one compiles
            "MAKEFLAGS": "",
            "PYTEST_ADDOPTS": "",
        }
        return _run(["bash", "-c", command], self.folder, quiet)

    def changed(self) -> set[str]:
        """The files that git lists as changed or new."""
        listed = _run(["git", "status", "--porcelain", "--untracked-files=all", "-z"], self.folder)
        return {line[3:] for line in listed.split("\0") if line}


def _run(words: Sequence[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    variables = {
        name: value
        for name, value in os.environ.items()
        # pytest prints whole differences where CI is set, which hides what follows.
        if name != "CI" and not name.startswith(("GIT_", "PYTEST_XDIST"))
    }
    run = subprocess.run(
        words,
        cwd=folder,
        env=variables | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise Refused(
            f"{words[-1]}: exit {run.returncode}\n{run.stdout[-6000:]}\n{run.stderr[-3000:]}"
        )
    return run.stdout


def added(clone: Clone, addition: Addition, *, gates: bool) -> set[str]:
    """Add something by the commands of its section; the files that changed. Then it is committed.

    gates: whether commands that only check are run too.
    """
    clone.reset()
    clone.write(addition)
    for command in commands_of(addition.section):
        if gates or not is_gate(command):
            clone.run(re.sub(r"(?<![A-Z])NAME(?![A-Z])", addition.name, command))
    files = clone.changed()
    clone.commit()
    return files


def figures() -> Iterator[Figure]:
    """The lines of this file: one for each addition, made one after the other in one copy."""
    from tests.newcomer.additions import ADDITIONS

    with TemporaryDirectory() as folder:
        try:
            clone = Clone(Path(folder))
        except Refused:  # no checkout: nothing says which files are tracked
            yield from (
                Figure(f"files that change: {entry.section}", NOT_MEASURED, entry.most)
                for entry in ADDITIONS
            )
            return
        for addition in ADDITIONS:
            files = added(clone, addition, gates=False)
            listed = [
                f"{'by hand' if name in addition.by_hand else 'written'}  {name}"
                for name in sorted(files)
            ]
            hands = len(addition.by_hand)
            yield Figure(
                f"files that change: {addition.section} ({hands} by hand)",
                len(files),
                addition.most,
                details=listed,
            )
