"""The types that pyright sees in a user's file, and those of `update` against its inputs.

`mypy` checks the other files of this folder with the sources.
"""

from __future__ import annotations

import ast
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import streammetrics
from streammetrics.core.settings import CLASSES

HERE = Path(__file__).parent
USERS_FILES = [HERE / "users_file.py", *(HERE.parent / "newcomer" / "scripts").glob("*.py")]


def test_users_files_and_the_scripts_of_newcomers_are_typed_for_pyright(
    tmp_path: Path,
) -> None:
    pytest.importorskip("basedpyright")
    assert len(USERS_FILES) == 26
    for one in USERS_FILES:
        shutil.copy(one, tmp_path)
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(HERE.parents[1])]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    found = subprocess.run(
        [*command, "-p", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout


def arguments_in(text: str) -> dict[str, list[tuple[str, str, bool, bool]]]:
    """Of each class of a source the arguments of the `update` that a type checker sees: name, type,
    whether it may be left out, and whether it is given by name only."""
    found = {}
    for kind in ast.walk(ast.parse(text)):
        if isinstance(kind, ast.ClassDef):
            for block in (one for one in kind.body if isinstance(one, ast.If)):
                for method in block.body:
                    if isinstance(method, ast.FunctionDef) and method.name == "update":
                        found[kind.name] = _arguments(method.args)
    return found


def _arguments(args: ast.arguments) -> list[tuple[str, str, bool, bool]]:
    defaults = [None] * (len(args.args) - len(args.defaults)) + [*args.defaults]
    plain = [(a, d, False) for a, d in zip(args.args, defaults, strict=True)][1:]
    named = [(a, d, True) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return [
        (a.arg, ast.unparse(a.annotation) if a.annotation else "", d is not None, keyword)
        for a, d, keyword in plain + named
    ]


def test_what_a_type_checker_sees_of_update_is_what_the_inputs_say() -> None:
    for name in streammetrics.__all__:
        getattr(streammetrics, name)  # a metric is declared when it is first used
    declared = {kind.__name__: kind for kind in CLASSES.values() if kind._inputs.columns}
    ours = {
        name: kind
        for name, kind in declared.items()
        if kind.__module__.startswith("streammetrics.")
        and hasattr(sys.modules[kind.__module__], name)  # and is not of a docstring's example
    }
    seen = 0
    for name, kind in ours.items():
        seen_by_checkers = arguments_in(Path(inspect.getfile(kind)).read_text(encoding="utf-8"))
        assert name in seen_by_checkers, f"give {name} its `update` under `if TYPE_CHECKING:`"
        for argument, one in zip(seen_by_checkers[name], kind._inputs, strict=True):
            says = one[1].type_text + " | None" * one[1].optional
            assert argument == (one[0], says, one[1].optional, one[1].keyword), name
            seen += 1
    assert seen > 40
