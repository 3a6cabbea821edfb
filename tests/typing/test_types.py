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
    for path in USERS_FILES:
        shutil.copy(path, tmp_path)
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(HERE.parents[1])]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    process = subprocess.run(
        [*command, "-p", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout


def arguments_in(text: str) -> dict[str, list[tuple[str, str, bool, bool]]]:
    """Of each class of a source the arguments of the `update` that a type checker sees: name, type,
    whether it may be left out, and whether it is given by name only."""
    arguments = {}
    for kind in ast.walk(ast.parse(text)):
        if isinstance(kind, ast.ClassDef):
            for block in (node for node in kind.body if isinstance(node, ast.If)):
                for method in block.body:
                    if isinstance(method, ast.FunctionDef) and method.name == "update":
                        arguments[kind.name] = _arguments(method.args)
    return arguments


def _arguments(args: ast.arguments) -> list[tuple[str, str, bool, bool]]:
    defaults = [None] * (len(args.args) - len(args.defaults)) + [*args.defaults]
    plain = [(a, d, False) for a, d in zip(args.args, defaults, strict=True)][1:]
    keyword_arguments = [
        (a, d, True) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)
    ]
    return [
        (a.arg, ast.unparse(a.annotation) if a.annotation else "", d is not None, keyword)
        for a, d, keyword in plain + keyword_arguments
    ]


def test_what_a_type_checker_sees_of_update_is_what_the_inputs_say() -> None:
    for name in streammetrics.__all__:
        getattr(streammetrics, name)  # a metric is declared when it is first used
    declared = {kind.__name__: kind for kind in CLASSES.values() if kind._inputs.columns}
    metrics = {
        name: kind
        for name, kind in declared.items()
        if kind.__module__.startswith("streammetrics.")
        and hasattr(sys.modules[kind.__module__], name)  # and is not of a docstring's example
    }
    count = 0
    for name, kind in metrics.items():
        seen_by_checkers = arguments_in(Path(inspect.getfile(kind)).read_text(encoding="utf-8"))
        assert name in seen_by_checkers, f"give {name} its `update` under `if TYPE_CHECKING:`"
        for argument, parameter in zip(seen_by_checkers[name], kind._inputs, strict=True):
            says = parameter[1].type_text + " | None" * parameter[1].optional
            assert argument == (parameter[0], says, parameter[1].optional, parameter[1].keyword), (
                name
            )
            count += 1
    assert count > 40
