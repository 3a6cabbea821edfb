"""Runs the blocks of a page of the site, in the folder where it is called: `site_blocks.py PAGE`.

A `python` block is executed, all of a page in one namespace; a block with `title="name"` is written
to that file; a `bash` block is run. What a block prints must be the `text` block that follows it.
With `--write` the page then shows what its blocks print; look at the difference. The script needs
the standard library only, since some pages run in an environment of their own.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^( *)```(\S*)(?: +([^\n]*))?\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
ENVIRONMENT = re.compile(r"\A---\n(?:.*\n)*?environment: (\w+)\n(?:.*\n)*?---\n")


class Block(NamedTuple):
    """A block of code: its language, the file that it is, and its lines."""

    kind: str
    title: str
    text: str
    line: int


def environment_of(page: str) -> str:
    """The environment that a page names at its top; empty: that of the tests."""
    match = ENVIRONMENT.match(page)
    return match[1] if match else ""


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    page_blocks = []
    for indent, kind, rest, text in FENCE.findall(page):
        title = re.search(r'title="([^"]+)"', rest or "")
        lines = re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
        page_blocks.append(
            Block(kind, title[1] if title else "", lines, page[: page.index(text)].count("\n"))
        )
    return page_blocks


def shown(page: str) -> Iterator[tuple[Block, str | None]]:
    """Each block that is not an output, and the output that the page shows for it, if any."""
    page_blocks = blocks(page)
    outputs = [
        block.text if block.kind == "text" and not block.title else None for block in page_blocks
    ]
    for block, output, after in zip(page_blocks, outputs, [*outputs, None][1:], strict=True):
        if output is None:
            yield block, after


def run_in_shell(commands: str) -> str:
    """What the commands of a block print; nothing that they started stays."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with tempfile.TemporaryFile("w+") as out:  # a process that stays cannot keep it open for us
        shell = subprocess.Popen(
            ["bash", "-e", "-o", "pipefail", "-c", commands],
            env={**os.environ, "PATH": path}, stdout=out, start_new_session=True,
        )  # fmt: skip
        try:
            code = shell.wait(timeout=240)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
        if code != 0:
            raise RuntimeError(f"exit code {code} of\n{commands}")
        out.seek(0)
        return out.read()


def run(path: str) -> list[str]:
    """The differences between what the blocks of a page print and what it shows."""
    wrong = []
    for block, page_output, printed in outputs(path):
        if page_output is not None and printed.rstrip() != page_output.rstrip():
            wrong.append(f"{path}:{block.line} prints\n{printed}and the page says\n{page_output}")
        elif page_output is None and printed.strip() and block.kind == "python":
            wrong.append(f"{path}:{block.line} prints, and the page does not show it\n{printed}")
    return wrong


def outputs(path: str) -> Iterator[tuple[Block, str | None, str]]:
    """Each block that runs, what the page shows for it, and what it prints."""
    page = Path(path).read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    sys.path.insert(0, os.getcwd())  # a page may import a file that it wrote
    for block, page_output in shown(page):
        printed = ""
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.kind == "python":
            out = io.StringIO()
            code = compile("\n" * block.line + block.text, path, "exec")
            with contextlib.redirect_stdout(out):
                exec(code, namespace)  # our own text, not data from outside
            printed = out.getvalue()
        elif block.kind == "bash":
            printed = run_in_shell(block.text)
        yield block, page_output, printed


def write(path: str) -> None:
    """Write what the blocks of a page print in place of what it shows."""
    source, page = Path(path).read_text(encoding="utf-8"), ""
    for block, page_output, printed in list(outputs(path)):
        if page_output is not None:
            code, shown_as = f"\n{block.text}```\n", f"```text\n{page_output}```\n"
            # ValueError for a block that is indented
            end = source.index(shown_as, source.index(code))
            page += f"{source[:end]}```text\n{printed.rstrip()}\n```\n"
            source = source[end + len(shown_as) :]
    Path(path).write_text(page + source, encoding="utf-8")


if __name__ == "__main__":
    *flags, name = sys.argv[1:]
    if flags == ["--write"]:
        write(name)
        sys.exit()
    differences = run(name)
    sys.stdout.write("\n".join(differences))
    sys.exit(bool(differences))
