"""The type checker sees what the documentation promises, and refuses what it forbids."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def said() -> dict[str, set[tuple[int, str]]]:
    """The errors of mypy by file: (line, code)."""
    api = pytest.importorskip("mypy.api")
    files = ["public_types.py", "mistakes.py"]
    out, err, _ = api.run(
        [
            *("--strict", "--no-error-summary", "--hide-error-context", "--no-pretty"),
            *("--config-file", str(HERE.parents[1] / "pyproject.toml")),
            *(str(HERE / name) for name in files),
        ]
    )
    assert not err
    found: dict[str, set[tuple[int, str]]] = {name: set() for name in files}
    for line in out.splitlines():
        if match := re.fullmatch(r"(.*?):(\d+): error: .*\[([a-z-]+)\]", line):
            found.setdefault(Path(match[1]).name, set()).add((int(match[2]), match[3]))
    return found


def test_public_names_have_the_types_that_are_promised(
    said: dict[str, set[tuple[int, str]]],
) -> None:
    assert said["public_types.py"] == set()


def test_each_mistake_is_found_where_it_is_made(said: dict[str, set[tuple[int, str]]]) -> None:
    lines = enumerate((HERE / "mistakes.py").read_text().splitlines(), 1)
    expected = {(n, line.split("# E: ")[1]) for n, line in lines if "# E: " in line}
    assert len(expected) > 10
    assert said["mistakes.py"] == expected
