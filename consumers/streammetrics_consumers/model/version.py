"""The version of this program: the release, and the commit that it was built from.

`streammetrics.__version__` is the release, as package indexes have it: they refuse more. Two
programs of one release may differ, so a store and `streammetrics --version` name the commit too:
of the clone that the program runs from, or of the one that its wheel was built from.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from streammetrics import __version__

COMMIT_FILE: Final = "commit.txt"  # beside this module in a wheel; see docs/build_commit.py
_SHORT: Final = 8  # digits of a commit
_HASH: Final = re.compile(r"[0-9a-f]{40,64}")


@lru_cache(maxsize=1)
def program_version() -> str:
    """The release, with the commit after a `+` where it is known: 0.1.0+g1234abcd."""
    commit = _built_commit() or clone_commit(Path(__file__).resolve().parents[3])
    return __version__ if commit is None else f"{__version__}+g{commit[:_SHORT]}"


def _built_commit() -> str | None:
    return _commit_in(Path(__file__).with_name(COMMIT_FILE))


def clone_commit(root: Path) -> str | None:
    """The commit that is checked out in this clone of the repository; None where there is none. It
    reads the files of git, so that git need not be installed."""
    if not (root / "consumers" / "streammetrics_consumers").is_dir():
        return None
    folder = root / ".git"
    if folder.is_file():  # of a second worktree
        folder = root / _text(folder).removeprefix("gitdir:").strip()
    head = _text(folder / "HEAD")
    if not head.startswith("ref:"):
        return head if _HASH.fullmatch(head) else None
    ref = head.removeprefix("ref:").strip()
    shared = folder / (_text(folder / "commondir") or ".")
    for place in (folder / ref, shared / ref):
        commit = _commit_in(place)
        if commit is not None:
            return commit
    for line in _text(shared / "packed-refs").splitlines():
        commit, _, name = line.partition(" ")
        if name == ref and _HASH.fullmatch(commit):
            return commit
    return None


def _commit_in(path: Path) -> str | None:
    commit = _text(path)
    return commit if _HASH.fullmatch(commit) else None


def _text(path: Path) -> str:
    """The text of a file; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
